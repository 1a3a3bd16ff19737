//! `contend generate`: what packagers and other programs need.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory;
use contend_report::schema;

use crate::cli::Args;
use crate::cli::generate::{GenerateArgs, Record, What};
use crate::exit::Exit;
use crate::output;

/// Prints what was asked for.
///
/// # Errors
/// When it cannot be written.
pub fn run(args: &GenerateArgs) -> Result<Exit> {
    let mut text = Vec::new();
    match &args.what {
        What::Completions { shell } => {
            clap_complete::generate(*shell, &mut Args::command(), "contend", &mut text);
        }
        What::Man { dir: None } => clap_mangen::Man::new(Args::command()).render(&mut text)?,
        What::Man { dir: Some(dir) } => pages(dir)?,
        What::Schema { record: Record::Pipe } => text = schema::pipe()?.into_bytes(),
    }
    output::stdout(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

fn pages(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
        .with_context(|| format!("cannot write man pages to {}", folder.display()))
}

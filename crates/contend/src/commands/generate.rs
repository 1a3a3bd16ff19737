//! `contend generate`: what packagers and other programs need.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory};
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
        What::Man { dir: None } => text = page(&Args::command())?,
        What::Man { dir: Some(dir) } => pages(dir)?,
        What::Schema { record: Record::Pipe } => text = schema::pipe()?.into_bytes(),
    }
    output::stdout(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

/// Writes the page of every verb, and of contend itself, into the folder.
fn pages(folder: &Path) -> Result<()> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut command = Args::command();
        command.build();
        write_pages(folder, &command)
    };
    write().with_context(|| format!("cannot write man pages to {}", folder.display()))
}

fn write_pages(folder: &Path, command: &Command) -> std::io::Result<()> {
    let verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help");
    for verb in verbs {
        write_pages(folder, verb)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command)?)
}

/// A man page. What stands after the options in the help has sections of its own, line by
/// line as it is there.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let command = command.clone().after_help(None::<&str>).after_long_help(None::<&str>);
    let source = format!("contend {}", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command).source(source).render(&mut page)?;
    for line in after.lines() {
        match line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            Some(heading) => page.extend(format!(".SH {}\n.nf\n", heading.to_uppercase()).bytes()),
            None => page.extend(format!("{}\n", roff(line)).bytes()),
        }
    }
    Ok(page)
}

/// A line that says to roff what it says to a reader.
fn roff(line: &str) -> String {
    let line = line.strip_prefix("  ").unwrap_or(line);
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

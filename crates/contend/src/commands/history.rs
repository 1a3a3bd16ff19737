//! `contend history`: the runs that are kept.

use std::path::Path;

use anyhow::Result;
use contend_report::render;
use contend_report::store::Store;

use crate::exit::Exit;
use crate::settings::{History, Shown};
use crate::{output, records};

/// Lists or shows.
///
/// # Errors
/// When there is no store or no such run.
pub fn run(settings: History) -> Result<Exit> {
    match settings.shown {
        Shown::List { most } => list(&settings.store, most)?,
        Shown::Run { number, json } => {
            let (schema, text) = records::kept(&settings.store, number)?;
            if let Some(file) = json {
                file.write(&(text + "\n"))?;
            } else {
                let record = records::kept_lab(number, &schema, &text)?;
                output::stdout(&render::lab::report(&record, output::width()))?;
            }
        }
    }
    Ok(Exit::Success)
}

fn list(path: &Path, most: usize) -> Result<()> {
    if !path.exists() {
        return output::stdout(&format!("No runs are kept yet in {}.\n", path.display()));
    }
    let entries = Store::open_to_read(path)?.list(most)?;
    let text = render::history::list(&entries, output::width());
    output::stdout(&text)
}

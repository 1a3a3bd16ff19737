//! `contend history`: the runs that are kept.

use std::path::Path;

use anyhow::Result;
use contend_report::render;
use contend_report::store::Store;

use crate::exit::{Exit, UsageError};
use crate::settings::{History, Shown};
use crate::{output, records};

/// Lists, shows or removes.
///
/// # Errors
/// When there is no store or no such run, or it cannot be written.
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
        Shown::Removed { numbers } => remove(&settings.store, &numbers)?,
    }
    Ok(Exit::Success)
}

/// Removes these runs, or none if one of them is not there.
fn remove(path: &Path, numbers: &[i64]) -> Result<()> {
    // Opening a store would make it.
    let missing =
        if path.exists() { Store::open(path)?.remove(numbers)? } else { numbers.to_vec() };
    if missing.is_empty() {
        let removed = match numbers {
            [number] => format!("removed run {number}\n"),
            numbers => format!("removed {} runs\n", numbers.len()),
        };
        return output::stderr(&removed);
    }
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let missing = missing.join(", ");
    Err(UsageError(format!(
        "no saved run {missing}; none was removed (`contend history` lists them)"
    ))
    .into())
}

fn list(path: &Path, most: usize) -> Result<()> {
    if !path.exists() {
        return output::stdout(&format!("No saved runs: {} does not exist.\n", path.display()));
    }
    let entries = Store::open_to_read(path)?.list(most)?;
    let text = render::history::list(&entries, output::width());
    output::stdout(&text)
}

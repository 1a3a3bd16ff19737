//! `contend history`: lists, shows and removes saved runs.

use std::path::Path;

use anyhow::Result;
use contend_report::render;
use contend_report::store::Store;

use crate::exit::{Exit, UsageError};
use crate::settings::{History, HistoryAction};
use crate::{output, records};

/// Lists, shows or removes runs.
///
/// # Errors
/// Returns an error if the store cannot be used, a run does not exist or cannot be shown, or the
/// output cannot be written.
pub fn run(settings: History) -> Result<Exit> {
    match settings.action {
        HistoryAction::List { max } => list(&settings.store, max)?,
        HistoryAction::Show { number, detail, json } => {
            let (schema, text) = records::saved(&settings.store, number)?;
            if let Some(file) = json {
                file.write(&(text + "\n"))?;
            } else {
                let record = records::saved_lab(number, &schema, &text)?;
                output::stdout(&render::lab::report(&record, detail, output::width()))?;
            }
        }
        HistoryAction::Remove { numbers } => remove(&settings.store, &numbers)?,
    }
    Ok(Exit::Success)
}

/// Removes the runs. If one of them does not exist, removes none and returns an error.
fn remove(path: &Path, numbers: &[i64]) -> Result<()> {
    // Opening a store would create it.
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

fn list(path: &Path, max: usize) -> Result<()> {
    if !path.exists() {
        return output::stdout(&format!("No saved runs: {} does not exist.\n", path.display()));
    }
    let entries = Store::open_to_read(path)?.list(max)?;
    let text = render::history::list(&entries, output::width());
    output::stdout(&text)
}

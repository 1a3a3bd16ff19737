//! `contend history`: the runs that are kept.

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_record::lab::{self, RunRecord};
use contend_report::render;
use contend_report::store::Store;

use crate::exit::{Exit, UsageError};
use crate::output;
use crate::settings::{History, Shown};

/// Lists or shows.
///
/// # Errors
/// When there is no store or no such run.
pub fn run(settings: History) -> Result<Exit> {
    match settings.shown {
        Shown::List { most } => list(&settings.store, most)?,
        Shown::Run { number, json } => {
            let (schema, text) =
                Store::open_to_read(&settings.store)?.get(number)?.ok_or_else(|| {
                    UsageError(format!("there is no run {number}: see contend history"))
                })?;
            match json {
                Some(file) => file.write(&(text + "\n"))?,
                None => output::stdout(&again(number, &schema, &text)?)?,
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

/// A run as it was shown.
fn again(number: i64, schema: &str, text: &str) -> Result<String> {
    if schema != lab::SCHEMA {
        let message =
            format!("run {number} has the schema {schema}, which this contend cannot show");
        return Err(UsageError(message).into());
    }
    if text == "{}" {
        let message = format!("run {number} was ended before it had measured anything");
        return Err(UsageError(message).into());
    }
    let record: RunRecord = serde_json::from_str(text)
        .with_context(|| format!("the record of run {number} cannot be read"))?;
    Ok(render::lab::report(&record, output::width()))
}

//! Settings of `contend compare`: reads the records to compare.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Result;
use contend_record::compare::Origin;
use contend_record::lab::RunRecord;

use super::{readable, store};
use crate::cli::compare::CompareArgs;
use crate::exit::UsageError;
use crate::output::ReportFile;
use crate::records;

/// Settings of `contend compare`.
#[derive(Debug)]
pub struct Compare {
    /// The runs; the first is the baseline.
    pub runs: Vec<(Origin, RunRecord)>,
    /// The file for the comparison as JSON, if requested.
    pub json: Option<ReportFile>,
}

/// Returns the settings of `contend compare`.
///
/// # Errors
/// Returns an error if:
/// - a saved run is named, but the store's directory is unknown,
/// - a run cannot be read, or is not a run of the lab,
/// - standard input is named twice, or
/// - the JSON file cannot be written, or is one of the runs.
pub fn compare(args: CompareArgs) -> Result<Compare> {
    let origins: Vec<Origin> = args.runs.iter().map(|name| origin(name)).collect();
    if origins.iter().filter(|origin| **origin == Origin::StandardInput).count() > 1 {
        return Err(
            UsageError("standard input can be read only once: give `-` once".to_owned()).into()
        );
    }
    let needs_store = origins.iter().any(|origin| matches!(origin, Origin::Kept { .. }));
    let store = needs_store.then(|| store(args.store)).transpose()?;
    let mut runs = Vec::new();
    for (name, origin) in args.runs.iter().zip(origins) {
        let record = match (&origin, &store) {
            (Origin::Kept { number }, Some(store)) => saved_run(store, *number)?,
            _ => of_file(name, &origin)?,
        };
        runs.push((origin, record));
    }
    if let Some(json) = &args.json
        && let Some(input) = args.runs.iter().find(|input| is_same_file(input, json))
    {
        let message = format!(
            "--json would overwrite {}, one of the compared runs: choose another file",
            input.display()
        );
        return Err(UsageError(message).into());
    }
    let json = args.json.as_deref().map(ReportFile::prepare).transpose()?;
    Ok(Compare { runs, json })
}

/// Returns the origin that an argument names: standard input, a saved run or a file. A file takes
/// precedence over a saved run with the same number.
fn origin(name: &Path) -> Origin {
    let text = name.to_string_lossy();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        _ if text == "-" => Origin::StandardInput,
        Ok(number) if is_number && !name.exists() => Origin::Kept { number },
        _ => Origin::File { path: text.into_owned() },
    }
}

fn saved_run(store: &Path, number: i64) -> Result<RunRecord> {
    if !store.exists() {
        let message = format!(
            "no file '{number}', and no saved run {number}: {} does not exist",
            store.display()
        );
        return Err(UsageError(message).into());
    }
    let (schema, text) = records::saved(store, number)?;
    records::saved_lab(number, &schema, &text)
}

fn of_file(path: &Path, origin: &Origin) -> Result<RunRecord, UsageError> {
    let (name, opened) = match origin {
        Origin::StandardInput => {
            ("standard input".to_owned(), io::stdin().as_fd().try_clone_to_owned().map(File::from))
        }
        _ => (path.display().to_string(), File::open(path)),
    };
    let mut text = String::new();
    readable(&name, opened)?
        .read_to_string(&mut text)
        .map_err(|source| UsageError(format!("cannot read {name}: {source}")))?;
    records::of_lab(&text, "contend lab --json")
        .map_err(|what| UsageError(format!("cannot compare {name}: {what}")))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().ok().filter(std::fs::Metadata::is_file);
    let place = |path: &Path| file(path).map(|data| (data.dev(), data.ino()));
    place(one).is_some_and(|place_of_one| place(other) == Some(place_of_one))
}

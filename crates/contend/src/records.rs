//! Reads records that earlier runs of contend have written.

pub mod save;

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_lab::experiments::REGISTRY;
use contend_record::lab::{self, RunRecord};
use contend_record::pipe::{self, PipeRecord};
use contend_record::run;
use contend_record::versus::{self, VersusRecord};
use contend_report::compare::{SavedRuns, of_parallel_run};
use contend_report::store::{Entry, Store};
use serde::de::DeserializeOwned;

use crate::exit::UsageError;

/// Parses a record with the given schema. `writer` is the command that writes such records.
///
/// # Errors
/// Returns a description of the problem, to follow the name of the file in a message.
pub fn of_schema<T: DeserializeOwned>(text: &str, schema: &str, writer: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Err("the file is empty".to_owned());
    }
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|source| format!("not valid JSON: {source}"))?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(found) if found == schema => {}
        Some(other) => return Err(format!("the schema is {other}, expected {schema}")),
        None => return Err(format!("not written by `{writer}`")),
    }
    // A `Value` does not keep the order of fields.
    serde_json::from_str(text).map_err(|source| format!("damaged record: {source}"))
}

/// Parses the record of a lab run, and fills in fields that earlier versions of contend did not
/// write.
///
/// # Errors
/// Returns a description of the problem, as [`of_schema`] does.
pub fn of_lab(text: &str, writer: &str) -> Result<RunRecord, String> {
    let mut record = of_schema(text, lab::SCHEMA, writer)?;
    REGISTRY.complete(&mut record);
    Ok(record)
}

/// Returns the list entry of the saved run with the given number, and its record as JSON.
///
/// # Errors
/// Returns an error if the store cannot be read, or has no such run.
pub fn saved(store: &Path, number: i64) -> Result<(Entry, String)> {
    let run = Store::open_to_read(store)?.entry(number)?;
    let missing = || UsageError(format!("no saved run {number}; `contend history` lists them"));
    Ok(run.ok_or_else(missing)?)
}

/// Returns why a text without a schema is not a record, to follow its name in a message.
pub fn without_schema(text: &str) -> String {
    if text.trim().is_empty() {
        return "the file is empty".to_owned();
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => "it is not a record of contend".to_owned(),
        Err(error) => format!("not valid JSON: {error}"),
    }
}

/// Returns the name of a record's schema; empty if the text is not a record.
pub fn schema_of(text: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    let schema = value.ok().and_then(|value| Some(value.get("schema")?.as_str()?.to_owned()));
    schema.unwrap_or_default()
}

/// Returns whether the text has the schema of a profile, of a comparison of pipelines, or of a
/// record of `contend run`.
pub fn is_of_pipelines(text: &str) -> bool {
    [pipe::SCHEMA, run::SCHEMA, versus::SCHEMA].contains(&schema_of(text).as_str())
}

/// Parses a record of `contend pipe` or `contend run`. The runs of each compared pipeline are an
/// element of the result; those of a profile or a parallel run are the only one. `from` says in
/// words where the record comes from.
///
/// # Errors
/// Returns a description of the problem, as [`of_schema`] does, also if the pipeline was only
/// explained and not run.
pub fn of_pipelines(text: &str, from: &str) -> Result<Vec<SavedRuns>, String> {
    let origin = |started_at: &str| {
        let start = started_at.replace('T', " ").replace('Z', "");
        format!("{from}, {start}")
    };
    let schema = schema_of(text);
    if schema == versus::SCHEMA {
        let record: VersusRecord = of_schema(text, versus::SCHEMA, "contend pipe --vs --json")?;
        let origin = origin(&record.started_at);
        return Ok(SavedRuns::of_comparison(record, &origin));
    }
    let profile: PipeRecord = if schema == run::SCHEMA {
        let record: run::RunRecord = of_schema(text, run::SCHEMA, "contend run --json")?;
        of_parallel_run(&record).ok_or("the pipeline was not run")?
    } else {
        of_schema(text, pipe::SCHEMA, "contend pipe --json")?
    };
    let origin = origin(&profile.started_at);
    Ok(vec![SavedRuns::of_profile(profile, origin)])
}

/// Parses the record of a saved lab run, and fills in fields that earlier versions of contend did
/// not write. `number` is that of the run, for error messages.
///
/// # Errors
/// Returns an error if the record has another schema, is empty, or is damaged.
pub fn saved_lab(number: i64, schema: &str, text: &str) -> Result<RunRecord> {
    if schema != lab::SCHEMA {
        let message = format!(
            "run {number} has the schema {schema}, which this version of contend cannot show"
        );
        return Err(UsageError(message).into());
    }
    if text == "{}" {
        let message = format!("run {number} ended before it measured anything");
        return Err(UsageError(message).into());
    }
    let mut record = serde_json::from_str(text)
        .with_context(|| format!("cannot read the record of run {number}"))?;
    REGISTRY.complete(&mut record);
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use contend_record::lab::{Chapter, View};

    use super::*;

    const OLD: &str = include_str!("../../../testdata/lab/process-thread.json");

    /// Returns a record as written by versions without views and chapters.
    fn before_views() -> String {
        let mut record: RunRecord = serde_json::from_str(OLD).expect("a record");
        record.chapter = None;
        record.cases.iter_mut().for_each(|case| case.view = View::Table);
        serde_json::to_string(&record).expect("JSON")
    }

    #[test]
    fn records_of_older_versions_are_shown_as_before() {
        assert!(!before_views().contains("\"view\"") && OLD.contains("\"view\""));
        let old: RunRecord = serde_json::from_str(&before_views()).expect("a record");
        assert!(old.cases.iter().all(|case| case.view == View::Table) && old.chapter.is_none());
        let read = of_lab(&before_views(), "contend lab").expect("a record");
        let kept = saved_lab(1, lab::SCHEMA, &before_views()).expect("a record");
        assert_eq!((read.chapter, kept.chapter), (Some(Chapter::ProcessThread), read.chapter));
        for experiment in REGISTRY.experiments {
            let of_it = |case: &&lab::Case| case.experiment == experiment.name;
            assert!(read.cases.iter().filter(of_it).all(|case| case.view == experiment.view));
            assert!(kept.cases.iter().filter(of_it).all(|case| case.view == experiment.view));
        }
        let report = |record| {
            contend_report::render::lab::report(
                record,
                contend_report::render::lab::Detail::Full,
                80,
            )
        };
        let today = of_lab(OLD, "contend lab").expect("a record");
        assert_eq!(report(&read), report(&today));
        assert!(
            report(&read).contains("Which conclusions hold here") && report(&read) != report(&old)
        );
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("the sources are there");
        let paths = entries.map(|entry| entry.expect("a file").path());
        let paths = paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
    }

    /// Returns the lines of a source file that are neither comments nor tests.
    fn code(text: &str) -> impl Iterator<Item = &str> {
        let lines = text.lines().take_while(|line| !line.contains("mod tests {"));
        lines.filter(|line| !line.trim_start().starts_with("//"))
    }

    /// Checks that no string in the code of reports and the command line begins with the name of a
    /// family of experiments: the code must depend on the views of cases instead.
    #[test]
    fn no_code_outside_the_lab_names_an_experiment() {
        let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let folders = ["report/src", "record/src", "contend/src"];
        let all = folders.iter().flat_map(|folder| sources(&crates.join(folder)));
        let is_code = |path: &PathBuf| !path.ends_with("tests.rs");
        let mut starts: Vec<_> =
            REGISTRY.experiments.iter().map(|found| format!("\"{}/", found.family())).collect();
        starts.dedup();
        for path in all.filter(is_code) {
            let text = fs::read_to_string(&path).expect("a source file");
            for line in code(&text) {
                let begins = starts.iter().any(|start| line.contains(start));
                assert!(!begins, "{}: {line}", path.display());
            }
        }
    }
}

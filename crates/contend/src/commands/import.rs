//! Adds runs that files contain to the saved runs: `contend import`, and the runs of `contend lab --on`.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::Result;
use contend_record::doctor::DoctorRecord;
use contend_record::pipe::PipeRecord;
use contend_record::run::RunRecord;
use contend_record::versus::VersusRecord;
use contend_record::{doctor, lab, pipe, run, versus};
use contend_report::store::{Filter, Store, StoreError, StoredRun};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{pipe as pipes, versus as comparisons};
use crate::exit::UsageError;
use crate::records::save::Redaction;
use crate::{progress, version};

/// Name and version of the format of exported runs.
pub(super) const EXPORT_FORMAT: &str = "contend.export/1";
/// Extensions of the files of a directory that are imported.
const EXTENSIONS: [&str; 2] = ["json", "jsonl"];
/// Largest number of experiments in the title of a run of the lab.
const MAX_TITLE_EXPERIMENTS: usize = 3;

/// A run to be saved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewRun {
    started_at: String,
    schema: String,
    title: String,
    ending: String,
    label: String,
    host: String,
    record: Value,
}

/// The runs that were added to a store.
#[derive(Debug)]
pub(super) struct Added {
    /// Their numbers; `None` if there are none.
    pub numbers: Option<RangeInclusive<i64>>,
    /// Number of runs that the store had already.
    known: usize,
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.numbers.as_ref().map(|all| (all.start(), all.end())) {
            None => write!(f, "imported 0 runs")?,
            Some((first, last)) if first == last => write!(f, "imported 1 run: {first}")?,
            Some((first, last)) => {
                write!(f, "imported {} runs: {first} to {last}", last - first + 1)?;
            }
        }
        match self.known {
            0 => Ok(()),
            1 => write!(f, "; 1 was saved already"),
            known => write!(f, "; {known} were saved already"),
        }
    }
}

/// Reads the runs of files, and of the files in directories. What looks like a secret in records that were not exported
/// from a history is redacted.
///
/// # Errors
/// Returns an error if a file cannot be read, or has something else than runs, or a directory has no file that may have some.
pub(super) fn read(paths: &[PathBuf], redaction: &Redaction) -> Result<Vec<NewRun>, UsageError> {
    let mut runs = Vec::new();
    for path in paths {
        for file in files(path)? {
            let name = name(&file);
            let text = text(&file).map_err(|error| cannot_read(&name, &error))?;
            let wrong = |why: String| UsageError(format!("{name}{why}; nothing was imported"));
            runs.extend(of_text(&text, redaction).map_err(wrong)?);
        }
    }
    Ok(runs)
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn cannot_read(name: &str, error: &io::Error) -> UsageError {
    UsageError(format!("cannot read {name}: {error}; nothing was imported"))
}

/// Returns the file, or the files in a directory that may have runs, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, UsageError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut files = list().map_err(|error| cannot_read(&name(path), &error))?;
    files.retain(|file| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let has_runs = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        // Reading a FIFO could wait forever.
        has_runs && !name.starts_with(b".") && file.is_file()
    });
    files.sort_unstable();
    if files.is_empty() {
        let [one, other] = EXTENSIONS;
        let name = name(path);
        return Err(UsageError(format!("{name} has no file *.{one} or *.{other}")));
    }
    Ok(files)
}

fn text(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the runs of a file: one, or one on each line. The error follows the name of the file.
fn of_text(text: &str, redaction: &Redaction) -> Result<Vec<NewRun>, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    let Some((_, first)) = lines.peek() else { return Err(": the file is empty".to_owned()) };
    let value = |text: &str| serde_json::from_str::<Value>(text);
    if value(first).is_err() {
        let value = value(text).map_err(|error| format!(": not valid JSON: {error}"))?;
        return of_value(&value, redaction).map(|run| vec![run]).map_err(|why| format!(": {why}"));
    }
    let run = |(number, line): (usize, &str)| {
        let run = value(line).map_err(|error| format!("not valid JSON: {error}"));
        run.and_then(|run| of_value(&run, redaction))
            .map_err(|why| format!(", line {number}: {why}"))
    };
    lines.map(run).collect()
}

/// Returns an exported run, or that of a record.
fn of_value(value: &Value, redaction: &Redaction) -> Result<NewRun, String> {
    let text = |pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    if text("/format") == EXPORT_FORMAT {
        let run = NewRun {
            started_at: text("/started_at"),
            schema: text("/schema"),
            title: text("/title"),
            ending: text("/ending"),
            label: text("/label"),
            host: text("/host"),
            record: value.get("record").cloned().unwrap_or_default(),
        };
        run.check()?;
        return Ok(run);
    }
    if text("/schema").is_empty() {
        return Err("not written by `contend history export` or --json".to_owned());
    }
    let mut record = value.clone();
    if text("/schema") != lab::SCHEMA {
        redaction.redact(&mut record);
    }
    NewRun::of_record(record, String::new())
}

impl NewRun {
    /// Returns the run of a record, as if contend had saved it.
    ///
    /// # Errors
    /// Returns the reason if contend cannot list and show the record.
    pub(super) fn of_record(record: Value, label: String) -> Result<Self, String> {
        let text = |pointer: &str| {
            record.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let run = Self {
            started_at: text("/started_at"),
            schema: text("/schema"),
            title: String::new(),
            ending: String::new(),
            label,
            host: text("/host/name"),
            record,
        };
        let (title, ending) = run.check()?;
        Ok(Self { title, ending, ..run })
    }

    /// Returns the run with another title.
    pub(super) fn with_title(self, title: &str) -> Self {
        Self { title: title.to_owned(), ..self }
    }

    /// Checks that contend can list and show the run. Returns the title and the ending of the record.
    ///
    /// # Errors
    /// Returns the reason if it cannot.
    fn check(&self) -> Result<(String, String), String> {
        let (started_at, schema) = (&self.started_at, self.schema.as_str());
        if started_at.parse::<Timestamp>().is_err() {
            return Err(format!("'{started_at}' is not a time"));
        }
        match schema {
            pipe::SCHEMA => self.parsed().map(|record: PipeRecord| {
                let median = record.runs.as_ref().map(|runs| runs.wall_seconds.median);
                let wall = median.unwrap_or(record.wall_seconds);
                (record.command, pipes::ending(wall, record.exit_code))
            }),
            versus::SCHEMA => self.parsed().map(|record: VersusRecord| {
                let commands = record.variants.iter().map(|variant| variant.command.as_str());
                (comparisons::title(commands), comparisons::ending(&record))
            }),
            doctor::SCHEMA => self.parsed().map(|record: DoctorRecord| {
                let ending = super::doctor::ending(&record);
                (record.command, ending)
            }),
            run::SCHEMA => self.parsed().map(|record: RunRecord| {
                let ending = record.outcome.as_ref().map_or_else(String::new, |outcome| {
                    pipes::ending(outcome.wall_seconds, outcome.exit_code)
                });
                (record.command, ending)
            }),
            // A run that was exported before it had measured anything.
            lab::SCHEMA if self.record.as_object().is_some_and(Map::is_empty) => {
                Ok((String::new(), String::new()))
            }
            lab::SCHEMA => self.parsed().map(|record: lab::RunRecord| {
                let ending = progress::ending(&record);
                (title_of_lab(&record), ending)
            }),
            _ => Err(format!("contend {} cannot show records of '{schema}'", version::VERSION)),
        }
    }

    fn parsed<T: DeserializeOwned>(&self) -> Result<T, String> {
        T::deserialize(&self.record).map_err(|error| format!("the record is damaged: {error}"))
    }

    fn stored<'a>(&'a self, record: &'a str) -> StoredRun<'a> {
        StoredRun {
            started_at: &self.started_at,
            schema: &self.schema,
            title: &self.title,
            ending: &self.ending,
            label: &self.label,
            host: &self.host,
            record,
        }
    }

    /// Returns whether the store has a run with the same record.
    fn is_known(&self, store: &Store) -> Result<bool, StoreError> {
        let filter = Filter {
            schema: Some(self.schema.clone()),
            host: Some(self.host.clone()),
            since: Some(self.started_at.clone()),
            until: Some(self.started_at.clone()),
            ..Filter::default()
        };
        for entry in store.list(&filter, usize::MAX)? {
            let found = store.entry(entry.id)?;
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            if found.is_some_and(|(_, record)| value(&record) == self.record) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the suite of a run, or its first experiments.
fn title_of_lab(record: &lab::RunRecord) -> String {
    if let Some(suite) = &record.suite {
        return format!("suite {suite}");
    }
    let mut names: Vec<&str> = record.cases.iter().map(|case| case.experiment.as_str()).collect();
    names.dedup();
    let more = names.len().saturating_sub(MAX_TITLE_EXPERIMENTS);
    names.truncate(MAX_TITLE_EXPERIMENTS);
    let names = names.join(" ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// Adds runs to the store, except those that it has already.
///
/// # Errors
/// Returns an error, and adds none, if the store cannot be read or written.
pub(super) fn add(path: &Path, runs: &[NewRun]) -> Result<Added, StoreError> {
    let store = Store::open(path)?;
    store.together(|store| {
        let mut added = Added { numbers: None, known: 0 };
        for run in runs {
            if run.is_known(store)? {
                added.known += 1;
                continue;
            }
            let number = store.add(&run.stored(&run.record.to_string()))?;
            let first = added.numbers.as_ref().map_or(number, |all| *all.start());
            added.numbers = Some(first..=number);
        }
        Ok(added)
    })
}

//! Settings of the history: the configuration file `contend/config.toml`, and the options of
//! `contend history`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{RecordFiles, RecordPaths, store, user_directory};
use crate::cli::history::{FilterArgs, HistoryArgs, HistoryVerb, ImportArgs, KindArg, SaveArgs};
use crate::cli::lab::StoreArgs;
use crate::exit::UsageError;
use crate::output::ReportFile;
use crate::records::save::{Redaction, Saving};
use contend_report::render::lab::Detail;
use contend_report::store::Filter;

/// Default of `max_runs` in the configuration.
const DEFAULT_MAX_RUNS: usize = 1000;

/// Contents of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default)]
    history: HistorySection,
}

/// The section `history` of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HistorySection {
    /// Whether `contend pipe` saves its runs.
    pipe: bool,
    /// Whether `contend run` saves its runs.
    run: bool,
    /// Whether `contend doctor` saves its diagnoses.
    doctor: bool,
    /// Maximum number of runs without a label to keep, for each kind.
    max_runs: usize,
    /// Regular expressions of secrets.
    redact: Vec<String>,
}

impl Default for HistorySection {
    fn default() -> Self {
        Self { pipe: true, run: true, doctor: true, max_runs: DEFAULT_MAX_RUNS, redact: Vec::new() }
    }
}

/// A verb that saves its runs unless that is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saver {
    Pipe,
    Run,
    Doctor,
}

/// Returns how the records of a verb are saved, or `None` if they are not: with `--no-store`, or,
/// unless `--store` or `--label` is given, if the configuration turns saving off or the store's
/// directory is unknown.
///
/// # Errors
/// Returns an error if the configuration file is wrong, or if `--label` is given but the store's
/// directory is unknown.
pub(super) fn saving(args: SaveArgs, saver: Saver) -> Result<Option<Saving>, UsageError> {
    if args.no_store {
        return Ok(None);
    }
    let given = args.store.is_some() || args.label.is_some();
    let (path, section) = configuration()?;
    let is_on = match saver {
        Saver::Pipe => section.pipe,
        Saver::Run => section.run,
        Saver::Doctor => section.doctor,
    };
    if !is_on && !given {
        return Ok(None);
    }
    let store = match store(StoreArgs { store: args.store }) {
        Ok(store) => store,
        Err(error) if given => return Err(error),
        Err(_) => return Ok(None),
    };
    let redaction = redaction(path.as_deref(), &section)?;
    let label = args.label.unwrap_or_default();
    let max_runs = section.max_runs;
    Ok(Some(Saving { store, is_requested: given, label, redaction, max_runs }))
}

/// Returns the path of the configuration file, if the user's directory is known, and its section.
fn configuration() -> Result<(Option<PathBuf>, HistorySection), UsageError> {
    let path = user_directory("XDG_CONFIG_HOME", ".config");
    let path = path.map(|folder| folder.join("contend/config.toml"));
    let section = path.as_deref().map_or_else(|| Ok(HistorySection::default()), read_file)?;
    Ok((path, section))
}

/// Returns what is redacted. `path` is that of the configuration file.
fn redaction(path: Option<&Path>, section: &HistorySection) -> Result<Redaction, UsageError> {
    Redaction::new(section.redact.iter().map(String::as_str)).map_err(|error| {
        let path = path.unwrap_or(Path::new("config.toml")).display();
        // The message shows the pattern on several lines.
        let error = error.to_string();
        let error = error.lines().last().unwrap_or_default().trim().to_owned();
        UsageError(format!("{path}: redact: {error}"))
    })
}

/// Returns how a run of `contend run` is saved, as [`saving`] does. Must be called after the run,
/// so that reading the configuration does not delay the run.
///
/// # Errors
/// Returns an error for the same reasons as [`saving`].
pub fn saving_of_run(args: SaveArgs) -> Result<Option<Saving>, UsageError> {
    saving(args, Saver::Run)
}

/// Reads the section of the configuration file; the default if there is no readable file.
fn read_file(path: &Path) -> Result<HistorySection, UsageError> {
    std::fs::read_to_string(path)
        .map_or_else(|_| Ok(HistorySection::default()), |text| read(&text, path))
}

fn read(text: &str, path: &Path) -> Result<HistorySection, UsageError> {
    toml::from_str::<Configuration>(text).map(|configuration| configuration.history).map_err(
        |error| {
            let place = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count();
            // The message may have several lines.
            let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            UsageError(format!("{}, line {line}: {what}", path.display()))
        },
    )
}

/// Settings of `contend history`.
#[derive(Debug)]
pub struct History {
    /// Path of the store.
    pub store: PathBuf,
    /// What to do.
    pub action: HistoryAction,
}

/// An action of `contend history`.
#[derive(Debug)]
pub enum HistoryAction {
    /// List the newest runs.
    List {
        /// Conditions on the runs.
        filter: Filter,
        /// Maximum number of runs to list.
        max: usize,
        /// The files for the list.
        files: Box<RecordFiles>,
    },
    /// Show one run.
    Show {
        /// Number of the run.
        number: i64,
        /// Level of detail of the report.
        detail: Detail,
        /// The file for the record as JSON, instead of the report.
        json: Option<ReportFile>,
    },
    /// Remove runs.
    Remove {
        /// Numbers of the runs.
        numbers: Vec<i64>,
    },
    /// Give a label to runs.
    Label {
        /// The label; empty to remove it.
        label: String,
        /// Numbers of the runs.
        numbers: Vec<i64>,
    },
    /// Write runs to a file.
    Export {
        /// Numbers of the runs; empty for all that the filter accepts.
        numbers: Vec<i64>,
        /// Conditions on the runs.
        filter: Filter,
        /// The file.
        file: ReportFile,
    },
    /// Read runs from files.
    Import {
        /// Paths of the files, or of directories with files; `-` for standard input.
        paths: Vec<PathBuf>,
        /// What to redact in records that were not saved before.
        redaction: Redaction,
    },
}

/// Returns the settings of `contend history`.
///
/// # Errors
/// Returns a [`UsageError`] if the store's directory is unknown, a file cannot be written, or the list is
/// to be written but not made.
pub fn history(args: HistoryArgs) -> anyhow::Result<History> {
    let paths = RecordPaths { json: args.json.as_deref(), html: None, exports: &args.exports };
    if let (Some(_), Some((option, _))) = (&args.what, paths.named().next()) {
        let message = format!(
            "{option} before the subcommand is for the list of runs: leave out one of them"
        );
        return Err(UsageError(message).into());
    }
    let (own, action) = match args.what {
        None => {
            let files = Box::new(RecordFiles::prepare(paths)?);
            let (filter, max) = (filter(args.filter), args.last as usize);
            (StoreArgs { store: None }, HistoryAction::List { filter, max, files })
        }
        Some(HistoryVerb::Show { number, full, json, store }) => {
            let json = json.as_deref().map(ReportFile::prepare).transpose()?;
            (store, HistoryAction::Show { number, detail: super::detail(full), json })
        }
        Some(HistoryVerb::Rm { numbers, store }) => {
            (store, HistoryAction::Remove { numbers: distinct(numbers) })
        }
        Some(HistoryVerb::Label { label, numbers, store }) => {
            (store, HistoryAction::Label { label, numbers: distinct(numbers) })
        }
        Some(HistoryVerb::Export { file, numbers, filter: given, store }) => {
            let file = ReportFile::prepare(&file)?;
            let numbers = distinct(numbers);
            (store, HistoryAction::Export { numbers, filter: filter(given), file })
        }
        Some(HistoryVerb::Import(args)) => import_of(args)?,
    };
    let given = if own.store.is_some() { own } else { args.store };
    Ok(History { store: store(given)?, action })
}

/// Returns the settings of `contend import`.
///
/// # Errors
/// Returns a [`UsageError`] if the store's directory is unknown, or the configuration is wrong.
pub fn import(args: ImportArgs) -> anyhow::Result<History> {
    let (given, action) = import_of(args)?;
    Ok(History { store: store(given)?, action })
}

fn import_of(args: ImportArgs) -> Result<(StoreArgs, HistoryAction), UsageError> {
    let (path, section) = configuration()?;
    let redaction = redaction(path.as_deref(), &section)?;
    Ok((args.store, HistoryAction::Import { paths: args.paths, redaction }))
}

/// Returns the numbers in ascending order, each once.
fn distinct(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn filter(args: FilterArgs) -> Filter {
    let schema = args.kind.map(|kind| {
        let schema = match kind {
            KindArg::Pipe => contend_record::pipe::SCHEMA,
            KindArg::Versus => contend_record::versus::SCHEMA,
            KindArg::Run => contend_record::run::SCHEMA,
            KindArg::Doctor => contend_record::doctor::SCHEMA,
            KindArg::Lab => contend_record::lab::SCHEMA,
        };
        schema.to_owned()
    });
    let FilterArgs { command, host, label, since, until, .. } = args;
    Filter { schema, title: command, host, label, since, until }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_defaults() {
        let section = |text: &str| read(text, Path::new("c.toml"));
        let default = section("").expect("an empty file");
        assert!(default.pipe && default.run && default.max_runs == DEFAULT_MAX_RUNS);
        let changed = section("[history]\npipe = false\nredact = ['x[0-9]']\n").expect("valid");
        assert!(!changed.pipe && changed.run && changed.redact == ["x[0-9]"]);
        let error = section("[history]\n\npip = 1\n").expect_err("a mistake").0;
        assert!(error.starts_with("c.toml, line 3: unknown field `pip`"), "{error}");
    }
}

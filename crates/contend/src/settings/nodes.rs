//! Settings of `contend lab --on`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use contend_lab::engine::experiment::Cap;
use contend_report::render::lab::Detail;

use super::{run, shows_progress, store};
use crate::cli::lab::{MeasurementArgs, NodesArgs};
use crate::output::ReportFile;

/// A run of the lab on nodes of a cluster, and where its results go.
#[derive(Debug)]
pub struct LabOnNodes {
    /// The words after `contend` in the command that each node runs.
    pub words: Vec<String>,
    /// The number of nodes; `None` if the engine chooses it.
    pub nodes: Option<u32>,
    /// Options for the program that runs commands on nodes.
    pub options: Vec<String>,
    /// The directory for the work directory.
    pub work: PathBuf,
    /// The title of the runs in the history.
    pub title: String,
    /// The label of the runs in the history; empty if none.
    pub label: String,
    /// Path of the store in which the runs are saved; `None` if they are not saved.
    pub store: Option<PathBuf>,
    /// Path of the store that `--store` names; `None` without that option.
    pub given_store: Option<PathBuf>,
    /// The file for the runs as a web page.
    pub html: Option<ReportFile>,
    /// Level of detail of the report on a single run.
    pub detail: Detail,
    /// Whether progress is shown on the terminal.
    pub progress: bool,
    /// The expected length of a run.
    pub expected: Duration,
    /// Whether to ask the user for confirmation first.
    pub asks: bool,
}

/// Returns the settings of a run on nodes, without those of the confirmation. `what` are the verb's own words.
///
/// # Errors
/// Returns an error if the configuration is wrong, the work directory does not exist, the store's directory is unknown, or
/// the page cannot be written.
pub(super) fn on_nodes(
    what: Vec<String>,
    title: String,
    args: MeasurementArgs,
    expected: Duration,
) -> Result<LabOnNodes> {
    let words = words(what, &args);
    let NodesArgs { on: _, nodes, engine_option: options, work } = args.nodes;
    let work = run::work_for_slurm(work)?;
    Ok(LabOnNodes {
        words,
        nodes,
        options,
        work,
        title,
        label: args.label.unwrap_or_default(),
        given_store: args.store.store.clone(),
        store: if args.no_store { None } else { Some(store(args.store)?) },
        html: args.html.as_deref().map(ReportFile::prepare).transpose()?,
        detail: Detail::Full,
        progress: shows_progress(args.no_progress),
        expected,
        asks: false,
    })
}

/// Returns the words after `contend` of a command that measures the same cases, without asking or saving. `what` are the
/// verb's own words.
fn words(what: Vec<String>, args: &MeasurementArgs) -> Vec<String> {
    // All fields are named, so that a new option is not forgotten.
    let MeasurementArgs {
        quick,
        smallest,
        budget,
        dry_run: _,
        no_progress: _,
        publish: _,
        seed,
        only,
        set,
        turns,
        step_seconds,
        cap,
        max_units,
        yes: _,
        json: _,
        html: _,
        exports: _,
        nodes: _,
        store: _,
        no_store: _,
        label: _,
    } = args;
    let cap = cap.and_then(|cap| match cap {
        Cap::At(number) => Some(number.to_string()),
        Cap::None => Some("none".to_owned()),
        Cap::Default | Cap::Considerate => None, // without the option
    });
    let with_value = [
        ("budget", budget.map(|value| value.to_string())),
        ("seed", seed.map(|value| value.to_string())),
        ("turns", turns.map(|value| value.to_string())),
        ("step-seconds", step_seconds.map(|value| value.to_string())),
        ("cap", cap),
        ("max-units", max_units.map(|value| value.to_string())),
    ];
    let flags = [("quick", *quick), ("smallest", *smallest)];
    let mut words = vec!["lab".to_owned()];
    words.extend(what);
    words.extend(["--yes", "--no-progress", "--no-store"].map(str::to_owned));
    words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| format!("--{name}")));
    let with_value = with_value.into_iter().filter_map(|(name, value)| Some((name, value?)));
    words.extend(with_value.map(|(name, value)| format!("--{name}={value}")));
    let pairs = [("only", only), ("set", set)];
    words.extend(pairs.into_iter().flat_map(|(option, values)| {
        values.iter().map(move |(name, value)| format!("--{option}={name}={value}"))
    }));
    words
}

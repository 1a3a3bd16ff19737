//! From the command line to what is to be done: everything that can be wrong with it is
//! found here, before anything runs.

mod compare;
mod json;
mod pipe;
mod run;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use contend_lab::engine::experiment::{Cap, Experiment, Scope, Size, USUAL_MAX_UNITS};
use contend_lab::engine::plan::{Only, Plan, PlannedCase};
use contend_lab::engine::setting::{Choices, Setting};
use contend_lab::engine::suite::Suite;
use contend_lab::experiments::REGISTRY;

use crate::cli::demo::DemoArgs;
use crate::cli::history::{HistoryArgs, HistoryVerb};
use crate::cli::lab::{HowArgs, LabArgs, LabVerb, StoreArgs};
use crate::exit::UsageError;
use crate::output::ReportFile;
use crate::suggest;

pub use compare::{Compare, compare};
pub use json::{Json, JsonInput, json};
use pipe::shell;
pub use pipe::{Answer, How, Pipe, PipeRun, SHELLS, STANDARD_INPUT, TrialSettings, pipe};
pub use run::{Run, run, stage};

/// A file that was opened to be read: folders can be opened too.
fn readable(name: &str, opened: io::Result<File>) -> Result<File, UsageError> {
    let file = opened.map_err(|source| UsageError(format!("cannot read {name}: {source}")))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(UsageError(format!("cannot read {name}: it is a directory")));
    }
    Ok(file)
}

/// Settings of `contend demo`: how its pipelines are run, and the lines of input.
///
/// # Errors
/// A [`UsageError`] when there is no shell.
pub fn demo(args: &DemoArgs) -> Result<(How, u64)> {
    let how = How {
        shell: shell(None)?,
        setup: None,
        pipefail: false,
        stdin: None,
        discard: true,
        live: shows_progress(args.no_progress),
    };
    Ok((how, args.lines))
}

/// What the lab is to do.
#[derive(Debug)]
pub enum Lab {
    /// List what there is.
    List,
    /// Print this plan.
    DryRun(Plan),
    /// Measure.
    Run(Box<LabRun>),
}

/// A run of the lab, and where its results go.
#[derive(Debug)]
pub struct LabRun {
    /// What is measured.
    pub plan: Plan,
    /// What it is called in the history.
    pub title: String,
    /// Where it is kept, if it is.
    pub store: Option<PathBuf>,
    /// The same if it was said on the command line.
    pub given_store: Option<PathBuf>,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
    /// How far it is is shown on the terminal.
    pub progress: bool,
    /// The user is to be asked first.
    pub asks: bool,
}

/// Settings of `contend lab`.
///
/// # Errors
/// A [`UsageError`] when there is no such experiment or suite, or no place for the results.
pub fn lab(args: LabArgs) -> Result<Lab> {
    let (suite, experiments, title, how) = match args.what {
        LabVerb::List => return Ok(Lab::List),
        LabVerb::Run(run) => {
            let experiments = by_name(&run.names)?;
            (None, experiments, run.names.join(" "), run.how)
        }
        LabVerb::Suite(args) => {
            let suite = REGISTRY.suite(&args.name).ok_or_else(|| unknown_suite(&args.name))?;
            let title = format!("suite {}", suite.name);
            (Some(suite), REGISTRY.of_suite(suite), title, args.how)
        }
    };
    let plan = plan(suite, &experiments, &how)?;
    if how.dry_run {
        return Ok(Lab::DryRun(plan));
    }
    let asks = !how.yes && must_ask(&plan)?;
    Ok(Lab::Run(Box::new(LabRun {
        title,
        given_store: how.store.store.clone(),
        store: if how.no_store { None } else { Some(store(how.store)?) },
        json: how.json.as_deref().map(ReportFile::prepare).transpose()?,
        progress: shows_progress(how.no_progress),
        asks,
        plan,
    })))
}

/// Whether the user has to agree first, since a case of this plan uses up a limit that other programs share.
///
/// # Errors
/// When there is nobody to ask.
fn must_ask(plan: &Plan) -> Result<bool, UsageError> {
    let exhausts = |case: &PlannedCase| {
        let cap = case.parameters.get("cap")?.to_string();
        Some((cap, (case.experiment.demands.exhausts)(&case.parameters)?))
    };
    let Some((cap, limit)) = plan.cases.iter().find_map(exhausts) else { return Ok(false) };
    if can_ask() {
        return Ok(true);
    }
    Err(UsageError(format!(
        "--cap {cap} exhausts {}, which other programs share: add --yes to run it without a terminal",
        limit.name
    )))
}

fn by_name(names: &[String]) -> Result<Vec<&'static Experiment>, UsageError> {
    let patterns: Vec<&str> = names.iter().map(String::as_str).collect();
    REGISTRY.matching(&patterns).map_err(|pattern| {
        if REGISTRY.suite(pattern).is_some() {
            return UsageError(format!(
                "'{pattern}' is a suite: use `contend lab suite {pattern}`"
            ));
        }
        let names = REGISTRY.experiments.iter().map(|experiment| experiment.name);
        let hint = suggest::nearest(pattern, names).map_or_else(
            || "`contend lab list` shows all".to_owned(),
            |name| format!("did you mean '{name}'?"),
        );
        UsageError(format!("no experiment '{pattern}'; {hint}"))
    })
}

fn unknown_suite(name: &str) -> UsageError {
    let names: Vec<_> = REGISTRY.suites.iter().map(|suite| suite.name).collect();
    UsageError(format!("no suite '{name}'{}", suggest::hint(name, "suites", names)))
}

fn plan(
    suite: Option<&'static Suite>,
    experiments: &[&'static Experiment],
    how: &HowArgs,
) -> Result<Plan, UsageError> {
    let size = match (how.quick, how.smallest) {
        (_, true) => Size::Smallest,
        (true, _) => Size::Quick,
        _ => Size::Full,
    };
    let pause = if suite.is_some() || size != Size::Full { 0.0 } else { 1.0 };
    let pause = how.step_seconds.unwrap_or(pause);
    let step_milliseconds =
        u64::try_from(Duration::from_secs_f64(pause).as_millis()).unwrap_or(u64::MAX);
    let choices = choices(experiments, how)?;
    let cap = how.cap.unwrap_or(Cap::Considerate);
    let max_units = how.max_units.unwrap_or(USUAL_MAX_UNITS);
    let scope = Scope { cap, step_milliseconds, max_units, choices, ..Scope::of(size) };
    let mut only: Vec<_> = how
        .only
        .iter()
        .map(|(name, value)| Only {
            experiments: "*".to_owned(),
            name: name.clone(),
            value: value.clone(),
        })
        .collect();
    for Only { name, .. } in &only {
        let has = |e: &&Experiment| (e.cases)(&scope).iter().any(|p| p.get(name).is_some());
        if !experiments.iter().any(has) {
            let cases: Vec<_> = experiments.iter().flat_map(|e| (e.cases)(&scope)).collect();
            let names = cases.iter().flat_map(|case| case.iter().map(|(name, _)| name));
            let hint = suggest::hint(name, "parameters", names.collect());
            return Err(UsageError(format!("--only: unknown parameter '{name}'{hint}")));
        }
    }
    // What is said on the command line of a parameter takes the place of what the suite says of it.
    let suites = suite.map_or(&[][..], |suite| suite.only).iter();
    let unsaid = suites.filter(|(_, name, _)| {
        scope.choices.of(name).is_empty() && how.only.iter().all(|(other, _)| other != name)
    });
    only.extend(unsaid.map(|&(experiments, name, value)| Only {
        experiments: experiments.into(),
        name: name.into(),
        value: value.into(),
    }));
    let budget = how.budget.map(Duration::from_secs_f64);
    let seed = how.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    let plan = Plan::new(suite, experiments, scope.clone(), &only, budget, seed);
    if plan.cases.is_empty() {
        return Err(nothing_matches(experiments, &scope, how));
    }
    Ok(plan)
}

/// The error for `--only` conditions that no case meets. Names the values of the first parameter for which no case has
/// the given one.
fn nothing_matches(
    experiments: &[&'static Experiment],
    scope: &Scope,
    how: &HowArgs,
) -> UsageError {
    let conditions: Vec<_> =
        how.only.iter().map(|(name, value)| format!("--only {name}={value}")).collect();
    let cases: Vec<_> = experiments.iter().flat_map(|e| (e.cases)(scope)).collect();
    let values = |name: &str| {
        let values = cases.iter().filter_map(|case| case.get(name).map(ToString::to_string));
        values.collect::<BTreeSet<String>>()
    };
    let hint = how.only.iter().find_map(|(name, value)| {
        let values = values(name);
        let is_unknown = !values.contains(value) && !value.is_empty();
        is_unknown.then(|| {
            suggest::hint(
                value,
                &format!("values of {name}"),
                values.iter().map(String::as_str).collect(),
            )
        })
    });
    UsageError(format!("{} matches no case{}", conditions.join(" "), hint.unwrap_or_default()))
}

/// What was chosen of the parameters of these experiments.
fn choices(experiments: &[&'static Experiment], how: &HowArgs) -> Result<Choices, UsageError> {
    let mut choices = Choices::default();
    if how.turns.is_some() && how.set.iter().any(|(name, _)| name == "turns") {
        return Err(UsageError(
            "--turns and --set turns are the same parameter: use one of them".to_owned(),
        ));
    }
    let turns = how.turns.map(|turns| ("turns".to_owned(), turns.to_string()));
    for (name, values) in how.set.iter().chain(&turns) {
        let known = experiments.iter().flat_map(|experiment| experiment.settings);
        let known: Vec<&Setting> = known.copied().collect();
        let setting = known.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
            let hint = match names.as_slice() {
                [] => "; these experiments have no parameters to set".to_owned(),
                _ => suggest::hint(name, "parameters", names),
            };
            UsageError(format!("--set: unknown parameter '{name}'{hint}"))
        })?;
        for text in values.split(',') {
            let value = setting.parse(text).map_err(|expected| {
                let near = suggest::did_you_mean(text, setting.names());
                let hint = if near.is_empty() { format!(": {expected}") } else { near };
                UsageError(format!("invalid --set {name}={text}{hint}"))
            })?;
            choices.add(name, value);
        }
    }
    Ok(choices)
}

/// Whether there is someone to ask.
fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The runs to show.
#[derive(Debug)]
pub struct History {
    /// Where they are kept.
    pub store: PathBuf,
    /// What of them.
    pub shown: Shown,
}

/// What is shown of the history.
#[derive(Debug)]
pub enum Shown {
    /// A list of so many at most.
    List {
        /// How many.
        most: usize,
    },
    /// One run.
    Run {
        /// Its number.
        number: i64,
        /// Where its record goes as JSON, instead of the report.
        json: Option<ReportFile>,
    },
    /// Nothing: these runs are removed.
    Removed {
        /// Their numbers, each once.
        numbers: Vec<i64>,
    },
}

/// Settings of `contend history`.
///
/// # Errors
/// A [`UsageError`] when there is no place for a store.
pub fn history(args: HistoryArgs) -> Result<History> {
    Ok(match args.what {
        None => {
            History { store: store(args.store)?, shown: Shown::List { most: args.last as usize } }
        }
        Some(HistoryVerb::Show { number, json, store: own }) => {
            let given = if own.store.is_some() { own } else { args.store };
            let json = json.as_deref().map(ReportFile::prepare).transpose()?;
            History { store: store(given)?, shown: Shown::Run { number, json } }
        }
        Some(HistoryVerb::Rm { mut numbers, store: own }) => {
            let given = if own.store.is_some() { own } else { args.store };
            numbers.sort_unstable();
            numbers.dedup();
            History { store: store(given)?, shown: Shown::Removed { numbers } }
        }
    })
}

/// Where runs are kept: the file that was given, or one in the XDG data directory.
fn store(given: StoreArgs) -> Result<PathBuf, UsageError> {
    if let Some(path) = given.store {
        return Ok(path);
    }
    let data = user_folder("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
        let message = "cannot save runs: neither XDG_DATA_HOME nor HOME is set; use --store FILE or \
                       --no-store";
        UsageError(message.to_owned())
    })?;
    Ok(data.join("contend/contend.db"))
}

/// A folder of the XDG base directories: the one that the variable names, else the usual one in
/// the home folder.
fn user_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(usual)))
}

/// The store that the lab uses if it is not told another one, if there is a place for it.
fn usual_store() -> Option<PathBuf> {
    let named = std::env::var_os("CONTEND_STORE").map(PathBuf::from);
    store(StoreArgs { store: named }).ok()
}

/// Progress is for terminals on which the cursor can be moved.
fn shows_progress(unwanted: bool) -> bool {
    let can_draw = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    !unwanted && can_draw && io::stderr().is_terminal()
}

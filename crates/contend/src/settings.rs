//! Checks the command line: turns clap's arguments into settings, and reports mistakes before a
//! measurement, a pipeline or a script runs.
//!
//! | verb | arguments | settings |
//! |---|---|---|
//! | `pipe` | [`cli::pipe`](crate::cli::pipe) | [`Pipe`]: a parsed pipeline, or questions |
//! | `run` | [`cli::run`](crate::cli::run) | [`Run`]: a request to `contend_parallel` |
//! | `doctor` | [`cli::doctor`](crate::cli::doctor) | [`Doctor`]: processes, or a command |
//! | `demo` | [`cli::demo`](crate::cli::demo) | a [`PipelineSettings`], and a number of lines |
//! | `lab` | [`cli::lab`](crate::cli::lab) | [`Lab`]: experiments to list, or a plan of cases |
//! | `history`, `import` | [`cli::history`](crate::cli::history) | [`History`] |
//! | `compare` | [`cli::compare`](crate::cli::compare) | [`Compare`]: the records of the runs |
//! | `report` | [`cli::report`](crate::cli::report) | [`Report`]: records, and their formats |
//! | `serve` | [`cli::serve`](crate::cli::serve) | [`Serve`]: an address, and what is served |
//! | `json` | [`cli::json`](crate::cli::json) | [`Json`]: a query, and open files |
//!
//! `contend generate` has no settings: it takes the arguments from clap. Files are opened here,
//! too, so that a long measurement is not lost because of a wrong path.

mod attach;
mod compare;
mod doctor;
mod history;
mod json;
mod named;
mod nodes;
mod pipe;
mod remedies;
mod report;
mod reports;
mod run;
mod script;
mod serve;
mod trace;
mod versus;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use contend_lab::engine::experiment::{Cap, DEFAULT_MAX_UNITS, Experiment, Scope, Size};
use contend_lab::engine::plan::{Condition, Plan, PlannedCase};
use contend_lab::engine::setting::{Choices, Setting};
use contend_lab::engine::suite::Suite;
use contend_lab::experiments::REGISTRY;
use contend_record::parameters::{Parameters, Value};
use contend_record::shell::quote;
use contend_report::render::lab::Detail;

use crate::cli::demo::DemoArgs;
use crate::cli::lab::{LabArgs, LabVerb, MeasurementArgs, StoreArgs};
use crate::exit::UsageError;
use crate::suggest;

pub use attach::Attach;
pub use compare::{Compare, ComparedRuns, compare, compared_runs};
pub use doctor::{Doctor, Patient, command_of, doctor, words_of};
pub use history::{History, HistoryAction, history, import, saving_of_run};
pub use json::{Json, JsonInput, json};
pub use named::Text;
pub use nodes::LabOnNodes;
use pipe::shell;
pub use pipe::{
    Answer, Pipe, PipeRun, PipelineSettings, SHELLS, STANDARD_INPUT, TrialSettings, pipe,
};
pub use remedies::{MIN_ROUNDS, Remedies};
pub use report::{NamedRecord, Report, report};
pub use reports::{RecordFiles, RecordPaths, Reports};
pub use run::{Probe, Run, probe, run, stage};
pub use serve::{Serve, serve};
pub use trace::TraceFile;
pub use versus::{Variant, Versus};

/// Returns the opened file. Returns an error that mentions `name` if the file could not be opened,
/// or is a directory, which can be opened but not read.
fn readable(name: &str, opened: io::Result<File>) -> Result<File, UsageError> {
    let file = opened.map_err(|source| UsageError(format!("cannot read {name}: {source}")))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(UsageError(format!("cannot read {name}: it is a directory")));
    }
    Ok(file)
}

/// Returns the settings of `contend demo`: how its pipelines run, and the number of input lines.
///
/// # Errors
/// Never returns an error: the default shell is always suitable.
pub fn demo(args: &DemoArgs) -> Result<(PipelineSettings, u64)> {
    let settings = PipelineSettings {
        shell: shell(None)?,
        setup: None,
        pipefail: false,
        stdin: None,
        discard: true,
        live: shows_progress(args.no_progress),
    };
    Ok((settings, args.lines))
}

/// Settings of `contend lab`.
#[derive(Debug)]
pub enum Lab {
    /// Experiments and suites to list.
    List(Vec<&'static Experiment>, &'static [Suite]),
    /// A plan to print, and its seed if the user gave one.
    DryRun(Plan, Option<u64>),
    /// A plan to run, with the destinations of its results.
    Run(Box<LabRun>),
    /// A run on nodes of a cluster.
    OnNodes(Box<LabOnNodes>),
}

/// A run of the lab, and where its results go.
#[derive(Debug)]
pub struct LabRun {
    /// The cases to measure.
    pub plan: Plan,
    /// The title of the run in the history.
    pub title: String,
    /// The label of the run in the history; empty if none.
    pub label: String,
    /// Path of the store in which the run is saved; `None` if it is not saved.
    pub store: Option<PathBuf>,
    /// Path of the store that `--store` names; `None` without that option.
    pub given_store: Option<PathBuf>,
    /// The files for the record.
    pub files: RecordFiles,
    /// Level of detail of the report.
    pub detail: Detail,
    /// Whether progress is shown on the terminal.
    pub progress: bool,
    /// Directory in which the run publishes its progress; `None` if it does not.
    pub publish: Option<PathBuf>,
    /// Whether to ask the user for confirmation first.
    pub asks: bool,
    /// Whether the user has given the budget.
    pub has_given_budget: bool,
}

/// Returns the settings of `contend lab`.
///
/// # Errors
/// Returns a [`UsageError`] if:
/// - a name, parameter or value is unknown, or `turns` is set by two options,
/// - no case is selected, or no selected case has a permitted combination of parameters,
/// - the user has to confirm the plan, but there is no terminal,
/// - the store's directory is unknown, or
/// - a file cannot be written.
pub fn lab(args: LabArgs) -> Result<Lab> {
    let (suite, experiments, what, measurement, detail) = match args.what {
        LabVerb::List { names } if names.is_empty() => {
            let all = REGISTRY.experiments.to_vec();
            return Ok(Lab::List(all, REGISTRY.suites));
        }
        LabVerb::List { names } => return Ok(Lab::List(by_name(&names)?, &[])),
        LabVerb::Run(run) => {
            let experiments = by_name(&run.names)?;
            (None, experiments, run.names, run.measurement, Detail::Full)
        }
        LabVerb::Suite(args) => {
            let suite = REGISTRY.suite(&args.name).ok_or_else(|| unknown_suite(&args.name))?;
            let (experiments, detail) = (REGISTRY.of_suite(suite), detail(args.full));
            (Some(suite), experiments, vec![args.name], args.measurement, detail)
        }
    };
    let plan = plan(suite, &experiments, &measurement)?;
    if measurement.dry_run {
        return Ok(Lab::DryRun(plan, measurement.seed));
    }
    let asks = !measurement.yes && must_ask(&plan)?;
    let title = if suite.is_some() { format!("suite {}", what.join(" ")) } else { what.join(" ") };
    if measurement.nodes.on.is_some() {
        let verb = if suite.is_some() { "suite" } else { "run" };
        let what = std::iter::once(verb.to_owned()).chain(what).collect();
        let run = nodes::on_nodes(what, title, measurement, plan.expected())?;
        return Ok(Lab::OnNodes(Box::new(LabOnNodes { detail, asks, ..run })));
    }
    let files = RecordFiles::prepare(RecordPaths {
        json: measurement.json.as_deref(),
        html: measurement.html.as_deref(),
        exports: &measurement.exports,
    })?
    .with_label(measurement.label.as_deref());
    Ok(Lab::Run(Box::new(LabRun {
        title,
        label: measurement.label.clone().unwrap_or_default(),
        given_store: measurement.store.store.clone(),
        store: if measurement.no_store { None } else { Some(store(measurement.store)?) },
        files,
        detail,
        progress: shows_progress(measurement.no_progress),
        publish: publish(measurement.publish)?,
        asks,
        has_given_budget: measurement.budget.is_some(),
        plan,
    })))
}

/// Returns whether the user has to confirm the plan, because a case exhausts a limit that other
/// programs share.
///
/// # Errors
/// Returns a [`UsageError`] if the user has to confirm the plan, but there is no terminal.
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
        let names = || REGISTRY.experiments.iter().map(|experiment| experiment.name);
        let families = REGISTRY.experiments.iter().map(|experiment| experiment.family());
        let families: Vec<_> =
            families.flat_map(|name| [name.into(), format!("{name}/*")]).collect();
        let similar = names().chain(families.iter().map(String::as_str));
        let hint = suggest::nearest(pattern, similar)
            .map(str::to_owned)
            .or_else(|| suggest::containing(pattern, names()))
            .map_or_else(
                || "`contend lab list` shows all".to_owned(),
                |name| format!("did you mean '{name}'?"),
            );
        UsageError(format!("no experiment '{pattern}'; {hint}"))
    })
}

/// Returns the error for a name that is not that of a suite. If experiments have it, the error names
/// the command that runs them.
fn unknown_suite(name: &str) -> UsageError {
    if let Ok(experiments) = REGISTRY.matching(&[name]) {
        let are = match experiments.as_slice() {
            [one] if one.name == name => "is an experiment",
            _ => "selects experiments",
        };
        let quoted = quote(name);
        return UsageError(format!("'{name}' {are}: use `contend lab run {quoted}`"));
    }
    let names: Vec<_> = REGISTRY.suites.iter().map(|suite| suite.name).collect();
    UsageError(format!("no suite '{name}'{}", suggest::hint(name, "suites", names)))
}

fn plan(
    suite: Option<&'static Suite>,
    experiments: &[&'static Experiment],
    args: &MeasurementArgs,
) -> Result<Plan, UsageError> {
    let size = match (args.quick, args.smallest) {
        (_, true) => Size::Smallest,
        (true, _) => Size::Quick,
        _ => Size::Full,
    };
    let pause = if suite.is_some() || size != Size::Full { 0.0 } else { 1.0 };
    let pause = args.step_seconds.unwrap_or(pause);
    let step_milliseconds =
        u64::try_from(Duration::from_secs_f64(pause).as_millis()).unwrap_or(u64::MAX);
    let mut choices = choices(experiments, size, args)?;
    let selected = selected(args);
    if let Some(suite) = suite {
        // `--only` may select a value that the suite does not set.
        suite.add_choices(experiments, &mut choices, |name, values| {
            let mut selected = selected.iter().filter(|(other, _)| *other == name);
            selected.all(|(_, value)| values.contains(value))
        });
    }
    let cap = args.cap.unwrap_or(Cap::Considerate);
    let max_units = args.max_units.unwrap_or(DEFAULT_MAX_UNITS);
    let scope = Scope { cap, step_milliseconds, max_units, choices, ..Scope::of(size) };
    let only = conditions(suite, experiments, &scope, &selected)?;
    let budget = args.budget.map(Duration::from_secs_f64);
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    let plan = Plan::new(suite, experiments, scope.clone(), &only, budget, seed);
    if plan.cases.is_empty() {
        return Err(nothing_matches(args));
    }
    check_combinations(&plan)?;
    Ok(plan)
}

/// Checks that at least one case has a combination of parameters that its experiment permits. The
/// run skips cases with other combinations.
///
/// # Errors
/// Returns a [`UsageError`] with the reason for the first case if no case is permitted.
fn check_combinations(plan: &Plan) -> Result<(), UsageError> {
    let conflict = |case: &PlannedCase| (case.experiment.demands.conflict)(&case.parameters);
    let conflicts: Vec<_> = plan.cases.iter().map_while(conflict).collect();
    match (plan.cases.first(), conflicts.first()) {
        (Some(case), Some(reason)) if conflicts.len() == plan.cases.len() => {
            Err(UsageError(format!("invalid parameters of {}: {reason}", case.experiment.name)))
        }
        _ => Ok(()),
    }
}

/// Returns the names and values of all `--only` options, with a pair for each value if an option
/// has several.
fn selected(args: &MeasurementArgs) -> Vec<(&str, &str)> {
    let pairs = args
        .only
        .iter()
        .flat_map(|(name, values)| values.split(',').map(|value| (name.as_str(), value.trim())));
    pairs.collect()
}

/// Returns the conditions that select cases: those of `--only`, which are `selected`, and those of
/// the suite for parameters that the command line neither selects nor sets.
///
/// # Errors
/// Returns a [`UsageError`] if a condition of `--only` is on a parameter that no case has, or on a
/// value that the parameter has in no case.
fn conditions(
    suite: Option<&'static Suite>,
    experiments: &[&'static Experiment],
    scope: &Scope,
    selected: &[(&str, &str)],
) -> Result<Vec<Condition>, UsageError> {
    let mut only: Vec<_> = selected
        .iter()
        .map(|&(name, value)| Condition {
            experiments: "*".to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        })
        .collect();
    for Condition { name, value, .. } in &only {
        let has = |e: &&Experiment| (e.cases)(scope).iter().any(|p| p.get(name).is_some());
        if !experiments.iter().any(has) {
            let names = case_parameters(experiments, scope);
            let names = names.iter().map(String::as_str).collect();
            let hint = suggest::hint(name, "parameters", names);
            return Err(UsageError(format!("--only: unknown parameter '{name}'{hint}")));
        }
        let values = case_values(experiments, scope, name);
        if !values.contains(value) {
            let hint = other_values(experiments, scope, (name, value), &values);
            let what = if value.is_empty() { "the value is missing" } else { "matches no case" };
            let gap = if value.is_empty() { ":" } else { "" };
            return Err(UsageError(format!("--only {name}={value}{gap} {what}{hint}")));
        }
    }
    // The command line replaces the suite's conditions on the same parameter.
    let suites = suite.map_or(&[][..], |suite| suite.only).iter();
    let remaining = suites.filter(|(_, name, _)| {
        scope.choices.of(name).is_empty() && selected.iter().all(|(other, _)| other != name)
    });
    only.extend(remaining.map(Condition::of_suite));
    Ok(only)
}

/// Returns the error for `--only` conditions that no case meets, although each of their values
/// occurs.
fn nothing_matches(args: &MeasurementArgs) -> UsageError {
    let conditions: Vec<_> =
        args.only.iter().map(|(name, value)| format!("--only {name}={value}")).collect();
    let together = if conditions.len() > 1 { " together" } else { "" };
    UsageError(format!("no case matches {}{together}", conditions.join(" ")))
}

/// Returns the end of the error for a value that no case has: the nearest of `values`, which cases
/// have, or else a list of them. If only runs without `--quick` have the value, says how to measure
/// it.
fn other_values(
    experiments: &[&'static Experiment],
    scope: &Scope,
    (name, value): (&str, &str),
    values: &[String],
) -> String {
    let full = Scope { size: Size::Full, ..scope.clone() };
    let quick = if scope.size == Size::Full { "" } else { " with --quick" };
    if case_values(experiments, &full, name).iter().any(|other| other == value) {
        let only = format!("; {name}={value} is measured only without --quick");
        let mut settings = experiments.iter().flat_map(|experiment| experiment.settings);
        return if settings.any(|setting| setting.name == name && setting.parse(value).is_ok()) {
            format!("{only}; with it, use --set {name}={value}")
        } else {
            format!("{only}; values of {name}{quick}: {}", listed(name, values))
        };
    }
    // Numbers get no suggestion, because all of them are similar. A missing value is no typo.
    let is_name = !value.is_empty() && value.parse::<f64>().is_err();
    let names = values.iter().map(String::as_str).filter(|_| is_name);
    match suggest::nearest(value, names.filter(|name| !name.is_empty())) {
        Some(near) => format!("; did you mean '{near}'?"),
        None => format!("; values of {name}{quick}: {}", listed(name, values)),
    }
}

/// Lists the values of a parameter for a message. The empty value, for cases without the parameter,
/// is listed as it is selected.
fn listed(name: &str, values: &[String]) -> String {
    let shown = |value: &String| match value.as_str() {
        "" => format!("{name}= (without)"),
        value => value.to_owned(),
    };
    values.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Returns the distinct values of a parameter in the cases of the experiments that have it. Numbers
/// are in ascending order, names in order of occurrence, and the empty value, for cases without the
/// parameter, is last.
fn case_values(experiments: &[&'static Experiment], scope: &Scope, name: &str) -> Vec<String> {
    let cases = experiments.iter().map(|experiment| (experiment.cases)(scope));
    let known: Vec<_> =
        cases.filter(|cases| cases.iter().any(|case| case.get(name).is_some())).collect();
    let mut values: Vec<Option<&Value>> = Vec::new();
    for value in known.iter().flatten().map(|case| case.get(name)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.sort_by_key(|value| match value {
        Some(Value::Number(number)) => (false, *number),
        Some(_) => (false, 0),
        None => (true, 0),
    });
    values.iter().map(|value| value.map(ToString::to_string).unwrap_or_default()).collect()
}

/// Returns the names of the parameters of all cases, in order of first appearance.
fn case_parameters(experiments: &[&'static Experiment], scope: &Scope) -> Vec<String> {
    let cases: Vec<_> = experiments.iter().flat_map(|e| (e.cases)(scope)).collect();
    let mut names: Vec<String> = Vec::new();
    for (name, _) in cases.iter().flat_map(Parameters::iter) {
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the error for a parameter that cannot be set. If cases have it, the error suggests
/// `--only`. If not, the error suggests a parameter with a similar name, or lists all that can be
/// set or, without any, all that select cases.
fn cannot_be_set(
    experiments: &[&'static Experiment],
    size: Size,
    (name, value): (&str, &str),
    known: &[&Setting],
) -> UsageError {
    let scope = Scope::of(size);
    let mut values = case_values(experiments, &scope, name);
    values.retain(|value| !value.is_empty());
    let Some(first) = values.first() else {
        let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
        let hint = match names.as_slice() {
            [] => format!("; {}", selecting(experiments, &scope)),
            _ => suggest::hint(name, "parameters", names),
        };
        return UsageError(format!("--set: unknown parameter '{name}'{hint}"));
    };
    let near = suggest::nearest(value, values.iter().map(String::as_str));
    let example = match near {
        _ if values.iter().any(|other| other == value) => value,
        Some(near) if value.parse::<f64>().is_err() => near,
        _ => first,
    };
    UsageError(format!(
        "--set: '{name}' selects cases and cannot be set; use --only {name}={example} (values: {})",
        values.join(", ")
    ))
}

/// Returns the experiments as the subject of a sentence, with the verb "to have".
fn subject(experiments: &[&'static Experiment]) -> (&'static str, &'static str) {
    match experiments {
        [one] => (one.name, "has"),
        _ => ("these experiments", "have"),
    }
}

/// Says which parameters of the experiments select cases.
fn selecting(experiments: &[&'static Experiment], scope: &Scope) -> String {
    let (subject, has) = subject(experiments);
    match case_parameters(experiments, scope).as_slice() {
        [] => format!("{subject} {has} no parameters"),
        names => format!("{subject} {has} {}: select cases with --only", names.join(", ")),
    }
}

/// Returns the error for `--turns` if none of the experiments has turns.
fn without_turns(experiments: &[&'static Experiment]) -> UsageError {
    let (subject, has) = subject(experiments);
    let has_turns =
        |experiment: &&&Experiment| experiment.settings.iter().any(|known| known.name == TURNS);
    let mut families: Vec<_> = REGISTRY.experiments.iter().filter(has_turns).collect();
    families.dedup_by_key(|experiment| experiment.family());
    let families: Vec<_> =
        families.iter().map(|experiment| format!("{}/*", experiment.family())).collect();
    UsageError(format!(
        "--turns: {subject} {has} no turns; it applies to {}",
        families.join(" and ")
    ))
}

/// Name of the parameter that `--turns` sets.
const TURNS: &str = "turns";

/// Returns the parameter values that `--set` and `--turns` choose for the given experiments.
///
/// # Errors
/// Returns a [`UsageError`] if a parameter cannot be set, a value is invalid, or both options set
/// `turns`.
fn choices(
    experiments: &[&'static Experiment],
    size: Size,
    args: &MeasurementArgs,
) -> Result<Choices, UsageError> {
    let mut choices = Choices::default();
    if args.turns.is_some() && args.set.iter().any(|(name, _)| name == TURNS) {
        return Err(UsageError(
            "--turns and --set turns are the same parameter: use one of them".to_owned(),
        ));
    }
    let known = experiments.iter().flat_map(|experiment| experiment.settings);
    let known: Vec<&Setting> = known.copied().collect();
    let find = |name: &str| known.iter().find(|setting| setting.name == name);
    for (name, values) in &args.set {
        let setting =
            find(name).ok_or_else(|| cannot_be_set(experiments, size, (name, values), &known))?;
        for text in values.split(',') {
            let value = setting.parse(text).map_err(|expected| {
                let near = suggest::did_you_mean(text, setting.names());
                let hint = if near.is_empty() { format!(": {expected}") } else { near };
                UsageError(format!("invalid --set {name}={text}{hint}"))
            })?;
            choices.add(name, value);
        }
    }
    if let Some(turns) = args.turns {
        let setting = find(TURNS).ok_or_else(|| without_turns(experiments))?;
        let value = setting
            .parse(&turns.to_string())
            .map_err(|expected| UsageError(format!("invalid --turns {turns}: {expected}")))?;
        choices.add(TURNS, value);
    }
    Ok(choices)
}

/// Returns whether standard input and standard error are terminals, so that the user can be asked.
fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn detail(full: bool) -> Detail {
    if full { Detail::Full } else { Detail::Summary }
}

/// Returns the path of the store: the given one, else the value of `CONTEND_STORE`, else
/// `contend/contend.db` in the XDG data directory.
///
/// # Errors
/// Returns a [`UsageError`] if no path is given, `CONTEND_STORE` is unset or empty, and the data
/// directory is unknown.
fn store(given: StoreArgs) -> Result<PathBuf, UsageError> {
    let named = || std::env::var_os("CONTEND_STORE").filter(|path| !path.is_empty());
    if let Some(path) = given.store.or_else(|| named().map(PathBuf::from)) {
        return Ok(path);
    }
    let data = user_directory("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
        let message = "the store of saved runs is unknown: neither XDG_DATA_HOME nor HOME is set; use \
                       --store FILE";
        UsageError(message.to_owned())
    })?;
    Ok(data.join("contend/contend.db"))
}

/// Returns an XDG base directory: the absolute path in the given environment variable, else the
/// default, which is relative to the home directory. Returns `None` if the variable has no absolute
/// path and the home directory is unknown.
fn user_directory(variable: &str, default: &str) -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(default)))
}

/// Returns the path of the store that is used without `--store`, or `None` if its directory is
/// unknown.
fn default_store() -> Option<PathBuf> {
    store(StoreArgs { store: None }).ok()
}

/// Returns the directory in which runs publish their progress for `contend serve`: in the XDG runtime
/// directory, else in the cache directory. Returns `None` if neither is known.
fn publish_directory() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = runtime.filter(|path| path.is_absolute());
    let folder = folder.or_else(|| user_directory("XDG_CACHE_HOME", ".cache"));
    folder.map(|folder| folder.join("contend/live"))
}

/// Returns the directory in which a run publishes its progress if that `is_wanted`, else `None`.
///
/// # Errors
/// Returns a [`UsageError`] if the directory is unknown.
fn publish(is_wanted: bool) -> Result<Option<PathBuf>, UsageError> {
    let unknown = || {
        let message = "--publish: neither XDG_RUNTIME_DIR, XDG_CACHE_HOME nor HOME is set";
        UsageError(message.to_owned())
    };
    is_wanted.then(|| publish_directory().ok_or_else(unknown)).transpose()
}

/// Returns whether to show progress: only if `forbidden` is false, and standard error is a terminal
/// that can move the cursor.
fn shows_progress(forbidden: bool) -> bool {
    let can_draw = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    !forbidden && can_draw && io::stderr().is_terminal()
}

//! `contend lab`: lists and runs experiments.

mod nodes;

use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use contend_lab::engine::experiment::{Cap, Experiment, Sampling, Scope, Size};
use contend_lab::engine::isolate::Machine;
use contend_lab::engine::plan::{Plan, PlannedCase};
use contend_lab::engine::runner::{self, RunContext};
use contend_lab::engine::suite::Suite;
use contend_lab::experiments::REGISTRY;
use contend_record::lab::{Ending, RunRecord};
use contend_record::live::{Chart, Unit};
use contend_report::render;
use contend_report::render::lab::Detail;
use contend_report::render::listing;
use contend_report::store::{Store, StoreError};
use contend_sys::interrupt::Signals;

use super::reports;
use crate::exit::Exit;
use crate::progress::{Follower, RunSaver, SaveOutcome};
use crate::publish::Publisher;
use crate::records::save::Redaction;
use crate::settings::{Lab, LabRun};
use crate::{host, output, version};

/// Lists experiments and suites, prints a plan, or runs one.
///
/// # Errors
/// Returns an error if the store cannot be used, no case can be measured, or the results cannot be
/// saved or written.
pub fn run(settings: Lab) -> Result<Exit> {
    match settings {
        Lab::List(experiments, suites) => {
            output::stdout(&list(&experiments, suites, output::width())).map(|()| Exit::Success)
        }
        Lab::DryRun(plan, seed) => {
            output::stdout(&planned(&plan, seed, output::width())).map(|()| Exit::Success)
        }
        Lab::Run(run) if run.asks && !confirmed()? => Ok(Exit::Success),
        Lab::Run(run) => measure(*run),
        Lab::OnNodes(run) if run.asks && !confirmed()? => Ok(Exit::Success),
        Lab::OnNodes(run) => nodes::run(*run),
    }
}

fn measure(settings: LabRun) -> Result<Exit> {
    let plan = &settings.plan;
    if settings.has_given_budget
        && plan.exceeds_budget()
        && let Some(first) = first_samples(plan)
    {
        let note = format!("This run takes {}: {first}.", approximate(plan.expected()));
        output::stderr(&format!("{}\n", textwrap::fill(&note, output::width().min(100))))?;
    }
    let started_at = super::now();
    let saver = settings.store.as_deref();
    let saver = saver.map(|path| saver_in(path, &settings.title, &settings.label, &started_at));
    let saver = saver.transpose()?;
    let signals = Rc::new(Signals::block().context("cannot block signals")?);
    let mut machine =
        Machine::new(&REGISTRY, Rc::clone(&signals)).context("cannot become a child subreaper")?;
    let to_stdout = settings.files.has_stdout();
    let shows_steps = !to_stdout && settings.detail == Detail::Full;
    let publisher = settings.publish.as_deref().map(|folder| publisher(folder, &settings.title));
    let mut follower =
        Follower::new(settings.progress, shows_steps, saver).with_publisher(publisher.transpose()?);
    follower.begin(&settings.plan);
    let host = host::describe();
    let warnings = host::unfavourable(&host);
    let writer = Some(version::writer());
    let context = RunContext { writer, host, started_at, warnings };
    let record = runner::run(&settings.plan, context, &mut machine, &mut follower);
    let saved = follower.finish(&record).context("the run above was not saved");
    let elsewhere = settings.given_store.as_ref().map_or_else(String::new, |path| {
        format!(" --store {}", render::text::printable(&path.display().to_string()))
    });
    let written = write(&record, settings, to_stdout, shows_steps);
    match &saved {
        Ok(Some(SaveOutcome::Saved(number))) => {
            let saved = format!("saved as run {number}; show it again:");
            let again = format!("contend history show {number}{elsewhere}");
            let fits = saved.len() + 1 + again.len() <= output::width();
            let space = if fits { " " } else { "\n  " };
            output::stderr(&format!("{saved}{space}{again}\n"))?;
        }
        Ok(Some(SaveOutcome::Empty)) => output::stderr("not saved: nothing was measured\n")?,
        Ok(Some(SaveOutcome::Removed(number))) => {
            output::stderr(&format!("not saved: run {number} was removed in the meantime\n"))?;
        }
        Ok(None) | Err(_) => {}
    }
    written?;
    saved?;
    match signals.interrupted() {
        Some(signal) if record.ending == Ending::Interrupted => Ok(Exit::Signal(signal)),
        _ if record.is_empty() => anyhow::bail!("no case could be measured"),
        _ => Ok(Exit::Success),
    }
}

/// Returns a saver for a run that starts at `started_at`, after checking that the store can be written.
fn saver_in(path: &Path, title: &str, label: &str, started_at: &str) -> Result<RunSaver> {
    let new = || -> Result<RunSaver, StoreError> {
        let saver = RunSaver::new(Store::open(path)?, title.to_owned(), label.to_owned());
        saver.check(started_at)?;
        Ok(saver)
    };
    new().context("cannot save runs (use --store FILE or --no-store)")
}

/// Begins to publish the progress of a run for `contend serve`.
fn publisher(folder: &Path, title: &str) -> Result<Publisher> {
    let series = vec!["run".to_owned()];
    let chart = Chart { title: "Completed".to_owned(), unit: Unit::Percent, series };
    Publisher::begin(folder, &Redaction::new([])?, "lab", title, vec![chart])
}

fn write(record: &RunRecord, settings: LabRun, to_stdout: bool, showed_steps: bool) -> Result<()> {
    let written = reports::write_files(record, settings.files);
    if !to_stdout {
        let has_steps = record.cases.iter().any(|case| !case.timeline.is_empty());
        let gap = if showed_steps && has_steps { "\n" } else { "" };
        let report = render::lab::figures(record, settings.detail, output::width());
        output::stdout(&format!("{gap}{report}"))?;
    }
    written
}

/// Asks the user whether a case may exhaust a limit of the machine, and returns whether the user
/// agrees. If not, prints that nothing was measured.
fn confirmed() -> Result<bool> {
    let question = "This run exhausts a limit: for a few seconds, nothing on this machine (or no \
                    program of this user) can start a process or thread. Continue? [y/N]";
    output::stderr(&(textwrap::fill(question, output::width().min(100)) + " "))?;
    std::io::stderr().flush()?;
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    let confirmed = matches!(answer.trim(), "y" | "Y" | "yes");
    if !confirmed {
        let newline = if read == 0 { "\n" } else { "" };
        output::stderr(&format!("{newline}Nothing was measured.\n"))?;
    }
    Ok(confirmed)
}

/// Returns an entry for each experiment and suite, wrapped to `width` columns.
fn list(experiments: &[&'static Experiment], suites: &'static [Suite], width: usize) -> String {
    let column = listing::longest(experiments.iter().map(|experiment| experiment.name));
    let mut out = String::from("Experiments (contend lab run NAME):\n");
    for experiment in experiments {
        let text = format!("{}{}", experiment.summary, missing(experiment));
        out.push_str(&listing::entry(experiment.name, &text, column, width));
    }
    if suites.is_empty() {
        return out;
    }
    out.push_str("\nSuites (contend lab suite NAME), with their duration:\n");
    for suite in suites {
        let [full, quick] = [Size::Full, Size::Quick].map(|size| suite_plan(suite, size));
        let quick = match quick.left_out {
            0 => approximate(quick.expected()),
            1 => format!("{} without 1 case", approximate(quick.expected())),
            count => format!("{} without {count} cases", approximate(quick.expected())),
        };
        let text =
            format!("{} [{}; --quick: {quick}]", suite.summary, approximate(full.expected()));
        out.push_str(&listing::entry(suite.name, &text, column, width));
    }
    out
}

/// Returns the plan for a run of the suite with the given size and no other options.
fn suite_plan(suite: &'static Suite, size: Size) -> Plan {
    let scope = Scope { cap: Cap::Considerate, ..Scope::of(size) };
    Plan::of_suite(suite, &REGISTRY.of_suite(suite), scope)
}

/// Formats an expected time, rounded up to a multiple of five seconds if it is below 90 seconds,
/// else to a whole minute.
fn approximate(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 90.0 {
        format!("about {:.0} s", (seconds / 5.0).ceil() * 5.0)
    } else {
        format!("about {:.0} min", (seconds / 60.0).ceil())
    }
}

/// Says how many cases take their first sample even beyond the budget. Returns `None` if there are
/// none.
fn first_samples(plan: &Plan) -> Option<String> {
    let is_fixed = |case: &&PlannedCase| case.sampling != Sampling::Adaptive;
    let cases = match plan.measured().filter(is_fixed).count() {
        0 => return None,
        1 => "1 case with a fixed number of samples takes".to_owned(),
        some => format!("{some} cases with a fixed number of samples take"),
    };
    let condition = match plan.time_limit.map(|limit| limit.as_secs()) {
        Some(limit) => format!("if the run can still end within {limit} s"),
        None => format!("even beyond the budget of {} s", plan.budget.as_secs_f64()),
    };
    Some(format!("{cases} the first {condition}"))
}

/// Returns a note on the cases of an experiment that this machine cannot run, with the reasons. The
/// note is appended to the experiment's summary, and is empty if all cases can run.
fn missing(experiment: &Experiment) -> String {
    let cases = (experiment.cases)(&Scope::of(Size::Full));
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for parameters in &cases {
        let Some(reason) = (experiment.unavailable)(parameters) else { continue };
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, cases)) => cases.push(parameters.to_string()),
            None => reasons.push((reason, vec![parameters.to_string()])),
        }
    }
    let sentence = |(reason, some): &(String, Vec<String>)| match some.as_slice() {
        all if all.len() == cases.len() => reason.clone(),
        [one] => format!("{one}: {reason}"),
        some => format!("{} cases: {reason}", some.len()),
    };
    if reasons.is_empty() {
        return String::new();
    }
    format!(" [unavailable: {}]", reasons.iter().map(sentence).collect::<Vec<_>>().join("; "))
}

/// Returns a description of the plan and its cases, wrapped to `width` columns, with the seed if the
/// user gave one.
fn planned(plan: &Plan, seed: Option<u64>, width: usize) -> String {
    let measured = match (plan.measured().count(), plan.cases.len()) {
        (measured, all) if measured == all => format!("{all} cases"),
        (measured, all) => format!("{measured} of {all} cases"),
    };
    let seed = seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
    let summary = format!(
        "{measured}, {}, samples of {} ms{seed}:",
        approximate(plan.expected()),
        plan.sample_time.as_millis(),
    );
    let mut out = listing::head(&summary, width);
    if let Some(first) = first_samples(plan) {
        out.push_str(&listing::head(&first, width));
    }
    for case in &plan.cases {
        let samples = match case.sampling {
            Sampling::Adaptive => "until the interval is under 2 %".to_owned(),
            Sampling::Fixed(1) => "1 sample".to_owned(),
            Sampling::Fixed(count) => format!("{count} samples"),
        };
        let skipped = case
            .skipped
            .as_ref()
            .map_or_else(String::new, |reason| format!(" [not measured: {reason}]"));
        let parameters = match case.parameters.to_string() {
            text if text.is_empty() => text,
            text => format!(" {text}"),
        };
        let text = format!("{}{parameters}: {samples}{skipped}", case.experiment.name);
        out.push_str(&listing::item(&text, width));
    }
    out
}

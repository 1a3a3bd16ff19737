//! `contend lab`: lists and runs experiments.

use std::io::Write as _;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use contend_lab::engine::experiment::{Experiment, Sampling, Scope, Size};
use contend_lab::engine::isolate::Machine;
use contend_lab::engine::plan::{Plan, PlannedCase};
use contend_lab::engine::registry::Registry;
use contend_lab::engine::runner::{self, Circumstances};
use contend_lab::experiments::REGISTRY;
use contend_record::lab::{Ending, RunRecord};
use contend_report::render;
use contend_report::render::lab::Detail;
use contend_report::render::listing;
use contend_report::store::Store;
use contend_sys::interrupt::Signals;

use crate::exit::Exit;
use crate::progress::{Fate, Follower, Keeper};
use crate::settings::{Lab, LabRun};
use crate::{host, output, version};

/// Lists experiments, prints a plan, or runs it.
///
/// # Errors
/// If no case can be measured, or the results cannot be written.
pub fn run(settings: Lab) -> Result<Exit> {
    match settings {
        Lab::List => output::stdout(&list(output::width())).map(|()| Exit::Success),
        Lab::DryRun(plan) => {
            output::stdout(&planned(&plan, output::width())).map(|()| Exit::Success)
        }
        Lab::Run(run) => measure(*run),
    }
}

fn measure(settings: LabRun) -> Result<Exit> {
    if settings.asks && !confirmed()? {
        return Ok(Exit::Success);
    }
    let started_at = super::now();
    let keeper = settings
        .store
        .as_deref()
        .map(|path| -> Result<Keeper, contend_report::store::StoreError> {
            let keeper = Keeper::new(Store::open(path)?, settings.title.clone());
            keeper.check(&started_at)?;
            Ok(keeper)
        })
        .transpose()
        .context("cannot save runs (use --store FILE or --no-store)")?;
    let signals = Rc::new(Signals::block().context("cannot block signals")?);
    let mut machine =
        Machine::new(&REGISTRY, Rc::clone(&signals)).context("cannot become a child subreaper")?;
    let to_stdout = settings.json.as_ref().is_some_and(output::ReportFile::is_stdout);
    let shows_steps = !to_stdout && settings.detail == Detail::Full;
    let mut follower = Follower::new(settings.progress, shows_steps, keeper);
    let host = host::describe();
    let warnings = host::unfavourable(&host);
    let writer = Some(version::writer());
    let circumstances = Circumstances { writer, host, started_at, warnings };
    let record = runner::run(&settings.plan, circumstances, &mut machine, &mut follower);
    let kept = follower.finish(&record).context("the run above was not saved");
    let elsewhere = settings.given_store.as_ref().map_or_else(String::new, |path| {
        format!(" --store {}", render::text::printable(&path.display().to_string()))
    });
    let written = write(&record, settings, to_stdout, shows_steps);
    match &kept {
        Ok(Some(Fate::Kept(number))) => {
            let again = format!("contend history show {number}{elsewhere}");
            output::stderr(&format!("saved as run {number}: {again}\n"))?;
        }
        Ok(Some(Fate::Empty)) => output::stderr("not saved: nothing was measured\n")?,
        Ok(Some(Fate::Removed(number))) => {
            output::stderr(&format!("not saved: run {number} was removed in the meantime\n"))?;
        }
        Ok(None) | Err(_) => {}
    }
    written?;
    kept?;
    match signals.interrupted() {
        Some(signal) if record.ending == Ending::Interrupted => Ok(Exit::Signal(signal)),
        _ if record.is_empty() => anyhow::bail!("no case could be measured"),
        _ => Ok(Exit::Success),
    }
}

fn write(record: &RunRecord, settings: LabRun, to_stdout: bool, showed_steps: bool) -> Result<()> {
    let json = match settings.json {
        Some(file) => render::json::lab(record).map_err(Into::into).and_then(|t| file.write(&t)),
        None => Ok(()),
    };
    if !to_stdout {
        let has_steps = record.cases.iter().any(|case| !case.timeline.is_empty());
        let gap = if showed_steps && has_steps { "\n" } else { "" };
        let report = render::lab::figures(record, settings.detail, output::width());
        output::stdout(&format!("{gap}{report}"))?;
    }
    json
}

/// Asks for confirmation before a case exhausts a limit of the machine.
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

/// Returns an entry for each experiment and suite, wrapped to the width.
fn list(width: usize) -> String {
    let Registry { experiments, suites, .. } = REGISTRY;
    let column = listing::longest(experiments.iter().map(|experiment| experiment.name));
    let mut out = String::from("Experiments (contend lab run NAME):\n");
    for experiment in experiments {
        let text = format!("{}{}", experiment.summary, missing(experiment));
        out.push_str(&listing::entry(experiment.name, &text, column, width));
    }
    out.push_str("\nSuites (contend lab suite NAME):\n");
    for suite in suites {
        out.push_str(&listing::entry(suite.name, suite.summary, column, width));
    }
    out
}

/// Returns which cases of an experiment this machine cannot run, and why.
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

/// Returns the text of the plan, wrapped to the width.
fn planned(plan: &Plan, width: usize) -> String {
    let size = format!(
        "{} cases, {} s for measuring, samples of {} ms, seed {}:",
        plan.cases.len(),
        plan.budget.as_secs_f64(),
        plan.sample.as_millis(),
        plan.seed
    );
    let mut out = listing::head(&size, width);
    let is_fixed = |case: &&PlannedCase| case.sampling != Sampling::Adaptive;
    let take = match plan.cases.iter().filter(is_fixed).count() {
        0 => None,
        1 => Some("1 case takes".to_owned()),
        some => Some(format!("{some} cases take")),
    };
    if let Some(take) = take {
        let text =
            format!("{take} a fixed number of samples, at least one regardless of the budget");
        out.push_str(&listing::head(&text, width));
    }
    for case in &plan.cases {
        let samples = match case.sampling {
            Sampling::Adaptive => "until the interval is under 2 %".to_owned(),
            Sampling::Fixed(1) => "1 sample".to_owned(),
            Sampling::Fixed(count) => format!("{count} samples"),
        };
        let skipped = (case.experiment.unavailable)(&case.parameters)
            .map_or_else(String::new, |reason| format!(" [unavailable: {reason}]"));
        let parameters = match case.parameters.to_string() {
            text if text.is_empty() => text,
            text => format!(" {text}"),
        };
        let text = format!("{}{parameters}: {samples}{skipped}", case.experiment.name);
        out.push_str(&listing::item(&text, width));
    }
    out
}

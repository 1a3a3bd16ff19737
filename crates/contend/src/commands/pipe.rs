//! `contend pipe`: profiles a pipeline in one or several runs, and reports the results.

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_profile::pipeline::launch::{LaunchError, LaunchSpec, Output};
use contend_profile::pipeline::progress::Progress;
use contend_profile::pipeline::{profile_with_trace, repeat};
use contend_record::pipe::{PipeRecord, SCHEMA};
use contend_record::trace::Trace;
use contend_report::render;
use contend_shell::parse::Parsed;
use contend_sys::interrupt::Signals;

use super::{advice, reports};
use crate::exit::Exit;
use crate::live::Live;
use crate::publish::PublishedStages;
use crate::records::save::{Redaction, Saving};
use crate::settings::{Answer, Pipe, PipeRun, PipelineSettings};
use crate::{host, output, version};

/// Profiles a pipeline, compares several, or answers questions about a saved profile.
///
/// # Errors
/// Returns an error if the input cannot be read, the pipeline cannot be started, the cost of a pipe
/// cannot be measured, `--try` or a comparison fails, or the report cannot be written.
pub fn run(settings: Pipe) -> Result<Exit> {
    match settings {
        Pipe::Run(run) => profile_and_advise(*run),
        Pipe::Versus(versus) => super::versus::run(*versus),
        Pipe::Attach(attach) => super::attach::run(*attach),
        Pipe::Answer(answer) => {
            let Answer { mut record, questions, store, reports: to } = *answer;
            advice::answer(&mut record, &questions, store.as_deref())?;
            let report = render::pipe::answers(&record, output::width());
            reports::write(&record, &report, to)?;
            Ok(Exit::Success)
        }
    }
}

/// Profiles the pipeline, adds advice, and writes the report. If the pipeline fails or is
/// interrupted, later errors are only printed.
fn profile_and_advise(mut settings: PipeRun) -> Result<Exit> {
    let saved = advice::input::save(&mut settings)?;
    let signals = Signals::block().context("cannot block signals")?;
    let mut records = Vec::new();
    let mut states = None;
    let traced = settings.trace.is_some();
    let mut live = live_view(&settings.parsed, &settings.pipeline, settings.runs);
    if let Some(folder) = &settings.publish {
        let saving = settings.saving.as_ref();
        let commands = commands(&settings.parsed);
        let text = &settings.parsed.text;
        let published = publish(folder, saving, text, &commands, settings.runs)?;
        let view = live.take().unwrap_or_else(|| Live::hidden(commands));
        live = Some(view.with_published(published));
    }
    for _ in 0..settings.runs {
        let view = live.as_mut();
        match run_once(&settings.parsed, &settings.pipeline, traced, view, &signals) {
            Ok((record, trace)) => {
                records.push(record);
                states = trace;
            }
            Err(error) => match error.downcast_ref::<LaunchError>() {
                Some(LaunchError::Interrupted(_)) => {}
                _ => return Err(error),
            },
        }
        if signals.interrupted().is_some() {
            break; // completed runs are still reported
        }
    }
    let mut published = live.and_then(Live::into_published);
    if signals.interrupted().is_some() && records.len() > 1 {
        records.pop(); // an incomplete run would distort the medians
    }
    let Some(mut record) = repeat::summarise(records) else {
        return Ok(signals.interrupted().map_or(Exit::Failure, Exit::Signal));
    };
    if let Some(published) = &mut published {
        published.announce("The pipeline has ended; contend examines the result.");
    }
    let advised = match signals.interrupted() {
        None => advice::add(&mut record, &settings, saved.as_ref(), &signals),
        Some(_) => Ok(()),
    };
    let report = render::pipe::report(&record, settings.reports.detail, output::width());
    let written = reports::write(&record, &report, settings.reports);
    let traced = super::trace::write_if(states.as_ref(), &record, settings.trace);
    let ending = if signals.interrupted().is_some() {
        "interrupted".to_owned()
    } else {
        let median = record.runs.as_ref().map(|runs| runs.wall_seconds.median);
        ending(median.unwrap_or(record.wall_seconds), record.exit_code)
    };
    let saving = settings.saving.as_ref();
    let number = saving.and_then(|saving| save(saving, SCHEMA, &record.command, &ending, &record));
    if let Some(published) = published {
        published.end(&ending, number);
    }
    let exit = signals.interrupted().map_or(Exit::Pipeline(record.exit_code), Exit::Signal);
    match advised.and(written).and(traced) {
        // The exit status of a failed pipeline takes precedence.
        Err(error) if exit != Exit::Pipeline(0) => output::error(&format!("{error:#}")),
        result => result?,
    }
    Ok(exit)
}

/// Returns the live view of a pipeline that will run `runs` times, or `None` if it is disabled.
pub fn live_view(parsed: &Parsed, pipeline: &PipelineSettings, runs: u32) -> Option<Live> {
    pipeline.live.then(|| Live::new(commands(parsed), pipeline.discard, runs))
}

/// Returns the texts of the stages, first to last.
fn commands(parsed: &Parsed) -> Vec<String> {
    (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect()
}

/// Begins to publish a pipeline with the given stages for `contend serve`. What the history would redact, if
/// the run is saved, is redacted.
///
/// # Errors
/// Returns an error if it cannot be published.
pub fn publish(
    folder: &Path,
    saving: Option<&Saving>,
    text: &str,
    commands: &[String],
    runs: u32,
) -> Result<PublishedStages> {
    let built_in = Redaction::new([])?;
    let redaction = saving.map_or(&built_in, |saving| &saving.redaction);
    PublishedStages::begin(folder, redaction, text, commands, runs)
}

/// Runs the pipeline once, and shows its stages in the live view, if there is one. Returns what each
/// stage did over time if `traced` is true.
///
/// # Errors
/// Returns an error if the input cannot be opened or the pipeline cannot be started, for example
/// because of a signal.
pub fn run_once(
    parsed: &Parsed,
    pipeline: &PipelineSettings,
    traced: bool,
    mut live: Option<&mut Live>,
    signals: &Signals,
) -> Result<(PipeRecord, Option<Trace>)> {
    let spec = LaunchSpec {
        shell: &pipeline.shell,
        setup: pipeline.setup.as_deref(),
        parsed,
        pipefail: pipeline.pipefail,
        stdin: pipeline.open_stdin()?,
        output: if pipeline.discard { Output::Discarded } else { Output::Inherited },
        trace: traced,
    };
    if let Some(live) = &mut live {
        live.begin_run();
    }
    let mut show = |progress: &Progress<'_>| {
        if let Some(live) = &mut live {
            live.show(progress);
        }
    };
    let (record, trace) =
        profile_with_trace(spec, &host::describe(), super::now(), signals, &mut show)?;
    Ok((PipeRecord { contend: Some(version::writer()), ..record }, trace))
}

/// Returns how a run ended, for the list of saved runs: its wall time and, unless it is 0, its exit
/// code.
pub fn ending(wall_seconds: f64, exit_code: i32) -> String {
    let wall = contend_record::units::time(wall_seconds);
    if exit_code == 0 { wall } else { format!("{wall}, exit {exit_code}") }
}

/// Saves a record in the history, and prints the number of the run if it has a label. A failure is
/// not an error, because the pipeline has run. It is printed only if the user asked for the run to
/// be saved: a home directory may be missing or read-only. Returns the number of the run; `None` if
/// it was not saved.
pub fn save(
    saving: &Saving,
    schema: &str,
    title: &str,
    ending: &str,
    record: &impl serde::Serialize,
) -> Option<i64> {
    let saved = saving.save(schema, title, ending, record);
    match &saved {
        Ok(number) if !saving.label.is_empty() => {
            let note = format!("Saved as run {number} ({}).\n", saving.label);
            let _ = output::stderr(&note); // the report has been written
        }
        Err(error) if saving.is_requested => {
            output::error(&format!("the run was not saved: {error:#}"));
        }
        Ok(_) | Err(_) => {}
    }
    saved.ok()
}

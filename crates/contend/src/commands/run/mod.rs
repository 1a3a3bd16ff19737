//! `contend run`: runs a pipeline or script in parallel.

pub mod probe;
mod progress;
mod reporter;

use std::ffi::{OsStr, OsString};
use std::time::Instant;

use anyhow::Result;
use contend_parallel::plan::script::STAGE_VERB;
use contend_parallel::run::stage::{self, Begun};
use contend_parallel::run::{self as engine, End, Report, Request, Target};
use contend_record::run::{Outcome, RunRecord, SCHEMA, WorkSpan};
use contend_record::shell::quote;
use contend_report::render;
use contend_report::render::trace::work::of_run;

use super::pipe::ending;
use super::{reports, trace};
use crate::cli::history::SaveArgs;
use crate::exit::Exit;
use crate::settings::{self, RecordFiles, Run, TraceFile};
use crate::{host, output, version};
use reporter::Reporter;

/// Runs the request, writes the reports that the user asked for, and saves the run if it is worth
/// saving.
///
/// # Errors
/// Returns an error if the request cannot be run or a report cannot be written.
pub fn run(settings: Run) -> Result<Exit> {
    let Run { request, progress, files, trace, script_command, tip, publish, save } = settings;
    if let Some(tip) = tip {
        output::error(&tip);
    }
    let text = match &request.what {
        Target::Pipeline(text) => text.clone(),
        Target::Script(path, _) => path.display().to_string(),
        Target::Job(job) => job.text.clone(),
    };
    let mut reporter = Reporter::new(progress, request.settings.check)
        .with_declared(declared_commands(&request))
        .with_published(publish.map(|folder| (folder, text)));
    let end = engine::run(&request, &mut reporter)?;
    let statistics = request.settings.stats.then_some(render::run::statistics as Render);
    let save = Some(save);
    let Concluded { exit, number } =
        conclude(end, statistics, Destinations { files, trace, save })?;
    match exit {
        Exit::Pipeline(status) => reporter.end(&format!("exit {status}"), number),
        Exit::Signal(_) => reporter.end("interrupted", number),
        _ => {}
    }
    if let Some(command) = script_command {
        output::stderr(&format!("To run the pipelines of the script in parallel: {command}\n"))?;
    }
    Ok(exit)
}

/// Returns the commands whose annotations may apply to a pipeline that is compared with the
/// original: those whose names occur in it.
fn declared_commands(request: &Request) -> Vec<String> {
    let (Target::Pipeline(text), true) = (&request.what, request.settings.check) else {
        return Vec::new();
    };
    let annotations = request.settings.annotations.iter();
    let may_apply =
        annotations.filter(|one| one.words.first().is_some_and(|word| text.contains(word)));
    may_apply.map(|one| one.words.join(" ")).collect()
}

/// Runs a stage of shell text if this process was started for one, or returns `None`.
pub fn run_as_stage() -> Option<Result<Exit>> {
    let mut words = std::env::args_os().skip(1);
    (words.next().as_deref() == Some(OsStr::new(STAGE_VERB)))
        .then(|| run_stage(&words.collect::<Vec<_>>()))
}

fn run_stage(words: &[OsString]) -> Result<Exit> {
    let undecided = match stage::begin(words)? {
        Begun::Over(end) => return Ok(conclude(end, None, Destinations::default())?.exit),
        Begun::Undecided(undecided) => undecided,
    };
    let stage = settings::stage(undecided.options())?;
    let mut reporter = Reporter::new(stage.progress, false);
    let end = undecided.run(&stage.settings, &stage.name, &mut reporter)?;
    let statistics = stage.settings.stats.then_some(render::run::statistics_in_script as Render);
    let to = Destinations { files: stage.files, ..Destinations::default() };
    Ok(conclude(end, statistics, to)?.exit)
}

/// Renders the statistics of a run in the given number of columns.
type Render = fn(&RunRecord, usize) -> String;

/// Where the record and the trace of a run go.
#[derive(Debug, Default)]
struct Destinations {
    files: RecordFiles,
    /// The file for the trace; `None` if none is written.
    trace: Option<TraceFile>,
    /// Options for saving the run; `None` if it is never saved.
    save: Option<SaveArgs>,
}

/// The outcome of a run that has been reported on.
struct Concluded {
    /// The outcome for this process.
    exit: Exit,
    /// The number under which the run was saved; `None` if it was not.
    number: Option<i64>,
}

/// Reports on a run that has ended. `statistics` renders the statistics, if they are requested.
fn conclude(end: End, statistics: Option<Render>, to: Destinations) -> Result<Concluded> {
    let mut number = None;
    let exit = match end {
        End::Explained(report) => {
            explain(*report, to.files)?;
            Exit::Success
        }
        End::Finished { exit_code, report } => {
            number = report_on(*report, statistics, to)?;
            Exit::Pipeline(exit_code)
        }
        End::Emitted(folder) => {
            let folder = quote(&folder.display().to_string());
            output::stdout(&format!(
                "To start the parts:              sh {folder}/submit.sh\n\
                 To combine their outputs then:   contend run --resume {folder}\n"
            ))?;
            Exit::Success
        }
        End::Interrupted(signal) => Exit::Signal(signal),
        End::NotExecuted { program, source, exit_code } => {
            output::error(&format!("cannot start '{program}': {source}"));
            Exit::Shell(exit_code)
        }
        End::TakenOver => Exit::Success,
    };
    Ok(Concluded { exit, number })
}

/// Prints the plan, or writes it to the given files instead.
fn explain(report: Report, files: RecordFiles) -> Result<()> {
    if !files.is_empty() {
        return reports::write_files(&complete(report), files);
    }
    output::stdout(&render::run::explanation(&report.record, output::stdout_width()))
}

/// Prints the statistics of a run with `statistics`, if given, and writes its record and its trace. If
/// a shell ran the text, each pipeline has already printed its own statistics, and only a summary
/// follows. Returns the number under which the run was saved; `None` if it was not.
fn report_on(
    mut report: Report,
    statistics: Option<Render>,
    to: Destinations,
) -> Result<Option<i64>> {
    let Destinations { files, trace: trace_file, save } = to;
    if let Some(render) = statistics {
        let render = if report.by_shell { render::run::script_summary } else { render };
        output::stderr(&render(&report.record, output::width()))?;
    }
    let save = save.filter(|save| is_worth_saving(&report.record, save));
    if files.is_empty() && trace_file.is_none() && save.is_none() {
        return Ok(None);
    }
    let (work, begun) = (std::mem::take(&mut report.work), report.begun);
    let record = complete(report);
    let written = reports::write_files(&record, files);
    let traced = trace_file.map_or(Ok(()), |file| write_trace(&record, &work, begun, file));
    let mut number = None;
    if let Some(save) = save {
        match settings::saving_of_run(save) {
            Ok(Some(saving)) => {
                let of = |outcome: &Outcome| ending(outcome.wall_seconds, outcome.exit_code);
                let ending = record.outcome.as_ref().map_or_else(String::new, of);
                number = super::pipe::save(&saving, SCHEMA, &record.command, &ending, &record);
            }
            Ok(None) => {}
            Err(error) => output::error(&format!("the run was not saved: {error:#}")),
        }
    }
    written.and(traced)?;
    Ok(number)
}

/// Writes what the workers did over time; an error message instead if contend had none.
fn write_trace(
    record: &RunRecord,
    work: &[WorkSpan],
    begun: Option<Instant>,
    file: TraceFile,
) -> Result<()> {
    let (Some(begun), false) = (begun, work.is_empty()) else {
        output::error(
            "no trace was written: contend had no workers in this run; --explain says why",
        );
        return Ok(());
    };
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let traced = of_run(record, work, trace::clocks_at(begun), pid);
    trace::write(&traced, record.into(), file)
}

/// Minimum wall time of a run that is saved without a request, in seconds. Saving takes a few
/// milliseconds.
const MIN_SAVED_SECONDS: f64 = 0.5;

/// Returns whether a run is saved: if the user asks for it, or if it ran in parallel and was not
/// short. A run whose outcome is unknown is not saved.
fn is_worth_saving(record: &RunRecord, save: &SaveArgs) -> bool {
    let Some(outcome) = &record.outcome else { return false };
    let is_asked_for = save.label.is_some() || save.store.is_some();
    let is_parallel = record.decision.parallel || !record.pipelines.is_empty();
    is_asked_for || is_parallel && outcome.wall_seconds >= MIN_SAVED_SECONDS
}

/// Returns the record of a run, completed with the version, the start time and the machine.
fn complete(report: Report) -> RunRecord {
    RunRecord {
        contend: Some(version::writer()),
        started_at: super::utc(report.started),
        host: host::describe(),
        ..report.record
    }
}

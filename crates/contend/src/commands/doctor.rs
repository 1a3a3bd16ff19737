//! `contend doctor`: observes a program, and reports why it does not use the CPUs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result};
use contend_doctor::diagnosis;
use contend_doctor::observe::{Config, Observation, Observer, observe};
use contend_doctor::remedy::change::command_line;
use contend_doctor::stacks::Stacks;
use contend_doctor::trace::MAX_SPANS;
use contend_record::Host;
use contend_record::doctor::{DoctorRecord, SCHEMA};
use contend_record::trace::Trace;
use contend_report::render::units::seconds;
use contend_report::{export, render};
use contend_sys::child::{self, ExitStatus, Which};
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, Signal, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::advice::input::CommandInput;
use super::remedies::{self, Subject, name_commands};
use crate::exit::Exit;
use crate::live::watch::{Capture, Watch};
use crate::output::ReportFile;
use crate::publish::PublishedThreads;
use crate::records::save::{Redaction, Saving};
use crate::settings::{Doctor, Patient, Remedies, Reports, TraceFile, command_of, words_of};
use crate::{host, output, version};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_millis(10);
/// Largest number of spans of a trace that is collected for a page alone. They take 16 MB.
const MAX_SPANS_OF_PAGE: usize = 1_000_000;
/// Time that a command has to end after the signal that interrupts contend, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Observes the program until it ends, a signal arrives or the time is over, and writes the report.
///
/// # Errors
/// Returns an error if the command cannot be started, no process can be observed, or the report cannot
/// be written.
pub fn run(settings: Doctor) -> Result<Exit> {
    let Doctor { patient, limit, watch, publish, remedies, reports, saving, trace, stacks } =
        settings;
    // Before signals are blocked, because that may wait for input.
    let remedies = remedies.map(|one| Ok::<_, Error>((one, CommandInput::read()?))).transpose()?;
    let signals = Signals::block().context("cannot block signals")?;
    let to = Destinations { reports, saving, trace, stacks, publish };
    match patient {
        Patient::Running(pids) => {
            raise_descriptor_limit();
            let (first, words) = (pids[0], words_of(pids[0]));
            let (command, host) = (command_of(first), host::describe());
            let program = Program { command, targets: pids, started: false, host };
            let display =
                Display { watch, capture: None, published: to.publish(&program.command)? };
            let mut examined = examine(program, limit, display, to.max_spans(), &signals)?;
            name_commands(&mut examined.record, &words, Some(first));
            write(&mut examined, to)?;
            Ok(match signals.interrupted() {
                Some(signal) if signal != Signal::INT.as_raw() => Exit::Signal(signal),
                _ => Exit::Success,
            })
        }
        Patient::Command(words) => {
            run_command(&words, limit, watch, remedies.as_ref(), to, &signals)
        }
    }
}

/// What is observed.
struct Program {
    /// The command line.
    command: String,
    targets: Vec<Pid>,
    /// Whether contend has started it.
    started: bool,
    /// The machine, which is examined before the program starts.
    host: Host,
}

/// What is shown during the observation.
struct Display<'a> {
    /// Whether there is a live view.
    watch: bool,
    capture: Option<&'a mut Capture>,
    /// Publishes the threads for `contend serve`; `None` if they are not published.
    published: Option<PublishedThreads>,
}

/// Where the results go.
struct Destinations {
    reports: Reports,
    saving: Option<Saving>,
    trace: Option<TraceFile>,
    /// The file for the stacks of busy threads; `None` if they are not written.
    stacks: Option<ReportFile>,
    /// Directory in which the observation publishes its progress; `None` if it does not.
    publish: Option<PathBuf>,
}

impl Destinations {
    /// Begins to publish the observation of a program, if that is requested.
    fn publish(&self, command: &str) -> Result<Option<PublishedThreads>> {
        let Some(folder) = &self.publish else { return Ok(None) };
        let built_in = Redaction::new([])?;
        let redaction = self.saving.as_ref().map_or(&built_in, |saving| &saving.redaction);
        PublishedThreads::begin(folder, redaction, command).map(Some)
    }

    /// Returns the largest number of spans of the trace; `None` if no trace is needed. A page shows the
    /// threads over time.
    fn max_spans(&self) -> Option<usize> {
        match (&self.trace, &self.reports.files.html) {
            (Some(_), _) => Some(MAX_SPANS),
            (None, Some(_)) => Some(MAX_SPANS_OF_PAGE),
            (None, None) => None,
        }
    }
}

/// The results of an observation.
struct Examined {
    record: DoctorRecord,
    trace: Option<Trace>,
    stacks: Stacks,
    /// The published threads, whose end has not been published; `None` if they are not published.
    published: Option<PublishedThreads>,
}

/// Returns whether a command could not be started, with the given error, because no such program was found.
/// The system reports a directory in `PATH` that this user may not search as a lack of permission.
fn is_missing(program: &OsStr, error: &io::Error) -> bool {
    let is_name = !program.as_encoded_bytes().contains(&b'/');
    let exists = || {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(program).exists())
    };
    match error.kind() {
        io::ErrorKind::NotFound => true,
        io::ErrorKind::PermissionDenied => is_name && !exists(),
        _ => false,
    }
}

/// Starts a command, observes it, and returns its exit status.
fn run_command(
    words: &[OsString],
    limit: Option<Duration>,
    watch: bool,
    remedies: Option<&(Remedies, CommandInput)>,
    to: Destinations,
    signals: &Signals,
) -> Result<Exit> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let (mut capture, mut redirected) = if watch {
        let (capture, redirected) =
            Capture::redirect(&mut command).context("cannot redirect the command's output")?;
        (Some(capture), redirected)
    } else {
        (None, Vec::new())
    };
    if let Some(saved) = remedies.map(|(_, input)| input.saved()).transpose()?.flatten() {
        command.stdin(saved);
        redirected.push(0);
    }
    let line = command_line(words);
    let published = to.publish(&line)?;
    let begun = Instant::now();
    let host = host::describe();
    let child = match spawn::spawn(&mut command, &redirected, signals.mask_before(), Signal::TERM) {
        Ok(child) => child,
        Err(error) => {
            let is_missing = is_missing(&words[0], &error);
            let error = if is_missing { io::Error::from(Errno::NOENT) } else { error };
            output::error(&format!("cannot execute {}: {error}", command_line(&words[..1])));
            return Ok(Exit::Shell(if is_missing { 127 } else { 126 }));
        }
    };
    let pid = Pid::from_child(&child);
    let program = Program { command: line, targets: vec![pid], started: true, host };
    let display = Display { watch, capture: capture.as_mut(), published };
    let mut examined = match examine(program, limit, display, to.max_spans(), signals) {
        Ok(examined) => examined,
        Err(error) => {
            let _ = wait(pid, signals, capture); // the first error is the one to report
            return Err(error);
        }
    };
    if let Some(capture) = &mut capture {
        capture.print_end();
    }
    // If the time is over, the report does not wait for the end of the command, but a trial does. Without
    // a time, the command has ended, or it cannot be observed.
    let has_ended = matches!(child::peek(Which::One(pid)), Ok(Some(_)));
    let is_over = has_ended || signals.interrupted().is_some() || limit.is_none() && !watch;
    if !is_over && remedies.is_none() {
        name_commands(&mut examined.record, words, None);
        write(&mut examined, to)?;
        if watch {
            output::stderr("The command continues; contend waits for its end.\n")?;
        }
        return Ok(exit(wait(pid, signals, capture)?, signals));
    }
    let status = wait(pid, signals, capture)?;
    examined.record.exit_code = Some(status.shell_code());
    let tried = match remedies {
        Some((settings, input)) if signals.interrupted().is_none() => {
            let subject = Subject { words, input, first_run: begun.elapsed() };
            remedies::add(&mut examined.record, subject, settings, signals)
        }
        _ => Ok(()),
    };
    name_commands(&mut examined.record, words, None);
    let written = write(&mut examined, to);
    let exit = exit(status, signals);
    match tried.and(written) {
        // The exit status of a failed command takes precedence.
        Err(error) if exit != Exit::Pipeline(0) => output::error(&format!("{error:#}")),
        result => result?,
    }
    Ok(exit)
}

/// Permits contend as many descriptors as possible: context switches take one for each thread and CPU. A
/// command would inherit the limit, so that it stays as it is then.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }); // or fewer
}

fn exit(status: ExitStatus, signals: &Signals) -> Exit {
    signals.interrupted().map_or(Exit::Pipeline(status.shell_code()), Exit::Signal)
}

/// Waits for the end of a child, and reaps it. Once a signal asks contend to end, passes it on, and
/// kills the child if it does not end in time. A signal from the keyboard has reached the child, which
/// then has as much time as without contend. Prints what the child writes in the meantime, if its
/// output was redirected for a live view.
fn wait(pid: Pid, signals: &Signals, mut capture: Option<Capture>) -> Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        let has_ended = matches!(child::peek(Which::One(pid)), Ok(Some(_)));
        if let Some(capture) = &mut capture {
            capture.print_new();
        }
        if has_ended {
            return Ok(child::reap(pid).context("cannot wait for the command")?.status);
        }
        let signal = signals.interrupted().filter(|_| !signals.is_keyboard_interrupt());
        if let (Some(signal), None) = (signal, asked) {
            asked = Some(Instant::now());
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_process(pid, signal); // it may have ended
            }
        }
        if asked.is_some_and(|asked| asked.elapsed() > GRACE) {
            let _ = rustix::process::kill_process(pid, Signal::KILL); // as above
        }
        let mut fds = [PollFd::new(signals, PollFlags::IN)];
        let limit = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let _ = poll(&mut fds, Some(&limit)); // a failure only shortens the wait
    }
}

/// Observes the program, with a live view if there is to be one, and returns the results.
fn examine(
    program: Program,
    limit: Option<Duration>,
    display: Display<'_>,
    max_spans: Option<usize>,
    signals: &Signals,
) -> Result<Examined> {
    let Program { command, targets, started, host } = program;
    let cpus_online = host.cpus_online as f64;
    let started_at = super::now();
    let config = Config {
        targets,
        limit,
        interval: INTERVAL,
        switches: true,
        wakes: true,
        trace: max_spans,
    };
    let record = |observation: &Observation| DoctorRecord {
        contend: Some(version::writer()),
        command: command.clone(),
        started_at: started_at.clone(),
        started,
        host: host.clone(),
        ..diagnosis::record(observation, cpus_online)
    };
    let mut watch = display
        .watch
        .then(|| Watch::begin(signals, &record, display.capture))
        .transpose()
        .context("cannot show the live view")?;
    let mut published = display.published;
    let mut each = |observer: &mut Observer<'_>| {
        if let Some(published) = &mut published {
            published.show(observer.elapsed(), || record(&observer.snapshot()));
        }
        match &mut watch {
            Some(watch) => watch.step(observer),
            None => ControlFlow::Continue(()),
        }
    };
    let observation = observe(&config, signals, &mut each);
    drop(watch); // the report is not for its screen
    let mut observation = observation.context("cannot observe the program")?;
    let record = record(&observation);
    let (trace, stacks) = (observation.trace.take(), observation.stacks);
    Ok(Examined { record, trace, stacks, published })
}

/// Returns how an observation ended, for the list of saved runs: its length and, if it is known and not
/// 0, the exit code.
pub(super) fn ending(record: &DoctorRecord) -> String {
    super::pipe::ending(record.observed_seconds, record.exit_code.unwrap_or(0))
}

/// Writes the reports, saves the diagnosis, publishes the end, and writes the trace. Returns the first error, after
/// everything that can be written has been written.
fn write(examined: &mut Examined, to: Destinations) -> Result<()> {
    let Examined { record, trace, stacks, published } = examined;
    let report = render::doctor::report(record, to.reports.detail, output::width());
    let written = super::reports::write(record, &report, to.reports);
    let number = to.saving.as_ref().and_then(|saving| {
        super::pipe::save(saving, SCHEMA, &record.command, &ending(record), record)
    });
    if let Some(published) = published.take() {
        published.end(&format!("observed for {}", seconds(record.observed_seconds)), number);
    }
    let folded = to.stacks.map_or(Ok(()), |file| write_stacks(record, stacks, file));
    written.and(super::trace::write_if(trace.as_ref(), record, to.trace)).and(folded)
}

/// Writes the stacks of busy threads, and says on standard error if there are none.
fn write_stacks(record: &DoctorRecord, stacks: &mut Stacks, file: ReportFile) -> Result<()> {
    let text = export::folded(record, &stacks.named());
    if text.is_empty() {
        output::error(
            "there are no stacks: no thread was busy, or samples are not permitted; the report says \
             what was observed",
        );
    }
    file.write(&text)
}

//! `contend doctor`: observes a program, and reports why it does not use the CPUs.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use contend_doctor::diagnosis;
use contend_doctor::observe::{Config, Observation, Observer, observe};
use contend_record::doctor::DoctorRecord;
use contend_record::shell::quote;
use contend_report::render;
use contend_sys::child::{self, ExitStatus, Which};
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, Signal, cpu, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::Exit;
use crate::live::watch::{Capture, Watch};
use crate::output::ReportFile;
use crate::settings::{Doctor, Patient, Reports};
use crate::{host, output, version};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_millis(10);
/// Time that a command has to end after the signal that interrupts contend, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Observes the program until it ends, a signal arrives or the time is over, and writes the report.
///
/// # Errors
/// Returns an error if the command cannot be started, no process can be observed, or the report cannot
/// be written.
pub fn run(settings: Doctor) -> Result<Exit> {
    let signals = Signals::block().context("cannot block signals")?;
    let Doctor { patient, limit, watch, reports } = settings;
    match patient {
        Patient::Running(pids) => {
            let program = Program { command: command_of(pids[0]), targets: pids, started: false };
            let record = examine(program, limit, Display { watch, capture: None }, &signals)?;
            write(&record, reports)?;
            Ok(match signals.interrupted() {
                Some(signal) if signal != Signal::INT.as_raw() => Exit::Signal(signal),
                _ => Exit::Success,
            })
        }
        Patient::Command(words) => run_command(&words, limit, watch, reports, &signals),
    }
}

/// What is observed.
struct Program {
    /// The command line.
    command: String,
    targets: Vec<Pid>,
    /// Whether contend has started it.
    started: bool,
}

/// What is shown during the observation.
struct Display<'a> {
    /// Whether there is a live view.
    watch: bool,
    capture: Option<&'a mut Capture>,
}

/// Starts a command, observes it, and returns its exit status.
fn run_command(
    words: &[OsString],
    limit: Option<Duration>,
    watch: bool,
    reports: Reports,
    signals: &Signals,
) -> Result<Exit> {
    let text: Vec<String> = words.iter().map(|word| quote(&word.to_string_lossy())).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let (mut capture, redirected) = if watch {
        let (capture, redirected) =
            Capture::redirect(&mut command).context("cannot redirect the command's output")?;
        (Some(capture), redirected)
    } else {
        (None, Vec::new())
    };
    let child = match spawn::spawn(&mut command, &redirected, signals.mask_before(), Signal::TERM) {
        Ok(child) => child,
        Err(error) => {
            output::error(&format!("cannot execute {}: {error}", text[0]));
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(Exit::Shell(if is_missing { 127 } else { 126 }));
        }
    };
    let pid = Pid::from_child(&child);
    let program = Program { command: text.join(" "), targets: vec![pid], started: true };
    let display = Display { watch, capture: capture.as_mut() };
    let mut record = match examine(program, limit, display, signals) {
        Ok(record) => record,
        Err(error) => {
            let _ = wait(pid, signals, capture); // the first error is the one to report
            return Err(error);
        }
    };
    if let Some(capture) = &mut capture {
        capture.print_end();
    }
    // If the time is over, the report does not wait for the end of the command.
    let has_ended = matches!(child::peek(Which::One(pid)), Ok(Some(_)));
    if has_ended || signals.interrupted().is_some() {
        let status = wait(pid, signals, capture)?;
        record.exit_code = Some(status.shell_code());
        write(&record, reports)?;
        return Ok(exit(status, signals));
    }
    write(&record, reports)?;
    if watch {
        output::stderr("The command continues; contend waits for its end.\n")?;
    }
    Ok(exit(wait(pid, signals, capture)?, signals))
}

fn exit(status: ExitStatus, signals: &Signals) -> Exit {
    signals.interrupted().map_or(Exit::Pipeline(status.shell_code()), Exit::Signal)
}

/// Waits for the end of a child, and reaps it. Once a signal asks contend to end, passes it on, and
/// kills the child if it does not end in time. Prints what the child writes in the meantime, if its
/// output was redirected for a live view.
fn wait(pid: Pid, signals: &Signals, mut capture: Option<Capture>) -> Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(capture) = &mut capture {
            capture.print_new();
        }
        if let Ok(Some(_)) = child::peek(Which::One(pid)) {
            return Ok(child::reap(pid).context("cannot wait for the command")?.status);
        }
        if let (Some(signal), None) = (signals.interrupted(), asked) {
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

/// Observes the program, with a live view if there is to be one, and returns the record.
fn examine(
    program: Program,
    limit: Option<Duration>,
    display: Display<'_>,
    signals: &Signals,
) -> Result<DoctorRecord> {
    let Program { command, targets, started } = program;
    let host = host::describe();
    let quota = cpu::quota_of(targets[0]);
    let cpus_online = host.cpus_online as f64;
    let started_at = super::now();
    let config = Config { targets, limit, interval: INTERVAL, switches: true, quota };
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
    let mut each = |observer: &mut Observer<'_>| match &mut watch {
        Some(watch) => watch.step(observer),
        None => ControlFlow::Continue(()),
    };
    let observation = observe(&config, signals, &mut each);
    drop(watch); // the report is not for its screen
    Ok(record(&observation.context("cannot observe the program")?))
}

/// Returns the command line of a process, with words separated by spaces.
fn command_of(pid: Pid) -> String {
    let text = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let words: Vec<String> = text.split('\0').filter(|word| !word.is_empty()).map(quote).collect();
    words.join(" ")
}

fn write(record: &DoctorRecord, reports: Reports) -> Result<()> {
    let Reports { detail, output: report_file, json } = reports;
    let json = json.map_or(Ok(()), |file: ReportFile| {
        render::json::doctor(record).map_err(Into::into).and_then(|text| file.write(&text))
    });
    let report = render::doctor::report(record, detail, output::width());
    match report_file {
        Some(file) => file.write(&output::plain(&report))?,
        None => output::stderr(&report)?,
    }
    json
}

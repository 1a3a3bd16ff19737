//! Settings of `contend doctor`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use contend_doctor::remedy::change::command_line;
use contend_report::render::pipe::Detail;
use contend_sys::Pid;
use contend_sys::procfs::Stat;
use rustix::io::Errno;
use rustix::process::test_kill_process;

use super::history::{Saver, saving};
use super::remedies::{Remedies, remedies};
use super::reports::check_differ;
use super::{RecordPaths, Reports, TraceFile, publish};
use crate::cli::doctor::DoctorArgs;
use crate::exit::UsageError;
use crate::live;
use crate::output::ReportFile;
use crate::records::save::Saving;

/// Time for which a running process is observed if the user gives none, without a live view.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// Settings of `contend doctor`.
#[derive(Debug)]
pub struct Doctor {
    /// What to observe.
    pub patient: Patient,
    /// Time after which the observation ends; `None` for the end of the program or a signal.
    pub limit: Option<Duration>,
    /// Whether to show a live view.
    pub watch: bool,
    /// Directory in which the observation publishes its progress; `None` if it does not.
    pub publish: Option<PathBuf>,
    /// The trial of remedies; `None` without one. The patient is a command if there is one.
    pub remedies: Option<Remedies>,
    /// Where the report goes.
    pub reports: Reports,
    /// How the diagnosis is saved; `None` if it is not.
    pub saving: Option<Saving>,
    /// Where the trace goes; `None` if none is written.
    pub trace: Option<TraceFile>,
    /// Where the stacks go; `None` if they are not written.
    pub stacks: Option<ReportFile>,
}

/// What to observe.
#[derive(Debug)]
pub enum Patient {
    /// Processes that are already running; at least one.
    Running(Vec<Pid>),
    /// A command to start: a program and its arguments.
    Command(Vec<OsString>),
}

/// Returns the settings of `contend doctor`.
///
/// # Errors
/// Returns a [`UsageError`] if a process does not exist, has ended, is a thread of the kernel or
/// contend itself, there is no terminal for a live view, a report cannot be written, the name of the
/// trace stands for no format, or remedies are to be tried for a running process.
pub fn doctor(args: DoctorArgs) -> Result<Doctor> {
    if args.watch
        && let Some(obstacle) = live::watch::obstacle()
    {
        return Err(UsageError(format!("`--watch` cannot show a live view: {obstacle}")).into());
    }
    check_proc()?;
    let detail = if args.verbose { Detail::Full } else { Detail::Summary };
    let paths = RecordPaths {
        json: args.json.as_deref(),
        html: args.html.as_deref(),
        exports: &args.exports,
    };
    let reports = Reports::prepare(detail, args.output.as_deref(), paths)?
        .with_label(args.save.label.as_deref());
    let trace = args.trace.map(|path| TraceFile::prepare(&path, reports.files())).transpose()?;
    let stacks = args.export_folded.as_deref().map(ReportFile::prepare).transpose()?;
    if let Some(stacks) = &stacks {
        let trace = trace.iter().map(|trace| ("--trace", &trace.file));
        for other in reports.files().chain(trace) {
            check_differ(("--export-folded", stacks), other)?;
        }
    }
    let remedies = remedies(args.remedies)?;
    let saving = saving(args.save, Saver::Doctor)?;
    let publish = publish(args.publish)?;
    let (patient, limit) = if args.command.is_empty() {
        let pids = args.pids.iter().map(|&pid| process(pid)).collect::<Result<Vec<_>, _>>()?;
        if remedies.is_some() {
            return Err(needs_command(&pids).into());
        }
        let default = (!args.watch).then_some(DEFAULT_TIME);
        (Patient::Running(pids), args.limit.or(default))
    } else {
        (Patient::Command(args.command), args.limit)
    };
    let watch = args.watch;
    Ok(Doctor { patient, limit, watch, publish, remedies, reports, saving, trace, stacks })
}

/// Returns the error for `--try` with running processes.
fn needs_command(pids: &[Pid]) -> UsageError {
    let command = pids.first().map(|&pid| command_of(pid)).unwrap_or_default();
    let command = if command.is_empty() { "COMMAND".to_owned() } else { command };
    UsageError(format!(
        "--try starts the program several times: give its command, as in `contend doctor --try -- \
         {command}`"
    ))
}

/// Returns the words of a process's command line; none if it has ended, or is a zombie.
pub fn words_of(pid: Pid) -> Vec<OsString> {
    let text = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let words = text.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// Returns the command line of a process, ready to paste.
pub fn command_of(pid: Pid) -> String {
    command_line(&words_of(pid))
}

/// Checks that `/proc` shows the processes by the IDs by which contend knows them.
///
/// # Errors
/// Returns an error if it does not: then `/proc` would show other processes than the named ones.
fn check_proc() -> Result<()> {
    let own = std::fs::read_link("/proc/self").ok();
    let own = own.and_then(|link| link.to_str()?.parse::<u32>().ok());
    if own == Some(std::process::id()) {
        return Ok(());
    }
    if std::fs::metadata("/proc/version").is_err() {
        bail!("cannot read /proc: mount it (`mount -t proc proc /proc`)");
    }
    bail!(
        "/proc shows the processes of another PID namespace: mount it again (`unshare --mount-proc`, or \
         `mount -t proc proc /proc`)"
    )
}

/// Returns a process that can be observed.
fn process(number: i32) -> Result<Pid, UsageError> {
    let missing = || UsageError(format!("there is no process {number}"));
    let pid = Pid::from_raw(number).ok_or_else(missing)?;
    if number.cast_unsigned() == std::process::id() {
        return Err(UsageError(format!("process {number} is contend itself")));
    }
    let stat = Stat::of(pid).map_err(|_| match test_kill_process(pid) {
        Ok(()) | Err(Errno::PERM) => UsageError(format!(
            "/proc does not show process {number} to this user (hidepid): run contend as root"
        )),
        Err(_) => missing(),
    })?;
    if let Some(process) = process_of_thread(pid).filter(|process| *process != number) {
        let message = format!("{number} is a thread of process {process}: name the process");
        return Err(UsageError(message));
    }
    // If only its main thread has ended, the others are counted.
    if matches!(stat.state, b'Z' | b'X') && stat.threads <= 1 {
        let message =
            format!("process {number} has ended, and its parent has not waited for it yet");
        return Err(UsageError(message));
    }
    if stat.is_kernel_thread {
        return Err(UsageError(format!("process {number} is a thread of the kernel")));
    }
    Ok(pid)
}

/// Returns the ID of the process to which a thread belongs; `None` if it has ended.
fn process_of_thread(thread: Pid) -> Option<i32> {
    let path = format!("/proc/{}/status", thread.as_raw_nonzero());
    let status = std::fs::read_to_string(path).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

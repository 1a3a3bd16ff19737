//! A running stage: its process, the observations of it so far, and its end.
//!
//! Times are measured from the opening of the [`gate`](super::gate), at which all stages wait until
//! contend is ready to observe them.

mod attached;

use std::path::Path;
use std::time::Duration;

use contend_commands::behaviour;
use contend_sys::Pid;
use contend_sys::child::{self, Change, ExitStatus, Usage, Which};
use contend_sys::descriptor::is_terminal;
use contend_sys::procfs::{Io, SchedStat, Status};
use contend_sys::trace::{self, Stop};

use attached::AttachedState;

use super::progress::InputProgress;
use super::timeline::{Counters, FillSum};
use super::tracing;
use crate::observe::target::End;
use crate::observe::tree::SampledTime;
use crate::observe::{State, Tree, Wait};

/// Time after the opening of the gate within which samples normally see a stage wait for its first
/// input.
const STARTUP_TIME: Duration = Duration::from_millis(100);
/// Upper bound of the number of bytes that a program normally reads from libraries and tables at
/// its start.
pub(super) const MAX_STARTUP_READ_BYTES: u64 = 64 * 1024;

/// The observations of a stage, collected while it runs. The stage's account is computed from them.
#[derive(Debug, Clone, Default)]
pub struct RawStage {
    /// ID of the stage's own process.
    pub pid: i32,
    /// The stage's exit status; `None` if it is unknown because another process has waited for the
    /// stage.
    pub status: Option<ExitStatus>,
    /// Time from the opening of the gate to the end of the stage, or of the last process that the
    /// stage has left writing to its output.
    pub ended: Duration,
    /// Resources that the kernel charges to the stage: those of its own process, of descendants
    /// for which it waited, and of its orphans, for which contend waited.
    pub usage: Usage,
    /// The scheduler's counters of the stage's main thread when the gate opened.
    pub sched_before: SchedStat,
    /// The scheduler's counters of the stage's main thread at its end.
    pub sched_after: SchedStat,
    /// Time for which the stage's tasks were queued for a CPU, summed over the tasks, including
    /// time before the gate opened.
    pub run_queue: Duration,
    /// Context switches and peak memory of the stage's own process before the gate opened.
    pub status_before: Status,
    /// The stage's time by state, as found by samples.
    pub seen: SampledTime,
    /// Whether the stage was ever seen with several processes or threads.
    pub several_tasks: bool,
    /// Whether the stage was ever seen with several processes.
    pub several_processes: bool,
    /// Number of processes seen in the stage, without its own process.
    pub children_seen: u64,
    /// Whether any sample found a wait that could not be classified.
    pub unreadable: bool,
    /// Bytes and calls, as last read; `None` if they were never read, or this user may not read
    /// them.
    pub io: Option<Io>,
    /// Whether `io` is exact: it was read at the stage's end, and no process of the stage was seen
    /// running afterwards.
    pub io_exact: bool,
    /// Largest `VmHWM` seen, in bytes; 0 if it was never read.
    pub peak_rss: u64,
    /// Whether `peak_rss` was read at the stage's end, which makes it exact.
    pub peak_rss_exact: bool,
    /// Time from the opening of the gate to the first sample at which the stage had written to any
    /// descriptor; for a sort that reads from another stage, only writes after the end of its input
    /// count. `None` if there was no such sample.
    pub first_write: Option<Duration>,
    /// Time from the opening of the gate to the first sample at which the pipe after the stage held
    /// bytes; `None` if there was no such sample.
    pub first_in_pipe: Option<Duration>,
    /// Number of bytes that the stage had read before its first output, as of the nearest sample;
    /// 0 if no output was noticed.
    pub read_before_output: u64,
    /// Number of bytes that the stage had read, from its libraries, when it was first seen waiting
    /// for input while its writer had written nothing. `None` if this was not observed, or if the
    /// stage had read more than a program reads at its start.
    pub startup_reads: Option<u64>,
    /// Time from the opening of the gate to the first sample at which the stage had read more than
    /// `startup_reads`; `None` if there was no such sample.
    pub first_read: Option<Duration>,
    /// Whether the stage's own process was seen with files open besides its standard descriptors.
    pub has_files: bool,
    /// For a sort: its bytes and calls up to the end of its input. Writes until then went to
    /// temporary files.
    pub temporary: Io,
    /// Largest observed size of the stage's standard input, in bytes; `None` if that is not a
    /// regular file.
    pub input_file_bytes: Option<u64>,
    /// Total size in bytes of the input files that the stage's command names; `None` if it names
    /// none, if one is standard input or not a regular file, or if the files are unknown.
    pub named_bytes: Option<u64>,
    /// Whether the stage's input is a pipe, a socket or a terminal.
    pub input_is_stream: bool,
    /// Whether the stage's input is a regular file.
    pub input_is_file: bool,
    /// Whether the stage was already running when contend began to observe it, and is the child of
    /// another process.
    pub is_attached: bool,
    /// Whether the system calls of the attached stage's own process may not be read, so that its
    /// waits are inferred.
    pub has_unreadable_calls: bool,
    /// Whether the stage was still running when contend stopped observing it.
    pub still_running: bool,
    /// The signal by which contend or the terminal last asked the stage to end; `None` if neither
    /// did.
    pub asked_to_end: Option<i32>,
}

/// The exit code that a shell reports for a process that it cannot wait for.
const UNKNOWN_EXIT_CODE: i32 = 127;

impl RawStage {
    /// Returns the stage's exit code as a shell reports it, or 127 if its status is unknown. Returns
    /// 0 for a stage to which contend was attached.
    pub fn shell_code(&self) -> i32 {
        let unknown = if self.is_attached { 0 } else { UNKNOWN_EXIT_CODE };
        self.status.map_or(unknown, ExitStatus::shell_code)
    }
}

/// A running stage, and the observations of it so far.
#[derive(Debug)]
pub(super) struct RunningStage {
    pub(super) pid: Pid,
    pub(super) tree: Tree,
    traced: bool,
    /// Whether the decision on tracing the stage has been made.
    trace_decided: bool,
    /// The stage's state when contend attached to it; `None` for a child of contend.
    attached: Option<AttachedState>,
    /// Whether this user may not read the stage's counters of bytes and calls.
    io_denied: bool,
    /// Whether the stage sorts, in which case its writes before the end of its input are not
    /// output.
    sorts: bool,
    pub(super) ended: Option<Ended>,
    /// Time at which a process left running by the ended stage was last seen.
    lingered: Option<Duration>,
    /// Resources used by reaped orphans of the stage.
    orphans: Usage,
    /// The observations so far.
    pub(super) observed: RawStage,
}

/// The end of a stage: its time since the gate opened, and the final observations.
#[derive(Debug)]
pub(super) struct Ended {
    at: Duration,
    /// The exit status; `None` if another process has waited for the stage.
    status: Option<ExitStatus>,
    usage: Usage,
    sched: Option<SchedStat>,
}

impl RunningStage {
    pub(super) fn open(
        pid: Pid,
        (text, after_setup): (&str, bool),
        may_trace: bool,
        buffer: &mut [u8],
    ) -> std::io::Result<Self> {
        let mut tree = Tree::open(pid)?;
        tree.read_counters(buffer);
        let traced = may_trace && trace::seize(pid).is_ok();
        let observed = RawStage {
            sched_before: tree.leader_sched().unwrap_or_default(),
            status_before: tree.leader_status(buffer).unwrap_or_default(),
            named_bytes: behaviour::named_bytes(text, after_setup),
            ..RawStage::default()
        };
        Ok(Self {
            pid,
            tree,
            traced,
            trace_decided: traced,
            attached: None,
            io_denied: false,
            sorts: behaviour::sorts(text),
            ended: None,
            lingered: None,
            orphans: Usage::default(),
            observed,
        })
    }

    /// Returns whether the stage's own process, or a process that it has left writing to its
    /// output, still runs.
    pub(super) fn is_running(&self) -> bool {
        self.ended.is_none() || self.has_lingering_processes()
    }

    /// Returns whether the given signal has killed the stage.
    pub(super) fn was_killed_by(&self, signal: i32) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.status == Some(ExitStatus::Signaled(signal)))
    }

    /// Returns whether the stage has ended but has left processes running that write to its output.
    pub(super) fn has_lingering_processes(&self) -> bool {
        self.ended.is_some() && self.tree.process_ids().next().is_some()
    }

    /// Samples the stage's processes, `time` after the last sample. `now` is the time since the
    /// gate opened.
    pub(super) fn sample(&mut self, now: Duration, time: Duration, buffer: &mut [u8]) {
        self.tree.sample(time, buffer);
        if self.has_lingering_processes() {
            self.lingered = Some(now);
            self.observed.io_exact = false;
        }
    }

    /// Returns the counters of the stage as of the last sample, or as of its end, with the fill of its
    /// output.
    pub(super) fn counters(&self, output_fill: FillSum) -> Counters {
        Counters { sched: self.tree.sched(), seen: self.tree.seen, output_fill }
    }

    /// Adds the resources used by an orphan of this stage that contend has reaped. `now` is the
    /// time since the gate opened.
    pub(super) fn add_orphan(&mut self, now: Duration, usage: Usage) {
        self.orphans += usage;
        if self.has_lingering_processes() {
            self.lingered = Some(now);
        }
    }

    /// Decides whether to trace the stage, once it has executed a program other than `shell`, and
    /// starts tracing it if that is safe.
    pub(super) fn decide_tracing(&mut self, shell: &Path) {
        if self.trace_decided {
            return;
        }
        if let Some(safe) = tracing::safe_after_exec(self.pid, shell) {
            self.trace_decided = true;
            self.traced = safe && trace::seize(self.pid).is_ok();
        }
    }

    /// Returns whether the sample at `now` must read the stage's byte counters: always for an untraced
    /// stage, since any sample may turn out to be its final count; for a traced one, until its first
    /// output has been noticed and its first input is no longer awaited.
    pub(super) fn needs_io(&self, now: Duration) -> bool {
        let awaits_input = match self.observed.startup_reads {
            Some(_) => self.observed.first_read.is_none(),
            None => now < STARTUP_TIME,
        };
        self.observed.first_write.is_none() || awaits_input || !self.traced
    }

    pub(super) fn sample_io(&mut self, now: Duration, buffer: &mut [u8]) {
        let before = self.observed.io.unwrap_or_default();
        match self.read_io(buffer) {
            Some(io) => self.observed.io = Some(io),
            // The counters of an ended stage cannot be read any more.
            None if self.attached.is_some() => {}
            // A zombie's counters may also be unreadable, so only a living process counts as a
            // denial.
            None => self.io_denied |= matches!(child::peek(Which::One(self.pid)), Ok(None)),
        }
        self.record_bytes(before, now);
    }

    fn record_bytes(&mut self, before: Io, now: Duration) {
        let Some(io) = self.observed.io else { return };
        if self.observed.first_write.is_none()
            && io.write_bytes > self.observed.temporary.write_bytes
        {
            self.observed.first_write = Some(now);
            if self.observed.first_in_pipe.is_none() {
                self.observed.read_before_output = before.read_bytes;
            }
        }
        if self.observed.first_read.is_none()
            && self.observed.startup_reads.is_some_and(|s| io.read_bytes > s)
        {
            self.observed.first_read = Some(now);
        }
    }

    /// Returns the number of bytes that the stage has read, if it seems to wait for its first
    /// input, and its start-up reads are not known yet. Returns `None` otherwise. The caller must
    /// check that the stage's writer has written nothing.
    pub(super) fn reads_before_input(&self) -> Option<u64> {
        let waits = self.ended.is_none() && self.tree.state() == State::Waiting(Wait::Starved);
        (waits && self.observed.startup_reads.is_none()).then_some(self.observed.io?.read_bytes)
    }

    /// Records the number of bytes that the stage had read before there was any input, unless it is
    /// known already. Ignores a number larger than a program reads at its start: these bytes were
    /// input after all, from a writer whose splices are not counted.
    pub(super) fn record_startup_reads(&mut self, reads: u64) {
        if reads <= MAX_STARTUP_READ_BYTES {
            self.observed.startup_reads.get_or_insert(reads);
        }
    }

    /// Checks the pipe after the stage for its first output. Bytes are in the pipe before the write
    /// call returns and is counted, and a stage that writes more than the pipe holds may stay in
    /// its first call until its reader reads.
    pub(super) fn check_first_output(&mut self, now: Duration) {
        if self.observed.first_in_pipe.is_some() || !self.is_running() {
            return;
        }
        let output = self.tree.ends().output.as_ref();
        if output.and_then(End::fill).is_some_and(|fill| fill.bytes > 0) {
            self.observed.first_in_pipe = Some(now);
            if self.observed.first_write.is_none() {
                self.observed.read_before_output = self.observed.io.unwrap_or_default().read_bytes;
            }
        }
    }

    /// Returns whether the stage is known to have written nothing.
    pub(super) fn check_nothing_written(&mut self, buffer: &mut [u8]) -> bool {
        let silent_until_its_end =
            self.ended.is_none() || self.observed.io.is_some_and(|io| io.write_bytes == 0);
        silent_until_its_end && (!self.is_running() || self.tree.check_nothing_written(buffer))
    }

    /// Records how much the stage had read before its first output: all of its reads so far. Must
    /// be called when the stage's reader has just read its first input, which shows that earlier
    /// writes of the stage went elsewhere. Does nothing if output has been seen in the pipe after
    /// the stage.
    pub(super) fn record_first_output(&mut self) {
        if self.observed.first_in_pipe.is_some() {
            return;
        }
        self.observed.read_before_output = self.observed.io.unwrap_or_default().read_bytes;
    }

    /// Returns whether the stage's first input was noticed at the sample at `now`.
    pub(super) fn first_read_was_at(&self, now: Duration) -> bool {
        self.observed.first_read == Some(now)
    }

    /// Searches for new children and threads and for open files, and reads peak memory and the size
    /// of the input file.
    pub(super) fn refresh(&mut self, buffer: &mut [u8]) {
        self.tree.refresh(buffer);
        self.read_attached(buffer);
        self.observed.has_files = self.observed.has_files || has_files(self.pid);
        self.observed.input_file_bytes =
            self.observed.input_file_bytes.max(input_file_bytes(self.pid));
    }

    /// Records that the stage's writer has ended, which matters only for a sort: the sort's writes
    /// until then went to temporary files.
    pub(super) fn record_end_of_input(&mut self, now: Duration, buffer: &mut [u8]) {
        if !self.sorts || self.ended.is_some() {
            return;
        }
        self.sample_io(now, buffer);
        self.observed.temporary = self.observed.io.unwrap_or_default();
        self.observed.first_write = None;
    }

    /// Returns the share of the stage's input files read so far. For standard input, it is derived
    /// from the position in the file; for files that the command names, from the stage's counters.
    /// Returns `None` if the stage reads neither, has ended, or has read no more than its
    /// libraries.
    pub(super) fn input_progress(&self) -> Option<InputProgress> {
        if self.ended.is_some() {
            return None;
        }
        if let Some(size) = input_file_bytes(self.pid)
            && let Some(read) = file_position(self.pid).filter(|&read| read > 0)
        {
            return Some(InputProgress { read: read.min(size), size });
        }
        let size = self.observed.named_bytes.filter(|&size| size > 0)?;
        let read = self.observed.io?.read_bytes;
        (read > MAX_STARTUP_READ_BYTES).then_some(InputProgress { read: read.min(size), size })
    }

    /// Returns whether the stage's standard output is, or may be, a terminal. Examines the
    /// descriptor on each call, because a redirection in the stage takes effect after the stage has
    /// been opened.
    pub(super) fn may_write_to_terminal(&self) -> bool {
        let link = std::fs::read_link(format!("/proc/{}/fd/1", self.pid.as_raw_nonzero()));
        link.map_or(true, |link| is_terminal(&link.to_string_lossy()))
    }

    /// Handles notifications about the stage's process: stops, and its end.
    pub(super) fn collect(&mut self, now: Duration, buffer: &mut [u8]) {
        if self.attached.is_some() {
            if self.has_ended_unobserved() {
                self.end_attached(now, buffer);
            }
            return;
        }
        loop {
            match child::peek(Which::One(self.pid)) {
                Ok(Some((_, Change::Stopped))) => self.handle_stop(now, buffer),
                Ok(Some((_, Change::Ended))) => return self.end(now, buffer),
                Ok(None) => return,
                // Another process has reaped it, so its exit status is lost.
                Err(_) => {
                    self.ended =
                        Some(Ended { at: now, status: None, usage: Usage::default(), sched: None });
                    return;
                }
            }
        }
    }

    fn handle_stop(&mut self, now: Duration, buffer: &mut [u8]) {
        let Ok(Some(status)) = child::take_stop(self.pid) else {
            return;
        };
        if !self.traced {
            return; // job control has stopped it, and will continue it
        }
        // An error means that the stage was killed while it was stopped, and need not be resumed.
        let _ = match Stop::from_status(status) {
            Stop::Exit => {
                self.read_final_counters(now, buffer);
                trace::resume(self.pid, 0)
            }
            Stop::Signal(signal) => trace::resume(self.pid, signal),
            Stop::Group => trace::listen(self.pid),
            Stop::Other => trace::resume(self.pid, 0),
        };
    }

    /// Reads the final counters while the process still exists, in its exit stop or as a zombie
    /// (whose bytes only root may read).
    fn read_final_counters(&mut self, now: Duration, buffer: &mut [u8]) {
        self.observed.peak_rss_exact |= self.tree.read_counters(buffer);
        if !self.observed.io_exact && !self.io_denied {
            let before = self.observed.io.unwrap_or_default();
            if let Some(io) = self.tree.read_io(buffer) {
                self.observed.io = Some(io);
                self.observed.io_exact = true;
            }
            self.record_bytes(before, now);
        }
    }

    fn end(&mut self, now: Duration, buffer: &mut [u8]) {
        self.read_final_counters(now, buffer);
        let sched = self.tree.leader_sched();
        if let Ok(reaped) = child::reap(self.pid) {
            let (status, usage) = (Some(reaped.status), reaped.usage);
            self.ended = Some(Ended { at: now, status, usage, sched });
            self.tree.remove_leader();
        }
    }

    /// Returns the observations up to the stage's end.
    pub(super) fn into_raw(self) -> RawStage {
        let Self { mut observed, tree, .. } = self;
        if let Some(ended) = self.ended {
            observed.status = ended.status;
            observed.ended = self.lingered.map_or(ended.at, |lingered| lingered.max(ended.at));
            observed.usage = ended.usage;
            observed.sched_after = ended.sched.unwrap_or(observed.sched_before);
        }
        observed.usage += self.orphans;
        if self.io_denied {
            observed.io = None;
        }
        let input = tree.ends().input.as_ref();
        RawStage {
            pid: self.pid.as_raw_nonzero().get(),
            run_queue: tree.run_queue(),
            seen: tree.seen,
            several_tasks: tree.several_tasks,
            several_processes: tree.several_processes || observed.several_processes,
            children_seen: tree.children_seen(),
            unreadable: tree.unreadable || observed.has_unreadable_calls,
            peak_rss: tree.peak_rss(),
            input_is_stream: input.is_some_and(End::is_stream),
            input_is_file: input.is_some_and(End::is_file),
            ..observed
        }
    }
}

/// Returns whether the process has files open besides its standard descriptors, devices and
/// `/proc`. Returns `false` if its descriptors cannot be read.
fn has_files(pid: Pid) -> bool {
    let Ok(folder) = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
        return false;
    };
    folder.flatten().filter(|entry| !is_standard(&entry.file_name())).any(|entry| {
        let link = std::fs::read_link(entry.path());
        let path = link.ok().and_then(|link| link.to_str().map(str::to_owned));
        path.is_some_and(|path| {
            path.starts_with('/') && !path.starts_with("/dev/") && !path.starts_with("/proc/")
        })
    })
}

/// Returns the size in bytes of the process's standard input, or `None` if that is not a regular
/// file or cannot be examined.
fn input_file_bytes(pid: Pid) -> Option<u64> {
    let data = std::fs::metadata(format!("/proc/{}/fd/0", pid.as_raw_nonzero())).ok()?;
    data.is_file().then_some(data.len())
}

/// Returns the process's position in its standard input, in bytes, or `None` if it cannot be read.
fn file_position(pid: Pid) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/fdinfo/0", pid.as_raw_nonzero())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pos:"))?.trim().parse().ok()
}

fn is_standard(name: &std::ffi::OsStr) -> bool {
    ["0", "1", "2"].iter().any(|standard| name == *standard)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn running(child: &std::process::Child) -> RunningStage {
        let stage =
            RunningStage::open(Pid::from_child(child), ("cat", false), false, &mut [0; 4096]);
        stage.expect("the child is alive")
    }

    #[test]
    fn input_progress_is_the_position_in_a_file_on_standard_input() {
        let mut file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut file, &[b'x'; 1000]).expect("room");
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(400)).expect("it is a file");
        let mut child = Command::new("sleep").arg("60").stdin(file).spawn().expect("sleep");
        assert_eq!(running(&child).input_progress(), Some(InputProgress { read: 400, size: 1000 }));
        child.kill().and_then(|()| child.wait()).expect("it can be killed");
        let mut child =
            Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
        assert_eq!(running(&child).input_progress(), None);
        child.kill().and_then(|()| child.wait()).expect("it can be killed");
    }

    fn collected(stage: &mut RunningStage) {
        while stage.ended.is_none() {
            stage.collect(Duration::from_secs(1), &mut [0; 4096]);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_stage_that_another_process_reaped_is_not_a_success() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat starts");
        let mut stage = running(&child);
        child.wait().expect("cat ends with its input");
        collected(&mut stage);
        let raw = stage.into_raw();
        assert_eq!((raw.status, raw.shell_code()), (None, 127));
        assert_eq!(raw.ended, Duration::from_secs(1));
    }

    #[test]
    fn the_exit_status_and_the_bytes_are_recorded() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("cat starts");
        let mut stage = running(&child);
        let mut stdin = child.stdin.take().expect("piped");
        std::io::Write::write_all(&mut stdin, b"twelve bytes").expect("cat reads");
        while stage.observed.io.is_none_or(|io| io.write_bytes < 12) {
            stage.sample_io(Duration::from_millis(1), &mut [0; 4096]);
        }
        drop(stdin);
        collected(&mut stage);
        let raw = stage.into_raw();
        assert!(child.wait().is_err(), "the child has been reaped");
        assert_eq!((raw.status, raw.shell_code()), (Some(ExitStatus::Exited(0)), 0));
        assert_eq!(raw.first_write, Some(Duration::from_millis(1)));
        assert_eq!(raw.io.map(|io| io.write_bytes), Some(12));
    }
}

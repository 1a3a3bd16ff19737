//! One running stage: its process, what is known of it so far, and its end.

use std::path::Path;
use std::time::Duration;

use contend_commands::behaviour;
use contend_sys::Pid;
use contend_sys::child::{self, Change, ExitStatus, Usage, Which};
use contend_sys::procfs::{Io, SchedStat, Status};
use contend_sys::trace::{self, Stop};

use super::tracing;
use crate::observe::target::End;
use crate::observe::tree::Seen;
use crate::observe::{State, Tree, Wait};

/// After this time a stage that has not been seen waiting for its first input will not be.
const STARTUP: Duration = Duration::from_millis(100);
/// A program reads at most about this much of its libraries and tables as it starts.
pub(super) const STARTUP_READS: u64 = 64 * 1024;

/// One stage as observed.
#[derive(Debug, Clone)]
pub struct RawStage {
    /// How it ended.
    pub status: ExitStatus,
    /// When it ended, since the gate opened: it, or the last process that it has left
    /// writing to its output.
    pub ended: Duration,
    /// What the kernel says that it and its descendants used: those it has waited for, and
    /// those known to be its own that ended later.
    pub usage: Usage,
    /// The scheduler's figures of its main thread when the gate opened.
    pub sched_before: SchedStat,
    /// The same at its end.
    pub sched_after: SchedStat,
    /// Time waited for a CPU by all its tasks, since before the gate opened.
    pub run_queue: Duration,
    /// Switches before the gate opened.
    pub status_before: Status,
    /// Where its time went.
    pub seen: Seen,
    /// Several processes or threads were seen.
    pub several_tasks: bool,
    /// Several processes were seen.
    pub several_processes: bool,
    /// How many besides its own.
    pub children_seen: u64,
    /// Its calls could not be read at some look.
    pub unreadable: bool,
    /// Bytes and calls; `None` when this user may not know.
    pub io: Option<Io>,
    /// They were read at its end, so they are exact.
    pub io_exact: bool,
    /// Largest `VmHWM` seen, in bytes; 0 when never seen.
    pub peak_rss: u64,
    /// It was read at the stage's end, so it is exact.
    pub peak_rss_exact: bool,
    /// The first look at which it had written something, wherever to.
    pub first_write: Option<Duration>,
    /// The first look at which something was in the pipe behind it.
    pub first_in_pipe: Option<Duration>,
    /// What it had read, by the look before its first output.
    pub read_before_output: u64,
    /// What it had read when it first waited for input that nobody had written yet:
    /// its libraries. `None` when it was not seen doing so.
    pub startup_reads: Option<u64>,
    /// The first look at which it had read more than that.
    pub first_read: Option<Duration>,
    /// It was seen with files open besides its standard ones.
    pub has_files: bool,
    /// What it had written, to temporary files, when its input ended.
    pub temporary: Io,
    /// Largest size of a regular file seen as its standard input.
    pub input_file_bytes: Option<u64>,
    /// Size of the files that it names as its input, where that is known.
    pub named_bytes: Option<u64>,
    /// Its input is a pipe, a socket or a terminal.
    pub input_is_stream: bool,
    /// Its input is a regular file.
    pub input_is_file: bool,
    /// contend asked it to end by this signal.
    pub asked_to_end: Option<i32>,
}

/// A running stage.
#[derive(Debug)]
pub(super) struct RunningStage {
    pub(super) pid: Pid,
    pub(super) tree: Tree,
    traced: bool,
    /// Whether it may be traced is decided.
    trace_decided: bool,
    sched_before: SchedStat,
    status_before: Status,
    pub(super) io: Option<Io>,
    io_exact: bool,
    io_denied: bool,
    peak_rss_exact: bool,
    first_write: Option<Duration>,
    first_in_pipe: Option<Duration>,
    read_before_output: u64,
    startup_reads: Option<u64>,
    first_read: Option<Duration>,
    has_files: bool,
    /// It sorts: what it writes before its input has ended is no output.
    sorts: bool,
    temporary: Io,
    input_file_bytes: Option<u64>,
    named_bytes: Option<u64>,
    pub(super) asked_to_end: Option<i32>,
    pub(super) ended: Option<Ended>,
    /// When a process that it has left running was last seen.
    lingered: Option<Duration>,
    /// What its orphans used that have been reaped since.
    orphans: Usage,
}

/// How and when a stage ended.
#[derive(Debug)]
pub(super) struct Ended {
    at: Duration,
    status: ExitStatus,
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
        tree.last_look(buffer);
        let traced = may_trace && trace::seize(pid).is_ok();
        Ok(Self {
            pid,
            traced,
            trace_decided: traced,
            sched_before: tree.leader_sched().unwrap_or_default(),
            status_before: tree.leader_status(buffer).unwrap_or_default(),
            tree,
            io: None,
            io_exact: false,
            io_denied: false,
            peak_rss_exact: false,
            first_write: None,
            first_in_pipe: None,
            read_before_output: 0,
            startup_reads: None,
            first_read: None,
            has_files: false,
            sorts: behaviour::sorts(text),
            temporary: Io::default(),
            input_file_bytes: None,
            named_bytes: behaviour::named_bytes(text, after_setup),
            asked_to_end: None,
            ended: None,
            lingered: None,
            orphans: Usage::default(),
        })
    }

    /// Whether any of its processes is still there.
    pub(super) fn runs(&self) -> bool {
        self.ended.is_none() || self.lingers()
    }

    /// Whether this signal has ended it.
    pub(super) fn died_of(&self, signal: i32) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.status == ExitStatus::Signaled(signal))
    }

    /// Whether it has left processes running that write to its output.
    pub(super) fn lingers(&self) -> bool {
        self.ended.is_some() && self.tree.process_ids().next().is_some()
    }

    /// Looks at what its processes do, `time` after the last look.
    pub(super) fn look(&mut self, now: Duration, time: Duration, buffer: &mut [u8]) {
        self.tree.look(time, buffer);
        if self.lingers() {
            self.lingered = Some(now);
            self.io_exact = false;
        }
    }

    /// Adds what a process of this stage used that has become ours and has ended.
    pub(super) fn add_orphan(&mut self, now: Duration, usage: Usage) {
        self.orphans += usage;
        if self.lingers() {
            self.lingered = Some(now);
        }
    }

    /// Traces the stage once it has become a program that may be.
    pub(super) fn decide_tracing(&mut self, shell: &Path) {
        if self.trace_decided {
            return;
        }
        if let Some(safe) = tracing::safe_after_exec(self.pid, shell) {
            self.trace_decided = true;
            self.traced = safe && trace::seize(self.pid).is_ok();
        }
    }

    /// Whether its bytes are worth a read at every look: until its first input and output
    /// are known, and where the last look may be all that will be known.
    pub(super) fn needs_io(&self, now: Duration) -> bool {
        let awaits_input = match self.startup_reads {
            Some(_) => self.first_read.is_none(),
            None => now < STARTUP,
        };
        self.first_write.is_none() || awaits_input || !self.traced
    }

    pub(super) fn look_at_io(&mut self, now: Duration, buffer: &mut [u8]) {
        let before = self.io.unwrap_or_default();
        match self.tree.read_io(buffer) {
            Some(io) => self.io = Some(io),
            // A zombie's may not be read either, so only a living one's refusal counts.
            None => self.io_denied |= matches!(child::peek(Which::One(self.pid)), Ok(None)),
        }
        self.note_bytes(before, now);
    }

    fn note_bytes(&mut self, before: Io, now: Duration) {
        let Some(io) = self.io else { return };
        if self.first_write.is_none() && io.write_bytes > self.temporary.write_bytes {
            self.first_write = Some(now);
            if self.first_in_pipe.is_none() {
                self.read_before_output = before.read_bytes;
            }
        }
        if self.first_read.is_none() && self.startup_reads.is_some_and(|s| io.read_bytes > s) {
            self.first_read = Some(now);
        }
    }

    /// What it has read if it now waits for its first input, as far as it can tell: what
    /// its writer has written must still be asked.
    pub(super) fn reads_before_input(&self) -> Option<u64> {
        let waits = self.ended.is_none() && self.tree.state() == State::Waiting(Wait::Starved);
        (waits && self.startup_reads.is_none()).then_some(self.io?.read_bytes)
    }

    /// Notes what it had read before there was any input. More than a program reads as it
    /// starts was input after all, from a writer whose splices are not counted.
    pub(super) fn note_startup(&mut self, reads: u64) {
        if reads <= STARTUP_READS {
            self.startup_reads.get_or_insert(reads);
        }
    }

    /// Looks for its first output in the pipe behind it. What is written there arrives before
    /// the call that writes it returns and is counted: one that writes more than the pipe
    /// holds may wait in its first call for as long as its reader pleases.
    pub(super) fn look_for_output(&mut self, now: Duration) {
        if self.first_in_pipe.is_some() || !self.runs() {
            return;
        }
        let output = self.tree.ends().output.as_ref();
        if output.and_then(End::fill).is_some_and(|fill| fill.bytes > 0) {
            self.first_in_pipe = Some(now);
            if self.first_write.is_none() {
                self.read_before_output = self.io.unwrap_or_default().read_bytes;
            }
        }
    }

    /// Whether it is known to have written nothing at all.
    pub(super) fn is_silent(&mut self, buffer: &mut [u8]) -> bool {
        let silent_until_its_end =
            self.ended.is_none() || self.io.is_some_and(|io| io.write_bytes == 0);
        silent_until_its_end && (!self.runs() || self.tree.wrote_nothing(buffer))
    }

    /// Its reader has just had its first input: whatever it wrote before went elsewhere.
    pub(super) fn note_first_output(&mut self) {
        if self.first_in_pipe.is_some() {
            return;
        }
        self.read_before_output = self.io.unwrap_or_default().read_bytes;
    }

    /// Whether its first input was noticed at this look.
    pub(super) fn first_read_is(&self, now: Duration) -> bool {
        self.first_read == Some(now)
    }

    /// Searches for new children and threads, and for open files.
    pub(super) fn refresh(&mut self, buffer: &mut [u8]) {
        self.tree.refresh(buffer);
        self.has_files = self.has_files || has_files(self.pid);
        self.input_file_bytes = self.input_file_bytes.max(input_file_bytes(self.pid));
    }

    /// Its writer has ended.
    pub(super) fn note_end_of_input(&mut self, now: Duration, buffer: &mut [u8]) {
        if !self.sorts || self.ended.is_some() {
            return;
        }
        self.look_at_io(now, buffer);
        self.temporary = self.io.unwrap_or_default();
        self.first_write = None;
    }

    /// Takes what the kernel has to tell of it: stops, and its end.
    pub(super) fn collect(&mut self, now: Duration, buffer: &mut [u8]) {
        loop {
            match child::peek(Which::One(self.pid)) {
                Ok(Some((_, Change::Stopped))) => self.pass_stop(now, buffer),
                Ok(Some((_, Change::Ended))) => return self.end(now, buffer),
                Ok(None) => return,
                // Somebody else has reaped it: how it ended cannot be known any more.
                Err(_) => {
                    self.ended = Some(Ended {
                        at: now,
                        status: ExitStatus::Exited(0),
                        usage: Usage::default(),
                        sched: None,
                    });
                    return;
                }
            }
        }
    }

    fn pass_stop(&mut self, now: Duration, buffer: &mut [u8]) {
        let Ok(Some(status)) = child::take_stop(self.pid) else {
            return;
        };
        if !self.traced {
            return; // job control has stopped it: nothing for us to do
        }
        // A stage that was killed while it stood still has no need to be resumed.
        let _ = match Stop::from_status(status) {
            Stop::Exit => {
                self.read_last(now, buffer);
                trace::resume(self.pid, 0)
            }
            Stop::Signal(signal) => trace::resume(self.pid, signal),
            Stop::Group => trace::listen(self.pid),
            Stop::Other => trace::resume(self.pid, 0),
        };
    }

    /// Reads the final figures while the process is still there, in its exit stop or as a
    /// zombie (whose bytes only root may read).
    fn read_last(&mut self, now: Duration, buffer: &mut [u8]) {
        self.peak_rss_exact |= self.tree.last_look(buffer);
        if !self.io_exact && !self.io_denied {
            let before = self.io.unwrap_or_default();
            if let Some(io) = self.tree.read_io(buffer) {
                self.io = Some(io);
                self.io_exact = true;
            }
            self.note_bytes(before, now);
        }
    }

    fn end(&mut self, now: Duration, buffer: &mut [u8]) {
        self.read_last(now, buffer);
        let sched = self.tree.leader_sched();
        if let Ok(reaped) = child::reap(self.pid) {
            let (status, usage) = (reaped.status, reaped.usage);
            self.ended = Some(Ended { at: now, status, usage, sched });
            self.tree.leader_has_gone();
        }
    }

    pub(super) fn into_raw(self) -> RawStage {
        let ended = self.ended.unwrap_or(Ended {
            at: Duration::ZERO,
            status: ExitStatus::Exited(0),
            usage: Usage::default(),
            sched: None,
        });
        let mut usage = ended.usage;
        usage += self.orphans;
        let input = self.tree.ends().input.as_ref();
        RawStage {
            status: ended.status,
            ended: self.lingered.map_or(ended.at, |lingered| lingered.max(ended.at)),
            usage,
            sched_before: self.sched_before,
            sched_after: ended.sched.unwrap_or(self.sched_before),
            run_queue: self.tree.run_queue(),
            status_before: self.status_before,
            seen: self.tree.seen,
            several_tasks: self.tree.several_tasks,
            several_processes: self.tree.several_processes,
            children_seen: self.tree.children_seen(),
            unreadable: self.tree.unreadable,
            io: if self.io_denied { None } else { self.io },
            io_exact: self.io_exact,
            peak_rss: self.tree.peak_rss(),
            peak_rss_exact: self.peak_rss_exact,
            first_write: self.first_write,
            first_in_pipe: self.first_in_pipe,
            read_before_output: self.read_before_output,
            startup_reads: self.startup_reads,
            first_read: self.first_read,
            has_files: self.has_files,
            temporary: self.temporary,
            input_file_bytes: self.input_file_bytes,
            named_bytes: self.named_bytes,
            input_is_stream: input.is_some_and(End::is_stream),
            input_is_file: input.is_some_and(End::is_file),
            asked_to_end: self.asked_to_end,
        }
    }
}

/// Whether the process has regular files open besides its standard descriptors.
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

/// The size of its standard input, where that is a regular file.
fn input_file_bytes(pid: Pid) -> Option<u64> {
    let data = std::fs::metadata(format!("/proc/{}/fd/0", pid.as_raw_nonzero())).ok()?;
    data.is_file().then_some(data.len())
}

fn is_standard(name: &std::ffi::OsStr) -> bool {
    ["0", "1", "2"].iter().any(|standard| name == *standard)
}

//! A stage that was already running when contend began to observe it.
//!
//! It is the child of another process, so nothing announces its end but a pidfd, and its exit status
//! is unknown. Counters are read relative to their values at the beginning.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use contend_commands::behaviour;
use contend_sys::Pid;
use contend_sys::child::Usage;
use contend_sys::procfs::{self, Io, SchedStat, Stat, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::{Ended, RawStage, RunningStage};
use crate::observe::Tree;
use crate::pipeline::attach::FoundStage;

/// Maximum number of searches for the processes and threads of a stage to which contend attaches.
const MAX_ATTACH_SEARCHES: usize = 64;
/// Maximum error of the difference between two readings of a process's CPU time, in clock ticks. The
/// kernel rounds down four numbers in each.
const MAX_ROUNDING_TICKS: u64 = 4;
/// Upper bound of the CPU time that a stage normally uses between the last reading of its CPU time
/// and its end.
const MAX_TICKS_AGE: Duration = Duration::from_millis(100);
/// Minimum ratio of the time between two readings of the CPU time of all descendants to the time
/// that a reading takes.
const INTERVAL_PER_READING: u32 = 20;

/// The state of a running stage when contend attached to it.
#[derive(Debug)]
pub(super) struct AttachedState {
    /// A pidfd, readable once the stage's own process has ended.
    ended: OwnedFd,
    /// Bytes and calls until then.
    io: Io,
    /// CPU time of the stage until then.
    ticks: CpuTicks,
    /// The same CPU time as last read. The stage's end cannot be awaited, so it may be gone before
    /// its final counters are read.
    latest_ticks: CpuTicks,
    /// Time of the next reading, unless the stage ends earlier.
    next_ticks: Instant,
    /// Whether `ticks` include children that the stage has waited for. They do not if the stage is
    /// the parent of another stage, as a shell that runs the last stage itself.
    with_reaped: bool,
    /// Whether the stage has processes that are not sampled, because there are too many.
    is_partial: bool,
    /// The scheduler's counters of the main thread of the stage's own process until then.
    leader_sched: SchedStat,
    /// Context switches of the stage's own process, as last read.
    latest_status: Status,
}

impl RunningStage {
    /// Finds the processes of a stage that is already running, and is the child of another process.
    /// The stage is not traced. `others` are the processes of the other stages. Its counters are not
    /// read before [`begin_attached`](Self::begin_attached).
    ///
    /// # Errors
    /// Returns an error if the stage has ended, also if its ID belongs to another process by now, or
    /// if its counters may not be read.
    pub(in crate::pipeline) fn attach(
        found: &FoundStage,
        others: &[Pid],
        buffer: &mut [u8],
    ) -> std::io::Result<Self> {
        let FoundStage { pid, text, .. } = found;
        let pid = *pid;
        let ended = pidfd_open(pid, PidfdFlags::empty())?;
        // The descriptor refers to the process that has the ID now. The kernel may have reused it.
        if !found.is_same_process()? {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let mut tree = Tree::open(pid)?;
        tree.exclude(others.iter().copied());
        // Whatever a search finds later is new, and counts in full.
        for _ in 0..MAX_ATTACH_SEARCHES {
            let before = tree.task_count();
            tree.refresh(buffer);
            if tree.task_count() == before {
                break;
            }
        }
        let observed = RawStage {
            is_attached: true,
            // Everything that it reads from now on may be input.
            startup_reads: Some(0),
            has_unreadable_calls: !tree.may_read_calls(buffer),
            ..RawStage::default()
        };
        let attached = AttachedState {
            ended,
            io: Io::default(),
            ticks: CpuTicks::default(),
            latest_ticks: CpuTicks::default(),
            next_ticks: Instant::now(),
            with_reaped: !others.iter().any(|other| has_ancestor(*other, pid)),
            is_partial: tree.is_full(),
            leader_sched: SchedStat::default(),
            latest_status: Status::default(),
        };
        Ok(Self {
            pid,
            tree,
            traced: false,
            trace_decided: true,
            attached: Some(attached),
            io_denied: true, // until the first reading
            sorts: behaviour::sorts(text),
            ended: None,
            lingered: None,
            orphans: Usage::default(),
            observed,
        })
    }

    /// Reads the counters from which those of a stage to which contend has attached count. Searching
    /// for processes takes longer than this, so it is called for all stages after the last search:
    /// the counters of all stages then begin at about the same time.
    pub(in crate::pipeline) fn begin_attached(&mut self, buffer: &mut [u8]) {
        let Some(state) = &mut self.attached else { return };
        self.tree.read_counters(buffer);
        let io = self.tree.read_io(buffer);
        state.io = io.unwrap_or_default();
        state.ticks = CpuTicks::of(self.pid, &self.tree, state.with_reaped);
        state.latest_ticks = state.ticks;
        state.leader_sched = self.tree.leader_sched().unwrap_or_default();
        state.latest_status = self.tree.leader_status(buffer).unwrap_or_default();
        self.observed.sched_before = self.tree.sched();
        self.observed.status_before = state.latest_status;
        // Bytes of children that are not sampled would seem to be new once they have ended.
        self.io_denied = io.is_none() || state.is_partial;
        self.observed.io = (!self.io_denied).then(Io::default);
    }

    /// Returns the bytes and calls so far, or since contend attached to the stage; `None` if they
    /// cannot be read.
    pub(super) fn read_io(&self, buffer: &mut [u8]) -> Option<Io> {
        let before = self.attached.as_ref().map_or_else(Io::default, |attached| attached.io);
        Some(self.tree.read_io(buffer)?.since(before))
    }

    /// Stops observing a stage to which contend is attached. If the stage is still running, its
    /// account ends now.
    pub(in crate::pipeline) fn detach(&mut self, now: Duration, buffer: &mut [u8]) {
        if self.attached.is_some() && self.ended.is_none() {
            self.observed.still_running = true;
            self.end_attached(now, buffer);
        }
    }

    /// Returns the descriptor that is readable once the stage has ended, for a stage to which contend
    /// is attached.
    pub(in crate::pipeline) fn end_notice(&self) -> Option<&OwnedFd> {
        self.attached.as_ref().map(|state| &state.ended)
    }

    /// Reads the counters of a stage to which contend is attached that are lost at its end.
    pub(super) fn read_attached(&mut self, buffer: &mut [u8]) {
        let Some(state) = &mut self.attached else { return };
        let begun = Instant::now();
        if begun >= state.next_ticks || self.observed.still_running {
            let ticks = CpuTicks::of(self.pid, &self.tree, state.with_reaped);
            state.latest_ticks = state.latest_ticks.max(ticks);
            state.next_ticks = begun + begun.elapsed() * INTERVAL_PER_READING;
        }
        if let Some(status) = self.tree.leader_status(buffer)
            && status.voluntary_switches >= state.latest_status.voluntary_switches
        {
            state.latest_status = status;
        }
    }

    /// Records the final counters of a stage to which contend is attached.
    pub(super) fn end_attached(&mut self, now: Duration, buffer: &mut [u8]) {
        self.sample_io(now, buffer);
        self.tree.read_counters(buffer);
        self.read_attached(buffer);
        let Some(state) = &self.attached else { return };
        let status = state.latest_status;
        let user_share = state.latest_ticks.user_share_since(state.ticks);
        let before = self.observed.sched_before;
        let sampled = Duration::from_nanos(self.tree.sched().on_cpu.saturating_sub(before.on_cpu));
        let cpu = state.cpu(sampled, self.observed.still_running);
        let user = cpu.mul_f64(user_share);
        let usage = Usage {
            user,
            // The accounts subtract the CPU time before contend attached.
            system: cpu.saturating_sub(user) + Duration::from_nanos(before.on_cpu),
            voluntary_switches: status.voluntary_switches,
            involuntary_switches: status.involuntary_switches,
            ..Usage::default()
        };
        let of_leader = self.tree.leader_sched().unwrap_or(state.leader_sched);
        let sched_after = SchedStat {
            on_cpu: before.on_cpu + of_leader.on_cpu.saturating_sub(state.leader_sched.on_cpu),
            ..of_leader
        };
        self.observed.several_processes |= cpu > sampled;
        self.ended = Some(Ended { at: now, status: None, usage, sched: Some(sched_after) });
        if !self.observed.still_running {
            self.tree.remove_leader();
        }
    }

    /// Returns whether the stage's own process, to which contend is attached, has ended.
    pub(super) fn has_ended_unobserved(&self) -> bool {
        self.end_notice().is_some_and(|end| {
            let mut fds = [PollFd::new(end, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        })
    }
}

/// CPU time of a stage's processes and of the children that they have waited for, in clock ticks.
///
/// A child that ends passes its CPU time to its parent, so nothing is lost or counted twice, however
/// short the lives of processes and threads are. The scheduler's counters are finer, but only known
/// for tasks that samples find.
#[derive(Debug, Clone, Copy, Default)]
struct CpuTicks {
    user: u64,
    system: u64,
    /// Number of processes that were read.
    processes: u64,
}

impl CpuTicks {
    /// Returns the sum over the stage's own process and all its descendants, even those that are not
    /// sampled. If `with_reaped` is false, leaves out the children that have been waited for.
    fn of(leader: Pid, tree: &Tree, with_reaped: bool) -> Self {
        let mut sum = Self::default();
        let mut processes = vec![leader];
        while let Some(pid) = processes.pop() {
            let Ok(stat) = Stat::of(pid) else { continue };
            sum.user += stat.user_ticks;
            sum.system += stat.system_ticks;
            if with_reaped {
                sum.user += stat.children_user_ticks;
                sum.system += stat.children_system_ticks;
            }
            sum.processes += 1;
            processes
                .extend(procfs::children(pid).into_iter().filter(|pid| !tree.is_excluded(*pid)));
        }
        sum
    }

    /// Returns the larger value of each number: the sum shrinks while a child has ended, but has not
    /// been waited for.
    fn max(self, other: Self) -> Self {
        Self {
            user: self.user.max(other.user),
            system: self.system.max(other.system),
            processes: self.processes.max(other.processes),
        }
    }

    /// Returns the CPU time since `before`.
    fn since(self, before: Self) -> Duration {
        let user = self.user.saturating_sub(before.user);
        procfs::ticks(user + self.system.saturating_sub(before.system))
    }

    /// Returns the share of user time in the CPU time since `before`, from 0 to 1; 1 without any.
    fn user_share_since(self, before: Self) -> f64 {
        let user = self.user.saturating_sub(before.user) as f64;
        let system = self.system.saturating_sub(before.system) as f64;
        if user + system > 0.0 { user / (user + system) } else { 1.0 }
    }
}

/// Returns whether `ancestor` is an ancestor of process `pid`.
fn has_ancestor(pid: Pid, ancestor: Pid) -> bool {
    let parent = |pid: &Pid| Pid::from_raw(Stat::of(*pid).ok()?.parent);
    std::iter::successors(parent(&pid), parent).any(|pid| pid == ancestor)
}

impl AttachedState {
    /// Returns the CPU time since contend attached to the stage. `sampled` is that of the tasks that
    /// samples have found, which is more precise if it is complete.
    fn cpu(&self, sampled: Duration, still_running: bool) -> Duration {
        let counted = self.latest_ticks.since(self.ticks);
        let rounding = procfs::ticks(MAX_ROUNDING_TICKS * self.latest_ticks.processes.max(1));
        let tolerance = if still_running { rounding } else { rounding + MAX_TICKS_AGE };
        let is_complete = !self.is_partial && sampled.abs_diff(counted) <= tolerance;
        match (is_complete, still_running) {
            (true, _) => sampled,
            (false, true) => counted,
            // The last reading may be older than the last sample.
            (false, false) => counted.max(sampled.min(counted + MAX_TICKS_AGE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state of a stage that has used `ticks` clock ticks since contend attached.
    fn state(ticks: u64, is_partial: bool) -> AttachedState {
        let own = rustix::process::getpid();
        AttachedState {
            ended: pidfd_open(own, PidfdFlags::empty()).expect("this process runs"),
            io: Io::default(),
            ticks: CpuTicks { user: 100, system: 50, processes: 1 },
            latest_ticks: CpuTicks { user: 100 + ticks, system: 50, processes: 1 },
            next_ticks: Instant::now(),
            with_reaped: true,
            is_partial,
            leader_sched: SchedStat::default(),
            latest_status: Status::default(),
        }
    }

    #[test]
    fn the_count_of_the_kernel_decides_unless_the_difference_is_rounding() {
        let of = |ticks: u64, is_partial: bool, sampled: u64, still_running: bool| {
            state(ticks, is_partial).cpu(procfs::ticks(sampled), still_running)
        };
        assert_eq!(of(100, false, 98, true), procfs::ticks(98), "rounded down");
        assert_eq!(of(100, false, 5, true), procfs::ticks(100), "short-lived threads and children");
        assert_eq!(of(100, false, 200, true), procfs::ticks(100), "a child counted twice");
        assert_eq!(of(100, true, 98, true), procfs::ticks(100), "not all processes are sampled");
        let late = of(100, false, 105, false);
        assert_eq!(late, procfs::ticks(105), "the count is older than the last sample");
        assert!(of(100, false, 400, false) <= procfs::ticks(100) + MAX_TICKS_AGE);
    }

    #[test]
    fn cpu_time_of_ended_children_is_in_the_count() {
        let before = std::process::Command::new("sh").args(["-c", ":"]).spawn();
        let own = rustix::process::getpid();
        let tree = Tree::open(Pid::from_child(before.as_ref().expect("sh"))).expect("not reaped");
        before.expect("sh").wait().expect("a child");
        let ticks = CpuTicks::of(own, &tree, true);
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
        let status = std::process::Command::new("sh").args(["-c", spin]).status().expect("sh");
        assert!(status.success());
        let spent = CpuTicks::of(own, &tree, true).since(ticks);
        assert!(spent >= procfs::ticks(5), "{spent:?}");
    }
}

//! A stage that was already running when contend began to observe it.
//!
//! It is the child of another process, so nothing announces its end but a pidfd, and its exit status
//! is unknown. Counters are read relative to their values at the beginning.

use std::os::fd::OwnedFd;
use std::time::Duration;

use contend_commands::behaviour;
use contend_sys::child::Usage;
use contend_sys::procfs::{self, Io, SchedStat, Stat, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::{Ended, RawStage, RunningStage};
use crate::observe::Tree;
use crate::pipeline::attach::FoundStage;

/// Maximum number of searches for the processes and threads of a stage to which contend attaches.
const MAX_ATTACH_SEARCHES: usize = 64;
/// CPU time in clock ticks below which a difference between two counters means nothing: each of
/// them is rounded down.
const MIN_MEANINGFUL_TICKS: u64 = 2;

/// The state of a running stage when contend attached to it.
#[derive(Debug)]
pub(super) struct AttachedState {
    /// A pidfd, readable once the stage's own process has ended.
    ended: OwnedFd,
    /// Bytes and calls until then.
    io: Io,
    /// CPU time of the stage's processes until then.
    ticks: CpuTicks,
    /// The same CPU time as last read. The stage's end cannot be awaited, so it may be gone before
    /// its final counters are read.
    latest_ticks: CpuTicks,
    /// The scheduler's counters of the main thread of the stage's own process until then.
    leader_sched: SchedStat,
    /// Context switches of the stage's own process, as last read.
    latest_status: Status,
}

impl RunningStage {
    /// Begins to observe a stage that is already running, and is the child of another process. The
    /// stage is not traced.
    ///
    /// # Errors
    /// Returns an error if the stage has ended, also if its ID belongs to another process by now, or
    /// if its counters may not be read.
    pub(in crate::pipeline) fn attach(
        found: &FoundStage,
        buffer: &mut [u8],
    ) -> std::io::Result<Self> {
        let FoundStage { pid, text, .. } = found;
        let pid = *pid;
        let ended = pidfd_open(pid, PidfdFlags::empty())?;
        // The descriptor refers to the process that has the ID now. The kernel may have reused it.
        if !found.is_same_process() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let mut tree = Tree::open(pid)?;
        // Whatever a search finds later is new, and counts in full.
        for _ in 0..MAX_ATTACH_SEARCHES {
            let before = tree.task_count();
            tree.refresh(buffer);
            if tree.task_count() == before {
                break;
            }
        }
        tree.read_counters(buffer);
        let io = tree.read_io(buffer);
        let ticks = CpuTicks::of(&tree);
        let status = tree.leader_status(buffer).unwrap_or_default();
        let observed = RawStage {
            is_attached: true,
            sched_before: tree.sched(),
            status_before: status,
            // Everything that it reads from now on may be input.
            startup_reads: Some(0),
            io: io.map(|_| Io::default()),
            has_unreadable_calls: !tree.may_read_calls(buffer),
            ..RawStage::default()
        };
        let attached = AttachedState {
            ended,
            io: io.unwrap_or_default(),
            ticks,
            latest_ticks: ticks,
            leader_sched: tree.leader_sched().unwrap_or_default(),
            latest_status: status,
        };
        Ok(Self {
            pid,
            tree,
            traced: false,
            trace_decided: true,
            attached: Some(attached),
            io_denied: io.is_none(),
            sorts: behaviour::sorts(text),
            ended: None,
            lingered: None,
            orphans: Usage::default(),
            observed,
        })
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
        state.latest_ticks = state.latest_ticks.max(CpuTicks::of(&self.tree));
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
        let unseen = state.latest_ticks.reaped_since(state.ticks, self.tree.ended_cpu());
        let cpu = Duration::from_nanos(self.tree.sched().on_cpu) + unseen;
        // The accounts subtract the CPU time before contend attached.
        let before = self.observed.sched_before;
        let user = cpu.saturating_sub(Duration::from_nanos(before.on_cpu)).mul_f64(user_share);
        let usage = Usage {
            user,
            system: cpu.saturating_sub(user),
            voluntary_switches: status.voluntary_switches,
            involuntary_switches: status.involuntary_switches,
            ..Usage::default()
        };
        let of_leader = self.tree.leader_sched().unwrap_or(state.leader_sched);
        let sched_after = SchedStat {
            on_cpu: before.on_cpu + of_leader.on_cpu.saturating_sub(state.leader_sched.on_cpu),
            ..of_leader
        };
        self.observed.several_processes |= !unseen.is_zero();
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

/// CPU time of the processes of a stage, in clock ticks. It is coarse, but tells user from system
/// time, and includes children that no sample has found.
#[derive(Debug, Clone, Copy, Default)]
struct CpuTicks {
    user: u64,
    system: u64,
    /// CPU time of reaped children and of the descendants that they waited for.
    reaped: u64,
}

impl CpuTicks {
    /// Returns the sum over the processes that can be read.
    fn of(tree: &Tree) -> Self {
        let mut sum = Self::default();
        for pid in tree.process_ids() {
            let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
            let mut buffer = [0; 1024];
            let stat = procfs::read_once(&path, &mut buffer).ok().and_then(Stat::parse);
            sum.user += stat.map_or(0, |stat| stat.user_ticks);
            sum.system += stat.map_or(0, |stat| stat.system_ticks);
            sum.reaped += stat.map_or(0, |stat| stat.children_ticks);
        }
        sum
    }

    /// Returns the larger value of each kind of time.
    fn max(self, other: Self) -> Self {
        Self {
            user: self.user.max(other.user),
            system: self.system.max(other.system),
            reaped: self.reaped.max(other.reaped),
        }
    }

    /// Returns the CPU time of children that were reaped since `before`, without those that samples
    /// have found, which used `known`. Returns 0 if the difference may be due to rounding.
    fn reaped_since(self, before: Self, known: Duration) -> Duration {
        let reaped = procfs::ticks(self.reaped.saturating_sub(before.reaped));
        let unseen = reaped.saturating_sub(known);
        if unseen < procfs::ticks(MIN_MEANINGFUL_TICKS) { Duration::ZERO } else { unseen }
    }

    /// Returns the share of user time in the CPU time since `before`, from 0 to 1; 1 without any.
    fn user_share_since(self, before: Self) -> f64 {
        let user = self.user.saturating_sub(before.user) as f64;
        let system = self.system.saturating_sub(before.system) as f64;
        if user + system > 0.0 { user / (user + system) } else { 1.0 }
    }
}

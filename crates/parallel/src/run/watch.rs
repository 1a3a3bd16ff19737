//! Samples the memory of a run while its plan is executed.

use std::time::{Duration, Instant};

use contend_sys::procfs::Rollup;
use rustix::process::getpid;

use crate::execute::Launcher;

/// The sampling interval. A sample is expensive: the kernel walks all pages of a process for it.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(200);

/// The memory sampler of a run.
#[derive(Debug)]
pub(super) struct Watch {
    /// Time at which the next sample is due; `None` if no samples are wanted.
    due: Option<Instant>,
    peak: Option<u64>,
}

impl Watch {
    /// Creates a sampler, which does nothing if `memory` is `false`.
    pub(super) fn new(memory: bool) -> Self {
        Self { due: memory.then(Instant::now), peak: None }
    }

    /// Takes a sample if one is due.
    pub(super) fn sample_if_due(&mut self, launcher: &Launcher) {
        let now = Instant::now();
        if self.due.is_some_and(|due| now >= due) {
            self.due = Some(now + SAMPLING_INTERVAL);
            self.peak = self.peak.max(memory(launcher));
        }
    }

    /// Returns the maximum of all samples in bytes, or `None` without samples.
    pub(super) fn finish(self) -> Option<u64> {
        self.peak
    }
}

/// Returns the total proportional set size (PSS) of this process and its running commands in bytes,
/// or `None` if the PSS of this process cannot be read.
fn memory(launcher: &Launcher) -> Option<u64> {
    let own = Rollup::of(getpid()).ok()?.pss;
    // Processes that have ended have no entry.
    let commands = launcher.pids().into_iter().filter_map(|pid| Rollup::of(pid).ok());
    Some(own + commands.map(|rollup| rollup.pss).sum::<u64>())
}

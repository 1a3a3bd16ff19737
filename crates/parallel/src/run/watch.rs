//! What is looked at while a plan is carried out.

use std::time::{Duration, Instant};

use contend_sys::procfs::Rollup;
use rustix::process::getpid;

use crate::execute::Launcher;

/// How often memory is looked at: the kernel goes through all pages of a process for it.
const INTERVAL: Duration = Duration::from_millis(200);

/// Looks at a run from time to time.
#[derive(Debug)]
pub(super) struct Watch {
    /// The next look at memory, if any is wanted.
    due: Option<Instant>,
    peak: Option<u64>,
}

impl Watch {
    /// Begins to look at what is wanted.
    pub(super) fn new(memory: bool) -> Self {
        Self { due: memory.then(Instant::now), peak: None }
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self, launcher: &Launcher) {
        let now = Instant::now();
        if self.due.is_some_and(|due| now >= due) {
            self.due = Some(now + INTERVAL);
            self.peak = self.peak.max(memory(launcher));
        }
    }

    /// The run is over: the most memory that was seen, in bytes.
    pub(super) fn finish(self) -> Option<u64> {
        self.peak
    }
}

/// The memory of this process and the commands that are running, in bytes.
fn memory(launcher: &Launcher) -> Option<u64> {
    let own = Rollup::of(getpid()).ok()?.pss;
    // Those that have ended meanwhile have none.
    let commands = launcher.pids().into_iter().filter_map(|pid| Rollup::of(pid).ok());
    Some(own + commands.map(|rollup| rollup.pss).sum::<u64>())
}

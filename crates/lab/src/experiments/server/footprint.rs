//! Memory, processes and threads of a server.

use contend_sys::Pid;
use contend_sys::procfs::{Rollup, Stat, with_descendants};

use crate::engine::experiment::{ErrorContext, SubjectError};

/// Memory, processes and threads of a process and its descendants at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Proportional set size (PSS), in bytes: a page that n processes map counts for an nth.
    pub pss: u64,
    /// Unique set size (USS), in bytes: pages that only one process maps.
    pub uss: u64,
    /// Number of processes, including the root of the tree.
    pub processes: u64,
    /// Number of threads of all processes.
    pub threads: u64,
}

impl Footprint {
    /// Reads the footprint of a process and its descendants, without those whose memory cannot be
    /// read, such as processes that end meanwhile.
    ///
    /// # Errors
    /// Returns an error if the memory of `root` cannot be read.
    pub fn of(root: Pid) -> Result<Self, SubjectError> {
        Rollup::of(root).context("read the memory of the server")?;
        let mut all = Self::default();
        for pid in with_descendants(root) {
            let Ok(rollup) = Rollup::of(pid) else { continue };
            all.pss += rollup.pss;
            all.uss += rollup.private;
            all.processes += 1;
            all.threads += threads(pid).unwrap_or(1);
        }
        Ok(all)
    }
}

fn threads(pid: Pid) -> Option<u64> {
    Some(Stat::of(pid).ok()?.threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_threads() {
        let own = Footprint::of(rustix::process::getpid()).expect("it may read its own");
        assert!(own.processes >= 1 && own.threads >= own.processes, "{own:?}");
        assert!(own.pss >= own.uss && own.uss > 0, "{own:?}");
    }
}

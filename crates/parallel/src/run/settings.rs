//! Settings of a run, and their defaults.

use std::ffi::OsString;
use std::path::PathBuf;

use contend_shell::environment::default_shell;
use contend_sys::procfs::MemInfo;
use contend_sys::{cgroup, cpu};

use crate::cluster::{Cluster, Job};
use crate::plan::planner::Annotation;

/// Ratio of the memory of the machine or the cgroup to the default memory budget.
const MEMORY_DIVISOR: u64 = 4;
/// Minimum memory budget in bytes.
const MIN_MEMORY_BYTES: u64 = 16 << 20;

/// A pipeline or script to run, and how.
#[derive(Debug)]
pub struct Request {
    /// The pipeline or script.
    pub what: Target,
    /// How the pipeline or script runs.
    pub settings: Settings,
}

/// The source to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A pipeline in the syntax of the shell.
    Pipeline(String),
    /// The path of a script, and its arguments.
    Script(PathBuf, Vec<OsString>),
    /// The job that the settings of the cluster resume.
    Job(Box<Job>),
}

/// How a pipeline runs, and what the caller needs besides its output.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Number of chunks processed concurrently; `None` for the default of [`Settings::jobs`].
    pub jobs: Option<usize>,
    /// Memory budget for data in bytes; `None` for the default of [`Settings::memory`].
    pub memory: Option<u64>,
    /// Length of chunks in bytes; `None` if contend chooses it. If it is given, chunks are used
    /// regardless of their cost.
    pub chunk_bytes: Option<usize>,
    /// Commands that the user has declared to process every record independently.
    pub annotations: Vec<Annotation>,
    /// Name or path of the shell; `None` for the default of [`Settings::shell`].
    pub shell: Option<String>,
    /// Whether a pipeline fails if any of its stages fails.
    pub pipefail: bool,
    /// Whether only the plan is requested, and nothing is run.
    pub explain: bool,
    /// Whether the plan has a list of parts, if a cluster is given.
    pub lists_parts: bool,
    /// Whether the shell also runs the original, and the outputs are compared. Scripts are never
    /// compared.
    pub check: bool,
    /// Whether the caller prints statistics of the run.
    pub stats: bool,
    /// Whether the caller keeps the record of the run.
    pub record: bool,
    /// Whether the caller writes a trace of the run.
    pub trace: bool,
    /// What runs the first stages over parts of their files; `None` if they run over chunks on this machine.
    pub cluster: Option<Cluster>,
    /// Whether names such as `s3://bucket/key` are those of objects in a store.
    pub reads_objects: bool,
    /// Options that pass these settings to the process of a stage in shell source. They omit
    /// `explain`, `check` and `trace`, which do not apply to stages, and `shell`, `stats` and
    /// `record`, which a run passes itself.
    pub stage_options: Vec<String>,
}

impl Settings {
    /// Returns the number of chunks processed concurrently: as given, else the number of usable
    /// CPUs.
    pub fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(usable_cpus)
    }

    /// Returns the memory budget for data in bytes: as given, else a quarter of the memory of the
    /// machine or of the cgroup, whichever is smaller. It is never less than 16 MiB.
    pub fn memory(&self) -> u64 {
        self.memory.unwrap_or_else(default_memory).max(MIN_MEMORY_BYTES)
    }

    /// Returns the shell for source that contend does not run itself: as given, else bash or sh.
    pub fn shell(&self) -> String {
        self.shell.clone().unwrap_or_else(|| default_shell().to_owned())
    }

    /// Returns whether the caller needs more than the pipeline's own output and exit code.
    pub(super) fn wants_report(&self) -> bool {
        self.check || self.stats || self.record
    }
}

/// Returns the number of CPUs that this process can keep busy. A quota of 1.5 CPUs counts as two.
fn usable_cpus() -> usize {
    let quota = cpu::quota().map_or(usize::MAX, |quota| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let cpus = quota.ceil() as usize;
        cpus.max(1)
    });
    cpu::allowed().min(quota)
}

fn default_memory() -> u64 {
    let limit = cgroup::memory_limit().unwrap_or(u64::MAX);
    MemInfo::read().total.min(limit) / MEMORY_DIVISOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_values_win_over_what_the_machine_offers() {
        let given = Settings {
            jobs: Some(3),
            memory: Some(1 << 30),
            shell: Some("dash".to_owned()),
            ..Settings::default()
        };
        assert_eq!((given.jobs(), given.memory(), given.shell()), (3, 1 << 30, "dash".to_owned()));
        let default = Settings::default();
        assert!((1..=cpu::allowed()).contains(&default.jobs()));
        assert!(["bash", "sh"].contains(&default.shell().as_str()));
    }

    #[test]
    fn a_memory_budget_has_a_lower_bound() {
        let small = Settings { memory: Some(1), ..Settings::default() };
        assert_eq!(small.memory(), MIN_MEMORY_BYTES);
        assert!(Settings::default().memory() >= MIN_MEMORY_BYTES);
    }
}

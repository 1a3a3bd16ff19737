//! Executes plans on this machine.
//!
//! A group of a plan turns one input into one output. Its chunks pass through these modules:
//!
//! ```text
//! files or stream ─ input (cut, guard) ─ chunk ┬─ instance ─┐
//!                                             ├─ instance ─┼─ combination ─ sink
//!                                             └─ instance ─┘
//! ```
//!
//! These modules combine the outputs of instances:
//!
//! - `concatenate`, `ordered`, `reorder`, `boundary_merger`: concatenate, merge at boundaries, or
//!   filter in order. They write while the input is read.
//! - `gathered`, `combine`, `numbers`: sum, merge, or filter in any order. They write at the end of
//!   the input.
//! - `sorted`, `sorter`, `merge`: sort inside contend. They write at the end of the input.
//!
//! An instance runs the commands of its group over one chunk or several: as operators inside
//! contend (`chain`) or as processes (`processes`). If the group cannot run over chunks, `whole`
//! runs its commands once over the whole input, for a reason that `fallback` names. [`parts`] runs a group
//! over a part of its files, for a run on several machines.

mod backoff;
mod boundary_merger;
mod chain;
mod chunk_input;
mod combine;
mod concatenate;
mod counted;
mod cut;
mod ended;
mod entry;
mod error;
mod fallback;
mod filter;
mod gathered;
mod group;
mod input;
mod instance;
mod intake;
mod key;
mod keyed;
mod launcher;
mod local;
mod locale;
mod merge;
mod numbers;
pub(crate) mod order;
mod ordered;
pub mod parts;
mod pilot;
mod pipe;
mod plain;
mod processes;
mod progress;
mod reorder;
mod seen;
mod sink;
mod size;
mod sorted;
mod sorter;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
mod threads;
mod whole;
mod work;

use contend_record::run::WorkKind;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::plan::ir::{Plan, Step};

pub use error::{ExecuteError, StartError};
pub use input::{Beginning, read_beginning};
pub use launcher::Launcher;
pub use local::{Local, Settings};
pub use plain::Plain;
pub use tally::{StageTally, Tally};
pub use threads::spawn;
pub use work::WorkLog;

use work::Work;

/// An executor of plans. A plan contains everything that must be known about its pipeline, so other
/// implementations may run plans on other machines.
pub trait Executor {
    /// Runs the plan until it ends: reads the source that it names, and writes to standard output.
    ///
    /// # Errors
    /// Returns an error if the plan cannot be executed. The output written before the error is a
    /// prefix of the correct output.
    fn execute(&self, plan: &Plan) -> Result<(), ExecuteError>;
}

/// The settings and counters that all groups of a run share, and the position of one group in the
/// plan.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    launcher: &'a Launcher,
    tally: &'a Tally,
    /// Whether the group is the first one, whose input counts as the input of the run.
    is_first: bool,
    /// Whether the group writes to standard output.
    is_last: bool,
    /// The maximum number of chunks processed at the same time; not 0.
    jobs: usize,
    /// The memory that chunks and their outputs may use, in bytes.
    memory: u64,
    /// The size of chunks in bytes, or `None` if contend chooses it.
    chunk_bytes: Option<usize>,
    /// The directory for temporary files of sorts that exceed memory, unless the pipeline names
    /// one.
    folder: &'a Path,
    /// The steps of the plan.
    steps: &'a [Step],
    /// The index of the group's step in `steps`.
    at: usize,
    /// For each step, whether its commands run plain: once, without chunks, on input as it arrives.
    plain: &'a [AtomicBool],
    /// CPU time of the group's commands other than sorts, in nanoseconds per byte of its input, or
    /// `None` if it has not been estimated.
    rate: Option<f64>,
}

impl Context<'_> {
    /// Marks the group's step as plain: from now on, its commands run once, without chunks.
    fn mark_plain(&self) {
        self.plain[self.at].store(true, Ordering::Relaxed);
    }

    /// Begins work of the calling thread on the group's stages.
    fn begin(&self, kind: WorkKind, bytes: u64) -> Work<'_> {
        let stages = match &self.steps[self.at] {
            Step::Parallel(group) => work::stages(&group.serial),
            Step::Serial(commands) => work::stages(commands),
        };
        self.tally.work().begin(kind, stages, bytes)
    }

    /// Returns the maximum size in bytes of the reorder buffer's contents.
    fn held_bytes(&self) -> usize {
        usize::try_from(self.memory / 4).unwrap_or(usize::MAX)
    }

    /// Returns the maximum memory in bytes that a worker may use to hold lines for sorting.
    fn sorting_bytes(&self) -> usize {
        usize::try_from(self.memory / (2 * self.jobs as u64)).unwrap_or(usize::MAX)
    }
}

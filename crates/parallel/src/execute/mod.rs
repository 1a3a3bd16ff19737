//! Carrying out plans on this machine.

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
mod testing;
mod threads;
mod whole;

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

/// Carries out plans. What is known of the plan is all that there is to know: another one may do
/// so on other machines.
pub trait Executor {
    /// Runs the plan to its end, from standard input to standard output.
    ///
    /// # Errors
    /// When it cannot be carried out. What was written until then is the beginning of the output.
    fn execute(&self, plan: &Plan) -> Result<(), ExecuteError>;
}

/// What all groups share, and what is known of one.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    launcher: &'a Launcher,
    tally: &'a Tally,
    /// It is the first group: what is taken of its input counts.
    is_first: bool,
    /// Its output is standard output.
    is_last: bool,
    /// How many parts are worked on at the same time.
    jobs: usize,
    /// Memory for parts and their outputs, in bytes.
    memory: u64,
    /// The size of parts, where it is given.
    part_bytes: Option<usize>,
    /// Where sorting keeps what does not fit into memory.
    folder: &'a Path,
    /// The steps of the plan, and which of them the group is.
    steps: &'a [Step],
    at: usize,
    /// Which of the steps pass on what they get as it comes: their commands run plain.
    plain: &'a [AtomicBool],
    /// CPU time that the group's commands need, as far as that is known, in nanoseconds a byte.
    rate: Option<f64>,
}

impl Context<'_> {
    /// The commands of this step run plain from now on.
    fn runs_plain(&self) {
        self.plain[self.at].store(true, Ordering::Relaxed);
    }

    /// How much output may wait for its turn, in bytes.
    fn held_bytes(&self) -> usize {
        usize::try_from(self.memory / 4).unwrap_or(usize::MAX)
    }

    /// How much a worker may keep for sorting, in bytes.
    fn sorting_bytes(&self) -> usize {
        usize::try_from(self.memory / (2 * self.jobs as u64)).unwrap_or(usize::MAX)
    }
}

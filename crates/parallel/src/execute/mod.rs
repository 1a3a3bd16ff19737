//! Carrying out plans on this machine.

mod counted;
mod cut;
mod each;
mod fallback;
mod gathered;
mod group;
mod input;
mod instance;
mod joint;
mod key;
mod keyed;
mod local;
mod merge;
mod numbers;
pub(crate) mod order;
mod ordered;
mod pace;
mod pilot;
mod pipe;
mod plain;
mod seen;
mod sequence;
mod sink;
mod size;
mod sorted;
mod sorter;
mod tally;
mod threads;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::plan::ir::{Plan, Step};

pub use input::{Beginning, read_beginning};
pub use instance::Launcher;
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

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A file could not be opened.
    #[error("cannot read {file}")]
    Open {
        /// It.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A command could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Standard output takes no more.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Data could not be moved.
    #[error("cannot go on")]
    Transfer(#[source] io::Error),
    /// Commands failed over parts of an input that cannot be read again, before anything was
    /// written.
    #[error("commands failed")]
    Failed {
        /// What they said.
        remarks: Vec<u8>,
        /// Their statuses, as a shell sees them.
        status: i32,
    },
}

/// A command could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}")]
pub struct StartError {
    /// It.
    pub program: String,
    /// Why.
    pub source: io::Error,
}

/// Why a group could not be run.
#[derive(Debug, thiserror::Error)]
enum GroupError {
    /// A command could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Data could not be moved, or a command not be started.
    #[error("cannot go on")]
    Transfer(#[source] io::Error),
    /// Commands failed.
    #[error("commands failed")]
    Failed(Box<instance::Ended>),
    /// What came of parts does not tell what would come of the whole.
    #[error("totals were rounded")]
    Inexact,
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

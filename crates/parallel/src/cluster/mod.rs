//! Runs a group over parts of its files on several machines that can read them.
//!
//! ```text
//!            ┌─ part 0, attempt 0 ─▶ work/0.0.part ─┐
//! job.json ──┼─ part 1, attempt 0    (lost)         ├─▶ one attempt for each part ─▶ combine
//!            └─ part 1, attempt 1 ─▶ work/1.1.part ─┘
//! ```
//!
//! If there are many parts, workers combine their outputs first (`tree.rs`). Parts and combinations are the tasks of a job.
//!
//! A [`Job`] has everything that a worker needs. An engine (`engine.rs`), such as Apache Spark, only starts `contend part`
//! on machines; each runs one [`Attempt`] at a task, and leaves its output and its [`PartReport`] in the [`Work`] directory. Attempts do
//! not know of each other, so that an engine may repeat one, or run two at the same time. The driver (`driver.rs`) looks
//! for reports, checks outputs, and accepts one attempt at each task. `executor.rs` then has the outputs combined, and
//! the rest of the plan run, on the driver's machine.

mod attempt;
mod driver;
mod engine;
mod executor;
mod job;
mod locales;
mod processes;
mod programs;
mod report;
mod slurm;
mod spark;
mod timeline;
mod tree;
mod variables;
mod work;
mod worth;

pub use attempt::Attempt;
pub use executor::{Cluster, EngineKind};
pub use job::{Divider, FORMAT, Job, JobError, JobFile, Written};
pub use locales::Locales;
pub use processes::PART_VERB;
pub use programs::Programs;
pub use report::{End, OutputFile, PartReport, StageReport};
pub use variables::Variables;
pub use work::{Place, Work};
pub use worth::Capacity;

pub(crate) use executor::Clustered;

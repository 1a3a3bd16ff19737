//! Runs a group over parts of its files on several machines that can read them.
//!
//! ```text
//!            ┌─ part 0, attempt 0 ─▶ work/0.0.part ─┐
//! job.json ──┼─ part 1, attempt 0    (lost)         ├─▶ one attempt for each part ─▶ combine
//!            └─ part 1, attempt 1 ─▶ work/1.1.part ─┘
//! ```
//!
//! A [`Job`] has everything that a worker needs. An engine (`engine.rs`), such as Apache Spark, only starts `contend part`
//! on machines; each runs one [`Attempt`], and leaves its output and its [`PartReport`] in the [`Work`] directory. Attempts do
//! not know of each other, so that an engine may repeat one, or run two at the same time. The driver (`driver.rs`) looks
//! for reports, checks outputs, and accepts one attempt for each part. `executor.rs` then has the outputs combined, and
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
mod variables;
mod work;

pub use attempt::Attempt;
pub use executor::{Cluster, EngineKind};
pub use job::{FORMAT, Job, JobError, JobFile, Written};
pub use locales::Locales;
pub use processes::PART_VERB;
pub use programs::Programs;
pub use report::{End, PartReport, StageReport};
pub use variables::Variables;
pub use work::Work;

pub(crate) use executor::Clustered;

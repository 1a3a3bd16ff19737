//! Observes a running program from outside, says why it does not use the CPUs, and estimates what a
//! remedy would gain.
//!
//! ```text
//!  /proc ──▶ thread, processes ─┐
//!                               ├─▶ observe ─▶ timeline ─▶ facts ─▶ symptom::TABLE ─▶ diagnosis
//!  perf ───▶ switches, wake-ups ┘                                        │
//!                                                                        ▼
//!                                                                  DoctorRecord
//! ```
//!
//! - [`observe`]: the loop that samples threads and reads context switches. It ends with an observation,
//!   and yields snapshots on the way.
//! - [`timeline`]: what the threads did over time, in constant memory. Every moment has one cause.
//! - [`facts`]: the figures on which symptoms are judged.
//! - [`symptom`]: one file and one table row for each way in which a program loses time.
//! - [`trace`]: what the threads did over time, for viewers. Collected only on request.
//! - [`diagnosis`]: the record, with the diagnosis in words.
//! - [`remedy`]: remedies that need no change of code, for a trial.
//!
//! The program is not changed: it is not traced or stopped, gets no signal, and no end of its pipes is
//! held.

mod backoff;
mod descriptors;
pub mod diagnosis;
pub mod facts;
mod futex;
mod goroutines;
mod histogram;
mod libraries;
mod limits;
mod lock_files;
pub mod observe;
mod processes;
pub mod remedy;
mod runtime;
mod spin;
pub mod stacks;
mod symbols;
pub mod symptom;
mod thread;
mod time_series;
pub mod timeline;
pub mod trace;
mod wait;
mod wakes;
mod window;

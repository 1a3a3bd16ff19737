//! Family `pipeline`: repeats the measurements of a study of pipeline parallelism in the shell
//! (2021).
//!
//! ```text
//!  input (memfd) ──► stage 1 ──pipe──► stage 2 ──pipe──► ... ──► /dev/null
//! ```
//!
//! - `startup`, `filter`, `sed`, `json`, `buffering`: one experiment each
//! - `stages`, `subject`: the execution of pipelines, and the subject of most experiments
//! - `awk`: the awk programs of `json`
//!
//! `stages` starts the stages without a shell and reaps each one, which yields the stage's CPU
//! time. The wall time runs from before the creation of the first stage until the last stage has
//! exited. Creating the input is not timed.

pub mod awk;
mod buffering;
mod filter;
mod json;
mod sed;
mod stages;
mod startup;
mod subject;

pub use buffering::EXPERIMENT as HOLD;
pub use filter::EXPERIMENT as FILTER;
pub use json::EXPERIMENT as JSON;
pub use sed::EXPERIMENT as SED;
pub use startup::EXPERIMENT as STARTUP;

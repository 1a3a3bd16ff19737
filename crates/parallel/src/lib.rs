//! Plans and runs a pipeline over chunks of its input concurrently, with byte-identical output.
//!
//! - [`operators`]: commands that contend carries out itself, without a process.
//! - [`plan`]: turns stages into a plan, which is plain data.
//! - [`execute`]: carries out a plan with processes on this machine.
//! - [`run`]: the engine of `contend run`. Decides how to run a pipeline, plans it, and supervises
//!   the execution.

pub mod execute;
pub mod operators;
pub mod plan;
pub mod run;

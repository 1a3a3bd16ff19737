//! Plans a pipeline and runs it concurrently over chunks of its input, with byte-identical output.
//!
//! - [`operators`]: commands that contend runs in its own process, without starting a program.
//! - [`plan`]: turns stages into a plan, which is plain data.
//! - [`execute`]: runs a plan on this machine, with processes and operators.
//! - [`cluster`]: divides a plan's first group into parts for several machines, and runs one.
//! - [`run`]: decides how to run a pipeline, plans it, and supervises the execution. It is the
//!   engine of `contend run`.

pub mod cluster;
pub mod execute;
mod objects;
pub mod operators;
pub mod plan;
pub mod run;

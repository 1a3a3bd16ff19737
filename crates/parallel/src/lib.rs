//! Plans and runs a pipeline over chunks of its input concurrently, with byte-identical output.
//!
//! - [`operators`]: commands that contend carries out itself.
//! - [`plan`]: from stages to a plan. It knows no process and no machine.
//! - [`execute`]: carries out a plan with processes of this machine.
//! - [`run`]: the engine of `contend run`: decides, plans, and supervises the execution.

pub mod execute;
pub mod operators;
pub mod plan;
pub mod run;

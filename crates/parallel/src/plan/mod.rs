//! Parses a pipeline and plans how to run it over chunks of its input.
//!
//! - [`text`]: distinguishes plain commands from source that needs a shell.
//! - [`script`]: rewrites a script so that contend can take over stages of its pipelines.
//! - [`classes`]: proves properties of commands: which handle each record independently, which have
//!   outputs that can be combined, and why the others run alone.
//! - [`fast_path`]: decides without a plan to run a pipeline as written, if names and sizes show
//!   that chunks do not pay off.
//! - [`estimate`], [`flow`] and `rates`: estimate whether chunks are worth their cost.
//! - [`planner`]: turns classified stages into a plan.
//! - [`ir`]: the plan as data.

pub mod classes;
pub mod estimate;
pub mod fast_path;
pub mod flow;
pub mod ir;
pub mod planner;
pub(crate) mod rates;
pub mod script;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;

//! Parses a pipeline and plans how to run it over chunks of its input.
//!
//! - [`text`]: distinguishes plain commands from source that needs a shell.
//! - [`script`]: finds the pipelines of a script that contend takes over.
//! - [`classes`]: proves properties of commands: which handle each record independently, which have
//!   outputs that can be combined, and why the others run alone.
//! - [`fast_path`]: decides without a plan if names and sizes are enough.
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
pub mod text;

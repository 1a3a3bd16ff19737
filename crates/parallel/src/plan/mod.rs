//! Turns the text of a pipeline into a plan for running it over chunks of its input.
//!
//! - [`text`]: tells plain commands from text that needs a shell.
//! - [`script`]: scripts in which contend takes over pipelines.
//! - [`classes`]: proofs about commands: which handle each record independently, which outputs can
//!   be combined, and why the others run alone.
//! - [`fast_path`]: decides without a plan where names and sizes are enough.
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

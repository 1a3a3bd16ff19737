//! From the text of a pipeline to a plan for running it over parts of its input.
//!
//! - [`text`]: plain commands, or something for a shell.
//! - [`script`]: scripts whose pipelines are given to contend.
//! - [`classes`]: what is known of commands: which treat every record for itself, whose outputs
//!   can be put together, and why the others cannot.
//! - [`fast_path`]: whether a plan is needed at all.
//! - [`estimate`], [`flow`] and `rates`: whether parts are worth what they cost.
//! - [`planner`]: from stages to a plan.
//! - [`ir`]: the plan itself, as data.

pub mod classes;
pub mod estimate;
pub mod fast_path;
pub mod flow;
pub mod ir;
pub mod planner;
pub(crate) mod rates;
pub mod script;
pub mod text;

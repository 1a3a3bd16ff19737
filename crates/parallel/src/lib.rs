//! The same pipeline over parts of its input at the same time, with the same bytes.
//!
//! - [`classes`]: what is known of commands: which treat every record for itself, whose outputs
//!   can be put together, and why the others cannot.
//! - [`text`]: plain commands, or something for a shell.
//! - [`script`]: scripts whose pipelines are given to contend.
//! - [`glance`]: whether a plan is needed at all.
//! - [`estimate`], [`flow`] and `rates`: whether parts are worth what they cost.
//! - [`planner`]: from stages to a plan.
//! - [`execute`]: carrying out a plan.
//! - [`advice`]: what a profile says for all that.

pub mod classes;
pub mod estimate;
pub mod execute;
pub mod flow;
pub mod glance;
pub mod planner;
mod rates;
pub mod script;
pub mod text;

//! Runs a pipeline as the shell would, observes its stages from outside, and names the bottleneck.
//!
//! - [`observe`]: processes and threads → what each is doing now.
//! - [`pipeline`]: text → stages → a run → accounts → a verdict.

pub mod observe;
pub mod pipeline;

//! Runs a pipeline as the shell would, observes its stages from outside, and identifies the
//! bottleneck.
//!
//! - [`observe`]: processes and threads → the current activity of each.
//! - [`pipeline`]: source text → stages → a run → accounts → a verdict.

pub mod observe;
pub mod pipeline;

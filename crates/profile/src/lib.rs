//! Runs a pipeline as the shell would, watches its stages from outside, and says which
//! one sets the pace.
//!
//! - [`observe`]: processes and threads → what each is doing now.
//! - [`pipeline`]: text → stages → a run → accounts → a verdict.

pub mod observe;
pub mod pipeline;

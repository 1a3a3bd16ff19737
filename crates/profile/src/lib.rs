//! Runs a pipeline as the shell would, watches its stages from outside, and says which
//! one sets the pace.
//!
//! - [`observe`]: processes and threads → what each is doing now.
//! - [`pipeline`]: text → stages → a run → accounts → a verdict.
//! - [`commands`]: what is known of commands, by their own grammars.
//! - [`rewrite`]: changes that may make a pipeline better.

pub mod commands;
pub mod observe;
pub mod pipeline;
pub mod rewrite;

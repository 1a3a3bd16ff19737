//! Runs a pipeline as the shell would, watches its stages from outside, and says which
//! one sets the pace.
//!
//! - [`observe`]: processes and threads → what each is doing now.
//! - [`pipeline`]: text → stages → a run → accounts → a verdict.
//! - [`rewrite`]: changes that may make a pipeline better.
//! - [`parallelism`]: what parts of its input could bring.
//! - [`predict`]: what a change would bring, before it is made.
//! - [`trial`]: original and candidates on the same input, measured and compared.

pub mod observe;
pub mod parallelism;
pub mod pipeline;
pub mod predict;
pub mod rewrite;
pub mod sample;
pub mod trial;

//! Advice on a pipeline that was profiled: what may be changed, what that would bring, and what it
//! did bring.
//!
//! - [`rewrite`]: changes that may make a pipeline better.
//! - [`predict`]: what a change would bring, before it is made.
//! - [`trial`]: original and candidates on the same input, measured and compared.
//! - [`parallelism`]: what parts of its input, worked on at the same time, could bring.

pub mod parallelism;
pub mod predict;
pub mod rewrite;
pub mod sample;
pub mod trial;

//! Advice on a profiled pipeline: possible changes, their predicted gain, and their measured gain.
//!
//! - [`rewrite`]: finds changes that may make a pipeline faster.
//! - [`predict`]: estimates the gain of a change.
//! - [`trial`]: measures candidates against the original, and compares their outputs.
//! - [`sample`]: takes samples of inputs for [`predict`] and [`trial`], and compares outputs.
//! - [`parallelism`]: estimates the gain of `contend run`.

pub mod parallelism;
pub mod predict;
pub mod rewrite;
pub mod sample;
pub mod trial;

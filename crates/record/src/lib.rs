//! The records that contend prints, stores and compares, as plain data.
//!
//! This crate neither does I/O nor reads a clock. Screen output, JSON and the store are three
//! renderings of the same record, made by other crates.

pub mod advice;
pub mod compare;
pub mod doctor;
pub mod host;
pub mod lab;
pub mod live;
pub mod parameters;
pub mod pipe;
pub mod remedy;
pub mod run;
pub mod shell;
pub mod signal;
pub mod stacks;
pub mod stats;
pub mod trace;
pub mod units;
pub mod versus;
pub mod warning;
mod writer;

pub use host::Host;
pub use warning::Warning;
pub use writer::Writer;

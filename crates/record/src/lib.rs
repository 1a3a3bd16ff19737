//! The records that contend prints, stores and compares, as plain data.
//!
//! Nothing here does I/O or reads a clock. A result on screen, in JSON and in the store is one
//! record, rendered three ways by other crates.

pub mod advice;
pub mod compare;
pub mod host;
pub mod lab;
pub mod parameters;
pub mod pipe;
pub mod run;
pub mod shell;
pub mod signal;
pub mod stats;
pub mod units;
pub mod warning;
mod writer;

pub use host::Host;
pub use warning::Warning;
pub use writer::Writer;

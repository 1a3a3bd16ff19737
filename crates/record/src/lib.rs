//! What contend has found out, as plain data: shown, kept and compared elsewhere.
//!
//! Nothing here reads a file or a clock, or prints. A result on screen, in JSON and in a
//! store is one record rendered three ways.

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

//! Finds values in JSON of any size, in one pass and in bounded memory.
//!
//! [`filter()`] asks the parser, struson, what comes next, decides by the paths of a
//! [`Query`](path::Query) whether it is wanted, and either writes it in a
//! [`Format`](format::Format) or has the parser pass over it. Nothing is kept but the way from the
//! root to the current value; strings go through in pieces, so that even one of a gigabyte takes
//! no memory. What is passed over is checked exactly as what is printed.
//!
//! - `path.rs` is what can be asked for, `matcher.rs` where in the document one is and which paths
//!   lead on, `filter.rs` goes through it, `format.rs` writes what is found.
//! - `input.rs` has the parser's settings, and what its errors mean. `output.rs` gathers lines.

pub mod error;
pub mod filter;
pub mod format;
mod input;
mod matcher;
mod output;
pub mod path;

pub use filter::filter;

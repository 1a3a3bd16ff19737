//! Finds values in JSON of any size, in one pass and in bounded memory.
//!
//! Bytes go one way: [`filter()`] asks `scan` for the next token, decides by the paths of a
//! [`Query`](path::Query) whether its value is wanted, and either writes it in a
//! [`Format`](format::Format) or lets `scan` pass over it. Nothing is kept but the way from the
//! root to the current value; strings, keys and numbers go through in pieces, so that even one of
//! a gigabyte takes no memory. What is passed over is checked exactly as what is printed.
//!
//! - `source.rs` reads, checks UTF-8 and counts lines. After it all text is valid.
//! - `scan.rs` is the grammar of RFC 8259, `text.rs` strings and numbers.
//! - `path.rs` is what can be asked for, `filter.rs` finds it, `format.rs` writes it.

pub mod error;
pub mod filter;
pub mod format;
mod output;
pub mod path;
mod scan;
mod source;
mod text;

pub use filter::filter;

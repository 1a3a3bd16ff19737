//! Finds values in JSON of any size, in one pass and in bounded memory.
//!
//! ```text
//! input ── tokens (struson) ──> filter ── lines ──> output
//!                                │  ^
//!                     key, index │  │ Skip, Search or Print
//!                                v  │
//!                              matcher <── path (the query)
//! ```
//!
//! [`filter()`] reads tokens from the parser, struson. For every value, the matcher decides by the
//! paths of a [`Query`](path::Query) whether the value is printed in a [`Format`](format::Format),
//! searched or skipped. The only state is the stack of open containers and the path of the current
//! value. String values are copied in fixed-size pieces, so a string of a gigabyte needs no more
//! memory than a short one; keys and printed numbers are held as a whole. Skipped values are
//! validated exactly like printed ones.
//!
//! - `path.rs`: the query language and its parser.
//! - `matcher.rs`: the position in the document, and the paths that can still match there.
//! - `filter.rs`: the loop over the document.
//! - `format.rs`: output formats, escaping and printed paths.
//! - `input.rs`: the parser's settings, and the translation of its errors.
//! - `output.rs`: the line buffer.
//! - `error.rs`: the errors of [`filter()`].

pub mod error;
pub mod filter;
pub mod format;
mod input;
mod matcher;
mod output;
pub mod path;

pub use filter::filter;

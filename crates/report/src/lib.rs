//! Renders records as tables, documents and JSON, exports their figures to other programs, compares
//! and stores runs, and generates the JSON Schemas of the records.
//!
//! Rendering depends only on a record, the amount of detail and the width of the output, not on the
//! machine, so a stored record yields the same report later.

pub mod compare;
pub mod export;
pub mod render;
pub mod schema;
pub mod store;

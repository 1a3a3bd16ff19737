//! Renders records as tables, documents and JSON, and stores them.
//!
//! Rendering depends only on a record, not on the machine, so a stored record yields the same
//! report later.

pub mod compare;
pub mod render;
pub mod schema;
pub mod store;

//! Renders records as tables, documents and JSON, compares runs of the lab, and stores them.
//!
//! Rendering depends only on a record and on the width of the output, not on the machine, so a
//! stored record yields the same report later.

pub mod compare;
pub mod render;
pub mod schema;
pub mod store;

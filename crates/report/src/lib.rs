//! Renders records as tables, documents and JSON, and stores them.
//!
//! Rendering takes nothing from the machine but a record, so a report can be shown again from a
//! file.

pub mod compare;
pub mod render;
pub mod schema;
pub mod store;

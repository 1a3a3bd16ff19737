//! Turns records into what people and programs read: tables and JSON.
//!
//! Nothing here looks at the machine: whatever is shown can be shown again from a file.

pub mod compare;
pub mod render;
pub mod schema;
pub mod store;

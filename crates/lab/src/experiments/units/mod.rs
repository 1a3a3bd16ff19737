//! Family `units`: creating, holding, running out of, and starting units of concurrency.

pub mod callback;
pub mod create;
pub mod limit;
pub mod memory;
mod null_write;
pub mod parent;
pub mod parked;
mod pool;
pub mod startup;
mod tiny;

//! Family `units`: creating, holding, running out of, and starting units of concurrency.

pub mod callback;
pub mod create;
pub mod limit;
pub mod memory;
mod one_byte;
pub mod parent;
pub mod park;
mod pool;
pub mod startup;
mod tiny;

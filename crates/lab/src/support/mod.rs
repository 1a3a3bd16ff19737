//! What several experiments are built from: partners, limits, inputs, programs, work.

pub(crate) mod calls;
pub(crate) mod files;
pub(crate) mod histogram;
pub mod inputs;
pub mod limits;
pub(crate) mod pair;
pub mod programs;
pub mod tree;
pub(crate) mod work;

//! Building blocks that several experiments share: pairs of partners that exchange data, resource
//! limits, generated inputs, installed programs, and computations of a given duration.

pub(crate) mod histogram;
pub mod inputs;
pub mod limits;
pub(crate) mod partners;
pub mod process_tree;
pub mod programs;
pub(crate) mod syscalls;
pub(crate) mod unnamed_file;
pub(crate) mod work;

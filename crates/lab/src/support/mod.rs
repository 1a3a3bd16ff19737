//! Building blocks that several experiments share: partners that hand over to each other, limits,
//! inputs, programs, work.

pub(crate) mod histogram;
pub mod inputs;
pub mod limits;
pub(crate) mod partners;
pub mod process_tree;
pub mod programs;
pub(crate) mod syscalls;
pub(crate) mod unnamed_file;
pub(crate) mod work;

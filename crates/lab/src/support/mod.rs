//! Building blocks that several experiments share: pairs of partners that exchange data, limits on
//! processes and threads, the memory and CPU time of process trees, counters of system calls,
//! histograms, generated inputs, unnamed files, installed programs, and computations of a given
//! duration.

pub(crate) mod histogram;
pub mod inputs;
pub mod limits;
pub(crate) mod partners;
pub mod process_tree;
pub mod programs;
pub(crate) mod syscalls;
pub(crate) mod unnamed_file;
pub(crate) mod work;

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

// Names that experiments still import.
pub(crate) use partners as pair;
pub use process_tree as tree;
pub(crate) use syscalls as calls;
pub(crate) use unnamed_file as files;

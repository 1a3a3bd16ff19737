//! `contend run` against the shell and against other tools: what `bench-run` measures.

pub mod cases;
pub mod figures;
pub mod forms;
pub mod measure;
pub mod pairs;
pub mod report;
pub mod shrink;
pub mod tools;

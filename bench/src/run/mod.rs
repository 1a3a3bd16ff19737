//! Measures `contend run` against the shell and other tools, for `bench-run`.

pub mod cases;
pub mod figures;
pub mod forms;
pub mod measure;
pub mod pairs;
pub mod report;
pub mod shrink;
pub mod tools;

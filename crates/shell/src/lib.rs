//! The shell: its grammar, what names mean in it, whether a text may be run again, and running one.
//!
//! - [`parse`]: text → the stages of a pipeline, each with its place in the text.
//! - [`environment`]: what the shell finds under a name, and what else a command's meaning depends on.
//! - [`side_effects`]: whether a text changes anything but its output.
//! - [`runner`]: text, run and timed by a shell.

pub mod environment;
pub mod parse;
pub mod runner;
pub mod side_effects;

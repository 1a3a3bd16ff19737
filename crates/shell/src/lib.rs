//! The shell as contend sees it: its grammar, the meaning of names, side effects, and how to run
//! shell source.
//!
//! - [`parse`]: finds the stages of a pipeline, with their positions in the source.
//! - [`environment`]: asks the shell which program a name refers to, and collects the locale and
//!   other settings that commands depend on.
//! - [`side_effects`]: decides whether running source again could change anything but its output.
//! - [`runner`]: runs source and measures its time.

pub mod environment;
pub mod parse;
pub mod runner;
pub mod side_effects;

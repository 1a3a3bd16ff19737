//! The shell as contend sees it: its grammar, the meaning of names, side effects, and how to run a
//! text.
//!
//! - [`parse`]: finds the stages of a pipeline, with their positions in the text.
//! - [`environment`]: asks the shell which program a name refers to, and collects the locale and
//!   other circumstances that commands depend on.
//! - [`side_effects`]: decides whether running a text again would change anything but its output.
//! - [`runner`]: runs a text and measures its time.

pub mod environment;
pub mod parse;
pub mod runner;
pub mod side_effects;

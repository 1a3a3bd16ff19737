//! A shell pipeline: from its text to a verdict.

pub mod gate;
pub mod parse;
pub mod script;

//! One record, rendered for people or for programs.

pub mod json;
pub mod pipe;
pub mod text;
pub mod units;

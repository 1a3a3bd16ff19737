//! One record, rendered for people or for programs.

pub mod json;
mod layout;
pub mod pipe;
pub mod text;
pub mod units;

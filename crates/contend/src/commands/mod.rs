//! The verbs: one file each.

pub mod demo;
pub mod generate;
pub mod pipe;

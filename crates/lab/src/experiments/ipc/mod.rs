//! What a message costs, by every way there is between two processes or threads.

pub mod channels;
pub mod exchange;
mod payload;

#[cfg(test)]
mod conformance;

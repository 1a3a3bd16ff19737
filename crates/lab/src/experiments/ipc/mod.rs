//! What a message costs, by every way there is between two processes or threads.

mod channels;
#[cfg(test)]
mod conformance;
mod exchange;
pub mod messages;
mod payload;
pub mod rate;
mod settings;

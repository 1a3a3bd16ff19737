//! What a message costs, by every way there is between two processes or threads.

mod channels;
#[cfg(test)]
mod conformance;
mod exchange;
pub mod messages;
pub mod one_byte;
mod payload;
pub mod rate;
mod settings;

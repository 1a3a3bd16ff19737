//! Family `ipc`: the cost of a message between two processes or threads, by mechanism.
//!
//! A mechanism creates a channel with two endpoints, each of which sends and receives whole
//! messages of one length. Main and sub each own one endpoint:
//!
//! ```text
//! main                                     sub
//! ────                                     ───
//! creates the channel, starts sub ───────► binds its endpoint to its thread
//! binds its endpoint to its thread ◄────── SUB_READY
//! MAIN_READY ────────────────────────────►
//! warm-up messages ◄─────────────────────► warm-up messages
//!                                          reads usage counters
//! reads usage counters ◄────────────────── SUB_WARMED_UP
//! ── begin ──────────────────────────────────────────────────────────────
//! measured messages ◄────────────────────► measured messages
//! ── end: last message received (one way) or last answer (round trip) ────
//! reads usage counters                     reads usage counters
//! usage of both sides ◄─────────────────── usage of sub, through the link
//! ```
//!
//! Only the part between the lines is timed. Every message is written and checked in full
//! (`payload`), inside the timed part, so that a lost, repeated, reordered or torn message is an
//! error. When a partner dies, the other one's blocking call is interrupted, and the exchange
//! fails.
//!
//! - `channels`: one file for each mechanism, and the table of them
//! - `exchange`: an exchange of messages, as drawn above
//! - `messages`: the experiments `ipc/one-way` and `ipc/round-trip`
//! - `rate`: messages at a fixed rate, whose latency includes queueing
//! - `one_byte`: the program of the article on mmap and shared memory
//! - `settings`: parameters that these experiments have in common

mod channels;
#[cfg(test)]
mod conformance;
mod exchange;
pub mod messages;
pub mod one_byte;
mod payload;
pub mod rate;
mod settings;

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
//! Only the part between `begin` and `end` is timed. Every message is written and checked in full
//! (`payload`), inside the timed part, so that a lost, repeated, reordered or torn message is an
//! error. When a partner ends early, the other one is killed or its blocking call is interrupted,
//! and the exchange fails.
//!
//! - `channels`: the mechanisms, and the table of them
//! - `exchange`: an exchange of messages, as drawn above
//! - `payload`: the content of messages
//! - `messages`: the experiments `ipc/one-way` and `ipc/round-trip`
//! - `rate`: the experiment `ipc/rate`, with messages at a fixed rate
//! - `one_byte`: the experiment `ipc/one-byte`, after an article on mmap and shared memory
//! - `settings`: parameters that all of these but `ipc/one-byte` have in common
//! - `conformance`: tests of all mechanisms

mod channels;
#[cfg(test)]
mod conformance;
mod exchange;
pub mod messages;
pub mod one_byte;
mod payload;
pub mod rate;
mod settings;

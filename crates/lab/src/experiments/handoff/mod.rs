//! Family `handoff`: two partners, main and sub, alternate turns.
//!
//! A synchronisation primitive works in one direction: one side posts, the other waits. A session
//! uses four of them, which presets and parameters choose separately:
//!
//! ```text
//! main                                      sub
//! ────                                      ───
//! wait ◄────────────── start ────────────── post   sub has started
//! work                                             ┐
//! post ─────────────── to_sub ────────────► wait   │ repeated
//!                                           work   │ for every turn
//! wait ◄────────────── to_main ──────────── post   ┘
//! wait ◄─────────────── end ─────────────── post   sub has finished
//! ```
//!
//! The elapsed time of a session runs from main's first turn after the warm-up until main has
//! received `end`, or until sub has exited if `end` does not wait. For percentiles, main times
//! single turns from its post until its wait returns. If sub ends early, main is woken and reports
//! an error. If main fails, sub is killed or woken, and ends.
//!
//! - `partners`: sessions, as drawn above
//! - `primitives`: the synchronisation primitives and the table of mechanisms
//! - `mechanisms`: the experiment that compares primitives, without work in a turn
//! - `preset`, `presets`: the programs of the test report on inter-process synchronisation
//! - `settings`: the parameters that users can set
//! - `turn_taking`: sessions with work, and the model that predicts their time
//! - `load_meter`: the largest CPU load of both partners during a session

mod load_meter;
pub mod mechanisms;
pub mod partners;
mod preset;
pub mod presets;
mod primitives;
mod settings;
mod turn_taking;

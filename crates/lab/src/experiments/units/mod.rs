//! Family `units`: creating, parking, exhausting and starting units of concurrency.
//!
//! ```text
//!  experiment      measured                                   not measured
//!  ──────────────  ─────────────────────────────────────────  ────────────────────────────────
//!  units/create    time to create n short-lived units, and    the parent's memory, stacks, the
//!                  to wait for all of them                    program, workers of a pool
//!  units/startup   time to start a command and reap it, or    looking up the command and its
//!                  of an iteration of a loop in bash          version
//!  units/memory    memory that n waiting units add            creating and releasing them
//!  units/callback  the same; also time to create n units,     room for the list of addresses
//!                  and to release and end them
//!  units/limit     number of units at the limit or the cap    (nothing is timed)
//! ```
//!
//! Every case runs in a process of its own, which creates the units or, in `units/limit`, forks
//! their creator. Modules without an experiment:
//!
//! - `parent`: the memory of the creator, which determines the cost of a fork
//! - `parked`: waiting units of every kind
//! - `pool`: workers that exist before the measurement
//! - `null_write`: the work of a created unit that executes no program
//! - `tiny`: the smallest static program

pub mod callback;
pub mod create;
pub mod limit;
pub mod memory;
mod null_write;
pub mod parent;
pub mod parked;
mod pool;
pub mod startup;
mod tiny;

//! What a process or a thread for a connection takes.

use crate::support::limits::{self, Kind, OfUnit};

/// Address space of a thread's stack, in bytes: what threads of Rust have.
pub const STACK_BYTES: usize = 2 << 20;

/// What one of them takes.
pub fn of_unit(kind: Kind) -> OfUnit {
    OfUnit { stack: STACK_BYTES as u64, ..limits::usual_unit(kind) }
}

//! Resources of a process or thread that serves one connection.

use crate::support::limits::{self, Kind, UnitResources};

/// Address space of a thread's stack in bytes: the default of Rust's threads.
pub const STACK_BYTES: usize = 2 << 20;

/// Returns the resources that a process or thread needs for a connection.
pub fn of_unit(kind: Kind) -> UnitResources {
    UnitResources { stack: STACK_BYTES as u64, ..limits::typical_resources(kind) }
}

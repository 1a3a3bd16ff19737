//! Resources of a process or a thread for a connection.

use crate::support::limits::{self, UnitKind, UnitResources};

/// Address space of a thread's stack: the default of Rust's threads.
pub const STACK_BYTES: usize = 2 << 20;

/// Returns what a process or a thread needs.
pub fn of_unit(kind: UnitKind) -> UnitResources {
    UnitResources { stack: STACK_BYTES as u64, ..limits::default_resources(kind) }
}

//! Resources of a process or thread that serves one connection.

use crate::support::limits::{self, UnitKind, UnitResources};

/// Address space of a thread's stack in bytes: the default of Rust's threads.
pub const STACK_BYTES: usize = 2 << 20;

/// Returns the resources that a unit of the given kind typically needs to serve a connection.
pub fn of_unit(kind: UnitKind) -> UnitResources {
    UnitResources { stack: STACK_BYTES as u64, ..limits::typical_resources(kind) }
}

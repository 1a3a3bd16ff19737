//! Parked units of every kind, which wait until they are released.
//!
//! Each kind of unit is a child module that implements [`ParkedUnits`]. [`empty_set`] creates a set
//! of units of a given kind, so this module and its children import each other.
//!
//! ```text
//!            add(n)             await_all            release
//!  (empty) ─────────► created ───────────► waiting ─────────► woken, ended, reaped: (empty)
//! ```

mod callback;
mod process;
mod thread;

use std::fmt::Debug;
use std::io;

use contend_sys::Pid;

use crate::engine::experiment::SubjectError;
use crate::support::limits::UnitKind;
pub use callback::Callbacks;
use process::ParkedProcesses;
use thread::ParkedThreads;

/// A set of parked units of one kind.
pub trait ParkedUnits: Debug {
    /// Creates `more` units.
    ///
    /// # Errors
    /// Returns an error if a unit cannot be created. Units created before it remain.
    fn add(&mut self, more: u64) -> io::Result<()>;

    /// Returns the number of units created since the last release.
    fn count(&self) -> u64;

    /// Blocks until all units wait.
    ///
    /// # Errors
    /// Returns an error if a unit is known to have ended instead, or does not wait in time.
    fn await_all(&mut self) -> Result<(), SubjectError>;

    /// Wakes all units and blocks until they have ended. The set is empty then and can be filled
    /// again.
    ///
    /// # Errors
    /// Returns an error if a unit did not wait or did not end normally.
    fn release(&mut self) -> Result<(), SubjectError>;

    /// Allocates the creator's bookkeeping for the given number of further units. The default does
    /// nothing.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    fn reserve(&mut self, _: u64) -> Result<(), SubjectError> {
        Ok(())
    }

    /// Frees the creator's bookkeeping for released units.
    ///
    /// # Errors
    /// Returns an error if the memory cannot be freed.
    fn forget(&mut self) -> Result<(), SubjectError>;

    /// Returns the process ids of the units, or an empty slice if they are not processes.
    fn pids(&self) -> &[Pid] {
        &[]
    }

    /// Returns whether every unit is a task of the kernel.
    fn are_tasks(&self) -> bool {
        true
    }

    /// Returns the size of a unit's stack in its creator's address space, in bytes, or 0 if it has
    /// none there.
    fn stack_bytes(&self) -> u64 {
        0
    }
}

/// Creates an empty set of units that are tasks of the kernel.
///
/// # Errors
/// Returns an error if file descriptors or memory are exhausted.
pub fn empty_set(kind: UnitKind) -> Result<Box<dyn ParkedUnits>, SubjectError> {
    Ok(match kind {
        UnitKind::Process => Box::new(ParkedProcesses::new()?),
        UnitKind::Thread => Box::new(ParkedThreads::new()?),
    })
}

/// Returns an error unless `ended`, the number of units that have ended normally, equals `created`.
fn check_all_ended(created: u64, ended: u64) -> Result<(), SubjectError> {
    if created == ended {
        return Ok(());
    }
    let message = format!("only {ended} of {created} units waited and ended normally");
    Err(SubjectError::Unexpected(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_wait_and_can_be_released_repeatedly() {
        let all = [
            empty_set(UnitKind::Process),
            empty_set(UnitKind::Thread),
            Callbacks::new().map(|units| Box::new(units) as Box<dyn ParkedUnits>),
        ];
        for parked in all {
            let mut parked = parked.expect("there is room");
            for n in [3, 5] {
                parked.reserve(n).expect("memory");
                parked.add(n - 1).expect("units");
                parked.add(1).expect("a unit");
                parked.await_all().expect("they wait");
                assert_eq!(parked.count(), n);
                let pids = parked.pids().to_vec();
                parked.release().expect("they end");
                assert_eq!(parked.count(), 0);
                assert!(pids.iter().all(|&pid| contend_sys::child::reap(pid).is_err()), "reaped");
                parked.forget().expect("it is still there");
            }
        }
    }
}

//! Units that exist and wait, until they are released.
//!
//! [`ParkedUnits`] and the constructor by kind are one facade: each kind of unit is a child module that
//! implements the trait, and [`of_kind`] names the children, so they import each other.

mod callback;
mod process;
mod thread;

use std::fmt::Debug;
use std::io;

use contend_sys::Pid;

use crate::engine::experiment::SubjectError;
use crate::support::limits::Kind;
pub use callback::Callbacks;
use process::ParkedProcesses;
use thread::ParkedThreads;

/// Units of one kind that wait.
pub trait ParkedUnits: Debug {
    /// Creates so many more.
    ///
    /// # Errors
    /// When one is refused. Those before it are there.
    fn add(&mut self, more: u64) -> io::Result<()>;

    /// How many have been created since they were released last.
    fn count(&self) -> u64;

    /// Waits until all of them have told that they are there.
    ///
    /// # Errors
    /// When one has ended instead.
    fn await_all(&mut self) -> Result<(), SubjectError>;

    /// Lets all of them end, and waits until they have. There may be others later.
    ///
    /// # Errors
    /// When one did not wait, or has ended otherwise than it should.
    fn release(&mut self) -> Result<(), SubjectError>;

    /// Makes room for what the creator itself has to note of so many.
    ///
    /// # Errors
    /// When there is no memory.
    fn reserve(&mut self, _: u64) -> Result<(), SubjectError> {
        Ok(())
    }

    /// Frees what the creator itself noted of those that have been released.
    ///
    /// # Errors
    /// When it cannot.
    fn forget(&mut self) -> Result<(), SubjectError>;

    /// Those that are processes of their own.
    fn pids(&self) -> &[Pid] {
        &[]
    }

    /// Whether the kernel knows each of them as a task.
    fn are_tasks(&self) -> bool {
        true
    }

    /// Address space of a unit's stack; 0 if it has none of its creator's.
    fn stack_bytes(&self) -> u64 {
        0
    }
}

/// None yet of those that the kernel knows.
///
/// # Errors
/// When there are no descriptors or no memory.
pub fn of_kind(kind: Kind) -> Result<Box<dyn ParkedUnits>, SubjectError> {
    Ok(match kind {
        Kind::Process => Box::new(ParkedProcesses::new()?),
        Kind::Thread => Box::new(ParkedThreads::new()?),
    })
}

/// Compares how many were there with how many have ended as they should.
fn check_all_ended(created: u64, ended: u64) -> Result<(), SubjectError> {
    if created == ended {
        return Ok(());
    }
    let message = format!("of {created} units, {ended} have waited and ended as they should");
    Err(SubjectError::Wrong(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_wait_and_can_be_released_repeatedly() {
        let all = [
            of_kind(Kind::Process),
            of_kind(Kind::Thread),
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

//! Units that exist and wait, until they are released.
//!
//! [`Park`] and the constructor by kind are one facade: each kind of unit is a child module that
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
use process::Processes;
use thread::Threads;

/// Units of one kind that wait.
pub trait Park: Debug {
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
pub fn of_kind(kind: Kind) -> Result<Box<dyn Park>, SubjectError> {
    Ok(match kind {
        Kind::Process => Box::new(Processes::new()?),
        Kind::Thread => Box::new(Threads::new()?),
    })
}

/// Compares how many were there with how many have ended as they should.
fn all_have_ended(created: u64, ended: u64) -> Result<(), SubjectError> {
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
    fn they_wait_and_are_released_again_and_again() {
        let parks = [
            of_kind(Kind::Process),
            of_kind(Kind::Thread),
            Callbacks::new().map(|park| Box::new(park) as Box<dyn Park>),
        ];
        for park in parks {
            let mut park = park.expect("there is room");
            for n in [3, 5] {
                park.reserve(n).expect("memory");
                park.add(n - 1).expect("units");
                park.add(1).expect("a unit");
                park.await_all().expect("they wait");
                assert_eq!(park.count(), n);
                let pids = park.pids().to_vec();
                park.release().expect("they end");
                assert_eq!(park.count(), 0);
                assert!(pids.iter().all(|&pid| contend_sys::child::reap(pid).is_err()), "reaped");
                park.forget().expect("it is still there");
            }
        }
    }
}

//! SessionPrimitives to tell a partner that it is its turn: one file each, and the one table.

mod condition;
mod event;
mod eventfd;
mod futex;
mod none;
mod pipe;
mod polling;
mod post_counter;
mod semaphore;
mod signal;
mod sleep;
mod spin;
mod spin_futex;
mod sysv;
mod timer;
mod yielding;

use std::io;
use std::time::Duration;

use crate::engine::experiment::SubjectError;

/// What partners tell each other by, in one direction: one posts, the other one waits. It is made
/// before the partners part, and both have it.
pub trait SyncPrimitive: Sync {
    /// Says that the thread that calls is the one that will wait, before anybody posts.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn register_waiter(&self) -> io::Result<()> {
        Ok(())
    }

    /// Tells the other one.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn post(&self) -> io::Result<()>;

    /// Tells it for the last time, as somebody else than the poster, who has gone: never blocks.
    fn release(&self) {
        let _ = self.post(); // that it cannot be told shows where it is waited for
    }

    /// Waits until it is told. Whatever is posted is waited for once.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn wait(&self) -> io::Result<WaitOutcome>;
}

/// How waiting went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitOutcome {
    /// How often it was looked in vain, by those ways that look again and again.
    pub failed_polls: u64,
}

/// What some ways need to be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SleepTiming {
    /// For how long one that polls sleeps, before it looks again.
    pub period: Duration,
    /// Sleeps and timers end at a multiple of this, as on systems with such a clock; not, if zero.
    pub tick: Duration,
}

/// A row of the table.
#[derive(Debug)]
pub struct Mechanism {
    /// Its name.
    pub name: &'static str,
    /// What it does, in some words.
    pub summary: &'static str,
    /// Whether it waits until it is told.
    pub waits: bool,
    /// Whether it sleeps for a period before it goes on or looks again, so that ticks matter.
    pub sleeps: bool,
    /// Whether what is posted several times can be waited for as often.
    pub counts: bool,
    /// Makes one.
    pub make: fn(SleepTiming) -> Result<Box<dyn SyncPrimitive>, SubjectError>,
}

/// All of them, in the order in which they are shown.
pub const TABLE: &[Mechanism] = &[
    semaphore::UNNAMED,
    semaphore::NAMED,
    sysv::MECHANISM,
    event::AUTO_RESET,
    event::MANUAL_RESET,
    eventfd::MECHANISM,
    condition::MECHANISM,
    pipe::MECHANISM,
    signal::MECHANISM,
    futex::MECHANISM,
    spin_futex::MECHANISM,
    spin::MECHANISM,
    yielding::MECHANISM,
    sleep::MECHANISM,
    timer::MECHANISM,
    none::MECHANISM,
    none::PAUSE,
];

/// Those that others are named by.
pub const SEMAPHORE: &Mechanism = &semaphore::UNNAMED;
pub const EVENT: &Mechanism = &event::AUTO_RESET;
pub const SLEEP: &Mechanism = &sleep::MECHANISM;
pub const TIMER: &Mechanism = &timer::MECHANISM;
pub const NONE: &Mechanism = &none::MECHANISM;
pub const PAUSE: &Mechanism = &none::PAUSE;

/// The names of all.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|mechanism| mechanism.name).collect()
}

/// The names of those by which partners wait for each other.
pub fn waiting() -> Vec<&'static str> {
    let waiting = TABLE.iter().filter(|mechanism| mechanism.waits);
    waiting.map(|mechanism| mechanism.name).collect()
}

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    TABLE.iter().find(|mechanism| mechanism.name == name)
}

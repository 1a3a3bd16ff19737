//! Synchronisation primitives: one file each, and the table of them.

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

/// A synchronisation primitive in one direction: one side posts, the other waits. It is created
/// before the partners separate, so both have it.
pub trait SyncPrimitive: Sync {
    /// Registers the calling thread as the waiter, before any post.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn register_waiter(&self) -> io::Result<()> {
        Ok(())
    }

    /// Wakes the waiter, or makes its next wait return.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn post(&self) -> io::Result<()>;

    /// Wakes the waiter on behalf of a poster that has exited. Never blocks.
    fn release(&self) {
        let _ = self.post(); // a waiter that stays blocked reports an error itself
    }

    /// Blocks until there is a post, and consumes it.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn wait(&self) -> io::Result<WaitOutcome>;
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitOutcome {
    /// Polls before the post arrived; 0 for primitives that do not poll.
    pub failed_polls: u64,
}

/// Sleep times of the primitives that poll.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SleepTiming {
    /// Time between two polls.
    pub period: Duration,
    /// Sleeps and timers end at a multiple of this, as on a system with a periodic clock tick; zero
    /// for no ticks.
    pub tick: Duration,
}

/// A row of the table: a mechanism by which partners notify each other.
#[derive(Debug)]
pub struct Mechanism {
    /// The value of the `mechanism` parameter and of the parameters for one direction.
    pub name: &'static str,
    /// One line for lists and reports.
    pub summary: &'static str,
    /// Whether a wait blocks until there is a post.
    pub waits: bool,
    /// Whether a wait sleeps for a period, so that clock ticks matter.
    pub sleeps: bool,
    /// Whether n posts allow n waits.
    pub counts: bool,
    /// Creates a primitive.
    pub make: fn(SleepTiming) -> Result<Box<dyn SyncPrimitive>, SubjectError>,
}

/// All mechanisms, in display order.
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

/// Mechanisms that presets name.
pub const SEMAPHORE: &Mechanism = &semaphore::UNNAMED;
pub const EVENT: &Mechanism = &event::AUTO_RESET;
pub const SLEEP: &Mechanism = &sleep::MECHANISM;
pub const TIMER: &Mechanism = &timer::MECHANISM;
pub const NONE: &Mechanism = &none::MECHANISM;
pub const PAUSE: &Mechanism = &none::PAUSE;

/// Returns the names of all mechanisms.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|mechanism| mechanism.name).collect()
}

/// Returns the names of the mechanisms that wait for a post.
pub fn waiting_names() -> Vec<&'static str> {
    let waiting = TABLE.iter().filter(|mechanism| mechanism.waits);
    waiting.map(|mechanism| mechanism.name).collect()
}

/// Returns the names of the mechanisms that count posts.
pub fn counting_names() -> Vec<&'static str> {
    let counting = TABLE.iter().filter(|mechanism| mechanism.counts);
    counting.map(|mechanism| mechanism.name).collect()
}

/// Returns the mechanism with this name.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    TABLE.iter().find(|mechanism| mechanism.name == name)
}

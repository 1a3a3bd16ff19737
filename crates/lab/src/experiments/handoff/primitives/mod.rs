//! Synchronisation primitives. Each submodule implements one or two, except for the helpers
//! `polling` and `post_counter`. `TABLE` lists the mechanisms that create primitives.

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

/// A synchronisation primitive in one direction: one side posts, the other waits. The primitive is
/// created before the partners start, so they share it.
pub trait SyncPrimitive: Sync {
    /// Registers the calling thread as the waiter. Must be called before the first post, because a
    /// post may block until then. The default does nothing.
    ///
    /// # Errors
    /// Returns the error of the failed system call.
    fn register_waiter(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes the current or the next wait of the waiter return. May block, for example while a pipe
    /// is full.
    ///
    /// # Errors
    /// Returns the error of the failed system call.
    fn post(&self) -> io::Result<()>;

    /// Wakes the waiter on behalf of a poster that has exited. Never blocks.
    fn release(&self) {
        let _ = self.post(); // nothing else can wake the waiter if this fails
    }

    /// Blocks until there is a post, and consumes it. Primitives of mechanisms whose
    /// [`Mechanism::waits`] is false return without a post.
    ///
    /// # Errors
    /// Returns the error of the failed system call.
    fn wait(&self) -> io::Result<WaitOutcome>;
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitOutcome {
    /// Number of failed polls before the post arrived; 0 for primitives that do not poll, and 1 for
    /// `pause`, which always sleeps once.
    pub failed_polls: u64,
}

/// Sleep times of primitives that sleep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SleepTiming {
    /// Length of a sleep, which is the time between two polls.
    pub period: Duration,
    /// Simulated clock tick: sleeps and timers end at a multiple of it, as on a system with a
    /// periodic tick. Zero disables the simulation.
    pub tick: Duration,
}

/// A mechanism by which partners notify each other: a row of `TABLE`.
#[derive(Debug)]
pub struct Mechanism {
    /// Name, as a value of the parameters `mechanism`, `start`, `to_sub`, `to_main` and `end`.
    pub name: &'static str,
    /// One-line description for lists and reports.
    pub summary: &'static str,
    /// Whether a wait blocks until there is a post.
    pub waits: bool,
    /// Whether a wait sleeps for a period, in which case clock ticks matter.
    pub sleeps: bool,
    /// Whether posts are counted, so that n posts end n waits; also true if waits do not block.
    pub counts: bool,
    /// Creates a primitive with the given sleep times.
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
    none::SLEEP_ONLY,
];

// Mechanisms that presets refer to by name.
pub const SEMAPHORE: &Mechanism = &semaphore::UNNAMED;
pub const EVENT: &Mechanism = &event::AUTO_RESET;
pub const SLEEP: &Mechanism = &sleep::MECHANISM;
pub const TIMER: &Mechanism = &timer::MECHANISM;
pub const NONE: &Mechanism = &none::MECHANISM;
pub const SLEEP_ONLY: &Mechanism = &none::SLEEP_ONLY;

/// Returns the names of all mechanisms, in display order.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|mechanism| mechanism.name).collect()
}

/// Returns the names of the mechanisms that wait for a post, in display order.
pub fn waiting_names() -> Vec<&'static str> {
    let waiting = TABLE.iter().filter(|mechanism| mechanism.waits);
    waiting.map(|mechanism| mechanism.name).collect()
}

/// Returns the names of the mechanisms that count posts or do not wait, in display order.
pub fn counting_names() -> Vec<&'static str> {
    let counting = TABLE.iter().filter(|mechanism| mechanism.counts);
    counting.map(|mechanism| mechanism.name).collect()
}

/// Returns the mechanism with the given name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    TABLE.iter().find(|mechanism| mechanism.name == name)
}

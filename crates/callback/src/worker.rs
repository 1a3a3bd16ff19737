//! The Worker: the thread that drives a core, and sleeps when the core has no work.
//!
//! ```text
//!   ┌▶ Work     deliver queued envelopes, at most BATCH
//!   │  Accept   take envelopes from the inbox, at most BATCH
//!   │  Fire     run units whose timers are due, at most BATCH
//!   │  Exchange send pending envelopes, fetch events of descriptors
//!   └─ Rest     report units; if there is no pending work: spin, publish counts, sleep
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::Core;
use crate::remote::WorkerRemote;
use crate::shared::Shared;
use crate::worker_thread;

/// Maximum number of envelopes or timers that a step handles in one turn.
const BATCH: usize = 256;
/// Number of inbox checks between two readings of the clock while spinning.
const SPINS_PER_CLOCK_READ: usize = 64;
/// Duration of a sleep without work after which a Worker frees spare memory.
const TRIM_DELAY: Duration = Duration::from_millis(10);

pub(crate) struct Worker {
    core: Core,
    shared: Arc<Shared>,
    /// Number of units last reported to [`Alive`](crate::remote::Alive).
    reported_units: u64,
    /// The step that runs next.
    step: Step,
    /// Whether this turn has found work.
    busy: bool,
    /// Whether the last turn polled no descriptors because the sleep would do so.
    left_events_to_sleep: bool,
    has_trimmed: bool,
    /// Whether memory was insufficient to reserve all slots for units from other threads.
    lacks_memory: bool,
}

/// The steps of a turn, in order.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Deliver queued envelopes.
    Work,
    /// Take envelopes from the inbox.
    Accept,
    /// Run units whose timers are due.
    Fire,
    /// Send pending envelopes to other Workers, and fetch events of descriptors.
    Exchange,
    /// Report the number of units and, if there is no pending work, spin, then sleep.
    Rest,
}

impl Step {
    fn next(self) -> Self {
        match self {
            Self::Work => Self::Accept,
            Self::Accept => Self::Fire,
            Self::Fire => Self::Exchange,
            Self::Exchange => Self::Rest,
            Self::Rest => Self::Work,
        }
    }
}

impl Worker {
    /// Creates a Worker, and reserves slots for units from other threads before the Worker's thread
    /// starts, so that a new runtime does not report full inboxes.
    pub fn new(core: Core, shared: Arc<Shared>) -> Self {
        let step = Step::Work;
        let mut worker = Self {
            core,
            shared,
            reported_units: 0,
            step,
            busy: false,
            left_events_to_sleep: false,
            has_trimmed: false,
            lacks_memory: false,
        };
        worker.reserve_slots();
        worker
    }

    fn remote(&self) -> &WorkerRemote {
        &self.shared.remotes[usize::from(self.core.worker_number.index())]
    }

    /// Runs until the runtime is shut down, then drops all units and closes the inbox.
    pub fn run(mut self) {
        worker_thread::mark_worker_thread();
        while !self.shared.is_down() {
            // Callbacks and destructors may panic. The thread then continues with the next step.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.turns())) {
                self.busy = true;
                self.core.after_panic(panic);
            }
        }
        let alive = &self.shared.alive;
        alive.add(-i64::try_from(self.reported_units).unwrap_or(i64::MAX));
        let (shared, worker) = (Arc::clone(&self.shared), self.core.worker_number.index());
        drop(self.core);
        shared.remotes[usize::from(worker)].close();
    }

    fn turns(&mut self) {
        while !self.shared.is_down() {
            let step = self.step;
            self.step = step.next();
            match step {
                Step::Work => self.busy |= self.core.work(BATCH),
                Step::Accept => self.busy |= self.accept(),
                Step::Fire => {
                    self.core.start_delays();
                    self.busy |= self.core.fire(BATCH);
                }
                Step::Exchange => {
                    // If there was no other work, the sleep fetches events. If the last turn did
                    // not sleep after all, fetch them here.
                    let poll_kernel = self.busy || self.left_events_to_sleep;
                    self.left_events_to_sleep = !poll_kernel;
                    self.busy |= self.exchange(poll_kernel);
                }
                Step::Rest => {
                    self.report_units();
                    let busy = std::mem::take(&mut self.busy);
                    self.has_trimmed &= !busy;
                    // Another check of descriptors often avoids a sleep, so do one if the turn
                    // found work.
                    if !busy || self.core.has_no_pending_work() {
                        self.idle();
                    }
                }
            }
        }
    }

    /// Sends pending envelopes, and queues units whose descriptors are ready. Uses the events
    /// fetched by the last sleep; if there are none, asks the kernel if `poll_kernel` is set or an
    /// envelope was sent. Returns whether there was any work.
    fn exchange(&mut self, poll_kernel: bool) -> bool {
        let sent = self.core.send_outgoing();
        self.core.fetch_events(poll_kernel || sent) || sent
    }

    /// Accepts at most [`BATCH`] envelopes from the inbox, then replaces filled reserved slots and
    /// wakes threads waiting for room. Returns whether there were any envelopes.
    fn accept(&mut self) -> bool {
        let Self { core, shared, .. } = self;
        let remote = &shared.remotes[usize::from(core.worker_number.index())];
        let mut accepted = 0;
        while accepted < BATCH
            && let Some(envelope) = remote.inbox.pop()
        {
            core.accept(envelope);
            accepted += 1;
        }
        if core.filled_reserved > 0 {
            self.reserve_slots();
        } else if accepted > 0 {
            remote.notify_waiting();
        }
        accepted > 0
    }

    /// Reserves slots for units from other threads, up to the capacity or as far as memory
    /// suffices.
    fn reserve_slots(&mut self) {
        // The spawning threads have already counted these units in `alive`. This happens here
        // because a panic may have ended the turn in which they arrived.
        self.reported_units += std::mem::take(&mut self.core.filled_reserved);
        let Self { core, shared, .. } = self;
        let remote = &shared.remotes[usize::from(core.worker_number.index())];
        self.lacks_memory = !remote.reserve_slots(shared.capacity, || core.reserve());
    }

    /// Reports the change in the number of units to `alive`. If units have ended, reserves slots
    /// for which there was no memory.
    fn report_units(&mut self) {
        let units = self.core.units();
        if units != self.reported_units {
            let more = i128::from(units) - i128::from(self.reported_units);
            if self.lacks_memory && units < self.reported_units {
                self.reserve_slots();
            }
            self.reported_units = units;
            self.shared.alive.add(i64::try_from(more).unwrap_or_default());
        }
    }

    /// Spins, then publishes counts and sleeps, until there may be work. Frees spare memory after a
    /// long sleep.
    fn idle(&mut self) {
        // Callbacks that ran because of a timer or an event may have requested delays since the
        // last reading of the clock; `next_due` knows only started ones.
        self.core.start_delays();
        if self.spin() {
            return;
        }
        self.core.publish(&self.remote().published);
        let next = self.core.next_due().map(Duration::from_nanos);
        let max_sleep = match next {
            Some(Duration::ZERO) => return,
            Some(next) if self.has_trimmed || next <= TRIM_DELAY => Some(next),
            None if self.has_trimmed => None,
            _ => Some(TRIM_DELAY),
        };
        let begun = Instant::now();
        let blocked = self.core.outgoing.is_blocked();
        // Other Workers do not announce room for pending envelopes, so poll.
        let max_sleep = if blocked { Some(Duration::from_micros(50)) } else { max_sleep };
        self.remote().wait(max_sleep, || self.shared.is_down());
        if !self.has_trimmed
            && !blocked
            && begun.elapsed() >= TRIM_DELAY
            && self.remote().inbox.is_empty()
        {
            self.core.trim();
            self.core.publish(&self.remote().published);
            self.has_trimmed = true;
        }
    }

    /// Spins for at most the configured time, if any, or until the next timer is due. Returns
    /// whether it has found work.
    fn spin(&mut self) -> bool {
        let Some(max_spin) = self.shared.spin else { return false };
        if self.has_work() {
            return true; // without reading the clock
        }
        let begun = Instant::now();
        let max_spin = match self.core.next_due() {
            Some(next) => max_spin.min(Duration::from_nanos(next)),
            None => max_spin,
        };
        loop {
            if self.has_work() || self.exchange(true) {
                return true;
            }
            if begun.elapsed() >= max_spin {
                return false;
            }
        }
    }

    fn has_work(&self) -> bool {
        let remote = self.remote();
        for _ in 0..SPINS_PER_CLOCK_READ {
            if !remote.inbox.is_empty() || self.shared.is_down() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }
}

//! The thread that drives a core: what comes from others, what is due, and sleeping in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::Core;
use crate::remote::WorkerRemote;
use crate::shared::Shared;
use crate::worker_thread;

/// Things done one after the other before it is looked what else there is.
const BATCH: usize = 256;
/// Looks at the inbox between two at the clock, when there is nothing to do.
const SPINS_PER_CLOCK_READ: usize = 64;
/// Having had nothing to do for so long, a Worker gives back memory it may need again.
const TRIM_DELAY: Duration = Duration::from_millis(10);

pub(crate) struct Worker {
    core: Core,
    shared: Arc<Shared>,
    /// Units that have been told to [`Alive`].
    reported_units: u64,
    /// What is done next.
    step: Step,
    /// There was something to do in this turn.
    busy: bool,
    /// Descriptors were left to be looked at by sleeping.
    overlooked: bool,
    rested: bool,
    /// There was no memory for all the places that are kept for units from elsewhere.
    short: bool,
}

/// What a turn consists of, in this order.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// To do what callbacks have asked for.
    Work,
    /// To take in what others have sent.
    Accept,
    /// To run those whose time has come.
    Fire,
    /// To see what other Workers and descriptors are ready for.
    Others,
    /// To tell how it stands and, if there was nothing to do, to sleep.
    Rest,
}

impl Step {
    fn next(self) -> Self {
        match self {
            Self::Work => Self::Accept,
            Self::Accept => Self::Fire,
            Self::Fire => Self::Others,
            Self::Others => Self::Rest,
            Self::Rest => Self::Work,
        }
    }
}

impl Worker {
    /// Reserves the places for units from elsewhere before the thread starts, so that a runtime that has just
    /// started does not report full inboxes.
    pub fn new(core: Core, shared: Arc<Shared>) -> Self {
        let step = Step::Work;
        let mut worker = Self {
            core,
            shared,
            reported_units: 0,
            step,
            busy: false,
            overlooked: false,
            rested: false,
            short: false,
        };
        worker.fill();
        worker
    }

    fn remote(&self) -> &WorkerRemote {
        &self.shared.remotes[usize::from(self.core.home.worker())]
    }

    /// Works until the runtime is shut down, and drops all units.
    pub fn run(mut self) {
        worker_thread::mark();
        while !self.shared.is_down() {
            // What a callback does, and what dropping its values does, may panic. This thread goes
            // on, with the step behind the one that was left.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.turns())) {
                self.busy = true;
                self.core.after_panic(panic);
            }
        }
        let alive = &self.shared.alive;
        alive.add(-i64::try_from(self.reported_units).unwrap_or(i64::MAX));
        let (shared, worker) = (Arc::clone(&self.shared), self.core.home.worker());
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
                    self.core.stamp();
                    self.busy |= self.core.fire(BATCH);
                }
                Step::Others => {
                    // If there was nothing else to do, sleeping will look for events. If it then did not
                    // sleep after all, it is looked here.
                    let look = self.busy || self.overlooked;
                    self.overlooked = !look;
                    self.busy |= self.look_at_others(look);
                }
                Step::Rest => {
                    self.tell();
                    let busy = std::mem::take(&mut self.busy);
                    self.rested &= !busy;
                    // One look more at descriptors often saves from sleeping; an inbox that is not empty does
                    // so by itself.
                    if !busy || self.core.has_no_pending_work() {
                        self.idle();
                    }
                }
            }
        }
    }

    /// Sends on what waits for room, and sees what descriptors are ready: if it is to `look`, or as sleeping has
    /// found. Returns whether there was something.
    fn look_at_others(&mut self, look: bool) -> bool {
        let sent = self.core.send_outgoing();
        self.core.fetch_events(look || sent) || sent
    }

    /// Does what others have left. Returns whether there was something.
    fn accept(&mut self) -> bool {
        let Self { core, shared, .. } = self;
        let remote = &shared.remotes[usize::from(core.home.worker())];
        let mut accepted = 0;
        while accepted < BATCH
            && let Some(envelope) = remote.inbox.pop()
        {
            core.accept(envelope);
            accepted += 1;
        }
        if core.settled > 0 {
            self.fill();
        } else if accepted > 0 {
            remote.tell();
        }
        accepted > 0
    }

    /// Keeps places for units from elsewhere.
    fn fill(&mut self) {
        // Whoever sent those that have come has told of them. Here, as a panic may have ended the
        // turn in which they came.
        self.reported_units += std::mem::take(&mut self.core.settled);
        let Self { core, shared, .. } = self;
        let remote = &shared.remotes[usize::from(core.home.worker())];
        self.short = !remote.fill(shared.capacity, || core.reserve());
    }

    /// Publishes what others may want to know.
    fn tell(&mut self) {
        let units = self.core.units();
        if units != self.reported_units {
            let more = i128::from(units) - i128::from(self.reported_units);
            if self.short && units < self.reported_units {
                self.fill();
            }
            self.reported_units = units;
            self.shared.alive.add(i64::try_from(more).unwrap_or_default());
        }
    }

    /// Waits until there is something to do.
    fn idle(&mut self) {
        if self.spin() {
            return;
        }
        self.core.publish(&self.remote().published);
        let next = self.core.next_due().map(Duration::from_nanos);
        let most = match next {
            Some(Duration::ZERO) => return,
            Some(next) if self.rested || next <= TRIM_DELAY => Some(next),
            None if self.rested => None,
            _ => Some(TRIM_DELAY),
        };
        let begun = Instant::now();
        let blocked = self.core.outgoing.is_blocked();
        // Others have no way to say that there is room for what waits to be sent.
        let most = if blocked { Some(Duration::from_micros(50)) } else { most };
        self.remote().wait(most, || self.shared.is_down());
        if !self.rested
            && !blocked
            && begun.elapsed() >= TRIM_DELAY
            && self.remote().inbox.is_empty()
        {
            self.core.trim();
            self.core.publish(&self.remote().published);
            self.rested = true;
        }
    }

    /// Looks for something to do for a while without sleeping.
    fn spin(&mut self) -> bool {
        let Some(most) = self.shared.spin else { return false };
        if self.look_around() {
            return true; // without a look at the clock
        }
        let begun = Instant::now();
        let most = match self.core.next_due() {
            Some(next) => most.min(Duration::from_nanos(next)),
            None => most,
        };
        loop {
            if self.look_around() || self.look_at_others(true) {
                return true;
            }
            if begun.elapsed() >= most {
                return false;
            }
        }
    }

    fn look_around(&self) -> bool {
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

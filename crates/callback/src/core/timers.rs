//! Timers of units, from the request until they fire.
//!
//! The slab records when each page next has due units. This module reads the clock once for several
//! requests, hands out due units in order, and keeps timers that are further ahead than the slab's
//! ticks reach.
//!
//! ```text
//!   request ──▶ requests
//!                  │ start_delays
//!                  ├──▶ slab (due tick) ──collect_due──▶ due ──pop, claim──▶ the unit runs
//!                  │                                      │
//!                  └──▶ far, if beyond MAX_TICKS_AHEAD ◀──┘ not yet due: waits on
//! ```

use std::collections::HashMap;

use crate::clock::{Clock, MAX_TICKS_AHEAD, short, tick_after, tick_at, until};
use crate::key::Key;
use crate::slab::{Due, Kind, Place, Slab};

/// Maximum number of requests that share one reading of the clock.
const MAX_PENDING_REQUESTS: usize = 64;
/// Number of due units after which a collection visits no further page. As it takes all due units
/// of a page, it may collect more.
const MAX_DUE_BATCH: usize = 1 << 18;

/// A request for a delay that has not started yet.
#[derive(Debug, Clone, Copy)]
struct Request {
    key: Key,
    nanoseconds: u64,
    /// For a unit that also waits for messages, the number of this request, which its slot holds,
    /// too. A message clears it there, which revokes the request. 0 for other units.
    number: u32,
}

pub(super) struct Timers {
    /// Requests whose delays start at the next reading of the clock.
    requests: Vec<Request>,
    /// The last tick that has been searched for due units.
    scanned_tick: u64,
    /// Due units in firing order, and the number of those already handed out.
    due: (Vec<Due>, usize),
    /// Due times of units waiting beyond the ticks' range, in nanoseconds of the runtime's clock.
    far: HashMap<Key, u64>,
}

impl Timers {
    pub fn new(clock: &Clock) -> Self {
        Self {
            requests: Vec::with_capacity(MAX_PENDING_REQUESTS),
            scanned_tick: tick_at(clock.now()),
            due: (Vec::new(), 0),
            far: HashMap::new(),
        }
    }

    /// Returns the last tick that has been searched for due units, truncated to 32 bits.
    pub fn scanned_tick(&self) -> u32 {
        short(self.scanned_tick)
    }

    /// Requests a delay for a unit. It starts at the next [`start_delays`](Self::start_delays).
    /// Returns whether the caller has to call that now, because the maximum number of requests is
    /// pending.
    #[inline]
    #[must_use]
    pub fn request(&mut self, key: Key, nanoseconds: u64) -> bool {
        self.requests.push(Request { key, nanoseconds, number: 0 });
        self.requests.len() == MAX_PENDING_REQUESTS
    }

    /// Requests a delay as [`request`](Self::request) does, and with the same result, for a unit
    /// that also waits for messages. A message that wakes the unit first revokes the request.
    /// `place` is that of the unit, which must have no timer.
    #[must_use]
    pub fn request_revocable<K: Kind>(
        &mut self,
        place: Place<K>,
        key: Key,
        nanoseconds: u64,
    ) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "there are few of them")]
        let number = self.requests.len() as u32 + 1;
        place.set_request(number);
        self.requests.push(Request { key, nanoseconds, number });
        self.requests.len() == MAX_PENDING_REQUESTS
    }

    /// Reads the clock and starts the requested delays, if any, of units that still wait for them.
    /// All requests are older than this reading, so no timer is early.
    #[inline]
    pub fn start_delays<K: Kind>(&mut self, slab: &mut Slab<K>, clock: &Clock) {
        if !self.requests.is_empty() {
            self.start_requested_delays(slab, clock);
        }
    }

    fn start_requested_delays<K: Kind>(&mut self, slab: &mut Slab<K>, clock: &Clock) {
        let now = clock.now();
        if slab.has_no_timers() {
            self.scanned_tick = tick_at(now);
            slab.begin_at(short(self.scanned_tick));
        }
        let mut requests = std::mem::take(&mut self.requests);
        for Request { key, nanoseconds, number } in requests.drain(..) {
            if let Some(place) = slab.find(key).filter(|place| place.has_request(number)) {
                self.wait_until(slab, place, key, now.saturating_add(nanoseconds));
            }
        }
        self.requests = requests;
    }

    fn wait_until<K: Kind>(&mut self, slab: &mut Slab<K>, place: Place<K>, key: Key, moment: u64) {
        let (tick, horizon) = (tick_after(moment), self.scanned_tick + MAX_TICKS_AHEAD);
        if tick > horizon {
            self.far.insert(key, moment);
        }
        slab.set_due(place, short(tick.min(horizon)));
    }

    /// Collects due units, unless some are left from the last call. Returns whether there are any;
    /// their timers may have become stale.
    pub fn collect_due<K: Kind>(&mut self, slab: &mut Slab<K>, clock: &Clock) -> bool {
        if self.due.1 < self.due.0.len() {
            return true;
        }
        if slab.has_no_timers() {
            return false;
        }
        // After the process was stopped for hours, advance in steps that ticks can represent.
        self.scanned_tick = tick_at(clock.now()).min(self.scanned_tick + MAX_TICKS_AHEAD);
        let (due, done) = &mut self.due;
        due.clear();
        *done = 0;
        slab.add_due(short(self.scanned_tick), due, MAX_DUE_BATCH);
        !due.is_empty()
    }

    /// Removes and returns the next due unit, or `None` if none are left. Its timer may have become
    /// stale; see [`claim`](Self::claim).
    #[inline]
    pub fn pop(&mut self) -> Option<Due> {
        let due = self.due.0.get(self.due.1).copied();
        self.due.1 += usize::from(due.is_some());
        due
    }

    /// Clears the timer of a due unit and returns the unit's place. Returns `None` if the unit has
    /// ended, no longer waits for this timer, or has to wait longer because its due time was beyond
    /// the ticks' range. In the last case, sets the timer again.
    #[inline]
    pub fn claim<K: Kind>(&mut self, due: Due, slab: &mut Slab<K>) -> Option<Place<K>> {
        let Due { tick, turn, key } = due;
        let place = slab.find(key).filter(|&place| place.is_due(tick, turn))?;
        place.clear_timer();
        if !self.far.is_empty()
            && let Some(moment) = self.far.remove(&key)
            && self.scanned_tick < tick_after(moment)
        {
            self.wait_until(slab, place, key, moment);
            return None;
        }
        Some(place)
    }

    /// Returns the nanoseconds until a started timer may be due, or `None` if there are none. The
    /// result is 0 if due units are left.
    pub fn next_due<K: Kind>(&self, slab: &Slab<K>, clock: &Clock) -> Option<u64> {
        if self.due.1 < self.due.0.len() {
            return Some(0);
        }
        slab.next_tick().map(|tick| until(tick, clock.now()))
    }

    /// Removes the entry in `far`, if any, of a unit that no longer waits for its timer.
    #[inline]
    pub fn forget(&mut self, key: Key) {
        if !self.far.is_empty() {
            self.far.remove(&key);
        }
    }

    /// Frees unused capacity, except that for requests.
    pub fn trim(&mut self) {
        if self.due.1 == self.due.0.len() {
            self.due = (Vec::new(), 0);
        }
        self.far.shrink_to(0);
    }
}

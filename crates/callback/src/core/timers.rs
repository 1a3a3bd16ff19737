//! Who waits for a time: from asking for it until it has come.
//!
//! The slab knows in which page who is due when. Here is what happens before (the clock is read
//! once for several units) and after (those that are due are put in order), and which of them wait
//! for longer than the slab's ticks can tell.

use std::collections::HashMap;

use crate::clock::{Clock, MAX_TICKS_AHEAD, short, tick_after, tick_at, until};
use crate::key::Key;
use crate::slab::{Due, Kind, Place, Slab};

/// Units whose wait begins at the same reading of the clock, at most.
const MAX_UNSTAMPED: usize = 64;
/// Units that are put in order of their due times at once.
const MAX_DUE_BATCH: usize = 1 << 18;

/// A unit that has asked for a time.
#[derive(Debug, Clone, Copy)]
struct Asked {
    key: Key,
    nanoseconds: u64,
    /// If it waits for something else, too, it has this number until that has come.
    number: u32,
}

pub(super) struct Timers {
    /// Units that wait from now on.
    asked: Vec<Asked>,
    /// The tick up to which it has been looked who is due.
    scanned_tick: u64,
    /// Those whose time has come, in order, and how many of them have been given out.
    due: (Vec<Due>, usize),
    /// Moments of those who wait for longer than the slab's ticks can look ahead.
    far: HashMap<Key, u64>,
}

impl Timers {
    pub fn new(clock: &Clock) -> Self {
        Self {
            asked: Vec::with_capacity(MAX_UNSTAMPED),
            scanned_tick: tick_at(clock.now()),
            due: (Vec::new(), 0),
            far: HashMap::new(),
        }
    }

    /// The tick up to which it has been looked who is due.
    pub fn scanned_tick(&self) -> u32 {
        short(self.scanned_tick)
    }

    /// Has a unit wait for so many nanoseconds from a moment on that is not before now. Returns
    /// whether it is time to say from which on.
    #[inline]
    #[must_use]
    pub fn ask(&mut self, key: Key, nanoseconds: u64) -> bool {
        self.asked.push(Asked { key, nanoseconds, number: 0 });
        self.asked.len() == MAX_UNSTAMPED
    }

    /// The same for one that may get a message before that, and then waits for this time no more.
    #[must_use]
    pub fn ask_or_message<K: Kind>(&mut self, place: Place<K>, key: Key, nanoseconds: u64) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "there are few of them")]
        let number = self.asked.len() as u32 + 1;
        place.set_asked(number);
        self.asked.push(Asked { key, nanoseconds, number });
        self.asked.len() == MAX_UNSTAMPED
    }

    /// Reads the clock for those who wait from now on. They asked before, so that none is early.
    #[inline]
    pub fn stamp<K: Kind>(&mut self, slab: &mut Slab<K>, clock: &Clock) {
        if !self.asked.is_empty() {
            self.stamp_all(slab, clock);
        }
    }

    fn stamp_all<K: Kind>(&mut self, slab: &mut Slab<K>, clock: &Clock) {
        let now = clock.now();
        if slab.has_no_timers() {
            self.scanned_tick = tick_at(now);
            slab.begin_at(short(self.scanned_tick));
        }
        let mut asked = std::mem::take(&mut self.asked);
        for Asked { key, nanoseconds, number } in asked.drain(..) {
            if let Some(place) = slab.find(key).filter(|place| place.has_asked(number)) {
                self.wait_until(slab, place, key, now.saturating_add(nanoseconds));
            }
        }
        self.asked = asked;
    }

    fn wait_until<K: Kind>(&mut self, slab: &mut Slab<K>, place: Place<K>, key: Key, moment: u64) {
        let (tick, horizon) = (tick_after(moment), self.scanned_tick + MAX_TICKS_AHEAD);
        if tick > horizon {
            self.far.insert(key, moment);
        }
        slab.set_due(place, short(tick.min(horizon)));
    }

    /// Looks whose time has come, unless there are such already. Returns whether there are.
    pub fn look<K: Kind>(&mut self, slab: &mut Slab<K>, clock: &Clock) -> bool {
        if self.due.1 < self.due.0.len() {
            return true;
        }
        if slab.has_no_timers() {
            return false;
        }
        // Whoever was stopped for hours comes to the present in steps that ticks can tell apart.
        self.scanned_tick = tick_at(clock.now()).min(self.scanned_tick + MAX_TICKS_AHEAD);
        let (due, done) = &mut self.due;
        due.clear();
        *done = 0;
        slab.add_due(short(self.scanned_tick), due, MAX_DUE_BATCH);
        !due.is_empty()
    }

    /// The next one whose time seems to have come.
    #[inline]
    pub fn pop(&mut self) -> Option<Due> {
        let due = self.due.0.get(self.due.1).copied();
        self.due.1 += usize::from(due.is_some());
        due
    }

    /// Where that one is, which does not wait any more; unless it has ended meanwhile, waits for
    /// something else, or for longer than ticks could tell.
    #[inline]
    pub fn claim<K: Kind>(&mut self, due: Due, slab: &mut Slab<K>) -> Option<Place<K>> {
        let Due { tick, turn, key } = due;
        let place = slab.find(key).filter(|&place| place.is_due(tick, turn))?;
        place.set_never_due();
        if !self.far.is_empty()
            && let Some(moment) = self.far.remove(&key)
            && self.scanned_tick < tick_after(moment)
        {
            self.wait_until(slab, place, key, moment);
            return None;
        }
        Some(place)
    }

    /// Nanoseconds until somebody may be due; `None` if nobody waits for a time.
    pub fn next_due<K: Kind>(&self, slab: &Slab<K>, clock: &Clock) -> Option<u64> {
        if self.due.1 < self.due.0.len() {
            return Some(0);
        }
        slab.next_tick().map(|tick| until(tick, clock.now()))
    }

    /// Forgets one that waits for its time no more.
    #[inline]
    pub fn forget(&mut self, key: Key) {
        if !self.far.is_empty() {
            self.far.remove(&key);
        }
    }

    /// Gives memory back that was needed for more than there is now.
    pub fn trim(&mut self) {
        if self.due.1 == self.due.0.len() {
            self.due = (Vec::new(), 0);
        }
        self.far.shrink_to(0);
    }
}

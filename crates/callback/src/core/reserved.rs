//! Places that are kept for units from elsewhere, so that these have an id before they come.

use super::Core;
use crate::code::{Boxed, Handler, Wake, code_of, fits};
use crate::context::{Next, Nothing};
use crate::key::Key;
use crate::panics::drop_quietly;
use crate::reason::Reason;
use crate::slab::{Place, Slab};

/// Keeps a place for a closure of two words.
#[derive(Debug, Default)]
struct Reserved {
    _room: [u64; 2],
}

// SAFETY: nobody calls it; it stays until a closure takes its place.
unsafe impl Handler for Reserved {
    type Message = Nothing;
    const STAYS: bool = true;
    const RECEIVES: bool = false;
    const TIMED: bool = false;
    const RESERVED: bool = true;

    unsafe fn call(_: *mut Self, _: &mut Core, _: Wake) -> Next {
        Next::again()
    }
}

/// Keeps the place of a unit that was cancelled before it came.
struct Withdrawn;

// SAFETY: nobody calls it, and it is nothing.
unsafe impl Handler for Withdrawn {
    type Message = Nothing;
    const STAYS: bool = true;
    const RECEIVES: bool = false;
    const TIMED: bool = false;

    unsafe fn call(_: *mut Self, _: &mut Core, _: Wake) -> Next {
        Next::again()
    }
}

impl Core {
    /// Keeps a place for a unit that comes from elsewhere.
    pub fn reserve(&mut self) -> Option<Key> {
        let key = self.insert(Reserved::default()).ok()?;
        self.reserved += 1;
        Some(key)
    }

    /// Puts a unit into the place that was kept for it, and runs it.
    pub fn settle<H: Handler>(&mut self, key: Key, handler: H) {
        self.reserved -= 1;
        self.settled += 1;
        let Some(place) = self.slab.find(key) else { return };
        if !self.slab.code(place).reserved {
            self.counts.panics += drop_quietly(|| drop(handler));
            self.end(place, key, &Reason::Cancelled);
            return;
        }
        if fits::<H>(size_of::<Reserved>()) {
            settle_inline(&mut self.slab, place, handler);
        } else {
            settle_inline(&mut self.slab, place, Boxed::new(handler));
        }
        self.run(place, key, self.slab.code(place), Wake::Start);
    }
}

/// Has the unit that comes to a place that was kept end at once.
pub(super) fn withdraw(slab: &mut Slab, place: Place) {
    slab.set_code(place, code_of::<Withdrawn>());
}

/// Puts a closure into a place that was kept.
fn settle_inline<H: Handler>(slab: &mut Slab, place: Place, handler: H) {
    // SAFETY: what kept the place needs not be dropped; the slot has room, as checked.
    unsafe { place.payload().cast::<H>().write(handler) };
    slab.set_code(place, code_of::<H>());
}

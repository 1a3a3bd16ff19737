//! Places that are kept for units from elsewhere, so that these have an id before they come.

use super::{Core, Place};
use crate::error::NoRoom;
use crate::handler::{Boxed, Handler, WakeReason, fits, handler_vtable};
use crate::key::Key;
use crate::next::{Never, Next};
use crate::panics::drop_quietly;
use crate::reason::Reason;

/// Keeps a place for a closure of two words.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Reserved {
    claim: Claim,
    _room: u64,
}

/// Whether the unit may still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Claim {
    Open,
    /// It was cancelled before it arrived, and ends on arrival. Until then its place stays occupied and is
    /// still counted as reserved.
    Withdrawn,
}

// SAFETY: nobody calls it; it stays until a closure takes its place.
unsafe impl Handler for Reserved {
    type Message = Never;
    const STAYS: bool = true;
    const RECEIVES: bool = false;
    const TIMED: bool = false;
    const RESERVED: bool = true;

    unsafe fn call(_: *mut Self, _: &mut Core, _: WakeReason) -> Next {
        Next::keep_receiving()
    }
}

impl Core {
    /// Keeps a place for a unit that comes from elsewhere.
    pub fn reserve(&mut self) -> Option<Key> {
        let key = self.insert(Reserved { claim: Claim::Open, _room: 0 }).ok()?;
        self.reserved += 1;
        Some(key)
    }

    /// Puts a unit into the place that was kept for it, and runs it.
    pub fn settle<H: Handler>(&mut self, key: Key, handler: H) {
        self.reserved -= 1;
        self.settled += 1;
        let Some(place) = self.slab.find(key) else { return };
        if claim(place) == Claim::Withdrawn {
            self.counts.panics += drop_quietly(|| drop(handler));
            self.end(place, key, &Reason::Cancelled);
            return;
        }
        let settled = if fits::<H>(size_of::<Reserved>()) {
            self.settle_inline(place, handler)
        } else {
            self.settle_inline(place, Boxed::new(handler))
        };
        match settled {
            Ok(()) => self.run(place, key, self.slab.vtable(place), WakeReason::Start),
            Err(NoRoom) => self.end_without_room(place, key),
        }
    }

    /// Puts a closure into a place that is kept.
    ///
    /// # Errors
    /// [`NoRoom`] if its vtable cannot be noted there. The closure is dropped, and the place is still kept.
    fn settle_inline<H: Handler>(&mut self, place: Place, handler: H) -> Result<(), NoRoom> {
        // The fallible step comes first. Nothing between it and the write panics.
        if self.slab.set_vtable(place, handler_vtable::<H>()).is_err() {
            self.counts.panics += drop_quietly(|| drop(handler));
            return Err(NoRoom);
        }
        // SAFETY: what kept the place needs not be dropped; the slot has room, as checked.
        unsafe { place.payload().cast::<H>().write(handler) };
        Ok(())
    }
}

/// Where what keeps a place says whether the unit may still come.
fn claim_at(place: Place) -> *mut Claim {
    let reserved = place.payload().cast::<Reserved>().as_ptr();
    // SAFETY: within the payload, which has room for it.
    unsafe { &raw mut (*reserved).claim }
}

/// Whether the unit of a place that is kept may still come.
fn claim(place: Place) -> Claim {
    // SAFETY: the place is kept: what `reserve` has put there is still there.
    unsafe { claim_at(place).read() }
}

/// Cancels the unit of a reserved place before it arrives. Returns whether it was not cancelled before.
pub(super) fn withdraw(place: Place) -> bool {
    let before = claim(place);
    // SAFETY: as in `claim`, and nobody else uses it.
    unsafe { claim_at(place).write(Claim::Withdrawn) };
    before == Claim::Open
}

//! Reserved slots, which give units spawned by other threads an id before the units arrive.
//!
//! ```text
//!   reserve ──▶ open ────fill_reserved─────▶ the unit runs
//!                │ cancel
//!                ▼
//!            withdrawn ──fill_reserved────▶ the unit is dropped, the slot is freed
//! ```

use super::{Core, Place};
use crate::error::NoRoom;
use crate::handler::{Boxed, Handler, WakeReason, fits, handler_vtable};
use crate::key::Key;
use crate::next::{Never, Next};
use crate::panics::drop_quietly;
use crate::reason::Reason;

/// The placeholder in a reserved slot. Its two words leave room for a closure of two words.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Reserved {
    claim: Claim,
    _room: u64,
}

/// The state of a reserved slot, which decides whether its unit runs on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Claim {
    Open,
    /// The unit was cancelled before it arrived, and ends on arrival. Until then its slot stays
    /// occupied and is counted as reserved.
    Withdrawn,
}

// SAFETY: `call` is never called; the value stays until a closure replaces it.
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
    /// Reserves a slot for a unit that another thread will spawn. Returns its key, or `None` if
    /// there is no room.
    pub fn reserve(&mut self) -> Option<Key> {
        let key = self.insert(Reserved { claim: Claim::Open, _room: 0 }).ok()?;
        self.reserved += 1;
        Some(key)
    }

    /// Moves an arriving unit into its reserved slot and runs it. Ends it instead if it has been
    /// cancelled, or if there are too many kinds of closures.
    pub fn fill_reserved<H: Handler>(&mut self, key: Key, handler: H) {
        self.reserved -= 1;
        self.filled_reserved += 1;
        let Some(place) = self.slab.find(key) else { return };
        if claim(place) == Claim::Withdrawn {
            self.counts.panics += drop_quietly(|| drop(handler));
            self.end(place, key, &Reason::Cancelled);
            return;
        }
        let filled = if fits::<H>(size_of::<Reserved>()) {
            self.fill_reserved_inline(place, handler)
        } else {
            self.fill_reserved_inline(place, Boxed::new(handler))
        };
        match filled {
            Ok(()) => self.run(place, key, self.slab.vtable(place), WakeReason::Start),
            Err(NoRoom) => self.end_without_room(place, key),
        }
    }

    /// Moves a closure into a reserved slot, which must have room for it.
    ///
    /// # Errors
    /// [`NoRoom`] if its vtable cannot be registered. The closure is dropped, and the slot stays
    /// reserved.
    fn fill_reserved_inline<H: Handler>(&mut self, place: Place, handler: H) -> Result<(), NoRoom> {
        // The fallible step comes first; no code between it and the write panics.
        if self.slab.set_vtable(place, handler_vtable::<H>()).is_err() {
            self.counts.panics += drop_quietly(|| drop(handler));
            return Err(NoRoom);
        }
        // SAFETY: the placeholder needs no drop; the slot has room, as checked.
        unsafe { place.payload().cast::<H>().write(handler) };
        Ok(())
    }
}

/// Returns the address of the claim in a reserved slot.
fn claim_at(place: Place) -> *mut Claim {
    let reserved = place.payload().cast::<Reserved>().as_ptr();
    // SAFETY: the field is within the payload, which has room for a placeholder.
    unsafe { &raw mut (*reserved).claim }
}

/// Reads the claim in a reserved slot.
fn claim(place: Place) -> Claim {
    // SAFETY: the slot is reserved: the placeholder that `reserve` wrote is still there.
    unsafe { claim_at(place).read() }
}

/// Cancels the unit of a reserved slot before it arrives. Returns whether this is the first
/// cancellation.
pub(super) fn withdraw(place: Place) -> bool {
    let before = claim(place);
    // SAFETY: as in `claim`, and there is no reference to the claim.
    unsafe { claim_at(place).write(Claim::Withdrawn) };
    before == Claim::Open
}

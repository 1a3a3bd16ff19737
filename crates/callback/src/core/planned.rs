//! The closure that the running unit will run next. It is stored here until the running closure has
//! returned, and is then moved into the unit's slot.
//!
//! The closure is stored with its vtable, whose functions take the core: see `core.rs` on imports.

use std::mem::MaybeUninit;

use super::{Place, Until};
use crate::handler::{Boxed, Handler, HandlerVTable, MAX_PAYLOAD_BYTES, fits, handler_vtable};
use crate::panics::drop_quietly;

pub(super) struct Planned {
    /// The vtable of the value in `closure`; if `None`, `closure` holds no value.
    vtable: Option<&'static HandlerVTable>,
    until: Until,
    closure: MaybeUninit<[u64; MAX_PAYLOAD_BYTES / 8]>,
}

impl Planned {
    /// Creates a `Planned` that holds no closure.
    pub fn new() -> Self {
        Self { vtable: None, until: Until::Message, closure: MaybeUninit::uninit() }
    }

    /// Stores a handler that waits for `until`; it is boxed if it does not fit into a slot of
    /// `room` bytes. The previous one must have been dropped or moved.
    pub fn put<H: Handler>(&mut self, handler: H, room: usize, until: Until) {
        if fits::<H>(room) {
            self.put_inline(handler, until);
        } else {
            self.put_inline(Boxed::new(handler), until);
        }
    }

    fn put_inline<H: Handler>(&mut self, handler: H, until: Until) {
        debug_assert!(self.vtable.is_none());
        // SAFETY: a handler that fits into a slot fits here, and needs no stricter alignment.
        unsafe { self.closure.as_mut_ptr().cast::<H>().write(handler) };
        (self.vtable, self.until) = (Some(handler_vtable::<H>()), until);
    }

    /// Returns whether a closure is planned.
    pub fn is_some(&self) -> bool {
        self.vtable.is_some()
    }

    /// Returns the vtable of the planned closure, or `None` if none is planned.
    pub fn vtable(&self) -> Option<&'static HandlerVTable> {
        self.vtable
    }

    /// Drops the planned closure, if any, and the event that it waits for. Returns the number of
    /// these drops that panicked, from 0 to 2.
    pub fn clear(&mut self) -> u64 {
        let Some(vtable) = self.vtable.take() else { return 0 };
        let closure = self.closure.as_mut_ptr().cast();
        // SAFETY: a closure of this vtable was written there, and the vtable has been taken, so it
        // is dropped once.
        let panics = drop_quietly(|| unsafe { (vtable.drop)(closure) });
        let until = std::mem::replace(&mut self.until, Until::Message);
        panics + drop_quietly(|| drop(until))
    }

    /// Moves the planned closure into `place`, whose slot must have the `room` given to
    /// [`put`](Self::put) and hold no closure. `vtable` must be that of the planned closure.
    /// Returns the event that the closure waits for.
    pub fn move_to(&mut self, place: Place, vtable: &'static HandlerVTable) -> Until {
        debug_assert!(self.vtable.is_some_and(|own| std::ptr::eq(own, vtable)));
        self.vtable = None;
        let from = self.closure.as_ptr().cast::<MaybeUninit<u64>>();
        let to = place.payload().cast::<MaybeUninit<u64>>().as_ptr();
        // Copy word by word, as the closure was written: larger reads would stall on store
        // forwarding.
        for word in 0..vtable.bytes.div_ceil(8) {
            // SAFETY: the closure was stored for a slot of this size, and slots are whole words.
            let to = unsafe { to.add(word) };
            // SAFETY: as above.
            let from = unsafe { from.add(word) };
            // SAFETY: the slot's closure is gone; both are aligned to words and do not overlap.
            unsafe { from.copy_to_nonoverlapping(to, 1) };
        }
        std::mem::replace(&mut self.until, Until::Message)
    }
}

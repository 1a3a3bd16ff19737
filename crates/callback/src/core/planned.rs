//! What the running unit wants to run next, until it has returned and its slot takes it.
//!
//! It holds a closure with its vtable, which the core owns: see `core.rs` on imports.

use std::mem::MaybeUninit;

use super::{Place, Until};
use crate::handler::{Boxed, Handler, HandlerVTable, MAX_PAYLOAD_BYTES, fits, handler_vtable};
use crate::panics::drop_quietly;

pub(super) struct Planned {
    /// The vtable of what is in `closure`; nothing is there without.
    vtable: Option<&'static HandlerVTable>,
    until: Until,
    closure: MaybeUninit<[u64; MAX_PAYLOAD_BYTES / 8]>,
}

impl Planned {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { vtable: None, until: Until::Message, closure: MaybeUninit::uninit() }
    }

    /// Keeps a handler for a slot with so many bytes. What was kept before has been dropped.
    pub fn put<H: Handler>(&mut self, handler: H, room: usize, until: Until) {
        if fits::<H>(room) {
            self.put_inline(handler, until);
        } else {
            self.put_inline(Boxed::new(handler), until);
        }
    }

    fn put_inline<H: Handler>(&mut self, handler: H, until: Until) {
        debug_assert!(self.vtable.is_none());
        // SAFETY: a handler that fits into a slot fits here, and is aligned to no more.
        unsafe { self.closure.as_mut_ptr().cast::<H>().write(handler) };
        (self.vtable, self.until) = (Some(handler_vtable::<H>()), until);
    }

    /// Whether there is something.
    pub fn is_some(&self) -> bool {
        self.vtable.is_some()
    }

    /// The vtable of what there is.
    pub fn vtable(&self) -> Option<&'static HandlerVTable> {
        self.vtable
    }

    /// Drops what there is. Returns how often that panicked.
    pub fn clear(&mut self) -> u64 {
        let Some(vtable) = self.vtable.take() else { return 0 };
        let closure = self.closure.as_mut_ptr().cast();
        // SAFETY: a closure of this vtable was written there, and the vtable taken away with it.
        let panics = drop_quietly(|| unsafe { (vtable.drop)(closure) });
        let until = std::mem::replace(&mut self.until, Until::Message);
        panics + drop_quietly(|| drop(until))
    }

    /// Moves it, which has this vtable, into the slot that it was kept for, whose closure is gone. Returns what it
    /// waits for.
    pub fn move_to(&mut self, place: Place, vtable: &'static HandlerVTable) -> Until {
        debug_assert!(self.vtable.is_some_and(|own| std::ptr::eq(own, vtable)));
        self.vtable = None;
        let from = self.closure.as_ptr().cast::<MaybeUninit<u64>>();
        let to = place.payload().cast::<MaybeUninit<u64>>().as_ptr();
        // Word by word, as it was written: larger reads would wait for the writes.
        for word in 0..vtable.bytes.div_ceil(8) {
            // SAFETY: it was kept with room for it in this slot, and slots are whole words.
            let to = unsafe { to.add(word) };
            // SAFETY: as above.
            let from = unsafe { from.add(word) };
            // SAFETY: the slot's closure is gone; both are aligned to words and do not overlap.
            unsafe { from.copy_to_nonoverlapping(to, 1) };
        }
        std::mem::replace(&mut self.until, Until::Message)
    }
}

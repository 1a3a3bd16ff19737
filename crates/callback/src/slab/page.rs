//! A page: a header and, for each slot, a payload, a due tick, a turn that orders equal ticks, and
//! a generation.
//!
//! ```text
//! header 64 B │ generation u16 × n │ tick u32 × n │ turn u32 × n │ … │ payload × n
//! ```
//!
//! Generations begin and payloads end at the same offset in all pages, so a unit is found and run
//! without knowing the layout. Payloads are in reverse order: that of slot 0 is the last one.
//!
//! Data shared by the units of a page, in particular the vtable of the closures, is stored once, in
//! the header. A unit takes 10 bytes in addition to its payload and its share of the header.

use std::marker::PhantomData;
use std::ptr::NonNull;

use contend_sys::reserve::PAGE;

use crate::key::LAST_GENERATION;

/// Offset of the generations, in bytes.
const GENERATIONS_OFFSET: usize = size_of::<Header<()>>();
/// Size of a payload in bytes, by class: each class has twice the size of the one before.
const PAYLOAD_BYTES: [usize; 4] = [8, 16, 32, 64];
/// Number of payload classes.
const CLASS_COUNT: usize = PAYLOAD_BYTES.len();
/// Length of the bitmap of free slots, in words.
const FREE_BITMAP_WORDS: usize = 4;
/// The tick in a slot without a timer.
pub(crate) const NO_TICK: u32 = 0;

/// The layout of a page for one payload class. Offsets are in bytes.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Number of slots of a page.
    slots: usize,
    /// Offset of the ticks.
    ticks: usize,
    /// Offset of the turns.
    turns: usize,
}

/// The layout of each payload class.
const LAYOUTS: [Layout; CLASS_COUNT] = {
    let mut all = [layout(PAYLOAD_BYTES[0]); CLASS_COUNT];
    let mut class = 0;
    while class < CLASS_COUNT {
        all[class] = layout(PAYLOAD_BYTES[class]);
        class += 1;
    }
    all
};

const fn layout(payload: usize) -> Layout {
    let mut slots = (PAGE - GENERATIONS_OFFSET) / (payload + 4 + 4 + 2);
    // Ticks are aligned to their size.
    while GENERATIONS_OFFSET + (slots * 2).next_multiple_of(4) + slots * (8 + payload) > PAGE {
        slots -= 1;
    }
    assert!(slots <= FREE_BITMAP_WORDS * 64 && slots <= u8::MAX as usize);
    let ticks = GENERATIONS_OFFSET + (slots * 2).next_multiple_of(4);
    Layout { slots, ticks, turns: ticks + slots * 4 }
}

/// Returns whether a generation is odd and thus that of a unit. Free slots have even generations.
#[inline]
pub(super) fn is_unit_generation(generation: u16) -> bool {
    generation % 2 == 1
}

/// Returns the smallest class with room for `bytes` bytes, or `None` if no class is large enough.
pub(crate) fn class_for(bytes: usize) -> Option<u8> {
    let class = PAYLOAD_BYTES.iter().position(|&payload| bytes <= payload)?;
    u8::try_from(class).ok()
}

/// For each slot, the kind of the closure that the unit runs next; [`PAGE_KIND`] if it is the
/// page's own kind.
type OtherKinds = [u16; 256];
/// The value in [`OtherKinds`] for a unit whose kind is that of its page. It is the number of no
/// kind.
pub(super) const PAGE_KIND: u16 = u16::MAX;

/// A vtable, as far as the slab uses it: its address, and the size of its payloads.
pub(crate) trait Kind: Copy + 'static {
    /// Returns the size of a payload in bytes.
    fn bytes(&self) -> usize;
}

/// The header of a page: the data that its units share.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header<K: 'static> {
    /// A bitmap of the free slots, without worn-out ones.
    free: [u64; FREE_BITMAP_WORDS],
    /// The vtable of units whose kind is that of the page.
    pub vtable: Option<&'static K>,
    /// The kinds of units that run closures of other kinds; `None` if no unit has done so since the
    /// page was prepared.
    other_kinds: Option<Box<OtherKinds>>,
    /// Neighbours in the list of pages of this kind and fill level.
    pub list: Links,
    /// The number of the kind that all units of this page have when they are inserted.
    pub kind: u16,
    /// Number of units on this page.
    pub used: u8,
    /// Number of free slots, without worn-out ones.
    free_count: u8,
    /// Number of slots; 0 in memory returned to the kernel.
    slots: u8,
    /// The payload class: an index into [`PAYLOAD_BYTES`].
    pub class: u8,
    /// Whether a unit of this page has had a monitor or link.
    pub watched: bool,
    /// Whether a unit of this page has had stashed messages.
    pub has_stashed: bool,
}

const _: () = assert!(size_of::<Header<()>>() == 64);

/// Neighbours in a list of pages, by number; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Links {
    pub before: u32,
    pub after: u32,
}

/// The address of a page, whose memory exists as long as its slab.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<K: 'static>(NonNull<u8>, PhantomData<&'static K>);

impl<K: Kind> Page<K> {
    /// Returns the page that begins at `start`.
    ///
    /// # Safety
    /// `start` is aligned to a page, and a page of readable and writable memory begins there, which
    /// exists as long as any copy of the result is used. Only the owner of the slab uses this
    /// memory, and all its pages have the same `K`.
    pub unsafe fn at(start: NonNull<u8>) -> Self {
        Self(start, PhantomData)
    }

    /// Returns the address of the page's first byte.
    pub fn address(self) -> usize {
        self.0.addr().get()
    }

    /// Prepares an unused page, which must be zeroed or cleared, for units of the given payload
    /// class and kind. It then has no units, and its generations continue from `floor`, rounded up
    /// to an even number.
    pub fn prepare(self, class: u8, kind: u16, vtable: &'static K, floor: u16) {
        let floor = floor.next_multiple_of(2); // even, as in a free slot
        let layout = LAYOUTS[usize::from(class)];
        let slots = u8::try_from(layout.slots).expect("`layout` asserts that slots fit in a byte");
        let mut header = Header {
            free: [0; FREE_BITMAP_WORDS],
            vtable: Some(vtable),
            other_kinds: None,
            list: Links::default(),
            kind,
            used: 0,
            free_count: slots,
            slots,
            class,
            watched: false,
            has_stashed: false,
        };
        for slot in 0..layout.slots {
            header.free[slot / 64] |= 1 << (slot % 64);
        }
        // SAFETY: the page begins with room for a header, aligned; an earlier header no longer
        // owned anything (see `clear`).
        unsafe { self.0.cast::<Header<K>>().write(header) };
        for slot in (0..=u8::MAX).take(layout.slots) {
            self.set_due(slot, NO_TICK, 0);
            self.set_generation(slot, floor);
        }
    }

    /// Drops the data owned by the header, and returns a generation that no unit of the page has
    /// had and from which all slots can continue.
    pub fn clear(mut self) -> u16 {
        self.header_mut().other_kinds = None;
        let after = |slot| self.generation(slot).next_multiple_of(2);
        (0..=u8::MAX).take(self.slots()).map(after).max().unwrap_or(LAST_GENERATION).max(2)
    }

    #[inline]
    pub fn header(&self) -> &Header<K> {
        // SAFETY: a header was written when the page was prepared; only the owner of the slab uses
        // it, and no mutable borrow of it outlives a method of this module or the slab.
        unsafe { self.0.cast().as_ref() }
    }

    #[inline]
    pub fn header_mut(&mut self) -> &mut Header<K> {
        // SAFETY: as above.
        unsafe { self.0.cast().as_mut() }
    }

    fn layout(self) -> Layout {
        LAYOUTS[usize::from(self.header().class)]
    }

    /// Returns the number of slots, free or not.
    #[inline]
    pub fn slots(self) -> usize {
        self.header().slots.into()
    }

    /// Returns the size in bytes of the payload of each slot.
    #[inline]
    pub fn payload_bytes(self) -> usize {
        PAYLOAD_BYTES[0] << self.header().class
    }

    /// Takes a free slot and increments its generation. Returns `None` if no slot is free.
    pub fn take(mut self) -> Option<u8> {
        let header = self.header_mut();
        let word = header.free.iter().position(|&word| word != 0)?;
        let bit = header.free[word].trailing_zeros();
        header.free[word] &= header.free[word] - 1;
        header.used += 1;
        header.free_count -= 1;
        let slot = u8::try_from(word * 64 + bit as usize).ok()?;
        self.set_generation(slot, self.generation(slot) + 1);
        Some(slot)
    }

    /// Frees a taken slot, clears its timer, and increments its generation, which makes its unit's
    /// key stale. A slot that has reached the last generation is not used again.
    pub fn vacate(mut self, slot: u8) {
        let generation = self.generation(slot) + 1;
        self.set_generation(slot, generation);
        self.set_due(slot, NO_TICK, 0);
        self.set_other_kind(slot, None);
        let header = self.header_mut();
        header.used -= 1;
        if generation != LAST_GENERATION {
            header.free[usize::from(slot / 64)] |= 1 << (slot % 64);
            header.free_count += 1;
        }
    }

    /// Returns whether the page has a slot with the given number.
    #[inline]
    pub fn has_slot(self, slot: u8) -> bool {
        slot < self.header().slots
    }

    /// Returns whether a slot holds a unit, that is, has an odd generation.
    #[inline]
    pub fn is_taken(self, slot: u8) -> bool {
        self.has_slot(slot) && is_unit_generation(self.generation(slot))
    }

    /// Returns whether no slot is free.
    #[inline]
    pub fn is_full(self) -> bool {
        self.header().free_count == 0
    }

    /// Returns the slots that hold units.
    pub fn taken_slots(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).take(self.slots()).filter(move |&slot| self.is_taken(slot))
    }

    /// Returns the kind of the closure that the unit in a slot runs next, or `None` if it is that
    /// of the page.
    #[inline]
    pub fn other_kind(self, slot: u8) -> Option<u16> {
        let other_kinds = self.header().other_kinds.as_ref()?;
        Some(other_kinds[usize::from(slot)]).filter(|&kind| kind != PAGE_KIND)
    }

    /// Sets the kind of the closure that the unit in a slot runs next; `None` for that of the page.
    pub fn set_other_kind(mut self, slot: u8, kind: Option<u16>) {
        let header = self.header_mut();
        if kind.is_none() && header.other_kinds.is_none() {
            return;
        }
        let other_kinds = header.other_kinds.get_or_insert_with(|| Box::new([PAGE_KIND; 256]));
        other_kinds[usize::from(slot)] = kind.unwrap_or(PAGE_KIND);
    }

    /// Returns the address of the payload in a slot.
    #[inline]
    pub fn payload(self, slot: u8) -> NonNull<u8> {
        debug_assert!(self.has_slot(slot));
        let offset = PAGE - (usize::from(slot) + 1) * self.payload_bytes();
        // SAFETY: slots come from keys that were found or from `take`, so they are below the
        // layout's slot count, and the payload is within the page.
        unsafe { self.0.add(offset) }
    }

    #[inline]
    pub fn generation(self, slot: u8) -> u16 {
        // SAFETY: the address is within the page. The slot is one of the layout's, so a generation
        // is there, which `prepare` has initialised.
        unsafe { self.generation_at(slot).read() }
    }

    fn set_generation(self, slot: u8, generation: u16) {
        debug_assert!(self.has_slot(slot));
        // SAFETY: as above; slots have the same origin as in `payload`.
        unsafe { self.generation_at(slot).write(generation) };
    }

    #[inline]
    fn generation_at(self, slot: u8) -> NonNull<u16> {
        // SAFETY: 256 generations after the header are within a page.
        unsafe { self.0.add(GENERATIONS_OFFSET + usize::from(slot) * 2) }.cast()
    }

    /// Returns the tick and the turn of the timer of the unit in a slot. Without a timer, these are
    /// [`NO_TICK`] and the number of the unit's request for one, or 0.
    pub fn due(self, slot: u8) -> (u32, u32) {
        let [tick, turn] = self.due_at(slot);
        // SAFETY: both are in the page and initialised in `prepare`.
        let tick = unsafe { tick.read() };
        // SAFETY: as above.
        (tick, unsafe { turn.read() })
    }

    /// Records the number of a request for a delay, in place of a turn, in the slot of a unit that
    /// has no timer. No other pending request may have this number.
    #[inline]
    pub fn set_request(self, slot: u8, number: u32) {
        let [_, turn] = self.due_at(slot);
        // SAFETY: as above.
        unsafe { turn.write(number) };
    }

    pub fn set_due(self, slot: u8, tick: u32, turn: u32) {
        let at = self.due_at(slot);
        // SAFETY: as above.
        unsafe { at[0].write(tick) };
        // SAFETY: as above.
        unsafe { at[1].write(turn) };
    }

    fn due_at(self, slot: u8) -> [NonNull<u32>; 2] {
        let layout = self.layout();
        debug_assert!(self.has_slot(slot));
        [layout.ticks, layout.turns].map(|array| {
            // SAFETY: the slot is one of the layout's, as in `payload`; the arrays begin at
            // multiples of 4.
            unsafe { self.0.add(array + usize::from(slot) * 4) }.cast()
        })
    }

    /// Returns the due ticks of all slots; [`NO_TICK`] for those without a timer.
    pub fn ticks(&self) -> &[u32] {
        let layout = self.layout();
        // SAFETY: the array is within the page.
        let first = unsafe { self.0.add(layout.ticks) }.cast();
        // SAFETY: `prepare` has initialised the array, and nothing writes to it while it is
        // borrowed: a `Page` is only used on the thread that owns the slab, which runs no callback
        // during the borrow.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), layout.slots) }
    }
}

/// The place of a unit: the address of its page, with the slot in the low bits, which are zero in a
/// page's address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<K: 'static>(NonNull<u8>, PhantomData<&'static K>);

impl<K> PartialEq for Place<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: Kind> Place<K> {
    #[inline]
    pub fn new(page: Page<K>, slot: u8) -> Self {
        // SAFETY: a slot is less than the size of a page.
        Self(unsafe { page.0.add(slot.into()) }, PhantomData)
    }

    #[inline]
    pub fn page(self) -> Page<K> {
        // SAFETY: the result is the address of the page that this place was made from, which is not
        // zero.
        Page(unsafe { self.0.sub(self.0.addr().get() % PAGE) }, PhantomData)
    }

    #[inline]
    pub fn slot(self) -> u8 {
        self.0.addr().get().to_le_bytes()[0]
    }

    /// Returns the address of the unit's payload.
    #[inline]
    pub fn payload(self) -> NonNull<u8> {
        self.page().payload(self.slot())
    }

    /// Prefetches the header of the unit's page.
    #[inline]
    pub fn prefetch_header(self) {
        prefetch(self.page().0);
    }

    /// Prefetches the unit's payload.
    #[inline]
    pub fn prefetch_payload(self) {
        prefetch(self.payload());
    }

    /// Clears the unit's timer, and revokes its request for a delay.
    pub fn clear_timer(self) {
        self.page().set_due(self.slot(), NO_TICK, 0);
    }

    /// Records the number of the unit's request for a delay. The unit must have no timer; see
    /// [`Page::set_request`].
    #[inline]
    pub fn set_request(self, number: u32) {
        self.page().set_request(self.slot(), number);
    }

    /// Returns whether the unit has no timer and its recorded request has this number; 0 stands for
    /// no recorded request.
    #[inline]
    pub fn has_request(self, number: u32) -> bool {
        self.is_due(NO_TICK, number)
    }

    /// Returns whether the unit has a timer with the given tick and turn.
    pub fn is_due(self, tick: u32, turn: u32) -> bool {
        self.page().due(self.slot()) == (tick, turn)
    }
}

/// Prefetches the cache line at an address on x86-64. Does nothing on other architectures.
#[inline]
fn prefetch(at: NonNull<u8>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint, which has no effect on an invalid address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

//! Keys, ids and addresses of units.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

/// Offset of a key's slot, in bits. The layout, from the highest bit down, is
/// `page:24 worker:16 slot:8 generation:16`.
const SLOT_SHIFT: u32 = 16;
/// Offset of a key's Worker number, in bits.
const WORKER_SHIFT: u32 = 24;
/// Offset of a key's page, in bits.
const PAGE_SHIFT: u32 = 40;
/// Maximum number of pages of a Worker, 64 GiB in total, including page 0, which is never used.
pub(crate) const MAX_PAGES: u32 = 1 << (64 - PAGE_SHIFT);
/// Maximum number of Workers that a process can have at a time.
pub(crate) const MAX_WORKER_NUMBERS: usize = 1 << 16;
/// The last generation of a slot. It is even, so no unit has it, and a slot that has reached it is
/// not reused.
pub(crate) const LAST_GENERATION: u16 = u16::MAX - 1;

/// For each Worker number, the index of the Workers with this number within their runtimes. Each
/// entry is written before the first key with that number exists, and never changes afterwards.
static INDICES: [AtomicU8; MAX_WORKER_NUMBERS] = [const { AtomicU8::new(0) }; MAX_WORKER_NUMBERS];

/// The number of a Worker, which no other live Worker of the process has; see `lease.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerNumber(u16);

impl WorkerNumber {
    /// Creates a Worker number, and records the Worker's index within its runtime. Only for
    /// [`Lease`](crate::lease::Lease).
    pub fn with_index(number: u16, index: u8) -> Self {
        INDICES[usize::from(number)].store(index, Ordering::Relaxed);
        Self(number)
    }

    /// Creates a Worker number without recording an index.
    #[cfg(test)]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    pub fn get(self) -> u16 {
        self.0
    }

    /// Returns the index of the Worker within its runtime, counted from 0.
    pub fn index(self) -> u8 {
        INDICES[usize::from(self.0)].load(Ordering::Relaxed)
    }
}

/// The location of a unit, and the generation that distinguishes it from earlier units in the same
/// slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

impl Key {
    /// The key of no unit: generations of units begin at one.
    pub const NONE: Self = Self(0);

    pub fn new(worker_number: WorkerNumber, page: u32, slot: u8, generation: u16) -> Self {
        debug_assert!(page < MAX_PAGES);
        let place = u64::from(page) << PAGE_SHIFT | u64::from(slot) << SLOT_SHIFT;
        Self(u64::from(worker_number.0) << WORKER_SHIFT | place | u64::from(generation))
    }

    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    #[expect(clippy::cast_possible_truncation, reason = "the field's bits only")]
    pub fn worker_number(self) -> WorkerNumber {
        WorkerNumber((self.0 >> WORKER_SHIFT) as u16)
    }

    pub fn page(self) -> u32 {
        (self.0 >> PAGE_SHIFT) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the field's bits alone")]
    pub fn slot(self) -> u8 {
        (self.0 >> SLOT_SHIFT) as u8
    }

    #[expect(clippy::cast_possible_truncation, reason = "the field's bits alone")]
    pub fn generation(self) -> u16 {
        self.0 as u16
    }
}

/// The identity of a callback thread. Ids are unique within a process, across all its runtimes and
/// for its whole lifetime: all runtimes reject the id of a callback thread that has ended or
/// belongs to another runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) Key);

impl Id {
    /// Returns the index of the callback thread's Worker within its runtime, counted from 0.
    pub fn worker(self) -> usize {
        self.0.worker_number().index().into()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Id {
    /// Writes the Worker's index, the page, the slot and the generation, as in `0.17.3#1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0;
        let worker = key.worker_number().index();
        write!(f, "{worker}.{}.{}#{}", key.page(), key.slot(), key.generation())
    }
}

/// The address of a callback thread that receives messages of type `M`.
///
/// Addresses are invariant in `M`: receivers distinguish messages by their exact type, so an
/// address cannot be coerced to one of a subtype or supertype.
///
/// ```compile_fail,E0308
/// use contend_callback::Address;
///
/// fn widen(address: Address<for<'a> fn(&'a str)>) -> Address<fn(&'static str)> {
///     address
/// }
/// ```
///
/// ```compile_fail,E0308
/// use contend_callback::Address;
///
/// fn narrow(address: Address<fn(&'static str)>) -> Address<for<'a> fn(&'a str)> {
///     address
/// }
/// ```
pub struct Address<M> {
    pub(crate) key: Key,
    message: PhantomData<fn(M) -> M>,
}

impl<M> Address<M> {
    /// Creates an address. All handlers of the key's unit that receive messages must take `M`.
    pub(crate) fn new(key: Key) -> Self {
        Self { key, message: PhantomData }
    }

    /// Returns the id: the address without its message type.
    pub fn id(self) -> Id {
        Id(self.key)
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Address<M> {}

impl<M> PartialEq for Address<M> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<M> Eq for Address<M> {}

impl<M> Hash for Address<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.id(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_key_round_trip() {
        let worker_number = WorkerNumber::new(0xA5C3);
        let key = Key::new(worker_number, MAX_PAGES - 1, 222, 65_535);
        assert_eq!((key.worker_number(), key.page()), (worker_number, MAX_PAGES - 1));
        assert_eq!((key.slot(), key.generation()), (222, 65_535));
        let lease = crate::lease::Lease::take(201).expect("a number");
        let id = Id(Key::new(lease.worker_number(), 2, 3, 4));
        assert_eq!((id.to_string(), id.worker()), ("201.2.3#4".into(), 201));
        drop(lease);
        assert_eq!(id.worker(), 201, "also when its Worker has ended");
    }
}

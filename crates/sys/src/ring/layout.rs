//! Positions of a ring's control words and slots in its memory.
//!
//! ```text
//! one ring:   | control page | slot 0 | slot 1 | …
//! a pair,     | control, control | A: slots in the first half of each line, B: in the second
//! short slots
//! a pair,     | control, control | all slots of A | all slots of B
//! long slots
//! ```

/// Number and size of the messages that a ring holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of slots, each with room for one message; at least 2.
    pub slots: u32,
    /// Length of each message, in bytes.
    pub bytes: usize,
}

impl Shape {
    /// Returns the distance between slots in bytes: whole cache lines, or a power of two that
    /// divides one.
    fn stride(self) -> usize {
        let bytes = self.header() + self.bytes;
        if bytes <= CACHE_LINE_BYTES {
            bytes.next_power_of_two().max(MIN_SLOT_BYTES)
        } else {
            bytes.next_multiple_of(CACHE_LINE_BYTES)
        }
    }

    /// Returns the length in bytes of the header before a message: the message's number and, except
    /// before tiny messages, padding to 8 bytes.
    pub(super) fn header(self) -> usize {
        if self.is_tiny() { 4 } else { 8 }
    }

    /// Returns whether a message and its number are one word of 8 bytes, which is written and read
    /// atomically. A receiver that polls for the number then cannot take the cache line away
    /// between two writes.
    pub(super) fn is_tiny(self) -> bool {
        self.bytes <= MAX_TINY_BYTES
    }

    /// Returns the length in bytes of the memory that a ring needs.
    pub fn length(self) -> usize {
        CONTROL_BYTES + (self.slots as usize * self.stride()).next_multiple_of(CACHE_LINE_BYTES)
    }

    /// Returns the length in bytes of the memory that two rings need, one in each direction.
    pub fn length_of_pair(self) -> usize {
        CONTROL_BYTES + 2 * (self.slots as usize * self.stride()).next_multiple_of(CACHE_LINE_BYTES)
    }
}

/// The longest message that shares a word with its number, in bytes.
pub(super) const MAX_TINY_BYTES: usize = 4;
/// Size of a cache line, in bytes.
const CACHE_LINE_BYTES: usize = 64;
/// Size of the shortest slot, in bytes.
const MIN_SLOT_BYTES: usize = 8;
/// Bytes before the slots, for the control words of both directions.
pub(super) const CONTROL_BYTES: usize = 4096;

/// Positions of one direction's control words and slots, in bytes from the start of the memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Position of the control words, in bytes from the start of the memory.
    pub control: usize,
    /// Position of the first slot, in bytes from the start of the memory.
    first: usize,
    /// Base-2 logarithm of the number of adjacent slots in a group; groups are `distance` bytes
    /// apart.
    together: u32,
    distance: usize,
    stride: usize,
}

impl Layout {
    /// Creates the layout of a single ring in its memory.
    pub fn alone(shape: Shape) -> Self {
        let stride = shape.stride();
        Self { control: 0, first: CONTROL_BYTES, together: 0, distance: stride, stride }
    }

    /// Creates the layout of the first or the second of two rings, one in each direction. Short
    /// slots of both rings share cache lines, half a line each: a side that replies then writes
    /// into a line that it has just read, which is faster than fetching another one.
    pub fn of_pair(shape: Shape, second: bool) -> Self {
        let stride = shape.stride();
        let control = if second { CONTROL_BYTES / 2 } else { 0 };
        if stride <= CACHE_LINE_BYTES / 2 {
            let together = (CACHE_LINE_BYTES / 2 / stride).ilog2();
            let first = CONTROL_BYTES + if second { CACHE_LINE_BYTES / 2 } else { 0 };
            return Self { control, first, together, distance: CACHE_LINE_BYTES, stride };
        }
        let alone = Self::alone(shape);
        let behind = if second { shape.length() - CONTROL_BYTES } else { 0 };
        Self { control, first: alone.first + behind, ..alone }
    }

    /// Returns the position of a slot in bytes from the start of the memory.
    #[inline]
    pub fn at(&self, slot: u32) -> usize {
        let group = (slot >> self.together) as usize;
        let within = (slot & ((1 << self.together) - 1)) as usize;
        self.first + group * self.distance + within * self.stride
    }
}

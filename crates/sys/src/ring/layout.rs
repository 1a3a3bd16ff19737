//! Where in its memory a ring has its words and slots.

/// How large a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many messages there is room for, at least 2.
    pub slots: u32,
    /// How long each message is.
    pub bytes: usize,
}

impl Shape {
    /// From one slot to the next: whole cache lines, or parts of which several make one.
    fn stride(self) -> usize {
        let bytes = self.header() + self.bytes;
        if bytes <= LINE {
            bytes.next_power_of_two().max(SHORTEST)
        } else {
            bytes.next_multiple_of(LINE)
        }
    }

    /// Before a message: its number, and what makes one of 8 bytes and more begin at a multiple of 8.
    pub(super) fn header(self) -> usize {
        if self.is_tiny() { 4 } else { 8 }
    }

    /// Whether a message and its number are one word, which is written and read at once: who looks for
    /// the number cannot take the line away between the two.
    pub(super) fn is_tiny(self) -> bool {
        self.bytes <= TINY
    }

    /// The memory that a ring needs, in bytes.
    pub fn length(self) -> usize {
        CONTROL + (self.slots as usize * self.stride()).next_multiple_of(LINE)
    }

    /// The memory that two rings need, one each way.
    pub fn length_of_pair(self) -> usize {
        CONTROL + 2 * (self.slots as usize * self.stride()).next_multiple_of(LINE)
    }
}

/// The longest message that stands in a word with its number.
pub(super) const TINY: usize = 4;
/// A cache line.
const LINE: usize = 64;
/// The shortest slot.
const SHORTEST: usize = 8;
/// Before the slots: what both sides write besides, in each direction.
pub(super) const CONTROL: usize = 4096;

/// Where the slots of one direction are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// The words of this direction.
    pub control: usize,
    /// The first slot.
    first: usize,
    /// Slots that stand together, as a power of two, and how far it is from those to the next ones.
    together: u32,
    distance: usize,
    stride: usize,
}

impl Layout {
    /// Of a ring that has the memory for itself.
    pub fn alone(shape: Shape) -> Self {
        let stride = shape.stride();
        Self { control: 0, first: CONTROL, together: 0, distance: stride, stride }
    }

    /// Of the first or the second of two rings, one each way. Where slots are short, both have halves of
    /// the same cache lines: who answers then writes into a line that it has just read, which takes less
    /// than asking for another one.
    pub fn of_pair(shape: Shape, second: bool) -> Self {
        let stride = shape.stride();
        let control = if second { CONTROL / 2 } else { 0 };
        if stride <= LINE / 2 {
            let together = (LINE / 2 / stride).ilog2();
            let first = CONTROL + if second { LINE / 2 } else { 0 };
            return Self { control, first, together, distance: LINE, stride };
        }
        let alone = Self::alone(shape);
        let behind = if second { shape.length() - CONTROL } else { 0 };
        Self { control, first: alone.first + behind, ..alone }
    }

    /// The place of a slot.
    #[inline]
    pub fn at(&self, slot: u32) -> usize {
        let group = (slot >> self.together) as usize;
        let within = (slot & ((1 << self.together) - 1)) as usize;
        self.first + group * self.distance + within * self.stride
    }
}

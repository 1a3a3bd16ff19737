//! The entries of a sort, which locate lines in a buffer.

use std::cmp::Ordering;
use std::io;

use super::order::Kind;

/// Size of the occurrence count stored before each counted line, in bytes.
const COUNT_BYTES: usize = size_of::<u64>();

/// The location of a line in a text, and a prefix of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The line's [`Kind::prefix`], which orders most lines without access to the text.
    prefix: u64,
    start: u32,
    length: u32,
}

impl Entry {
    pub(super) fn new(kind: Kind<'_>, line: &[u8], start: usize) -> io::Result<Self> {
        let place = |number: usize| u32::try_from(number).map_err(io::Error::other);
        Ok(Self { prefix: kind.prefix(line), start: place(start)?, length: place(line.len())? })
    }

    /// Returns the line's [`Kind::prefix`], which orders most lines without access to the text.
    #[inline]
    pub(super) fn prefix(&self) -> u64 {
        self.prefix
    }

    /// Returns the offset at which the line begins.
    pub(super) fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns the line in `text`, without its separator.
    pub(super) fn line<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start as usize;
        &text[start..start + self.length as usize]
    }

    /// Returns the number of occurrences of the line, which must be stored in `text` directly
    /// before the line.
    pub(super) fn count(&self, text: &[u8]) -> u64 {
        let start = self.start as usize;
        let mut count = [0; COUNT_BYTES];
        count.copy_from_slice(&text[start - COUNT_BYTES..start]);
        u64::from_le_bytes(count)
    }

    pub(super) fn count_more(&self, text: &mut [u8], times: u64) {
        let count = self.count(text) + times;
        let start = self.start as usize;
        text[start - COUNT_BYTES..start].copy_from_slice(&count.to_le_bytes());
    }

    /// Compares the line of `self` in `text` with that of `other` in `other_text`, in the order of
    /// `kind`.
    pub(super) fn compare(
        &self,
        text: &[u8],
        other: &Self,
        other_text: &[u8],
        kind: Kind<'_>,
    ) -> Ordering {
        match self.prefix.cmp(&other.prefix) {
            Ordering::Equal
                if kind.order.keys.is_empty() && self.length <= 8 && other.length <= 8 =>
            {
                kind.directed(self.length.cmp(&other.length))
            }
            Ordering::Equal => {
                kind.compare_after_prefix(self.prefix, self.line(text), other.line(other_text))
            }
            order => kind.directed(order),
        }
    }
}

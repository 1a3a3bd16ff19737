//! Digests of an output, block by block.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// Length of a block in bytes: the precision with which a difference is located.
pub const BLOCK_BYTES: usize = 64 << 10;

/// The random key of this process. Two different blocks have the same digest with a probability of
/// about 2⁻⁶⁴, whatever they contain.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Maximum number of bytes of an output that are kept to locate a difference exactly.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// Digests of an output's blocks.
#[derive(Debug, Default, Clone)]
pub(super) struct Digests {
    blocks: Vec<u64>,
    /// The beginning of the last block, which is not full.
    unfinished: Vec<u8>,
    /// The beginning of the output, at most [`MAX_KEPT_BYTES`].
    kept: Vec<u8>,
}

/// The first byte in which two outputs differ, or the first one that only one of them has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Position of the byte, from 1.
    pub byte: u64,
    /// Line of the byte, from 1.
    pub line: u64,
}

impl Digests {
    /// Adds the next bytes of the output.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        let room = MAX_KEPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        while self.unfinished.len() + bytes.len() >= BLOCK_BYTES {
            let (now, later) = bytes.split_at(BLOCK_BYTES - self.unfinished.len());
            if self.unfinished.is_empty() {
                self.blocks.push(KEY.hash_one(now));
            } else {
                self.unfinished.extend_from_slice(now);
                self.blocks.push(KEY.hash_one(self.unfinished.as_slice()));
                self.unfinished.clear();
            }
            bytes = later;
        }
        self.unfinished.extend_from_slice(bytes);
    }

    /// Returns the length of the output in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES + self.unfinished.len()) as u64
    }

    /// Returns the offset in bytes of the first block that differs, or `None` if the outputs are
    /// equal.
    pub(super) fn first_difference(&self, other: &Self) -> Option<u64> {
        let both = self.blocks.iter().zip(&other.blocks);
        let equal = both.take_while(|(one, other)| one == other).count();
        let is_all = equal == self.blocks.len()
            && equal == other.blocks.len()
            && self.unfinished == other.unfinished;
        (!is_all).then_some((equal * BLOCK_BYTES) as u64)
    }

    /// Returns the first byte that differs, or `None` if the outputs are equal or if the difference
    /// is after the bytes that are kept.
    pub(super) fn first_byte(&self, other: &Self) -> Option<Difference> {
        let both = self.kept.iter().zip(&other.kept);
        let equal = both.take_while(|(one, other)| one == other).count();
        if equal == self.kept.len() && equal == other.kept.len() {
            return None;
        }
        let lines = memchr::memchr_iter(b'\n', &self.kept[..equal]).count();
        Some(Difference { byte: equal as u64 + 1, line: lines as u64 + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(text: &[u8], piece: usize) -> Digests {
        let mut digests = Digests::default();
        text.chunks(piece).for_each(|piece| digests.add(piece));
        digests
    }

    #[test]
    fn the_first_byte_that_differs_is_found_among_those_kept() {
        let of = |text: &[u8]| digests(text, 3);
        let differ = |one: &[u8], other: &[u8]| of(one).first_byte(&of(other));
        assert_eq!(differ(b"a\nbc\n", b"a\nbd\n"), Some(Difference { byte: 4, line: 2 }));
        assert_eq!(differ(b"a\n", b"a\nb\n"), Some(Difference { byte: 3, line: 2 }));
        assert_eq!(differ(b"", b"x"), Some(Difference { byte: 1, line: 1 }));
        assert_eq!(differ(b"same", b"same"), None);
        let long = vec![b'x'; MAX_KEPT_BYTES + 2];
        let mut other = long.clone();
        other[MAX_KEPT_BYTES] = b'y';
        assert_eq!(digests(&long, BLOCK_BYTES).first_byte(&digests(&other, 999)), None);
    }

    #[test]
    fn the_first_block_that_differs_is_found_however_it_was_written() {
        let text: Vec<u8> =
            (0..3 * BLOCK_BYTES + 17).map(|n| u8::try_from(n % 251).unwrap_or(0)).collect();
        let all = digests(&text, text.len());
        assert_eq!(all.bytes(), text.len() as u64);
        for piece in [1000, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES] {
            assert_eq!(all.first_difference(&digests(&text, piece)), None);
        }
        for (place, block) in
            [(0, 0), (BLOCK_BYTES - 1, 0), (BLOCK_BYTES, 1), (3 * BLOCK_BYTES + 16, 3)]
        {
            let mut other = text.clone();
            other[place] ^= 1;
            let found = all.first_difference(&digests(&other, 999));
            assert_eq!(found, Some((block * BLOCK_BYTES) as u64));
        }
        let shorter = digests(&text[..2 * BLOCK_BYTES], 999);
        assert_eq!(all.first_difference(&shorter), Some(2 * BLOCK_BYTES as u64));
        assert_eq!(shorter.first_difference(&all), Some(2 * BLOCK_BYTES as u64));
    }
}

//! Sets of bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of bytes. It serializes as a list of ranges, each with its first and last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<(u8, u8)>", into = "Vec<(u8, u8)>")]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 4]);
    /// The set of all bytes.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Returns the set of the bytes for which `is_in` returns `true`.
    pub fn of(is_in: impl Fn(u8) -> bool) -> Self {
        (0..=255).filter(|&byte| is_in(byte)).collect()
    }

    /// Returns whether the set contains `byte`.
    pub fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    /// Adds `byte` to the set.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Returns the set of the bytes that are in this set, in `other`, or in both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Returns the set of the bytes that are both in this set and in `other`.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Returns the set of the bytes that are not in this set.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(self.0.map(|bits| !bits))
    }

    /// Returns whether the set has no bytes.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Returns whether the set has all bytes.
    pub fn is_all(self) -> bool {
        self == Self::ALL
    }

    /// Iterates over the bytes of the set, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=255).filter(move |&byte| self.contains(byte))
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<T: IntoIterator<Item = u8>>(bytes: T) -> Self {
        let mut set = Self::EMPTY;
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}

impl From<Vec<(u8, u8)>> for ByteSet {
    fn from(ranges: Vec<(u8, u8)>) -> Self {
        ranges.into_iter().flat_map(|(first, last)| first..=last).collect()
    }
}

impl From<ByteSet> for Vec<(u8, u8)> {
    fn from(set: ByteSet) -> Self {
        let mut ranges: Self = Self::new();
        for byte in set.iter() {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(byte) => *last = byte,
                _ => ranges.push((byte, byte)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_ranges_and_read_back() {
        let set = ByteSet::of(|byte| byte.is_ascii_lowercase() || byte == 0 || byte == 255);
        let ranges: Vec<(u8, u8)> = set.into();
        assert_eq!(ranges, [(0, 0), (97, 122), (255, 255)]);
        assert_eq!(ByteSet::from(ranges), set);
        assert!(ByteSet::from(Vec::from(ByteSet::ALL)).is_all());
        assert_eq!(set.union(set.complement()), ByteSet::ALL);
        assert!(set.intersection(set.complement()).is_empty());
    }
}

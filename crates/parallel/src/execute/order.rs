//! Orders of lines, as in GNU `sort` in the C locale.

use std::cmp::Ordering;
use std::ops::Range;

use memchr::memchr2;

use super::key::{self, is_blank};
use crate::plan::ir::{LineOrder, SortKey};

/// The treatment of equal lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Equal {
    /// All equal lines are kept.
    Kept,
    /// One of the equal lines is kept.
    One,
    /// One of the equal lines is kept, preceded by the number of occurrences. If the lines already
    /// have such numbers, these are added up.
    Counted,
}

/// An order of lines, with the treatment of equal ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind<'o> {
    pub order: &'o LineOrder,
    pub equal: Equal,
}

/// A line whose first key has been located.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located<'l> {
    pub line: &'l [u8],
    /// The content of the key; empty if there are no keys.
    pub key: &'l [u8],
}

/// The order of lines by their bytes, without keys.
pub(super) const BYTES: LineOrder = LineOrder {
    keys: Vec::new(),
    field_separator: None,
    reverse: false,
    unique: false,
    separator: b'\n',
};

/// The value that represents every integer of more than 18 digits in a prefix. It exceeds all
/// integers of at most 18 digits.
const MAX_PREFIX_INTEGER: u64 = 1 << 61;
/// The prefix of zero in numeric keys.
const PREFIX_OF_ZERO: u64 = 1 << 63;

impl Kind<'_> {
    /// Returns a number that decides most comparisons. If the prefixes of two lines differ, the
    /// order of the prefixes, passed through [`Self::directed`], is the order of the lines.
    pub(super) fn prefix(self, line: &[u8]) -> u64 {
        match self.order.keys.first() {
            None => first_bytes(line),
            Some(key) => key_prefix(key, self.key_text(key, line)),
        }
    }

    /// Returns whether the line may have a number that versions of `sort` read differently. Within
    /// numbers, some versions skip the byte that they use for "no thousands separator", 0x80 or
    /// 0xff. In UTF-8, neither byte can follow a digit.
    pub(super) fn has_doubtful_numbers(self, line: &[u8]) -> bool {
        self.order.keys.iter().any(|key| key.numeric)
            && memchr2(0x80, 0xff, line).is_some()
            && std::str::from_utf8(line).is_err()
    }

    /// Applies the direction of the first key, or of the whole order if there are no keys, to the
    /// order of prefixes.
    pub(super) fn directed(self, order: Ordering) -> Ordering {
        let first = self.order.keys.first();
        reversed_if(first.map_or(self.order.reverse, |key| key.reverse), order)
    }

    /// Compares two lines for which [`Self::prefix`] returns `prefix`.
    pub(super) fn compare_after_prefix(self, prefix: u64, one: &[u8], other: &[u8]) -> Ordering {
        let located = |line| Located { line, key: &line[self.first_key(line)] };
        self.compare_located(prefix, located(one), located(other))
    }

    /// Compares two lines for which [`Self::prefix`] returns `prefix`, and whose first keys have been located.
    pub(super) fn compare_located(
        self,
        prefix: u64,
        one: Located<'_>,
        other: Located<'_>,
    ) -> Ordering {
        let Some((first, others)) = self.order.keys.split_first() else {
            return self.by_bytes(one.line, other.line);
        };
        let by_key = |key| {
            let [one, other] = [one, other].map(|located| self.key_text(key, located.line));
            behind_key_prefix(key, None, one, other)
        };
        behind_key_prefix(first, Some(prefix), one.key, other.key)
            .then_with(|| {
                others.iter().map(by_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            })
            .then_with(|| self.by_bytes(one.line, other.line))
    }

    /// Returns the range of the first key in a line; empty if there are no keys.
    pub(super) fn first_key(self, line: &[u8]) -> Range<usize> {
        let key = self.order.keys.first();
        key.map_or(0..0, |key| key::range(key, self.order.field_separator, line))
    }

    /// Compares two lines that are equal in all keys.
    pub(super) fn by_bytes(self, one: &[u8], other: &[u8]) -> Ordering {
        reversed_if(self.order.reverse, one.cmp(other))
    }

    /// Compares two lines by the keys, then by all bytes.
    #[cfg(test)]
    pub(crate) fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        let prefix = self.prefix(one);
        let order = self.directed(prefix.cmp(&self.prefix(other)));
        order.then_with(|| self.compare_after_prefix(prefix, one, other))
    }

    fn key_text<'l>(self, key: &SortKey, line: &'l [u8]) -> &'l [u8] {
        &line[key::range(key, self.order.field_separator, line)]
    }
}

/// Returns a number that decides most comparisons by the given key. `key_text` is the content of
/// the key in a line. If the numbers of two lines differ, their keys have the order of the numbers,
/// or the opposite order if the key is reversed.
pub(super) fn key_prefix(key: &SortKey, key_text: &[u8]) -> u64 {
    match key {
        SortKey { numeric: true, .. } => Number::read(key_text).prefix(),
        SortKey { fold: true, .. } => capitals(first_bytes(key_text)),
        _ => first_bytes(key_text),
    }
}

/// Compares the contents of a key in two lines. `prefix` is their common [`key_prefix`], or `None`
/// if the prefixes have not been compared.
pub(super) fn behind_key_prefix(
    key: &SortKey,
    prefix: Option<u64>,
    one: &[u8],
    other: &[u8],
) -> Ordering {
    let order = if key.numeric {
        match prefix {
            Some(prefix) if prefix.is_multiple_of(2) => Ordering::Equal, // an even prefix is exact
            _ => Number::read(one).cmp(&Number::read(other)),
        }
    } else if key.fold {
        one.iter().map(u8::to_ascii_uppercase).cmp(other.iter().map(u8::to_ascii_uppercase))
    } else {
        one.cmp(other)
    };
    reversed_if(key.reverse, order)
}

/// Reverses an order if `reverse` is true.
pub(super) fn reversed_if(reverse: bool, order: Ordering) -> Ordering {
    if reverse { order.reverse() } else { order }
}

/// Returns the first eight bytes of `text` as a big-endian number, padded with zeros.
fn first_bytes(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    let known = text.len().min(8);
    first[..known].copy_from_slice(&text[..known]);
    u64::from_be_bytes(first)
}

/// Converts ASCII lower-case letters in eight bytes to upper case.
fn capitals(bytes: u64) -> u64 {
    u64::from_be_bytes(bytes.to_be_bytes().map(|byte| byte.to_ascii_uppercase()))
}

/// The number at the beginning of a key, or 0 if there is none.
#[derive(Debug, PartialEq, Eq)]
struct Number<'a> {
    negative: bool,
    /// The integer digits, without leading zeros.
    integer: &'a [u8],
    /// The fraction digits, without trailing zeros.
    fraction: &'a [u8],
}

impl<'a> Number<'a> {
    fn read(line: &'a [u8]) -> Self {
        let rest = skip(line, |byte| is_blank(*byte));
        let (negative, rest) = rest.strip_prefix(b"-").map_or((false, rest), |rest| (true, rest));
        let (integer, rest) = digits(skip(rest, |byte| *byte == b'0'));
        let fraction = rest.strip_prefix(b".").map_or(&[][..], |rest| digits(rest).0);
        let last = fraction.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        let fraction = &fraction[..last];
        let negative = negative && !(integer.is_empty() && fraction.is_empty());
        Self { negative, integer, fraction }
    }

    /// Returns the prefix of the number. If a prefix is even, all numbers that have it are equal;
    /// an odd one may belong to different numbers.
    fn prefix(&self) -> u64 {
        let known = self.integer.len() <= 18;
        let integer = if known {
            self.integer.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
        } else {
            MAX_PREFIX_INTEGER
        };
        let exact = self.fraction.is_empty() && known;
        if self.negative {
            PREFIX_OF_ZERO - 2 * integer - u64::from(!exact)
        } else {
            PREFIX_OF_ZERO + 2 * integer + u64::from(!exact)
        }
    }
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitudes = || {
            let lengths = self.integer.len().cmp(&other.integer.len());
            lengths
                .then_with(|| self.integer.cmp(other.integer))
                .then_with(|| self.fraction.cmp(other.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => magnitudes(),
            (true, true) => magnitudes().reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn skip(text: &[u8], unwanted: impl Fn(&u8) -> bool) -> &[u8] {
    &text[text.iter().position(|byte| !unwanted(byte)).unwrap_or(text.len())..]
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ir::FieldPlace;

    const START: FieldPlace = FieldPlace { field: 0, bytes: 0, skips_blanks: false };
    const WHOLE: SortKey =
        SortKey { from: START, to: None, numeric: false, fold: false, reverse: false };

    fn compare(keys: &[SortKey], reverse: bool, one: &str, other: &str) -> Ordering {
        let order = LineOrder { keys: keys.to_vec(), reverse, ..BYTES };
        Kind { order: &order, equal: Equal::Kept }.compare(one.as_bytes(), other.as_bytes())
    }

    #[test]
    fn keys_are_compared_in_turn_and_then_all_bytes() {
        let field = |field| SortKey {
            from: FieldPlace { field, ..START },
            to: Some(FieldPlace { field, ..START }),
            ..WHOLE
        };
        let numeric = SortKey { numeric: true, ..field(1) };
        let keys = [numeric.clone(), field(0)];
        assert_eq!(compare(&keys, false, "b 9", "a 10"), Ordering::Less);
        assert_eq!(compare(&keys, false, "b 9", "a 9"), Ordering::Greater);
        assert_eq!(compare(&keys, true, "b 9", "a 9"), Ordering::Greater, "of bytes alone");
        assert_eq!(compare(&keys, true, "a 9 x", "a 9 y"), Ordering::Greater);
        let keys = [SortKey { reverse: true, ..numeric }, field(0)];
        assert_eq!(compare(&keys, false, "b 9", "a 10"), Ordering::Greater);
        assert_eq!(compare(&keys, false, "b 9.5", "a 9.50"), Ordering::Greater);
        let fold = [SortKey { fold: true, ..WHOLE }];
        assert_eq!(compare(&fold, false, "abcdefghij", "ABCDEFGHIk"), Ordering::Less);
        assert_eq!(compare(&fold, false, "abc", "ABC"), Ordering::Greater);
        assert_eq!(compare(&fold, false, "a", "A\0"), Ordering::Less);
    }

    #[test]
    fn numbers_come_before_the_bytes() {
        // In the order of `LC_ALL=C sort -n`.
        let lines = [
            "-100000000000000000000000",
            "-5.31",
            "-5.3",
            " -5",
            "-0.5",
            "",
            "\t0 b",
            "-0",
            "-x",
            "0",
            "0.0",
            "a",
            ".5",
            "0.51",
            "1",
            "01 a",
            "1 a",
            "1.000000000000000000000001",
            "2",
            "10",
            "999999999999999999",
            "1000000000000000000",
            "99999999999999999999999",
            "100000000000000000000000",
        ];
        for pair in lines.windows(2) {
            let [one, other] = [pair[0].as_bytes(), pair[1].as_bytes()];
            let numeric = [SortKey { numeric: true, ..WHOLE }];
            let order = LineOrder { keys: numeric.to_vec(), ..BYTES };
            let kind = Kind { order: &order, equal: Equal::Kept };
            let known = kind.compare(one, other);
            let bytes_decide = Number::read(one) == Number::read(other);
            let wanted = if bytes_decide { one.cmp(other) } else { Ordering::Less };
            assert_eq!(known, wanted, "{pair:?}");
            assert_eq!(kind.compare(other, one), wanted.reverse(), "{pair:?}");
        }
    }
}

//! Orders of whole lines, as GNU `sort` has them where the locale is C.

use std::cmp::Ordering;

use contend_record::run::LineOrder;

/// What is done with equal lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Equal {
    /// All are kept.
    Kept,
    /// One is kept.
    One,
    /// Lines begin with how often they were there, which is added up.
    Counted,
}

/// What is made of lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub order: LineOrder,
    pub equal: Equal,
}

/// Integers up to this are told by a prefix.
const GREATEST: u64 = 1 << 61;
/// The prefix of zero.
const ZERO: u64 = 1 << 63;

impl Kind {
    /// What decides most comparisons of lines: that of prefixes that differ is theirs.
    pub(super) fn prefix(self, line: &[u8]) -> u64 {
        if self.order.numeric {
            return Number::read(line).prefix();
        }
        let mut first = [0; 8];
        let known = line.len().min(8);
        first[..known].copy_from_slice(&line[..known]);
        u64::from_be_bytes(first)
    }

    /// Which of two lines with the same prefix comes first.
    pub(super) fn behind_prefix(self, prefix: u64, one: &[u8], other: &[u8]) -> Ordering {
        let order = if self.order.numeric {
            // Even ones are exact.
            let numbers = match prefix % 2 {
                0 => Ordering::Equal,
                _ => Number::read(one).cmp(&Number::read(other)),
            };
            numbers.then_with(|| one.cmp(other))
        } else {
            one.cmp(other)
        };
        self.directed(order)
    }

    /// Which of two lines comes first.
    pub(super) fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        if !self.order.numeric {
            return self.directed(one.cmp(other));
        }
        let prefix = self.prefix(one);
        let order = self.directed(prefix.cmp(&self.prefix(other)));
        order.then_with(|| self.behind_prefix(prefix, one, other))
    }

    /// The order in the direction that is wanted.
    pub(super) fn directed(self, order: Ordering) -> Ordering {
        if self.order.reverse { order.reverse() } else { order }
    }
}

/// The number at the beginning of a line.
#[derive(Debug, PartialEq, Eq)]
struct Number<'a> {
    negative: bool,
    /// Digits without zeros before them.
    integer: &'a [u8],
    /// Digits behind the point without zeros behind them.
    fraction: &'a [u8],
}

impl<'a> Number<'a> {
    fn read(line: &'a [u8]) -> Self {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
        let rest = skip(line, blank);
        let (negative, rest) = rest.strip_prefix(b"-").map_or((false, rest), |rest| (true, rest));
        let (integer, rest) = digits(skip(rest, |byte| *byte == b'0'));
        let fraction = rest.strip_prefix(b".").map_or(&[][..], |rest| digits(rest).0);
        let last = fraction.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        let fraction = &fraction[..last];
        let negative = negative && !(integer.is_empty() && fraction.is_empty());
        Self { negative, integer, fraction }
    }

    /// Even if it stands for this number alone.
    fn prefix(&self) -> u64 {
        let known = self.integer.len() <= 18;
        let integer = if known {
            self.integer.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
        } else {
            GREATEST
        };
        let exact = self.fraction.is_empty() && known;
        if self.negative {
            ZERO - 2 * integer - u64::from(!exact)
        } else {
            ZERO + 2 * integer + u64::from(!exact)
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

    const NUMERIC: Kind = Kind {
        order: LineOrder { numeric: true, reverse: false, unique: false, separator: b'\n' },
        equal: Equal::Kept,
    };

    #[test]
    fn numbers_come_before_the_bytes() {
        // In their order, which is that of `LC_ALL=C sort -n`.
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
            let known = NUMERIC.compare(one, other);
            let bytes_decide = Number::read(one) == Number::read(other);
            let wanted = if bytes_decide { one.cmp(other) } else { Ordering::Less };
            assert_eq!(known, wanted, "{pair:?}");
            assert_eq!(NUMERIC.compare(other, one), wanted.reverse(), "{pair:?}");
        }
    }
}

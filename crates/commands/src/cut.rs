//! Parses `cut` commands, and composes the selections of two of them.

use super::options::{Options, Table};
use super::{Simple, Word};

/// Options of GNU `cut`.
pub const TABLE: Table = Table {
    short: "b:c:d:f:nsz\u{1}\u{2}:",
    long: &[
        ("bytes", 'b'),
        ("characters", 'c'),
        ("delimiter", 'd'),
        ("fields", 'f'),
        ("only-delimited", 's'),
        ("zero-terminated", 'z'),
        ("complement", '\u{1}'),
        ("output-delimiter", '\u{2}'),
    ],
};

/// A `cut` whose only options are one list of positions and `-d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The unit of positions: `b` (bytes), `c` (characters) or `f` (fields).
    pub unit: char,
    /// The selected positions.
    pub list: List,
    /// The field delimiter, one byte; a tab unless `-d` is given.
    pub delimiter: String,
    /// The input files; empty for standard input.
    pub files: Vec<Word>,
}

/// Positions counted from 1, as sorted ranges (first, last) that include both ends and neither
/// overlap nor touch. Only the last range may be open-ended, with `None` as its last position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List(Vec<(u64, Option<u64>)>);

impl Cut {
    /// Parses the command. Returns `None` unless all of these hold:
    /// - it is a `cut` with exactly one list of positions, which `List::read` accepts;
    /// - it has no options besides `-b`, `-c`, `-d` and `-f`;
    /// - the delimiter, if given, belongs to `-f` and is one byte other than a newline.
    pub fn read(simple: &Simple) -> Option<Self> {
        if simple.name() != "cut" {
            return None;
        }
        let options = Options::read(&simple.arguments, &TABLE)?;
        if !options.has_only("bcdf") {
            return None;
        }
        let lists: Vec<_> =
            options.given.iter().filter(|(letter, _)| "bcf".contains(*letter)).collect();
        let [(unit, Some(text))] = lists.as_slice() else { return None };
        let delimiter = options.value('d').unwrap_or("\t").to_owned();
        // GNU `cut` treats lines as fields if the delimiter is a newline.
        if delimiter.len() != 1 || delimiter == "\n" || options.has('d') && *unit != 'f' {
            return None;
        }
        let files = options.operands.iter().map(|&index| simple.arguments[index].clone()).collect();
        Some(Self { unit: *unit, list: List::read(text)?, delimiter, files })
    }

    /// Returns the arguments of an equivalent `cut`.
    pub fn arguments(&self) -> Vec<Word> {
        let delimiter = (self.delimiter != "\t").then(|| Word {
            raw: format!("-d{}", super::quote(&self.delimiter)),
            text: format!("-d{}", self.delimiter),
        });
        let list = Word::new(format!("-{}{}", self.unit, self.list.written()));
        delimiter.into_iter().chain([list]).chain(self.files.iter().cloned()).collect()
    }
}

impl List {
    /// Parses the argument of `-b`, `-c` or `-f`. Returns `None` if `cut` would reject it, and for
    /// positions of at least 2^32.
    pub fn read(text: &str) -> Option<Self> {
        // `cut` rejects numbers that overflow.
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |text: &str| {
            let number = text.parse::<u64>().ok().filter(|_| is_number(text)); // not `+3`
            number.filter(|n| (1..1 << 32).contains(n))
        };
        let mut ranges = Vec::new();
        for part in text.split([',', ' ']) {
            let range = match part.split_once('-') {
                None => (number(part)?, Some(number(part)?)),
                Some(("", "")) => return None,
                Some(("", last)) => (1, Some(number(last)?)),
                Some((first, "")) => (number(first)?, None),
                Some((first, last)) => (number(first)?, Some(number(last)?)),
            };
            if range.1.is_some_and(|last| last < range.0) {
                return None;
            }
            ranges.push(range);
        }
        Some(Self::merged(ranges))
    }

    /// Sorts ranges, and merges overlapping and adjacent ones.
    fn merged(mut ranges: Vec<(u64, Option<u64>)>) -> Self {
        ranges.sort_unstable_by_key(|range| range.0);
        let mut merged: Vec<(u64, Option<u64>)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, None)) => {}
                Some((_, Some(end))) if first <= end.saturating_add(1) => {
                    let longer = last.is_none_or(|last| last > *end);
                    if longer && let Some(previous) = merged.last_mut() {
                        previous.1 = last;
                    }
                }
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// Returns whether position 1 is selected.
    pub fn has_first(&self) -> bool {
        self.0.first().is_some_and(|range| range.0 == 1)
    }

    /// Composes two selections: `next` selects among the positions that `self` selects. Returns
    /// `None` if the result is empty.
    pub fn then(&self, next: &Self) -> Option<Self> {
        let mut ranges = Vec::new();
        let mut before = 0; // number of positions in earlier ranges
        for &(first, last) in &self.0 {
            let count = last.map(|last| last - first + 1);
            for &(from, to) in &next.0 {
                let start = from.saturating_sub(before).max(1);
                let end = match (to.map(|to| to.checked_sub(before)), count) {
                    (Some(None), _) => continue,
                    (Some(Some(to)), Some(count)) => Some(to.min(count)),
                    (Some(Some(to)), None) => Some(to),
                    (None, count) => count,
                };
                if end.is_none_or(|end| start <= end) && count.is_none_or(|count| start <= count) {
                    ranges.push((first + start - 1, end.map(|end| first + end - 1)));
                }
            }
            before += count.unwrap_or(0);
        }
        (!ranges.is_empty()).then(|| Self::merged(ranges))
    }

    fn written(&self) -> String {
        let ranges = self.0.iter().map(|range| match *range {
            (first, Some(last)) if first == last => first.to_string(),
            (first, Some(last)) => format!("{first}-{last}"),
            (first, None) => format!("{first}-"),
        });
        ranges.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;
    use proptest::prelude::*;

    #[test]
    fn parts_are_read_and_written() {
        let cut = Cut::read(&simple("cut -d: -f 3,1-2,7- /etc/passwd")).expect("understood");
        let raw: Vec<_> = cut.arguments().into_iter().map(|word| word.raw).collect();
        assert_eq!(raw, ["-d:", "-f1-3,7-", "/etc/passwd"]);
        let cut = Cut::read(&simple("cut -d' ' --fields=1")).expect("understood");
        assert_eq!(cut.arguments()[0].raw, "-d' '");
        for text in [
            "cut",
            "cut -f0",
            "cut -f",
            "cut -f-",
            "cut -f3-1",
            "cut -f1 -c1",
            "cut -s -f1",
            "cut --complement -f1",
            "cut --output-delimiter=x -f1",
            "cut -d: -c1",
            "cut -d:: -f1",
            "cut -z -f1",
            "cut -fa",
        ] {
            assert_eq!(Cut::read(&simple(text)), None, "{text}");
        }
    }

    #[test]
    fn lists_compose() {
        let then = |first: &str, next: &str| {
            let lists = (List::read(first).expect("a list"), List::read(next).expect("a list"));
            lists.0.then(&lists.1).map(|list| list.written())
        };
        assert_eq!(then("2-5", "1,3").as_deref(), Some("2,4"));
        assert_eq!(then("1,3,7-", "2-").as_deref(), Some("3,7-"));
        assert_eq!(then("3", "1").as_deref(), Some("3"));
        assert_eq!(then("3", "2"), None);
        assert_eq!(then("2-", "2-3").as_deref(), Some("3-4"));
    }

    fn kept(list: &List, places: &[u64]) -> Vec<u64> {
        let within =
            |place: u64| list.0.iter().any(|&(a, b)| a <= place && b.is_none_or(|b| place <= b));
        (1..).zip(places).filter(|(place, _)| within(*place)).map(|(_, &value)| value).collect()
    }

    proptest! {
        #[test]
        fn composition_equals_applying_both(
            first in prop::collection::vec((1..9_u64, prop::option::of(0..5_u64)), 1..4),
            next in prop::collection::vec((1..9_u64, prop::option::of(0..5_u64)), 1..4),
            length in 0..30_u64,
        ) {
            let list = |ranges: Vec<(u64, Option<u64>)>| {
                List::merged(ranges.into_iter().map(|(a, n)| (a, n.map(|n| a + n))).collect())
            };
            let (first, next) = (list(first), list(next));
            let line: Vec<u64> = (1..=length).collect();
            let one_by_one = kept(&next, &kept(&first, &line));
            let at_once = first.then(&next).map(|both| kept(&both, &line)).unwrap_or_default();
            prop_assert_eq!(one_by_one, at_once);
        }
    }
}

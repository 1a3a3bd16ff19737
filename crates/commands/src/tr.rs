//! Parses `tr` commands into maps from bytes to bytes.
//!
//! [`Tr`] covers the commands on which implementations agree, and [`Effect`] all options of GNU
//! `tr`.

use std::collections::BTreeSet;

mod effect;
mod sets;

pub use effect::Effect;

use super::Simple;
use super::options::{Options, Table};

/// Options of GNU `tr`.
pub const TABLE: Table = Table {
    short: "cCdst",
    long: &[("complement", 'c'), ("delete", 'd'), ("squeeze-repeats", 's'), ("truncate-set1", 't')],
};

/// A `tr` that translates or deletes each byte regardless of its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tr {
    /// The replacement of each byte; `None` if the byte is deleted.
    map: [Option<u8>; 256],
}

impl Tr {
    /// Parses the command. Returns `None` if it is not a `tr`, if `tr` rejects it or warns, or if
    /// it has an empty set or the option `-s`, with which the output for a byte depends on the byte
    /// before it. Also returns `None` for constructs that implementations interpret differently:
    /// `-c`, `-t`, brackets and, if characters may have several bytes (`multibyte`), ranges and
    /// non-ASCII characters.
    pub fn read(simple: &Simple, multibyte: bool) -> Option<Self> {
        if simple.name() != "tr" {
            return None;
        }
        let options = Options::read(&simple.arguments, &TABLE)?;
        let sets: Vec<_> = options
            .operands
            .iter()
            .map(|&index| set(&simple.arguments[index].text, multibyte))
            .collect::<Option<_>>()?;
        let mut map = std::array::from_fn(|byte| u8::try_from(byte).ok());
        match (sets.as_slice(), options.has('d')) {
            ([deleted], true) if options.has_only("d") => {
                for &byte in deleted {
                    map[usize::from(byte)] = None;
                }
            }
            ([from, to], false) if options.has_only("") => {
                let last = *to.last()?;
                let padded = to.iter().copied().chain(std::iter::repeat(last));
                for (&from, to) in from.iter().zip(padded) {
                    map[usize::from(from)] = Some(to);
                }
            }
            _ => return None,
        }
        Some(Self { map })
    }

    /// Returns the map that applies `self` and then `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self { map: self.map.map(|byte| byte.and_then(|byte| next.map[usize::from(byte)])) }
    }

    /// Returns whether the map keeps newlines and maps no other byte to a newline.
    pub fn keeps_lines(&self) -> bool {
        let newline = Some(b'\n');
        let made = self.map.iter().filter(|&&byte| byte == newline).count();
        self.map[usize::from(b'\n')] == newline && made == 1
    }

    /// Returns the characters that the map changes, and their replacements. Returns `None` if the
    /// map deletes a byte, or if one of these characters is not ASCII.
    pub fn touches(&self) -> Option<BTreeSet<char>> {
        let mut touched = BTreeSet::new();
        for (byte, &becomes) in (0..=255_u8).zip(&self.map) {
            let becomes = becomes?;
            if becomes != byte {
                touched.extend([char::from(byte), char::from(becomes)]);
            }
        }
        touched.iter().all(char::is_ascii).then_some(touched)
    }

    /// Returns the arguments of an equivalent `tr`. Returns `None` if that takes more than one
    /// `tr`, or if the map changes nothing.
    pub fn arguments(&self) -> Option<Vec<String>> {
        let deleted: Vec<u8> =
            (0..=255).filter(|&byte| self.map[usize::from(byte)].is_none()).collect();
        let changed: Vec<(u8, u8)> = (0..=255)
            .filter_map(|byte| Some((byte, self.map[usize::from(byte)]?)))
            .filter(|(from, to)| from != to)
            .collect();
        match (deleted.is_empty(), changed.is_empty()) {
            (false, true) => {
                let pairs: Vec<_> = deleted.iter().map(|&byte| (byte, byte)).collect();
                Some(vec!["-d".to_owned(), written(&pairs).0])
            }
            (true, false) => {
                let (from, to) = written(&changed);
                Some(vec![from, to])
            }
            _ => None,
        }
    }
}

/// Parses a set into its bytes. Returns `None` for an empty set, for one that makes `tr` fail or
/// warn, and for one that implementations interpret differently. With `multibyte`, the latter
/// includes sets with ranges or non-ASCII characters.
fn set(text: &str, multibyte: bool) -> Option<Vec<u8>> {
    if text.is_empty() || multibyte && !text.is_ascii() || text.contains(['[', ']']) {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = character(rest)? {
        rest = after;
        let is_range = rest.first() == Some(&b'-') && rest.len() > 1;
        if !is_range {
            bytes.push(first);
            continue;
        }
        let (last, after) = character(&rest[1..])??;
        rest = after;
        if multibyte || last < first {
            return None;
        }
        bytes.extend(first..=last);
    }
    Some(bytes)
}

/// Returns the first byte, with its escape resolved, and the rest. Returns `Some(None)` at the end,
/// and `None` for an escape that makes `tr` warn.
#[expect(clippy::option_option, reason = "the end of the text is no failure")]
fn character(bytes: &[u8]) -> Option<Option<(u8, &[u8])>> {
    let Some((&first, rest)) = bytes.split_first() else { return Some(None) };
    if first != b'\\' {
        return Some(Some((first, rest)));
    }
    escape(rest).map(Some)
}

/// Resolves the escape after a backslash. Returns the byte and the rest, or `None` for an escape
/// that makes `tr` warn.
fn escape(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let digits = bytes.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if digits > 0 {
        let value = bytes[..digits].iter().fold(0_u32, |v, &digit| v * 8 + u32::from(digit - b'0'));
        return Some((u8::try_from(value).ok()?, &bytes[digits..]));
    }
    let (&escaped, rest) = bytes.split_first()?;
    let byte = match escaped {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        other => other,
    };
    Some((byte, rest))
}

/// Formats both sets of a translation. Runs of at least four consecutive alphanumeric bytes on both
/// sides become ranges.
fn written(pairs: &[(u8, u8)]) -> (String, String) {
    let (mut from, mut to) = (String::new(), String::new());
    let follows = |a: &(u8, u8), b: &(u8, u8)| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        b.0 == a.0.wrapping_add(1)
            && b.1 == a.1.wrapping_add(1)
            && [a.0, a.1, b.0, b.1].into_iter().all(plain)
    };
    for run in pairs.chunk_by(follows) {
        if let [first, .., last] = run
            && run.len() > 3
        {
            from.push_str(&format!("{}-{}", char::from(first.0), char::from(last.0)));
            to.push_str(&format!("{}-{}", char::from(first.1), char::from(last.1)));
        } else {
            for pair in run {
                from.push_str(&escaped(pair.0));
                to.push_str(&escaped(pair.1));
            }
        }
    }
    (from, to)
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\\' => "\\\\".to_owned(),
        // Unescaped, these could form a range, a class or an option.
        b'-' | b'[' | b']' => format!("\\{byte:03o}"),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;
    use proptest::prelude::*;

    fn tr(text: &str) -> Option<Tr> {
        Tr::read(&simple(text), false)
    }

    fn apply(tr: &Tr, text: &str) -> String {
        let bytes = text.bytes().filter_map(|byte| tr.map[usize::from(byte)]).collect();
        String::from_utf8(bytes).expect("ASCII")
    }

    #[test]
    fn sets_are_read_as_gnu_does() {
        assert_eq!(apply(&tr("tr a-c x").expect("known"), "abcd"), "xxxd");
        assert_eq!(apply(&tr("tr 'a\\n\\055' 'A,_'").expect("known"), "a\n-b"), "A,_b");
        assert_eq!(apply(&tr("tr -d '\\r-'").expect("known"), "a\r-\n"), "a\n");
        assert_eq!(apply(&tr("tr ab- xyz").expect("known"), "a-b"), "xzy");
        assert_eq!(apply(&tr("tr aa bc").expect("known"), "a"), "c");
        assert_eq!(apply(&tr("tr '\\q' x").expect("known"), "q\\"), "x\\");
        for text in [
            "tr -s a",
            "tr -cd a",
            "tr -s a b",
            "tr -t ab c",
            "tr '[:upper:]' '[:lower:]'",
            "tr '[a-z]' '[A-Z]'",
            "tr c-a x",
            "tr a",
            "tr -d a b",
            "tr a ''",
        ] {
            assert_eq!(tr(text), None, "{text}");
        }
    }

    #[test]
    fn ranges_and_letters_beyond_ascii_need_single_bytes() {
        assert_eq!(Tr::read(&simple("tr a-z A-Z"), true), None);
        assert_eq!(Tr::read(&simple("tr é e"), true), None);
        assert!(Tr::read(&simple("tr abc xyz"), true).is_some());
    }

    #[test]
    fn maps_compose() {
        let both = tr("tr a-z A-Z").expect("known").then(&tr("tr X ' '").expect("known"));
        let arguments = both.arguments().expect("one tr");
        assert_eq!(arguments, ["Xa-wxyz", " A-W YZ"]);
        let deleted = tr("tr -d '\\r'").expect("known").then(&tr("tr -d -- -").expect("known"));
        assert_eq!(deleted.arguments().expect("one tr"), ["-d", "\\r\\055"]);
        let mixed = tr("tr -d a").expect("known").then(&tr("tr b c").expect("known"));
        assert_eq!(mixed.arguments(), None);
        assert_eq!(tr("tr a a").expect("known").arguments(), None);
    }

    #[test]
    fn line_breaks_are_kept_or_not() {
        assert!(tr("tr a b").expect("known").keeps_lines());
        for text in ["tr a '\\n'", "tr '\\n' ' '", "tr -d '\\n'"] {
            assert!(!tr(text).expect("known").keeps_lines(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_sets_round_trip(pairs in prop::collection::vec((any::<u8>(), any::<u8>()), 0..40)) {
            let mut map: [Option<u8>; 256] = std::array::from_fn(|byte| u8::try_from(byte).ok());
            for (from, to) in pairs {
                map[usize::from(from)] = Some(to);
            }
            let wanted = Tr { map };
            if let Some(arguments) = wanted.arguments() {
                let words: Vec<_> = arguments.iter().map(|text| super::super::quote(text)).collect();
                prop_assert_eq!(tr(&format!("tr -- {}", words.join(" "))), Some(wanted));
            }
        }
    }
}

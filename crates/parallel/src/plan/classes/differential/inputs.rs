//! Generates inputs that are hard to cut.

use proptest::prelude::*;

use super::parts::key_of;
use crate::plan::ir::Key;

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Lines with any bytes.
    Lines,
    /// Lines that mostly have neither invalid characters nor NUL.
    Text,
    /// Records that end with NUL.
    Nul,
    /// Lines, sorted in most inputs, for comparison with a file.
    Sorted,
    /// Lines, sorted in most inputs, some with equal keys.
    Keyed,
    /// JSON values, in some inputs with a few invalid ones.
    Json,
    /// Words that become arguments of other commands.
    Items,
}

const PLAIN: &[&[u8]] = &[
    b"",
    b"a",
    b"b",
    b"ab",
    b"B",
    b"aa",
    b"abcabc",
    b" ",
    b"  ",
    b"\t",
    b"1",
    b"10",
    b"-5",
    b"2.5",
    b"1e3",
    b"3K",
    b"Jan",
    b",",
    b":",
    b"a,b",
    b"x:y:z",
    b"a b c",
    b".",
    b"The quick brown fox",
    b"foo",
    b"bar",
    b"0x1",
    b"z",
];
const AWKWARD: &[&[u8]] = &[
    b"\r",
    b"\x08",
    b"x\x08y",
    b"\x08\x08",
    "é".as_bytes(),
    "日本".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{3000}".as_bytes(),
    b"\x0c",
    b"\"q\"",
    b"'",
    b"\\",
    b"\x01",
    b"\x7f",
    b"-n",
    b"\x0b",
    b"\x1b7",
    b"                                                                                  x",
];
const BROKEN: &[&[u8]] =
    &[b"\xff", b"\xe3\x81", b"\xc3", b"\x81\x81", b"\0", b"a\0b", b"\xef\xbb\xbf"];
const VALUES: &[&[u8]] = &[
    b"{\"a\":1,\"b\":[1,2]}",
    b"{\"a\":\n2}",
    b"[1,\n\n2]",
    b"\"a\\\"\\n[\"",
    b"null",
    b"true",
    b"1",
    b"-2.50",
    b"{\"a\":{\"b\":\"\xc3\xa9\"}}",
    b"[]",
    b"{}",
    b"\"\\u00e9\\u0000\"",
    b"{\"a\":\"x y\",\"b\":null}",
    b"[[{\"a\":[]}]]",
    b"1e1000",
    b"{\"b\":2,\"a\":3}",
    b"[\"\\u001b\", \"\x7f\"]",
    b"{\"a\":[3]}",
    b"\"\"",
];
const ODD_VALUES: &[&[u8]] = &[
    b"]",
    b"{",
    b"\"",
    b"nan",
    b"\xef\xbb\xbf1",
    b"tru",
    b"\xff",
    b"\0",
    b"\x1e",
    b"1 2",
    b"//",
    b"'a'",
];

/// Input bytes, which `Debug` escapes.
#[derive(Clone)]
pub(super) struct Input(pub(super) Vec<u8>);

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// Generates an input, and a seed for its cuts.
pub(super) fn cases(kind: Kind) -> impl Strategy<Value = (Input, u64)> {
    (input(kind).prop_map(Input), any::<u64>())
}

fn pieces(
    plain: &'static [&'static [u8]],
    odd: &'static [&'static [u8]],
    per_cent: u32,
) -> BoxedStrategy<Vec<u8>> {
    let plain = prop::sample::select(plain);
    if per_cent == 0 {
        return plain.prop_map(<[u8]>::to_vec).boxed();
    }
    let odd = prop::sample::select(odd);
    prop_oneof![100 - per_cent => plain, per_cent => odd].prop_map(<[u8]>::to_vec).boxed()
}

fn line(odd: &'static [&'static [u8]], per_cent: u32, most: usize) -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(pieces(PLAIN, odd, per_cent), 0..=most).prop_map(|p| p.concat()).boxed()
}

/// Generates lines of the given kind, without separators.
fn lines(kind: Kind) -> BoxedStrategy<Vec<Vec<u8>>> {
    let many = |line: BoxedStrategy<Vec<u8>>| prop::collection::vec(line, 1..24).boxed();
    let clean = || line(AWKWARD, 0, 3);
    let awkward = || line(AWKWARD, 25, 3);
    let broken = || line(BROKEN, 20, 3);
    match kind {
        Kind::Text => {
            prop_oneof![4 => many(clean()), 4 => many(awkward()), 1 => many(broken())].boxed()
        }
        Kind::Items => prop_oneof![6 => many(clean()), 1 => many(awkward())].boxed(),
        Kind::Keyed => many(line(AWKWARD, 3, 4)),
        Kind::Json => {
            let value = pieces(VALUES, ODD_VALUES, 0);
            let odd = pieces(VALUES, ODD_VALUES, 8);
            prop_oneof![5 => many(value), 1 => many(odd)].boxed()
        }
        Kind::Lines | Kind::Nul | Kind::Sorted => {
            prop_oneof![3 => many(clean()), 2 => many(awkward()), 2 => many(broken())].boxed()
        }
    }
}

/// Generates input from a small alphabet, so that runs of equal bytes often cross the boundaries of
/// lines and chunks.
fn dense(kind: Kind) -> BoxedStrategy<Vec<u8>> {
    let alphabet: &[&[u8]] = match kind {
        Kind::Lines => &[b"a", b"b", b"A", b" ", b"\n", b"\n", b"\t", b",", b"\x81", b"\r"],
        Kind::Nul => &[b"a", b"b", b",", b"\0", b"\0", b"\n", b" ", b"\xff"],
        Kind::Items => &[b"a", b"b", b" ", b"\t", b"\n", b"\n", b"\r", b"\x0b"],
        _ => &[b"a", b"b", b"A", b" ", b"\n", b"\n", b"\t", b".", b"\xc3\xa9", b"\x08", b"\r"],
    };
    let bytes = prop::collection::vec(prop::sample::select(alphabet), 2..60);
    bytes.prop_map(|bytes| bytes.concat()).boxed()
}

fn input(kind: Kind) -> BoxedStrategy<Vec<u8>> {
    match kind {
        Kind::Lines | Kind::Nul | Kind::Items | Kind::Text => {
            prop_oneof![2 => by_lines(kind), 1 => dense(kind)].boxed()
        }
        Kind::Sorted | Kind::Keyed | Kind::Json => by_lines(kind).boxed(),
    }
}

fn by_lines(kind: Kind) -> impl Strategy<Value = Vec<u8>> {
    (lines(kind), 0..18_u8, any::<bool>(), any::<bool>()).prop_map(
        move |(mut lines, shape, ends, sorts)| {
            let separator: &[u8] = match kind {
                Kind::Nul => b"\0",
                _ if shape == 0 && kind != Kind::Json => b"\r\n",
                _ => b"\n",
            };
            match shape {
                1 => lines = vec![lines[0].clone(); lines.len()],
                2 => lines = lines.into_iter().flat_map(|line| [line.clone(), line]).collect(),
                3 => lines.iter_mut().for_each(Vec::clear),
                4 => lines.iter_mut().skip(1).step_by(2).for_each(Vec::clear),
                // Make the input longer than a buffer.
                5 if matches!(kind, Kind::Lines | Kind::Text) => {
                    lines = lines.iter().cycle().take(12_000).cloned().collect();
                }
                _ => {}
            }
            let in_order = matches!(kind, Kind::Sorted | Kind::Keyed) && shape != 11;
            if in_order || sorts && kind != Kind::Json {
                lines.sort();
            }
            let mut input = lines.join(separator);
            if ends || shape > 6 {
                input.extend(separator);
            }
            input
        },
    )
}

/// Files that commands combine with their input: placeholders for their names, and the keys that
/// they are sorted by.
pub(super) const FILES: &[(&str, Key)] = &[
    ("@F", Key::Whole),
    ("@W", Key::FirstWord),
    ("@C", Key::FirstField(b',')),
    ("@D", Key::FirstField(b':')),
];

/// Returns the contents of a file, sorted by `key`, to combine with inputs of the given kind.
pub(super) fn file_for(kind: Kind, key: Key) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = PLAIN.to_vec();
    lines.extend_from_slice(&[b"a", b"a 1", b"b 2", b"b", b"aab", b"foobar", b"a,1", b"ab,2"]);
    let separator: &[u8] = if kind == Kind::Nul { b"\0" } else { b"\n" };
    lines.sort_by_key(|line| key_of(key, line));
    let mut file = lines.join(separator);
    file.extend(separator);
    file
}

//! Identifies the project that a program comes from by the contents of its file, without starting
//! the program.

use std::path::Path;
use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memmem;

/// Maximum size of a program file that is read, in bytes.
const MAX_PROGRAM_BYTES: u64 = 16 << 20;

/// The project that a program comes from, according to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A GNU package, such as coreutils, grep, sed, findutils or gawk.
    Gnu,
    /// The util-linux package.
    UtilLinux,
    /// The GNU C library, for example its `iconv`.
    Glibc,
    /// `jq`, 1.6 or later.
    Jq,
    /// A script that only passes all its arguments to `grep -E` or `grep -F`.
    GrepScript,
    /// Any other project.
    Other,
}

/// Facts found in the contents of a program file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// The project that the program comes from.
    pub maker: Maker,
    /// Whether the program may convert the case of multibyte characters, and recognize multibyte
    /// blanks: it calls `towupper`, or is unknown.
    pub knows_characters: bool,
}

/// Strings that identify projects: names and addresses in help and messages, and symbols for the
/// dynamic linker.
const MARKS: [&[u8]; 8] = [
    // Reimplementations may quote the manuals of the originals.
    b"uutils",
    b"BusyBox",
    b"toybox",
    b"www.gnu.org/software/",
    b"util-linux",
    b"JQ_COLORS\0",
    b"GLIBC_PRIVATE\0",
    b"towupper\0",
];

impl Marks {
    /// The marks of a program about which nothing is known.
    const NONE: Self = Self { maker: Maker::Other, knows_characters: true };

    /// Returns the marks of a program file, or [`Self::NONE`] if the file cannot be read or is
    /// larger than [`MAX_PROGRAM_BYTES`].
    pub(super) fn of_file(path: &Path) -> Self {
        let is_small = std::fs::metadata(path).is_ok_and(|data| data.len() <= MAX_PROGRAM_BYTES);
        let text = is_small.then(|| std::fs::read(path).ok()).flatten();
        text.map_or(Self::NONE, |text| Self::of(&text))
    }

    fn of(text: &[u8]) -> Self {
        if !text.starts_with(b"\x7fELF") {
            let maker = if is_grep_script(text) { Maker::GrepScript } else { Maker::Other };
            return Self { maker, ..Self::NONE };
        }
        let marks = marks_in(text);
        let [.., knows_characters] = marks;
        let maker = match marks {
            [true, ..] | [_, true, ..] | [_, _, true, ..] => Maker::Other,
            [.., true, _, _, _, _] => Maker::Gnu,
            [.., true, _, _, _] => Maker::UtilLinux,
            [.., true, _, _] => Maker::Jq,
            [.., true, _] => Maker::Glibc,
            _ => Maker::Other,
        };
        Self { maker, knows_characters }
    }
}

/// Returns whether a script only passes all its arguments to `grep -E` or `grep -F`. Newer versions
/// of `egrep` and `fgrep`, which print a deprecation warning first, do not count.
fn is_grep_script(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let forwards = ["\nexec grep -E \"$@\"", "\nexec grep -F \"$@\""];
    let hands_on = forwards.iter().any(|line| text.contains(line));
    text.starts_with("#!") && text.len() < 100 && hands_on && !text.contains("echo")
}

/// Returns, for each of [`MARKS`], whether `text` contains it after a byte that is neither a letter
/// nor a digit.
fn marks_in(text: &[u8]) -> [bool; MARKS.len()] {
    static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(MARKS));
    let begins = |place: usize| place > 0 && !text[place - 1].is_ascii_alphanumeric();
    let mut found = [false; MARKS.len()];
    let Some(searcher) = &*SEARCHER else {
        // Without the SIMD searcher, search for each mark on its own.
        return MARKS.map(|mark| memmem::find_iter(text, mark).any(begins));
    };
    // No mark begins within another one.
    for place in searcher.find_iter(text).filter(|place| begins(place.start())) {
        found[place.pattern().as_usize()] = true;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_what_it_holds() {
        let of = |text: &[u8]| Marks::of(text).maker;
        assert_eq!(of(b"\x7fELF <https://www.gnu.org/software/coreutils/>\0"), Maker::Gnu);
        assert_eq!(of(b"\x7fELF uutils www.gnu.org/software/coreutils"), Maker::Other);
        assert_eq!(of(b"\x7fELF BusyBox v1"), Maker::Other);
        assert_eq!(of(b"\x7fELF rev from util-linux 2.38"), Maker::UtilLinux);
        assert_eq!(of(b"\x7fELF\0JQ_COLORS\0"), Maker::Jq);
        assert_eq!(of(b"\x7fELF GOJQ_COLORS\0"), Maker::Other);
        assert_eq!(of(b"#!/bin/sh\ncmd=${0##*/}\nexec grep -E \"$@\"\n"), Maker::GrepScript);
        assert_eq!(of(b"#!/bin/sh\necho old >&2\nexec grep -E \"$@\"\n"), Maker::Other);
        assert_eq!(of(b"#!/bin/sh\n# www.gnu.org/software/\n"), Maker::Other);
        let knows_characters = |text: &[u8]| Marks::of(text).knows_characters;
        assert!(knows_characters(b"\x7fELF www.gnu.org/software/\0towupper\0"));
        assert!(!knows_characters(b"\x7fELF www.gnu.org/software/\0toupper\0"));
    }
}

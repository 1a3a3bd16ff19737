//! Parses GNU `sort` commands.

use super::options::{Options, Table};
use super::{Simple, Word};

/// The supported options of GNU `sort`.
pub const TABLE: Table = Table {
    short: "bdfgiMhnRrVcCmo:sS:t:T:uzk:\u{1}:\u{2}:\u{3}\u{4}:\u{5}:\u{6}:",
    long: &[
        ("ignore-leading-blanks", 'b'),
        ("dictionary-order", 'd'),
        ("ignore-case", 'f'),
        ("general-numeric-sort", 'g'),
        ("ignore-nonprinting", 'i'),
        ("month-sort", 'M'),
        ("human-numeric-sort", 'h'),
        ("numeric-sort", 'n'),
        ("random-sort", 'R'),
        ("reverse", 'r'),
        ("version-sort", 'V'),
        ("check", 'c'),
        ("merge", 'm'),
        ("output", 'o'),
        ("stable", 's'),
        ("buffer-size", 'S'),
        ("field-separator", 't'),
        ("temporary-directory", 'T'),
        ("unique", 'u'),
        ("zero-terminated", 'z'),
        ("key", 'k'),
        ("parallel", '\u{1}'),
        ("compress-program", '\u{2}'),
        ("debug", '\u{3}'),
        ("batch-size", '\u{4}'),
        ("files0-from", '\u{5}'),
        ("random-source", '\u{6}'),
    ],
};

/// The letter of `--parallel` in [`TABLE`].
pub const PARALLEL: char = '\u{1}';
/// The letter of `--compress-program` in [`TABLE`].
pub const COMPRESS: char = '\u{2}';

/// A `sort` that sorts to standard output, without `--merge` or `--check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// All options, in the order given.
    pub options: Options,
    /// The input files; empty for standard input.
    pub files: Vec<Word>,
}

impl Sort {
    /// Parses the command. Returns `None` unless it certainly sorts its operands or standard input
    /// to standard output, in a deterministic order.
    pub fn read(simple: &Simple) -> Option<Self> {
        if simple.name() != "sort" {
            return None;
        }
        let options = Options::read(&simple.arguments, &TABLE)?;
        let files: Vec<Word> =
            options.operands.iter().map(|&index| simple.arguments[index].clone()).collect();
        // `+1` is an obsolete spelling of a key.
        if files.iter().any(|file| file.text.starts_with('+')) {
            return None;
        }
        let unfit = ['c', 'C', 'm', 'o', 'R', '\u{3}', '\u{5}', '\u{6}'];
        let sorts = !unfit.iter().any(|&letter| options.has(letter))
            && !options.values('k').any(|key| key.contains('R'));
        sorts.then_some(Self { options, files })
    }

    /// Returns whether the command compares whole lines: it has no keys, and no ordering option other
    /// than `-r`. Two lines then compare equal only if they are identical or the locale collates them
    /// as equal.
    pub fn compares_whole_lines(&self) -> bool {
        self.options.has_only("rsuSTz\u{1}\u{2}\u{4}")
    }

    /// Returns whether the command drops all but one of equal lines (`-u`).
    pub fn drops_equal_lines(&self) -> bool {
        self.options.has('u')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    #[test]
    fn merges_and_checks_are_not_sorts() {
        let sort = Sort::read(&simple("sort -t, -k2,2n --parallel=2 a b")).expect("a sort");
        assert!(!sort.compares_whole_lines() && sort.files.len() == 2);
        assert_eq!(sort.options.value(PARALLEL), Some("2"));
        assert!(Sort::read(&simple("sort -rS 1G")).is_some_and(|sort| sort.compares_whole_lines()));
        assert!(Sort::read(&simple("sort -f")).is_some_and(|sort| !sort.compares_whole_lines()));
        for text in [
            "sort -m a b",
            "sort -c",
            "sort -C",
            "sort --check",
            "sort -o f f",
            "sort -R",
            "sort -k1R",
            "sort --files0-from=f",
            "sort --debug",
            "tsort",
            "sort +1",
        ] {
            assert_eq!(Sort::read(&simple(text)), None, "{text}");
        }
    }
}

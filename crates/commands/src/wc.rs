//! Recognizes GNU `wc` commands that print a single count.

use super::Simple;
use super::options::{Options, Table};

/// The supported options of GNU `wc`.
pub const TABLE: Table = Table {
    short: "clmLw",
    long: &[
        ("bytes", 'c'),
        ("lines", 'l'),
        ("chars", 'm'),
        ("max-line-length", 'L'),
        ("words", 'w'),
    ],
};

/// Returns whether the command is a `wc` that counts the lines of standard input, and nothing else.
pub fn counts_lines(simple: &Simple) -> bool {
    simple.name() == "wc"
        && Options::read(&simple.arguments, &TABLE).is_some_and(|options| {
            options.has('l') && options.has_only("l") && options.operands.is_empty()
        })
}

/// Returns whether the command is a `wc` with exactly one option and no operand, which prints a
/// single count of standard input.
pub fn prints_one_count(simple: &Simple) -> bool {
    simple.name() == "wc"
        && Options::read(&simple.arguments, &TABLE)
            .is_some_and(|options| options.given.len() == 1 && options.operands.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    #[test]
    fn lines_of_standard_input_alone_are_counted() {
        assert!(counts_lines(&simple("wc -l")) && counts_lines(&simple("wc --lines")));
        for text in ["wc", "wc -lc", "wc -c", "wc -l f", "wc -L", "wcl -l"] {
            assert!(!counts_lines(&simple(text)), "{text}");
        }
    }
}

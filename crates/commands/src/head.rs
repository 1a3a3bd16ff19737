//! Parses `head` and `tail` commands that select a number of lines.

use super::options::{Options, Table};
use super::{Simple, Word};

/// Options of GNU `head`, which GNU `tail` has too.
pub const TABLE: Table = Table {
    short: "n:c:qvz",
    long: &[
        ("lines", 'n'),
        ("bytes", 'c'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("verbose", 'v'),
        ("zero-terminated", 'z'),
    ],
};

/// A `head` or `tail` that writes the first or last lines of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The maximum number of lines to write.
    pub count: u64,
    /// At most one input file; empty for standard input.
    pub files: Vec<Word>,
    /// The index of each of `files` among the arguments; empty for standard input.
    pub places: Vec<usize>,
}

/// Parses `head -n COUNT`, also spelled `--lines=COUNT` or, as the first argument, `-COUNT`. The
/// count is 10 if it is not given. Returns `None` for other options, a count with a sign or a
/// suffix, a count of at least 2^64, a first argument that starts with `+`, several files, and
/// other commands.
pub fn head(simple: &Simple) -> Option<Lines> {
    lines(simple, "head")
}

/// Parses `tail -n COUNT`, also spelled `--lines=COUNT` or, as the first argument, `-COUNT`. The
/// count is 10 if it is not given. Returns `None` for other options, a count with a sign or a
/// suffix, a count of at least 2^64, a first argument that starts with `+`, several files, and
/// other commands.
pub fn tail(simple: &Simple) -> Option<Lines> {
    lines(simple, "tail")
}

fn lines(simple: &Simple, name: &str) -> Option<Lines> {
    if simple.name() != name {
        return None;
    }
    // `+5` is an obsolete spelling of `-n +5`.
    if is_counted_from_start(simple) {
        return None;
    }
    // `-5` is an obsolete spelling of `-n 5`.
    let arguments: Vec<Word> = simple
        .arguments
        .iter()
        .enumerate()
        .map(|(index, word)| match word.text.strip_prefix('-') {
            Some(count) if index == 0 && is_number(count) => Word::new(format!("-n{count}")),
            _ => word.clone(),
        })
        .collect();
    let options = Options::read(&arguments, &TABLE)?;
    if !options.has_only("n") {
        return None;
    }
    let count = match options.value('n') {
        None => 10,
        Some(text) if is_number(text) => text.parse().ok()?,
        Some(_) => return None,
    };
    let files: Vec<Word> = options.operands.iter().map(|&index| arguments[index].clone()).collect();
    (files.len() <= 1).then_some(Lines { count, files, places: options.operands })
}

/// Returns whether the first argument starts with `+`, as in the obsolete `tail +COUNT`, which
/// counts from the start of the input.
pub fn is_counted_from_start(simple: &Simple) -> bool {
    simple.arguments.first().is_some_and(|word| word.text.starts_with('+'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    #[test]
    fn counts_in_every_spelling() {
        let count = |text: &str| head(&simple(text)).map(|lines| lines.count);
        assert_eq!(count("head"), Some(10));
        assert_eq!(count("head -5"), Some(5));
        assert_eq!(count("head -n 7 f"), Some(7));
        assert_eq!(count("head --lines=8"), Some(8));
        assert_eq!(tail(&simple("tail -n3")).map(|lines| lines.count), Some(3));
        for text in ["head -n -5", "head -c 5", "head -n 1K", "head a b", "head -v f", "tail"] {
            assert_eq!(count(text), None, "{text}");
        }
        for text in ["tail -f", "tail -n +5", "tail +5", "tail +5f x", "tail -F x", "head"] {
            assert_eq!(tail(&simple(text)), None, "{text}");
        }
    }
}

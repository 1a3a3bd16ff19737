//! Renders lists of names with descriptions, and lists of items.

use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;

use super::layout::{MIN_REPORT_COLUMNS, wrapped};

/// Indentation of a name or an item, and gap between a name and its description.
const INDENT: &str = "  ";

/// Returns the width of the widest name in columns, for [`entry`]; 0 without names.
pub fn longest<'a>(names: impl IntoIterator<Item = &'a str>) -> usize {
    names.into_iter().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// Renders a name and, in the next column, its description, wrapped to `width` columns but at least
/// to the minimum width of a report. `column` is the width of the [`longest`] name.
pub fn entry(name: &str, text: &str, column: usize, width: usize) -> String {
    let padding = " ".repeat(column.saturating_sub(name.width()));
    let first = format!("{INDENT}{name}{padding}{INDENT}");
    let rest = " ".repeat(first.width());
    joined(wrapped(text, options(&first, &rest, width)))
}

/// Renders an item, wrapped to `width` columns, with further lines indented. Unlike in prose, a
/// line may end after a number, which may end a `name=value` pair.
pub fn item(text: &str, width: usize) -> String {
    let rest = INDENT.repeat(2);
    let options = options(INDENT, &rest, width).word_splitter(WordSplitter::NoHyphenation);
    joined(textwrap::wrap(text, options))
}

/// Renders a sentence at the head of a list, wrapped to `width` columns.
pub fn head(text: &str, width: usize) -> String {
    joined(wrapped(text, options("", INDENT, width)))
}

fn options<'a>(first: &'a str, rest: &'a str, width: usize) -> Options<'a> {
    Options::new(width.max(MIN_REPORT_COLUMNS)).initial_indent(first).subsequent_indent(rest)
}

fn joined<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> String {
    lines.into_iter().map(|line| line.as_ref().trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_stay_in_their_column() {
        let column = longest(["units/create", "a"]);
        let text = "creates one process after the other, 100 of them, and waits for each";
        insta::assert_snapshot!(entry("units/create", text, column, 60), @r"
          units/create  creates one process after the other, 100 of
                        them, and waits for each
        ");
        insta::assert_snapshot!(entry("a", "is short", column, 60), @"  a             is short");
    }

    #[test]
    fn further_lines_of_an_item_are_indented() {
        let text = "units/limit kind=process cap=30: 1 sample [not here: it needs two CPUs]";
        insta::assert_snapshot!(item(text, 60), @r"
          units/limit kind=process cap=30: 1 sample [not here: it
            needs two CPUs]
        ");
    }

    #[test]
    fn a_line_of_an_item_may_end_after_a_number() {
        let text = "ipc/one-byte form=ring-batches messages=1000000 placement=free: 3 samples";
        insta::assert_snapshot!(item(text, 60), @r"
          ipc/one-byte form=ring-batches messages=1000000
            placement=free: 3 samples
        ");
    }

    #[test]
    fn no_line_is_longer_than_the_width() {
        let word = "x".repeat(200);
        for width in [60, 80] {
            for text in [entry("name", &word, 20, width), item(&word, width)] {
                assert!(text.lines().all(|line| line.width() <= width), "{text}");
                assert_eq!(text.matches('x').count(), 200, "nothing is left out");
            }
        }
    }
}

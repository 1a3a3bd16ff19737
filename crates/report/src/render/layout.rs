//! Tables, paragraphs and styles that all reports share.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const PACE: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const WARN: Style = AnsiColor::Red.on_default();

/// Columns below which nothing is left out any more; lines may then be cut by the terminal.
pub(super) const NARROWEST: usize = 60;

/// Spaces between two columns.
pub(super) fn gap(width: usize) -> u16 {
    if width < 80 { 1 } else { 2 }
}

/// A table without lines.
pub(super) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// A cell of a table whose first columns hold words, to the left.
pub(super) fn aligned_left(position: usize, words: usize, text: String) -> Cell {
    let side = if position < words { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(side)
}

/// A cell of a table whose second column holds words.
pub(super) fn aligned(position: usize, text: String) -> Cell {
    let side = if position == 1 { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(side)
}

/// The table's lines with the heading and one row set off.
pub(super) fn styled_lines(mut table: Table, paced: Option<usize>, width: usize) -> String {
    let gap = gap(width);
    for column in table.column_iter_mut() {
        column.set_padding((0, gap));
    }
    let mut out = String::new();
    for (number, line) in table.lines().enumerate() {
        let style = match paced {
            _ if number == 0 => DIM,
            Some(row) if row == number => PACE,
            _ => Style::new(),
        };
        let _ = writeln!(out, "{style}{}{style:#}", line.trim_end());
    }
    out
}

/// What has equal keys together, in the order in which the keys appear.
pub(super) fn grouped<K: PartialEq, T>(
    pairs: impl IntoIterator<Item = (K, T)>,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in pairs {
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, items)) => items.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// At most `room` columns of the text.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 0;
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used < room
        })
        .collect();
    kept.push('…');
    kept
}

/// Wrapped text; a number stays on the same line as its unit, and a name with a hyphen on one line.
pub(super) fn wrapped<'a>(text: &str, options: impl Into<textwrap::Options<'a>>) -> Vec<String> {
    let mut joined = String::with_capacity(text.len());
    let mut after_digit = false;
    for character in text.chars() {
        joined.push(if after_digit && character == ' ' { GLUE } else { character });
        after_digit = character.is_ascii_digit();
    }
    let options = options.into().word_splitter(textwrap::WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(&joined, options);
    lines.into_iter().map(|line| line.replace(GLUE, " ")).collect()
}

/// A space at which no line ends.
const GLUE: char = '\u{a0}';

/// Lines of a remark, set back.
pub(super) fn dimmed(out: &mut String, text: &str, width: usize) {
    for line in wrapped(text, width) {
        let _ = writeln!(out, "{DIM}{line}{DIM:#}");
    }
}

/// Wrapped text after a mark.
pub(super) fn paragraph(out: &mut String, mark: &str, text: &str, width: usize) {
    out.push_str(mark);
    paragraph_after(out, mark.len(), text, width);
}

/// A warning, wrapped.
pub(super) fn warn(out: &mut String, message: &str, width: usize) {
    let _ = write!(out, "{WARN}warning:{WARN:#} ");
    paragraph_after(out, "warning: ".len(), message, width);
}

/// Wrapped text whose first line has something of `used` columns before it.
pub(super) fn paragraph_after(out: &mut String, used: usize, text: &str, width: usize) {
    let first = " ".repeat(used);
    let options = textwrap::Options::new(width).initial_indent(&first).subsequent_indent("  ");
    for (number, line) in wrapped(text, options).iter().enumerate() {
        let line = if number == 0 { &line[used..] } else { line };
        let _ = writeln!(out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            wrapped("it took 44 ms of 50 ms in all", 12),
            ["it took", "44 ms of", "50 ms in all"]
        );
    }
}

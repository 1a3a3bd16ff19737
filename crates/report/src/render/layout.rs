//! Tables, paragraphs and styles shared by all reports.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(super) const WARN: Style = AnsiColor::Red.on_default();

/// Minimum width of a report, in columns. A narrower terminal may wrap or cut the lines.
pub(super) const MIN_REPORT_COLUMNS: usize = 60;

/// Maximum width of a line of prose, in columns. Longer lines are hard to read.
const MAX_PROSE_COLUMNS: usize = 100;

/// Returns the maximum width of a line of prose on a terminal that is `width` columns wide.
pub(super) fn prose_width(width: usize) -> usize {
    width.min(MAX_PROSE_COLUMNS)
}

/// Returns the number of spaces between two columns of a table on a terminal that is `width`
/// columns wide.
pub(super) fn gap(width: usize) -> u16 {
    if width < 80 { 1 } else { 2 }
}

/// Creates an empty table without rules.
pub(super) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Creates a cell for the column `position`, from 0, of a table whose first `words` columns are
/// left-aligned, and the others right-aligned.
pub(super) fn aligned_left(position: usize, words: usize, text: String) -> Cell {
    let side = if position < words { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(side)
}

/// Creates a cell for the column `position`, from 0, of a table whose second column is
/// left-aligned, and the others right-aligned.
pub(super) fn aligned(position: usize, text: String) -> Cell {
    let side = if position == 1 { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(side)
}

/// Renders a table, with its first line (the heading) dimmed, and the line `marked`, counted from
/// the heading as 0, in bold. `width` decides only the gap between columns: wider tables are not
/// cut.
pub(super) fn styled_lines(table: Table, marked: Option<usize>, width: usize) -> String {
    spaced_lines(table, marked, gap(width))
}

/// Renders a table so that it fits into `width` columns if possible, with its heading dimmed.
/// Columns that do not fit follow below, after a repetition of the first `keys` columns.
pub(super) fn fitted_lines(table: Table, keys: usize, width: usize) -> String {
    let widths: Vec<usize> =
        table.column_max_content_widths().into_iter().map(usize::from).collect();
    let spaces = |columns: usize, gap: u16| columns.saturating_sub(1) * usize::from(gap);
    let whole = |gap: u16| widths.iter().sum::<usize>() + spaces(widths.len(), gap);
    if let Some(gap) = [gap(width), 1].into_iter().find(|&gap| whole(gap) <= width) {
        return spaced_lines(table, None, gap);
    }
    let block = |columns: &Vec<usize>| {
        let taken: usize = columns.iter().rev().skip(1).map(|&column| widths[column] + 1).sum();
        spaced_lines(with_columns(&table, columns, width.saturating_sub(taken)), None, 1)
    };
    blocks(&widths, keys, width).iter().map(block).collect()
}

/// Divides the columns of a table, whose contents are `widths` wide, into blocks that fit into
/// `width`, with one space between columns. Each block begins with the first `keys` columns, or
/// with fewer if these take more than two thirds of the width. As many further columns follow as
/// fit, but at least one.
fn blocks(widths: &[usize], keys: usize, width: usize) -> Vec<Vec<usize>> {
    let room_for = |columns: usize| widths[..columns].iter().map(|width| width + 1).sum::<usize>();
    let most = keys.clamp(1, widths.len());
    let keys = (1..=most).rev().find(|&keys| 3 * room_for(keys) <= 2 * width).unwrap_or(1);
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for (column, column_width) in widths.iter().enumerate().skip(keys) {
        if used.saturating_add(1 + column_width) > width {
            blocks.push((0..keys).collect());
            used = room_for(keys) - 1;
        }
        blocks.last_mut().into_iter().for_each(|columns| columns.push(column));
        used += 1 + column_width;
    }
    blocks
}

/// Returns a copy of the table with only the given columns. Cells of the last column that are wider
/// than `room` are wrapped.
fn with_columns(table: &Table, columns: &[usize], room: usize) -> Table {
    let mut some = plain_table();
    for row in table.row_iter() {
        let cells: Vec<Cell> = row.cell_iter().cloned().collect();
        let mut cells: Vec<Cell> =
            columns.iter().filter_map(|&column| cells.get(column).cloned()).collect();
        if let Some(last) = cells.last_mut().filter(|last| last.content().width() > room) {
            let lines = textwrap::wrap(&last.content(), room.max(1)).join("\n");
            *last = Cell::new(lines).set_alignment(CellAlignment::Left);
        }
        some.add_row(cells);
    }
    some
}

fn spaced_lines(mut table: Table, marked: Option<usize>, gap: u16) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, gap));
    }
    let mut out = String::new();
    for (number, line) in table.lines().enumerate() {
        let style = match marked {
            _ if number == 0 => DIM,
            Some(row) if row == number => BOLD,
            _ => Style::new(),
        };
        let _ = writeln!(out, "{style}{}{style:#}", line.trim_end());
    }
    out
}

/// Groups items by key, in order of the first appearance of each key.
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

/// Truncates a string to `room` columns, with `…` at its end if something was cut off.
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

/// Wraps a string into lines, but not at a space after a digit, because a unit may follow, nor
/// between "stage" and its number, nor at a hyphen within a word.
pub(super) fn wrapped<'a>(text: &str, options: impl Into<textwrap::Options<'a>>) -> Vec<String> {
    let mut joined = String::with_capacity(text.len());
    let mut after_digit = false;
    for character in text.chars() {
        let is_glued = after_digit || ["tage", "tages"].iter().any(|end| joined.ends_with(end));
        joined.push(if is_glued && character == ' ' { GLUE } else { character });
        after_digit = character.is_ascii_digit();
    }
    let options = options.into().word_splitter(textwrap::WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(&joined, options);
    lines.into_iter().map(|line| line.replace(GLUE, " ")).collect()
}

/// Stand-in for a space at which no line may end: a no-break space.
const GLUE: char = '\u{a0}';

/// Writes `text` wrapped and dimmed, as a note.
pub(super) fn dimmed(out: &mut String, text: &str, width: usize) {
    let indent = &text[..text.len() - text.trim_start().len()];
    let options = textwrap::Options::new(prose_width(width)).subsequent_indent(indent);
    for line in wrapped(text, options) {
        let _ = writeln!(out, "{DIM}{line}{DIM:#}");
    }
}

/// Writes a note that names the columns that a narrow table lacks. Writes nothing if there are none.
pub(super) fn columns_left_out<T: AsRef<str>>(out: &mut String, headings: &[T], width: usize) {
    let mut names: Vec<&str> = Vec::new();
    for heading in headings.iter().map(AsRef::as_ref) {
        if !names.contains(&heading) {
            names.push(heading);
        }
    }
    if !names.is_empty() {
        dimmed(out, &format!("Left out for lack of width: {}.", names.join(", ")), width);
    }
}

/// Writes a mark in ASCII, such as `- `, and a wrapped paragraph after it. Further lines are
/// indented by two spaces.
pub(super) fn paragraph(out: &mut String, mark: &str, text: &str, width: usize) {
    out.push_str(mark);
    paragraph_after(out, mark.len(), text, width);
}

/// Writes a wrapped warning, with `warning:` before the message.
pub(super) fn warn(out: &mut String, message: &str, width: usize) {
    let _ = write!(out, "{WARN}warning:{WARN:#} ");
    paragraph_after(out, "warning: ".len(), message, width);
}

/// Writes a wrapped paragraph whose first line continues a line with `used` columns. Further lines
/// are indented by two spaces.
pub(super) fn paragraph_after(out: &mut String, used: usize, text: &str, width: usize) {
    let first = " ".repeat(used);
    let options =
        textwrap::Options::new(prose_width(width)).initial_indent(&first).subsequent_indent("  ");
    for (number, line) in wrapped(text, options).iter().enumerate() {
        let line = if number == 0 { &line[used..] } else { line };
        let _ = writeln!(out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_room_follow_below_with_their_keys() {
        let table = || {
            let mut table = plain_table();
            for row in [["way", "first", "second", "third"], ["fork", "1.00s", "22.2ms", "33.3µs"]]
            {
                let cells = row.iter().enumerate();
                table.add_row(cells.map(|(i, text)| aligned_left(i, 1, (*text).to_owned())));
            }
            table
        };
        let shown =
            |width| anstream::adapter::strip_str(&fitted_lines(table(), 1, width)).to_string();
        insta::assert_snapshot!(shown(100), @r"
        way   first  second   third
        fork  1.00s  22.2ms  33.3µs
        ");
        insta::assert_snapshot!(shown(24), @r"
        way  first second  third
        fork 1.00s 22.2ms 33.3µs
        ");
        insta::assert_snapshot!(shown(18), @r"
        way  first second
        fork 1.00s 22.2ms
        way   third
        fork 33.3µs
        ");
        for width in [12, 18, 24, 100] {
            let text = shown(width);
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
            for cell in ["1.00s", "22.2ms", "33.3µs"] {
                assert_eq!(text.matches(cell).count(), 1, "{width}: {text}");
            }
        }
        let mut table = plain_table();
        for row in
            [["limit", "where it is set"], ["RLIMIT_NPROC", "ulimit -u; of this user elsewhere"]]
        {
            let cells = row.iter().enumerate();
            table.add_row(cells.map(|(i, text)| aligned_left(i, 2, (*text).to_owned())));
        }
        let text = anstream::adapter::strip_str(&fitted_lines(table, 1, 30)).to_string();
        insta::assert_snapshot!(text, @r"
        limit        where it is set
        RLIMIT_NPROC ulimit -u; of
                     this user
                     elsewhere
        ");
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            wrapped("it took 44 ms of 50 ms in all", 12),
            ["it took", "44 ms of", "50 ms in all"]
        );
        assert_eq!(wrapped("it was then stage 3 waited", 18), ["it was then", "stage 3 waited"]);
    }
}

//! Text that fits into a number of columns, and its styles.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub const WARN: Style = Style::new().fg(Color::Yellow);

/// Largest width of a line of prose, in columns. Longer lines are hard to read.
const MAX_PROSE_COLUMNS: usize = 100;

/// Shortens a text to `columns` columns, with `…` at its end if something was cut off.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used < columns
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// Appends `…` to a text, in place of its end if there are no more columns.
fn with_ellipsis(text: &str, columns: usize) -> String {
    let text = text.trim_end();
    if text.width() < columns { format!("{text}…") } else { cut(&format!("{text}…"), columns) }
}

/// Shortens a text to `columns` columns, or fills them with spaces.
pub fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let spaces = columns.saturating_sub(text.width());
    text + &" ".repeat(spaces)
}

/// Returns a line with one text at its left, and one at its right end if there is room for it.
pub fn between(left: Vec<Span<'static>>, right: Span<'static>, width: usize) -> Line<'static> {
    let mut line = Line::from(left);
    let used = line.width() + right.width();
    if used < width {
        line.push_span(Span::raw(" ".repeat(width - used)));
        line.push_span(right);
    }
    line
}

/// Wraps a paragraph into at most `most` lines, the last of which ends with `…` if something was cut
/// off. All lines begin with `indent`.
pub fn wrapped(
    text: &str,
    indent: &str,
    width: usize,
    most: usize,
    style: Style,
) -> Vec<Line<'static>> {
    let width = width.min(MAX_PROSE_COLUMNS);
    // On a very narrow terminal, an indentation would leave no room for words.
    let indent = if indent.width() < width / 2 { indent } else { "" };
    let options =
        textwrap::Options::new(width.max(1)).initial_indent(indent).subsequent_indent(indent);
    let wrapped = textwrap::wrap(text, options);
    let is_cut = wrapped.len() > most;
    let lines = wrapped.into_iter().take(most).enumerate().map(|(number, line)| {
        let is_end = is_cut && number + 1 == most;
        let line = if is_end { with_ellipsis(&line, width) } else { line.into_owned() };
        Line::styled(line, style)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_has_the_width_that_it_may_have() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(padded("日本語", 4), "日… ");
        assert_eq!(padded("ab", 4), "ab  ");
    }

    #[test]
    fn a_paragraph_keeps_within_its_lines() {
        let wrap = |text: &str, width: usize, most: usize| -> Vec<String> {
            wrapped(text, "  ", width, most, DIM).iter().map(ToString::to_string).collect()
        };
        assert_eq!(wrap("one two three four", 10, 5), ["  one two", "  three", "  four"]);
        assert_eq!(wrap("one two three four", 10, 2), ["  one two", "  three…"]);
        assert_eq!(wrap("one two eighthxx four", 10, 2), ["  one two", "  eighthx…"]);
        assert_eq!(wrap("one two", 3, 5), ["one", "two"], "without room for an indentation");
        assert!(wrap("one two", 0, 5).len() <= 5);
    }
}

//! Locates the sort keys of lines, as GNU `sort -k` does.

use std::ops::Range;

use crate::plan::ir::{FieldPlace, SortKey};
use memchr::memchr;

/// Returns the range of bytes in `line` that a key covers, which may be empty. Fields end at
/// `separator` or, if that is `None`, where blanks follow other bytes.
pub(super) fn range(key: &SortKey, separator: Option<u8>, line: &[u8]) -> Range<usize> {
    let start = start(&key.from, separator, line);
    let end = key.to.as_ref().map_or(line.len(), |to| end(to, separator, line));
    start..end.max(start)
}

/// Returns whether `sort` treats the byte as a blank. A newline can occur within lines that end in
/// NUL, and is a blank there.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

fn start(place: &FieldPlace, separator: Option<u8>, line: &[u8]) -> usize {
    position_in_field(place, line, field(place.field, separator, line))
}

fn end(place: &FieldPlace, separator: Option<u8>, line: &[u8]) -> usize {
    if place.bytes > 0 {
        return start(place, separator, line);
    }
    let start = field(place.field, separator, line);
    match separator {
        Some(separator) => memchr(separator, &line[start..]).map_or(line.len(), |at| start + at),
        None => field_end(line, start),
    }
}

/// Returns the offset of the field with index `number`, or the length of the line if it has fewer
/// fields.
fn field(number: usize, separator: Option<u8>, line: &[u8]) -> usize {
    let mut at = 0;
    for _ in 0..number {
        if at == line.len() {
            break;
        }
        at = match separator {
            Some(byte) => memchr(byte, &line[at..]).map_or(line.len(), |place| at + place + 1),
            None => field_end(line, at),
        };
    }
    at
}

/// Returns the offset of the end of the field that begins at `start`, if blanks separate fields.
/// Leading blanks belong to the field.
fn field_end(line: &[u8], start: usize) -> usize {
    let start = skip(line, start, is_blank);
    skip(line, start, |byte| !is_blank(byte))
}

fn position_in_field(place: &FieldPlace, line: &[u8], at: usize) -> usize {
    let at = if place.skips_blanks { skip(line, at, is_blank) } else { at };
    at.saturating_add(place.bytes).min(line.len())
}

fn skip(line: &[u8], from: usize, unwanted: impl Fn(u8) -> bool) -> usize {
    let length = line[from..].iter().position(|&byte| !unwanted(byte));
    length.map_or(line.len(), |length| from + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(from: (usize, usize), to: Option<(usize, usize)>, line: &str) -> String {
        found_between(None, from, to, line)
    }

    fn found_between(
        separator: Option<u8>,
        from: (usize, usize),
        to: Option<(usize, usize)>,
        line: &str,
    ) -> String {
        let place = |(field, bytes)| FieldPlace { field, bytes, skips_blanks: false };
        let to = to.map(place);
        let key = SortKey { from: place(from), to, numeric: false, fold: false, reverse: false };
        line[range(&key, separator, line.as_bytes())].to_owned()
    }

    #[test]
    fn fields_begin_with_blanks_or_are_separated() {
        assert_eq!(found((0, 0), Some((0, 0)), " ab  cd e"), " ab");
        assert_eq!(found((1, 0), Some((1, 0)), " ab  cd e"), "  cd");
        assert_eq!(found((1, 0), None, " ab  cd e"), "  cd e");
        assert_eq!(found((1, 3), Some((1, 4)), " ab  cd e"), "d");
        assert_eq!(found((7, 0), None, " ab  cd e"), "");
        assert_eq!(found((1, 0), Some((0, 0)), " ab  cd e"), "", "it ends before it begins");
        assert_eq!(found((0, 90), None, "ab"), "");
        let comma = |from, to, line| found_between(Some(b','), from, to, line);
        assert_eq!(comma((1, 0), Some((1, 0)), "a,,c"), "");
        assert_eq!(comma((0, 0), Some((1, 0)), "a,,c"), "a,");
        assert_eq!(comma((2, 0), Some((2, 0)), "a,,c"), "c");
        assert_eq!(comma((0, 0), Some((2, 1)), "a,,cd"), "a,,c");
        assert_eq!(comma((1, 0), None, "a,"), "");
        assert_eq!(comma((0, 1), Some((0, 0)), "abc,d"), "bc");
    }

    #[test]
    fn blanks_are_skipped_where_that_is_wanted() {
        let from = FieldPlace { field: 1, bytes: 1, skips_blanks: true };
        let to = FieldPlace { bytes: 2, ..from };
        let key = SortKey { from, to: Some(to), numeric: false, fold: false, reverse: false };
        let line = "a   xyz d";
        assert_eq!(&line[range(&key, None, line.as_bytes())], "y");
        let to_end = SortKey { to: Some(FieldPlace { bytes: 0, ..from }), ..key };
        assert_eq!(&line[range(&to_end, None, line.as_bytes())], "yz");
    }
}

//! Text of a record in exports.

use crate::render::text::printable;

/// Returns `text` with control characters other than tabs and newlines made visible, as
/// [`printable`] does: the export may be printed on a terminal.
pub(super) fn printable_lines(text: &str) -> String {
    let pieces = text.split_inclusive(['\n', '\t']);
    pieces.fold(String::with_capacity(text.len()), |mut out, piece| {
        let kept = piece.strip_suffix(['\n', '\t']).unwrap_or(piece);
        out.push_str(&printable(kept));
        out.push_str(&piece[kept.len()..]);
        out
    })
}

//! Makes strings from the user safe to show on a terminal.

/// Returns `text` with these characters replaced:
/// - tabs and newlines by spaces,
/// - other ASCII control characters by control pictures, such as `␛` for escape,
/// - control characters from U+0080 by the replacement character, and
/// - characters that embed, override or isolate a writing direction by their code points.
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, character| {
        match character {
            '\t' | '\n' => out.push(' '),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{0}'..='\u{1f}' => {
                out.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'));
            }
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.extend(character.escape_unicode());
            }
            _ => out.push(character),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}b\r"), "a␛]0;x␇b␍");
        assert_eq!(printable("tab\tline\n"), "tab line ");
        assert_eq!(printable("\u{9b}2J\u{7f}"), "\u{fffd}2J␡");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(printable("é 漢字 ✓"), "é 漢字 ✓");
    }
}

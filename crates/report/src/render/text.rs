//! Makes strings from the user safe to show on a terminal.

use std::borrow::Cow;

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

/// Returns a rendered text as [`printable`], but with its lines, tabs and styles (`ESC [ … m`). A text from
/// the user that was rendered without `printable` can then change the look of what follows, and nothing else.
pub fn printable_report(text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character >= ' ' || character == '\n' || character == '\t';
    if text.chars().all(|one| is_plain(one) && printable_is_same(one)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kept = match style_length(rest) {
            Some(length) => &rest[..length],
            None => &rest[..first.len_utf8()],
        };
        if kept.len() > first.len_utf8() || first == '\n' || first == '\t' {
            out.push_str(kept);
        } else {
            out.push_str(&printable(kept));
        }
        rest = &rest[kept.len()..];
    }
    Cow::Owned(out)
}

/// Returns whether [`printable`] keeps a character from U+0020 on.
fn printable_is_same(character: char) -> bool {
    !matches!(character, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the length in bytes of the style at the beginning of a text; `None` if there is none.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|character: char| !matches!(character, '0'..=';'))?;
    parameters[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_report};

    #[test]
    fn a_report_keeps_its_lines_and_styles_only() {
        let styled = "\u{1b}[1mbold\u{1b}[0m\n\u{1b}[38;5;2mgreen\u{1b}[m\tx é\n";
        assert_eq!(printable_report(styled), styled);
        for (hostile, shown) in [
            ("a\u{1b}]0;x\u{7}b\r", "a␛]0;x␇b␍"),
            ("\u{1b}[2J\u{1b}[1;1H", "␛[2J␛[1;1H"),
            ("\u{1b}[1", "␛[1"),
            ("\u{1b}", "␛"),
            ("\u{1b}[\u{1b}[1mx", "␛[\u{1b}[1mx"),
            ("\u{9b}2J\u{7f}", "\u{fffd}2J␡"),
            ("x\u{202e}y", "x\\u{202e}y"),
        ] {
            assert_eq!(printable_report(hostile), shown);
        }
    }

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}b\r"), "a␛]0;x␇b␍");
        assert_eq!(printable("tab\tline\n"), "tab line ");
        assert_eq!(printable("\u{9b}2J\u{7f}"), "\u{fffd}2J␡");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(printable("é 漢字 ✓"), "é 漢字 ✓");
    }
}

//! Quote removal: converts a word of shell source to the argument that the command receives.

use brush_parser::ParserOptions;
use brush_parser::word::{WordPiece, WordPieceWithSource, parse, parse_brace_expansions};

use super::Word;

/// Removes the quotes from a word. Returns `None` if the shell may expand the word, if it has
/// quotes like `$'…'`, or if it cannot be parsed.
pub(super) fn read(raw: &str) -> Option<Word> {
    let options = ParserOptions::default();
    if parse_brace_expansions(raw, &options).ok()?.is_some_and(|pieces| {
        pieces
            .iter()
            .any(|piece| matches!(piece, brush_parser::word::BraceExpressionOrText::Expr(_)))
    }) {
        return None;
    }
    let mut text = String::new();
    for piece in parse(raw, &options).ok()? {
        match piece.piece {
            // The shell expands a tilde after `=` and `:` too.
            WordPiece::Text(plain) if !plain.contains(['*', '?', '[', '~']) => {
                text.push_str(&plain);
            }
            WordPiece::SingleQuotedText(quoted) => text.push_str(&quoted),
            WordPiece::EscapeSequence(escaped) => push_escaped(&mut text, &escaped, false)?,
            WordPiece::DoubleQuotedSequence(inner) => push_double_quoted(&mut text, inner)?,
            _ => return None,
        }
    }
    Some(Word { raw: raw.to_owned(), text })
}

fn push_double_quoted(text: &mut String, pieces: Vec<WordPieceWithSource>) -> Option<()> {
    for piece in pieces {
        match piece.piece {
            WordPiece::Text(plain) => text.push_str(&plain),
            WordPiece::EscapeSequence(escaped) => push_escaped(text, &escaped, true)?,
            _ => return None,
        }
    }
    Some(())
}

/// Appends an escaped character. Within double quotes, the backslash stays unless it precedes `$`,
/// `` ` ``, `"` or `\`. A backslash before a newline is removed together with the newline. Returns
/// `None` if `escaped` does not begin with a backslash.
fn push_escaped(text: &mut String, escaped: &str, within_quotes: bool) -> Option<()> {
    let after = escaped.strip_prefix('\\')?;
    if after == "\n" {
        return Some(());
    }
    let vanishes = !within_quotes || ["$", "`", "\"", "\\"].contains(&after);
    text.push_str(if vanishes { after } else { escaped });
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::shell::quote;
    use proptest::prelude::*;

    fn text(raw: &str) -> Option<String> {
        read(raw).map(|word| word.text)
    }

    #[test]
    fn quotes_are_taken_away_as_the_shell_does() {
        for (raw, seen) in [
            ("plain", "plain"),
            ("'a b'", "a b"),
            ("\"a b\"", "a b"),
            ("a\\ b", "a b"),
            ("'a'\"b\"c", "abc"),
            ("\"\\$x \\n \\\\ \\\"\"", "$x \\n \\ \""),
            ("'s/a\\|b/c/'", "s/a\\|b/c/"),
            ("\\\\n", "\\n"),
            ("''", ""),
            ("\"*\"", "*"),
            ("'é'", "é"),
            ("':~'", ":~"),
            ("a{}b", "a{}b"),
            ("{", "{"),
        ] {
            assert_eq!(text(raw).as_deref(), Some(seen), "{raw}");
        }
    }

    #[test]
    fn words_that_the_shell_expands_are_rejected() {
        for raw in
            ["$x", "\"$x\"", "`x`", "*.c", "a?", "[ab]", "~", "~/x", "{a,b}", "$'a'", "x=~/y"]
        {
            assert_eq!(text(raw), None, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn quoting_round_trips(wanted in "\\PC{0,12}|[ a-z'\"\\\\$`*?{}~!#&;|<>()\\[\\]\n]{0,12}") {
            prop_assert_eq!(text(&quote(&wanted)), Some(wanted));
        }
    }
}

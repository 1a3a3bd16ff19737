//! Checks words for side effects, since the shell executes commands to expand them. Expands the
//! words as far as possible without running anything.

use brush_parser::ast::Word as RawWord;
use brush_parser::word::{
    ParameterExpr, ParameterTransformOp, WordPiece, WordPieceWithSource, parse as parse_word,
    parse_heredoc,
};
use brush_parser::{ParserOptions, Token, tokenize_str};
use contend_commands::Word;

use super::Change;
use super::grammar::program;

/// Placeholder for the part of a word that is known only at run time.
pub(super) const UNKNOWN: char = '\u{fffd}';

pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a RawWord>) -> Result<(), Change> {
    words.into_iter().try_for_each(|word| read(&word.value).map(drop))
}

/// Checks that expanding a word has no side effects. Returns the expanded word, with `UNKNOWN` for
/// each part that is known only at run time. Braces, patterns and tildes stay unexpanded.
pub(super) fn read(raw: &str) -> Result<Word, Change> {
    // Tilde expansion depends only on a user name, not on the working directory.
    let options =
        ParserOptions { tilde_expansion_at_word_start: false, ..ParserOptions::default() };
    let pieces = parse_word(raw, &options).map_err(|_| Change::Unparsed)?;
    let mut text = String::new();
    for piece in &pieces {
        if let WordPiece::Text(plain) = &piece.piece {
            // Outside of quotes, these characters would have ended the word.
            if plain.contains([' ', '\t', '\n', ';', '&', '<', '>']) {
                return Err(Change::Unparsed);
            }
        }
        read_piece(raw, piece, &mut text)?;
    }
    Ok(Word { raw: raw.to_owned(), text })
}

fn read_piece(raw: &str, piece: &WordPieceWithSource, text: &mut String) -> Result<(), Change> {
    match &piece.piece {
        WordPiece::Text(plain) => {
            // The grammar of words returns the unparsed remainder as text.
            let behind = raw.get(piece.end_index..).unwrap_or_default();
            let opens = plain.ends_with('$') && behind.starts_with(['(', '{', '[']);
            if opens || plain.contains('`') {
                return Err(Change::Unparsed);
            }
            text.push_str(plain);
        }
        WordPiece::SingleQuotedText(quoted) => text.push_str(quoted),
        WordPiece::AnsiCQuotedText(quoted) => push_ansi(quoted, text),
        WordPiece::EscapeSequence(escaped) => {
            text.push_str(escaped.strip_prefix('\\').unwrap_or(escaped));
        }
        WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
            inner.iter().try_for_each(|piece| read_piece(raw, piece, text))?;
        }
        WordPiece::TildeExpansion(_) => text.push(UNKNOWN),
        WordPiece::ArithmeticExpression(inner) => {
            arithmetic(&inner.value)?;
            text.push(UNKNOWN);
        }
        WordPiece::CommandSubstitution(inner) => {
            substitution(inner)?;
            text.push(UNKNOWN);
        }
        WordPiece::BackquotedCommandSubstitution(inner) => {
            backquoted(inner)?;
            text.push(UNKNOWN);
        }
        WordPiece::ParameterExpansion(expression) => {
            let source = raw.get(piece.start_index..piece.end_index).ok_or(Change::Unparsed)?;
            parameter(expression, source)?;
            text.push(UNKNOWN);
        }
    }
    Ok(())
}

/// Appends the expansion of `$'...'`, whose contents are `quoted`, to `text`, with `UNKNOWN` for
/// rare escapes.
fn push_ansi(quoted: &str, text: &mut String) {
    let mut rest = quoted.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        text.push(match escaped {
            None => c,
            Some('n') => '\n',
            Some('t') => '\t',
            Some(c @ ('\\' | '\'' | '"')) => c,
            Some(_) => UNKNOWN,
        });
    }
}

fn substitution(text: &str) -> Result<(), Change> {
    // The grammar of words parses commands less precisely than the tokenizer: both must agree on
    // where the substitution ends.
    let whole = format!("$({text})");
    match tokenize_str(&whole).ok().as_deref() {
        Some([Token::Word(word, _)]) if word.len() == whole.replace("\\\n", "").len() => {
            program(text)
        }
        _ => Err(Change::Unparsed),
    }
}

fn backquoted(text: &str) -> Result<(), Change> {
    // The shell first removes backslashes that may hide a substitution.
    if ["\\$", "\\\\", "\\\""].iter().any(|hidden| text.contains(hidden)) {
        return Err(Change::Unparsed);
    }
    program(text)
}

/// Checks that a parameter expansion has no side effects. `source` is its source, such as `$x` or
/// `${x:-y}`.
fn parameter(expression: &ParameterExpr, source: &str) -> Result<(), Change> {
    let executes = matches!(
        expression,
        ParameterExpr::Transform { op: ParameterTransformOp::PromptExpand, .. }
    );
    let Some(inner) = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
        return Ok(());
    };
    if executes || inner.contains("<(") || inner.contains(">(") {
        return Err(Change::Unparsed);
    }
    between_quotes(inner)
}

/// Checks that evaluating an arithmetic expression executes no command with side effects.
pub(super) fn arithmetic(text: &str) -> Result<(), Change> {
    // With an unbalanced parenthesis, the source is two subshells instead.
    let mut depth = 0_i32;
    for c in text.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            return Err(Change::Unparsed);
        }
    }
    between_quotes(text)
}

/// Checks that no substitution in the source has side effects. Quotes are taken to have no meaning.
/// Where they have one, the function may find more substitutions than the shell.
pub(super) fn between_quotes(text: &str) -> Result<(), Change> {
    let pieces = parse_heredoc(text, &ParserOptions::default()).map_err(|_| Change::Unparsed)?;
    pieces.iter().try_for_each(|piece| read_piece(text, piece, &mut String::new()))
}

/// Checks that the subscript in a word, if the word is the name of a variable with one, has no side
/// effects.
pub(super) fn subscript(text: &str) -> Result<(), Change> {
    if text.contains('[') && text.contains(['$', '`']) { between_quotes(text) } else { Ok(()) }
}

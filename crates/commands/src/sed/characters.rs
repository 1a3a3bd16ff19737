//! Effects of a script on multibyte characters: the bytes that its escapes produce, and whether its
//! regular expressions match only whole characters.

use super::brackets::bracket;
use super::script::Regex;

/// An element of a replacement, of an added text, or of a string of `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// A literal character.
    Character(char),
    /// A byte given by number or as a control character (`\cX`).
    Byte(u8),
    /// Any other escaped character.
    Escaped(char),
    /// An element that implementations may interpret differently.
    Uncertain,
}

impl Piece {
    /// Returns whether the element may produce `byte`.
    pub(super) fn may_be(self, byte: u8) -> bool {
        match self {
            Self::Character(c) => c == char::from(byte),
            Self::Byte(own) => own == byte,
            Self::Escaped('n' | '\n') => byte == b'\n',
            Self::Escaped(_) => false,
            Self::Uncertain => true,
        }
    }

    /// Returns whether the element may produce part of a multibyte character.
    pub(super) fn may_be_part(self) -> bool {
        match self {
            Self::Byte(byte) => !byte.is_ascii(),
            Self::Uncertain => true,
            _ => false,
        }
    }
}

/// Splits a replacement, an added text, or a string of `y` into its elements.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let piece;
        (piece, rest) = if c == '\\' { escape(rest) } else { (Piece::Character(c), rest) };
        pieces.push(piece);
    }
    pieces
}

/// Parses the escape after a backslash, and returns it with the rest.
fn escape(text: &str) -> (Piece, &str) {
    let Some(letter) = text.chars().next() else { return (Piece::Uncertain, text) };
    let rest = &text[letter.len_utf8()..];
    match letter {
        'd' => number(letter, rest, 10, 3),
        'o' => number(letter, rest, 8, 3),
        'x' => number(letter, rest, 16, 2),
        'c' => match rest.bytes().next() {
            Some(byte) if byte.is_ascii_graphic() && byte != b'\\' => {
                (Piece::Byte(byte.to_ascii_uppercase() ^ 0x40), &rest[1..])
            }
            _ => (Piece::Uncertain, rest),
        },
        _ => (Piece::Escaped(letter), rest),
    }
}

/// Parses the number of a byte, which has at most `most` digits in the given base. Returns the
/// byte, which is the number modulo 256, with the rest. Without digits, `letter` is an ordinary
/// escaped character.
fn number(letter: char, text: &str, base: u32, most: usize) -> (Piece, &str) {
    let digits = text.chars().take(most).take_while(|c| c.is_digit(base)).count();
    let (number, rest) = text.split_at(digits);
    match u32::from_str_radix(number, base) {
        Ok(number) => (Piece::Byte(number.to_le_bytes()[0]), rest),
        Err(_) => (Piece::Escaped(letter), rest),
    }
}

/// The syntax and the encoding of regular expressions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syntax {
    /// Whether expressions are extended.
    pub(super) extended: bool,
    /// Whether characters may have several bytes, as in UTF-8. If not, every byte is a character.
    pub(super) multibyte: bool,
}

/// Returns whether a substitution of matches of `regex` may split multibyte characters. `repeats`
/// says whether it looks for more than the first match in a line.
///
/// After an empty match that follows another match, GNU `sed` advances by one byte rather than by
/// one character. So with `repeats`, or if every byte is a character, an expression is safe only if
/// it cannot match an empty string, except at the start or the end of a line.
pub(super) fn may_split_characters(regex: &Regex, repeats: bool, syntax: Syntax) -> bool {
    let read = Expression::read(regex, syntax);
    let may_stop_within = repeats || !syntax.multibyte;
    read.is_none_or(|read| !read.is_anchored && !read.has_needed && may_stop_within)
}

/// Properties of an expression that matches whole characters only.
#[derive(Debug, Default)]
struct Expression {
    /// Whether the expression certainly matches only at the start or the end of a line.
    is_anchored: bool,
    /// Whether the expression contains, outside groups, an atom that matches at least one
    /// character.
    has_needed: bool,
}

impl Expression {
    /// Analyzes an expression. Returns `None` unless it certainly matches only whole characters.
    fn read(regex: &Regex, syntax: Syntax) -> Option<Self> {
        // Implementations differ in whether an escaped delimiter keeps its special meaning.
        if is_sign(regex.delimiter) && regex.text.contains(&format!("\\{}", regex.delimiter)) {
            return None;
        }
        let mut read = Self::default();
        let (mut depth, mut rest, mut alternates) = (0_usize, regex.text.as_str(), false);
        while !rest.is_empty() {
            let first = rest.len() == regex.text.len();
            let (token, behind) = token(rest, syntax)?;
            let quantifier = Quantifier::read(behind, syntax)?;
            rest = quantifier.behind;
            match token {
                Token::Open => depth += 1,
                Token::Close => depth = depth.checked_sub(1)?,
                Token::Alternative => alternates |= depth == 0,
                Token::Start | Token::End | Token::Several if quantifier.is_there => return None,
                Token::Start => read.is_anchored |= first,
                Token::End => read.is_anchored |= rest.is_empty() && depth == 0,
                Token::Zero => {}
                Token::Some | Token::Several => {
                    read.has_needed |= depth == 0 && quantifier.is_needed;
                }
            }
        }
        let unknown = Self::default();
        Some(if alternates { unknown } else { read })
    }
}

/// A token of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Alternative,
    Start,
    End,
    /// A zero-width assertion or a back-reference.
    Zero,
    /// An atom that matches one character.
    Some,
    /// A multibyte character, where every byte counts as a character (see `Syntax::multibyte`).
    Several,
}

fn is_sign(c: char) -> bool {
    r"\.[]*^$+?(){}|&".contains(c)
}

/// Parses the first token, and returns it with the rest. Returns `None` if the token may match part
/// of a character, or if implementations may interpret it differently.
fn token(text: &str, syntax: Syntax) -> Option<(Token, &str)> {
    let c = text.chars().next()?;
    let rest = &text[c.len_utf8()..];
    match c {
        '\\' => escaped(rest, syntax),
        '[' => {
            let (inner, behind) = bracket(rest)?;
            let is_whole = inner.is_ascii() && !inner.starts_with('^') || syntax.multibyte;
            (is_whole && !has_number(inner)).then_some((Token::Some, behind))
        }
        '.' => syntax.multibyte.then_some((Token::Some, rest)),
        '^' => Some((Token::Start, rest)),
        '$' => Some((Token::End, rest)),
        '(' if syntax.extended => Some((Token::Open, rest)),
        ')' if syntax.extended => Some((Token::Close, rest)),
        '|' if syntax.extended => Some((Token::Alternative, rest)),
        // At the start of an expression, `*` is a literal or an error.
        '*' => None,
        '+' | '?' | '{' if syntax.extended => None,
        c if c.is_ascii() || syntax.multibyte => Some((Token::Some, rest)),
        _ => Some((Token::Several, rest)),
    }
}

/// Returns whether a bracket expression may contain a byte given by number or as a control
/// character (`\cX`).
fn has_number(inner: &str) -> bool {
    ["\\d", "\\o", "\\x", "\\c"].iter().any(|number| inner.contains(number))
}

fn escaped(text: &str, syntax: Syntax) -> Option<(Token, &str)> {
    let c = text.chars().next()?;
    let rest = &text[c.len_utf8()..];
    let token = match c {
        '(' if !syntax.extended => Token::Open,
        ')' if !syntax.extended => Token::Close,
        '|' if !syntax.extended => Token::Alternative,
        '+' | '?' | '{' if !syntax.extended => return None,
        '1'..='9' | 'b' | '<' | '>' => Token::Zero,
        // `\B` may match within a multibyte character, where there is no word boundary.
        'B' | '`' | '\'' => return None,
        'W' | 'S' => return syntax.multibyte.then_some((Token::Some, rest)),
        'd' | 'o' | 'x' | 'c' => {
            let (piece, rest) = escape(text);
            let Piece::Byte(byte) = piece else { return None };
            let plain = byte.is_ascii_alphanumeric() || byte.is_ascii_control();
            return plain.then_some((Token::Some, rest));
        }
        c if c.is_ascii() => Token::Some,
        _ => return None,
    };
    Some((token, rest))
}

/// The repetition operators after a token.
struct Quantifier<'a> {
    is_there: bool,
    /// Whether the token certainly must match at least once.
    is_needed: bool,
    behind: &'a str,
}

impl<'a> Quantifier<'a> {
    /// Parses all repetition operators at the start of `text`. Returns `None` for an interval (`{`)
    /// that is not terminated.
    fn read(text: &'a str, syntax: Syntax) -> Option<Self> {
        let mut read = Self { is_there: false, is_needed: true, behind: text };
        loop {
            let text = read.behind;
            let (sign, rest) = match text.strip_prefix('\\') {
                Some(rest) if !syntax.extended && rest.starts_with(['+', '?', '{']) => {
                    rest.split_at(1)
                }
                None if text.starts_with('*') => text.split_at(1),
                None if syntax.extended && text.starts_with(['+', '?', '{']) => text.split_at(1),
                _ => return Some(read),
            };
            read.is_there = true;
            read.behind = rest;
            if sign == "{" {
                let end = if syntax.extended { "}" } else { "\\}" };
                let (numbers, behind) = rest.split_once(end)?;
                read.is_needed &= numbers.starts_with(|c: char| ('1'..='9').contains(&c));
                read.behind = behind;
            } else {
                read.is_needed &= sign == "+";
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Delimiters, Script};
    use super::*;

    fn cuts(expression: &str, repeats: bool, multibyte: bool) -> bool {
        let text = format!("/{expression}/d");
        let script = Script::read(&text, Delimiters::Certain).expect("a script");
        let regex = script.expressions().next().expect("one").clone();
        may_split_characters(&regex, repeats, Syntax { extended: true, multibyte })
    }

    #[test]
    fn escapes_are_bytes() {
        let read = |text| pieces(text);
        assert_eq!(read("\\x41b"), [Piece::Byte(0x41), Piece::Character('b')]);
        assert_eq!(read("\\d0101"), [Piece::Byte(10), Piece::Character('1')]);
        assert_eq!(read("\\o377"), [Piece::Byte(255)]);
        assert_eq!(read("\\cj\\c@"), [Piece::Byte(10), Piece::Byte(0)]);
        assert_eq!(
            read("\\xg\\\\"),
            [Piece::Escaped('x'), Piece::Character('g'), Piece::Escaped('\\')]
        );
        assert_eq!(read("\\cé")[0], Piece::Uncertain);
        assert!(read("\\n")[0].may_be(b'\n') && read("\\\n")[0].may_be(b'\n'));
    }

    #[test]
    fn expressions_that_match_whole_characters_are_known() {
        for whole in ["a", "^ *", " +$", "[a-z]+", "é", "a{2,}b?", "(a|b)*c", "\\bx", "\\x1b[0-9]*"]
        {
            assert!(!cuts(whole, true, true), "{whole}");
            assert!(!cuts(whole, true, false), "{whole}");
        }
        for empty in ["x*", "(a)*", "a?b*", "x{0,3}", "a|b", "\\B", "^*", "\\b"] {
            assert!(cuts(empty, true, true), "{empty}");
        }
        for byte in [".", "[^a]", "é+", "[é]", "\\W", "x*", "\\xc3"] {
            assert!(cuts(byte, false, false), "{byte}");
        }
        for once in [".", "x*", "[^a]", "é+", "a|b"] {
            assert!(!cuts(once, false, true), "{once}");
        }
    }
}

//! Lexer for awk programs.
//!
//! Whether `/` divides or begins a regular expression depends on the grammar. The lexer returns `/`
//! as an operator, and the parser calls [`Lexer::regex`] to read a regular expression from there.

use std::ops::Range;

use super::ast::Text;
use super::rejection::Rejection;

/// Operators and punctuation, each listed before its own prefixes.
const OPERATORS: &[&str] = &[
    "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "!~", ">>",
    "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?",
    ":", "~", "$", "=",
];

/// A token of an awk program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a reserved word, and whether `(` follows without a space.
    Word(String, bool),
    /// A number, as written.
    Number(String),
    /// A string constant.
    Text(Text),
    /// An operator or punctuation.
    Operator(&'static str),
    /// A newline.
    Newline,
    /// The end of the program.
    End,
}

/// A program, and the position of the next token in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, matches: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !matches(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Consumes the next token, and returns it with its byte range in the program.
    pub(super) fn token(&mut self) -> Result<(Token, Range<usize>), Rejection> {
        self.skip_blanks()?;
        let start = self.at;
        let token = match self.rest().chars().next() {
            None => Token::End,
            Some('\n') => {
                self.at += 1;
                Token::Newline
            }
            Some('"') => Token::Text(self.string()?),
            Some(c) if c.is_ascii_digit() || self.is_fraction() => self.number()?,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
                Token::Word(word, self.rest().starts_with('('))
            }
            Some(c) => {
                let sign = OPERATORS.iter().find(|sign| self.rest().starts_with(**sign));
                let sign =
                    sign.ok_or_else(|| Rejection::unread(format!("unexpected character `{c}`")))?;
                self.at += sign.len();
                Token::Operator(sign)
            }
        };
        Ok((token, start..self.at))
    }

    fn is_fraction(&self) -> bool {
        let behind = self.rest().strip_prefix('.');
        behind.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn skip_blanks(&mut self) -> Result<(), Rejection> {
        loop {
            self.take(|c| c == ' ' || c == '\t');
            if self.rest().starts_with("\\\n") {
                self.at += 2;
            } else if self.rest().starts_with('#') {
                let remark = self.take(|c| c != '\n');
                if remark.trim_end().ends_with('\\') {
                    return Err(Rejection::unread("a comment ends in `\\`"));
                }
            } else {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<Token, Rejection> {
        let start = self.at;
        let digit = |c: char| c.is_ascii_digit();
        self.take(digit);
        if self.rest().starts_with('.') {
            self.at += 1;
            self.take(digit);
        }
        let exponent = self.rest().strip_prefix(['e', 'E']);
        let digits = exponent.map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        if let Some(digits) = digits.filter(|rest| rest.starts_with(digit)) {
            self.at = self.text.len() - digits.len();
            self.take(digit);
        }
        // Some awks read a hexadecimal number here, and others two concatenated values.
        if self.rest().starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            return Err(Rejection::unread("a number is followed by letters"));
        }
        Ok(Token::Number(self.text[start..self.at].to_owned()))
    }

    fn string(&mut self) -> Result<Text, Rejection> {
        self.at += 1;
        let mut value = Some(Vec::new());
        let mut push = |found: Option<&[u8]>| match (&mut value, found) {
            (Some(value), Some(found)) => value.extend_from_slice(found),
            _ => value = None,
        };
        loop {
            let plain = self.take(|c| !matches!(c, '"' | '\\' | '\n'));
            push(Some(plain.as_bytes()));
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('"'), _) => {
                    self.at += 1;
                    return Ok(Text { value });
                }
                (Some('\\'), Some(c)) if c != '\n' => {
                    self.at += 1 + c.len_utf8();
                    push(self.escaped(c).as_ref().map(<[u8; 1]>::as_slice));
                }
                _ => return Err(Rejection::unread("a string is not closed on its line")),
            }
        }
    }

    /// Returns the byte that an escape denotes, or `None` if awks resolve it differently. `c` is
    /// the character after the backslash, already consumed; further octal digits are consumed here.
    fn escaped(&mut self, c: char) -> Option<[u8; 1]> {
        Some([match c {
            '"' => b'"',
            '\\' => b'\\',
            '/' => b'/',
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'a' => 7,
            'b' => 8,
            'v' => 11,
            'f' => 12,
            '0'..='7' => {
                let rest = self.rest();
                let more = rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
                self.at += more;
                let digits = format!("{c}{}", &rest[..more]);
                u8::from_str_radix(&digits, 8).ok()?
            }
            _ => return None,
        }])
    }

    /// Consumes the regular expression whose opening `/` is at the byte offset `start`, and returns
    /// it without the slashes.
    pub(super) fn regex(&mut self, start: usize) -> Result<String, Rejection> {
        self.at = start + 1;
        let mut in_bracket = false;
        loop {
            let rest = self.rest();
            let c = rest.chars().next().filter(|c| *c != '\n');
            let c = c.ok_or_else(|| {
                Rejection::unread("a regular expression is not closed on its line")
            })?;
            self.at += match (c, in_bracket) {
                ('/', false) => break,
                // Some awks end the expression here, and others do not.
                ('/', true) => {
                    return Err(Rejection::unread("`/` in brackets in a regular expression"));
                }
                ('\\', _) => 1 + Self::behind_backslash(rest)?,
                ('[', false) => {
                    in_bracket = true;
                    // A `]` in the first position is literal.
                    ["[^]", "[]", "["]
                        .iter()
                        .find(|begins| rest.starts_with(**begins))
                        .map_or(1, |b| b.len())
                }
                ('[', true) => class_length(rest),
                (']', _) => {
                    in_bracket = false;
                    1
                }
                _ => c.len_utf8(),
            };
        }
        self.at += 1;
        Ok(self.text[start + 1..self.at - 1].to_owned())
    }

    fn behind_backslash(rest: &str) -> Result<usize, Rejection> {
        let next = rest.chars().nth(1).filter(|c| *c != '\n');
        next.map(char::len_utf8)
            .ok_or_else(|| Rejection::unread("a regular expression continues after `\\`"))
    }
}

/// Returns the length in bytes of the class (such as `[:alpha:]`) at the start of `rest`, or 1 if
/// the bracket there is literal.
fn class_length(rest: &str) -> usize {
    let kind = rest[1..].chars().next().filter(|c| ":.=".contains(*c));
    let length = kind.and_then(|kind| rest[2..].find(&format!("{kind}]")).map(|at| at + 4));
    // A class that seems to end after a `/` or a newline ends in another expression.
    length.filter(|length| !rest[..*length].contains(['/', '\n'])).unwrap_or(1)
}

//! The state of the parser, and its limit on nesting.

use std::ops::Range;

use super::lexer::{Lexer, Token};
use super::rejection::Rejection;

/// Maximum nesting depth of expressions and statements. Hand-written programs have about ten
/// levels, and each level takes several stack frames.
const MAX_NESTING: usize = 60;

/// A parser with one token of lookahead.
#[derive(Debug, Clone)]
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token.
    pub(super) token: Token,
    /// Byte range of the next token in the program.
    pub(super) place: Range<usize>,
    /// The token before the next one; a newline at the start.
    pub(super) previous: Token,
    /// Byte offset at which the previous token ends.
    pub(super) previous_end: usize,
    depth: usize,
    /// The number of loops that enclose the next token.
    pub(super) loops: usize,
    /// Whether `>` redirects output, as it does within `print` outside parentheses.
    pub(super) printing: bool,
    /// Whether the parser is within a user-defined function.
    pub(super) in_function: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Rejection> {
        let mut lexer = Lexer::new(text);
        let (token, place) = lexer.token()?;
        let previous = Token::Newline;
        Ok(Self {
            lexer,
            token,
            place,
            previous,
            previous_end: 0,
            depth: 0,
            loops: 0,
            printing: false,
            in_function: false,
        })
    }

    /// Advances by one token, and returns the consumed token.
    pub(super) fn advance(&mut self) -> Result<Token, Rejection> {
        let (token, place) = self.lexer.token()?;
        self.previous_end = self.place.end;
        self.place = place;
        self.previous = std::mem::replace(&mut self.token, token);
        Ok(self.previous.clone())
    }

    /// Parses the regular expression that begins with the next token, `/` or `/=`. Fails where some
    /// awks read a division.
    pub(super) fn regex(&mut self) -> Result<String, Rejection> {
        // After these tokens, some awks read `/` as a division.
        let after_value = match &self.previous {
            Token::Operator(sign) => [")", "]", "$", "++", "--"].contains(sign),
            Token::Word(word, _) => {
                !["print", "return", "exit", "else", "do"].contains(&word.as_str())
            }
            Token::Number(_) | Token::Text(_) => true,
            Token::Newline | Token::End => false,
        };
        if after_value {
            return Err(Rejection::unread("a `/` that may divide or begin a regular expression"));
        }
        let text = self.lexer.regex(self.place.start)?;
        let (token, place) = self.lexer.token()?;
        self.previous_end = self.place.start + text.len() + 2;
        self.previous = Token::Text(super::ast::Text { value: None });
        (self.token, self.place) = (token, place);
        Ok(text)
    }

    /// Runs `read` one level deeper. Fails without running it if that exceeds [`MAX_NESTING`].
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Rejection>,
    ) -> Result<T, Rejection> {
        if self.depth == MAX_NESTING {
            return Err(Rejection::unread("it is nested too deeply"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(&self.token, Token::Operator(found) if *found == sign)
    }

    pub(super) fn is_one_of(&self, signs: &[&str]) -> bool {
        matches!(&self.token, Token::Operator(found) if signs.contains(found))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(found, _) if found == word)
    }

    /// Consumes the operator `sign` if it is next. Returns whether it was.
    pub(super) fn take(&mut self, sign: &str) -> Result<bool, Rejection> {
        let found = self.is(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Consumes `word` if it is next. Returns whether it was.
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, Rejection> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Consumes the operator `sign`. Fails if it is not next.
    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Rejection> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn skip_newlines(&mut self) -> Result<(), Rejection> {
        while self.token == Token::Newline {
            self.advance()?;
        }
        Ok(())
    }

    /// Consumes and returns a name. Fails if the next token is not a name or is a reserved word.
    pub(super) fn name(&mut self) -> Result<String, Rejection> {
        match &self.token {
            Token::Word(word, _) if !super::names::is_reserved(word) => {
                let word = word.clone();
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn unexpected(&self) -> Rejection {
        Rejection::unread(match &self.token {
            Token::Word(word, _) => format!("unexpected `{word}`"),
            Token::Number(number) => format!("unexpected `{number}`"),
            Token::Text(_) => "unexpected string".to_owned(),
            Token::Operator(sign) => format!("unexpected `{sign}`"),
            Token::Newline => "unexpected end of line".to_owned(),
            Token::End => "unexpected end of the program".to_owned(),
        })
    }
}

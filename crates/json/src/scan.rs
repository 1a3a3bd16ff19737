//! The grammar: from bytes to tokens, with every rule of RFC 8259 checked.
//!
//! Input is a sequence of texts, with nothing or white space between them (JSON lines are such a
//! sequence). A token says what comes; strings, keys, numbers and literals are then read by the
//! caller with [`Scanner::key`] or [`Scanner::scalar`], into a sink or into nothing.

use std::io::Read;

use crate::error::FilterError;
use crate::source::Source;
use crate::text::{self, Ignore, Sink};

/// Containers inside one another. Each takes memory while it is open; nothing here recurses.
pub const MOST_NESTED: usize = 100_000;

/// What kind of container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Object,
}

impl Kind {
    pub(crate) fn opening(self) -> u8 {
        match self {
            Self::Array => b'[',
            Self::Object => b'{',
        }
    }

    pub(crate) fn closing(self) -> u8 {
        match self {
            Self::Array => b']',
            Self::Object => b'}',
        }
    }
}

/// A value that is no container, still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Number,
    Literal(&'static str),
}

/// A value of which only the first byte has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Container(Kind),
    Scalar(Scalar),
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Value(Value),
    /// A key, still to be read with [`Scanner::key`].
    Key,
    /// The end of the innermost container.
    Close(Kind),
    /// The end of the input.
    End,
}

/// What the grammar allows next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A text, or white space and the end.
    Text,
    /// A text behind a number or literal, which needs white space before it.
    SeparateText,
    /// A value, after a colon or a comma.
    Value,
    /// The first value of an array, or its end.
    FirstValue,
    /// The first key of an object, or its end.
    FirstKey,
    /// A comma, or the end of the container.
    Next,
}

/// Reads tokens.
pub(crate) struct Scanner<'a> {
    pub(crate) source: Source<'a>,
    open: Vec<Kind>,
    expect: Expect,
    /// Some text has been read.
    begun: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(reader: &'a mut dyn Read) -> Self {
        let source = Source::new(reader);
        Self { source, open: Vec::new(), expect: Expect::Text, begun: false }
    }

    /// Containers that are open.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// What comes next.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Token, FilterError> {
        match self.expect {
            Expect::Next => self.next_in_container(),
            Expect::Value => match self.source.skip_space()? {
                Some(byte) => self.value(byte),
                None => Err(self.expected("a value")),
            },
            Expect::FirstValue => match self.source.skip_space()? {
                Some(b']') => Ok(self.close(Kind::Array)),
                Some(byte) => self.value(byte),
                None => Err(self.expected("a value or `]`")),
            },
            Expect::FirstKey => match self.source.skip_space()? {
                Some(b'}') => Ok(self.close(Kind::Object)),
                Some(b'"') => Ok(self.key_ahead()),
                _ => Err(self.expected("a key in double quotes or `}`")),
            },
            Expect::Text | Expect::SeparateText => self.next_text(),
        }
    }

    /// Reads a key and the colon after it.
    #[inline]
    pub(crate) fn key(&mut self, sink: &mut impl Sink) -> Result<(), FilterError> {
        text::string(&mut self.source, sink)?;
        if self.source.skip_space()? != Some(b':') {
            return Err(self.expected("`:` after a key"));
        }
        self.source.advance(1);
        self.expect = Expect::Value;
        Ok(())
    }

    /// Reads a string without its quotes, a number or a literal.
    #[inline]
    pub(crate) fn scalar(
        &mut self,
        scalar: Scalar,
        sink: &mut impl Sink,
    ) -> Result<(), FilterError> {
        match scalar {
            Scalar::String => text::string(&mut self.source, sink)?,
            Scalar::Number => text::number(&mut self.source, sink)?,
            Scalar::Literal(word) => text::literal(&mut self.source, word, sink)?,
        }
        let separate = scalar != Scalar::String;
        self.expect = match self.open.last() {
            Some(_) => Expect::Next,
            None if separate => Expect::SeparateText,
            None => Expect::Text,
        };
        Ok(())
    }

    /// Passes over a value, checking it.
    pub(crate) fn skip(&mut self, value: Value) -> Result<(), FilterError> {
        if let Value::Scalar(scalar) = value {
            return self.scalar(scalar, &mut Ignore);
        }
        let depth = self.depth();
        while self.depth() >= depth {
            match self.next()? {
                Token::Value(Value::Scalar(scalar)) => self.scalar(scalar, &mut Ignore)?,
                Token::Key => self.key(&mut Ignore)?,
                Token::Value(Value::Container(_)) | Token::Close(_) | Token::End => {}
            }
        }
        Ok(())
    }

    #[inline]
    fn next_in_container(&mut self) -> Result<Token, FilterError> {
        let array = self.open.last() == Some(&Kind::Array);
        match (self.source.skip_space()?, array) {
            (Some(b','), true) => {
                self.source.advance(1);
                match self.source.skip_space()? {
                    Some(byte) => self.value(byte),
                    None => Err(self.expected("a value")),
                }
            }
            (Some(b','), false) => {
                self.source.advance(1);
                match self.source.skip_space()? {
                    Some(b'"') => Ok(self.key_ahead()),
                    _ => Err(self.expected("a key in double quotes")),
                }
            }
            (Some(b']'), true) => Ok(self.close(Kind::Array)),
            (Some(b'}'), false) => Ok(self.close(Kind::Object)),
            (_, true) => Err(self.expected("`,` or `]`")),
            (_, false) => Err(self.expected("`,` or `}`")),
        }
    }

    fn next_text(&mut self) -> Result<Token, FilterError> {
        if !self.begun {
            self.source.skip_byte_order_mark()?;
        }
        let adjacent = self.source.peek()?;
        let byte = self.source.skip_space()?;
        match byte {
            None if self.begun => Ok(Token::End),
            None => Err(self.source.error("the input is empty: there is no value in it")),
            Some(_) if self.expect == Expect::SeparateText && adjacent == byte => {
                Err(self.expected("white space or the end"))
            }
            Some(byte) => {
                self.begun = true;
                self.value(byte)
            }
        }
    }

    #[inline]
    fn value(&mut self, first: u8) -> Result<Token, FilterError> {
        let value = match first {
            b'"' => {
                self.source.advance(1);
                Value::Scalar(Scalar::String)
            }
            b'{' => self.open(Kind::Object)?,
            b'[' => self.open(Kind::Array)?,
            b'-' | b'0'..=b'9' => Value::Scalar(Scalar::Number),
            b't' => Value::Scalar(Scalar::Literal("true")),
            b'f' => Value::Scalar(Scalar::Literal("false")),
            b'n' => Value::Scalar(Scalar::Literal("null")),
            _ => return Err(self.expected("a value")),
        };
        Ok(Token::Value(value))
    }

    #[inline]
    fn key_ahead(&mut self) -> Token {
        self.source.advance(1);
        Token::Key
    }

    #[inline]
    fn open(&mut self, kind: Kind) -> Result<Value, FilterError> {
        if self.open.len() == MOST_NESTED {
            let problem = format!("more than {MOST_NESTED} arrays and objects inside one another");
            return Err(self.source.error(problem));
        }
        self.source.advance(1);
        self.open.push(kind);
        self.expect = match kind {
            Kind::Array => Expect::FirstValue,
            Kind::Object => Expect::FirstKey,
        };
        Ok(Value::Container(kind))
    }

    #[inline]
    fn close(&mut self, kind: Kind) -> Token {
        self.source.advance(1);
        self.open.pop();
        self.expect = if self.open.is_empty() { Expect::Text } else { Expect::Next };
        Token::Close(kind)
    }

    #[cold]
    fn expected(&self, what: &str) -> FilterError {
        let found = self.source.found();
        self.source.error(format!("{what} is expected, not {found}"))
    }
}

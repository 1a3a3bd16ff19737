//! The input as a window of valid UTF-8 that moves forward.

use std::io::{ErrorKind, Read};

use crate::error::{FilterError, Place};

/// Bytes of the window. Small enough to stay in a CPU's cache while UTF-8, lines and grammar
/// are looked at one after the other.
const WINDOW: usize = 128 * 1024;
/// A character cut off at the end of a read has up to three bytes.
const CUT: usize = 3;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads, and knows where it is.
pub(crate) struct Source<'a> {
    reader: &'a mut dyn Read,
    window: Vec<u8>,
    /// The next byte in the window.
    at: usize,
    /// The end of what is valid.
    valid: usize,
    /// The end of what was read: a character may be cut off in between.
    read: usize,
    /// Nothing more can be read.
    ended: bool,
    /// Bytes of the input before the window.
    before: u64,
    lines_before: u64,
    /// Where the line begins in which the window begins, in bytes of the input.
    line_start: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(reader: &'a mut dyn Read) -> Self {
        Self {
            reader,
            window: vec![0; WINDOW + CUT],
            at: 0,
            valid: 0,
            read: 0,
            ended: false,
            before: 0,
            lines_before: 0,
            line_start: 0,
        }
    }

    /// The next byte, which stays; none at the end of the input.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, FilterError> {
        if self.at < self.valid {
            return Ok(Some(self.window[self.at]));
        }
        self.refill()
    }

    /// The rest of the window, without reading; not empty after a byte was peeked at.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        &self.window[self.at..self.valid]
    }

    /// Goes on by so many bytes of the rest.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The next byte that is not white space, which stays.
    #[inline]
    pub(crate) fn skip_space(&mut self) -> Result<Option<u8>, FilterError> {
        loop {
            let rest = self.rest();
            match rest.iter().position(|byte| !is_space(*byte)) {
                Some(spaces) => {
                    let byte = rest[spaces];
                    self.at += spaces;
                    return Ok(Some(byte));
                }
                None => self.at = self.valid,
            }
            if self.refill()?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Whether nothing but white space has been read and not used: to go on means to wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.rest().iter().all(|byte| is_space(*byte))
    }

    /// A byte order mark says nothing in UTF-8; RFC 8259 lets a parser ignore it.
    pub(crate) fn skip_byte_order_mark(&mut self) -> Result<(), FilterError> {
        if self.peek()?.is_some() && self.rest().starts_with(BYTE_ORDER_MARK) {
            self.advance(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Bytes of the input before the next one.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// An error at the next byte.
    #[cold]
    pub(crate) fn error(&self, problem: impl Into<String>) -> FilterError {
        FilterError::Malformed { place: self.place(self.at), problem: problem.into() }
    }

    /// What stands at the next byte, for an error.
    #[cold]
    pub(crate) fn found(&self) -> String {
        match std::str::from_utf8(self.rest()).ok().and_then(|rest| rest.chars().next()) {
            None => "the end of the input".to_owned(),
            Some(c) if c.is_control() => format!("the character U+{:04X}", u32::from(c)),
            Some(c) => format!("`{c}`"),
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<Option<u8>, FilterError> {
        debug_assert_eq!(self.at, self.valid, "the window is used up");
        self.forget();
        while self.valid == 0 {
            if self.read > 0 && (self.ended || self.read > CUT) {
                return Err(self.not_utf8());
            }
            if self.ended {
                return Ok(None);
            }
            self.read_more()?;
            self.valid = valid_utf8(&self.window[..self.read]);
        }
        Ok(Some(self.window[0]))
    }

    /// Moves a character that was cut off to the front, and counts what is dropped.
    fn forget(&mut self) {
        let used = &self.window[..self.valid];
        if let Some(newline) = memchr::memrchr(b'\n', used) {
            self.lines_before += memchr::memchr_iter(b'\n', used).count() as u64;
            self.line_start = self.before + newline as u64 + 1;
        }
        self.before += self.valid as u64;
        self.window.copy_within(self.valid..self.read, 0);
        self.read -= self.valid;
        self.at = 0;
        self.valid = 0;
    }

    fn read_more(&mut self) -> Result<(), FilterError> {
        loop {
            match self.reader.read(&mut self.window[self.read..]) {
                Ok(0) => self.ended = true,
                Ok(bytes) => self.read += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(FilterError::Read(error)),
            }
            return Ok(());
        }
    }

    #[cold]
    fn not_utf8(&self) -> FilterError {
        let problem = match (self.before, &self.window[..self.read]) {
            (0, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) => "this is UTF-16: JSON is UTF-8".to_owned(),
            (_, bytes) => format!("the byte 0x{:02X} is not UTF-8 here", bytes[0]),
        };
        FilterError::Malformed { place: self.place(0), problem }
    }

    fn place(&self, at: usize) -> Place {
        let seen = &self.window[..at];
        let offset = self.before + at as u64;
        let start = memchr::memrchr(b'\n', seen)
            .map_or(self.line_start, |newline| self.before + newline as u64 + 1);
        let newlines = memchr::memchr_iter(b'\n', seen).count() as u64;
        Place { line: self.lines_before + newlines + 1, column: offset - start + 1, offset }
    }
}

#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// How many bytes at the beginning are whole characters.
fn valid_utf8(bytes: &[u8]) -> usize {
    match simdutf8::compat::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    }
}

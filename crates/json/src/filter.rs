//! Prints the matching values of a document in one pass.
//!
//! A match inside a printed value is not printed a second time, since it would have to be buffered
//! until the outer value ends.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use struson::reader::{JsonReader as _, ValueType};
use struson::writer::JsonStreamWriter;

use crate::error::FilterError;
use crate::format::Format;
use crate::input::{Input, Json, Stop, explain, parser};
use crate::matcher::{Kind, Match, PathMatcher};
use crate::output::Output;
use crate::path::Query;

/// Length in bytes of the buffer through which strings are copied.
const STRING_PIECE_BYTES: usize = 4096;

/// Writes the values of `input` that match `query` to `output`, in the given format.
///
/// `input` and `output` need no buffering of their own. Complete lines are flushed before a read
/// that may block.
///
/// # Errors
/// Returns an error in these cases:
/// - the input is not a sequence of one or more JSON texts;
/// - the input is nested too deeply, or the format prints paths and that of a printed or searched
///   value is too long;
/// - reading or writing fails.
///
/// Unless writing failed, lines that were complete before the error have been written.
pub fn filter(
    input: &mut dyn Read,
    output: &mut dyn Write,
    query: &Query,
    format: Format,
) -> Result<(), FilterError> {
    let output = RefCell::new(Output::new(output));
    let input = Input::new(input, &output)?;
    let matcher = PathMatcher::new(query, format);
    let piece = vec![0; STRING_PIECE_BYTES];
    let mut filter = Filter { json: parser(input), output: &output, matcher, format, piece };
    let result = filter.run().map_err(|stop| explain(&mut filter.json, stop));
    // If writing failed, `result` already holds that error.
    result.and(output.borrow_mut().flush_lines().map_err(FilterError::Write))
}

struct Filter<'s, 'a> {
    json: Json<'s, 'a>,
    /// The output. The input shares it and flushes it before reads, so it must not be borrowed
    /// while the parser reads.
    output: &'s RefCell<Output<'a>>,
    matcher: PathMatcher<'s>,
    format: Format,
    /// The buffer through which strings are copied.
    piece: Vec<u8>,
}

impl Filter<'_, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            let matched = self.matcher.begin_text();
            self.value(matched)?;
            while let Some(kind) = self.matcher.innermost() {
                self.next_in(kind)?;
            }
            if !self.json.has_next()? {
                return Ok(());
            }
        }
    }

    /// Handles the next member or element of the innermost container, which is of the given kind,
    /// or the end of that container.
    fn next_in(&mut self, kind: Kind) -> Result<(), Stop> {
        if !self.json.has_next()? {
            return self.close(kind);
        }
        let matched = match kind {
            Kind::Array => self.matcher.element()?,
            Kind::Object => self.matcher.member(self.json.next_name()?)?,
        };
        self.value(matched)
    }

    fn value(&mut self, matched: Match) -> Result<(), Stop> {
        match matched {
            Match::Skip => return Ok(self.json.skip_value()?),
            Match::Print if self.format == Format::JsonLines => return self.copy(),
            Match::Search | Match::Print => {}
        }
        match self.json.peek()? {
            ValueType::Array => self.open(Kind::Array, matched),
            ValueType::Object => self.open(Kind::Object, matched),
            _ if matched == Match::Search => Ok(self.json.skip_value()?),
            scalar => self.print(scalar),
        }
    }

    fn open(&mut self, kind: Kind, matched: Match) -> Result<(), Stop> {
        match kind {
            Kind::Array => self.json.begin_array()?,
            Kind::Object => self.json.begin_object()?,
        }
        if matched == Match::Print && self.format == Format::Assignments {
            self.print_empty(kind)?;
        }
        self.matcher.open(kind, matched);
        Ok(())
    }

    fn close(&mut self, kind: Kind) -> Result<(), Stop> {
        match kind {
            Kind::Array => self.json.end_array()?,
            Kind::Object => self.json.end_object()?,
        }
        let closed = self.matcher.close();
        let is_empty = closed.is_some_and(|open| open.matched == Match::Print && open.count == 0);
        if is_empty && self.format == Format::PathValue {
            self.print_empty(kind)?;
        }
        Ok(())
    }

    /// Prints a line whose value is an empty container of the given kind.
    fn print_empty(&self, kind: Kind) -> Result<(), Stop> {
        self.begin_line()?;
        self.push(kind.empty())?;
        self.end_line()
    }

    /// Prints a line for the current value, which is a string, number, Boolean or null.
    fn print(&mut self, scalar: ValueType) -> Result<(), Stop> {
        self.begin_line()?;
        match scalar {
            ValueType::String => self.print_string()?,
            ValueType::Boolean => {
                let text: &[u8] = if self.json.next_bool()? { b"true" } else { b"false" };
                self.push(text)?;
            }
            ValueType::Null => {
                self.json.next_null()?;
                self.push(b"null")?;
            }
            ValueType::Number | ValueType::Array | ValueType::Object => {
                let number = self.json.next_number_as_str()?;
                self.output.borrow_mut().push(number.as_bytes())?;
            }
        }
        self.end_line()
    }

    /// Prints the current string in pieces, since it may be larger than memory.
    fn print_string(&mut self) -> Result<(), Stop> {
        let quote: &[u8] = if self.format == Format::Assignments { b"\"" } else { b"" };
        self.push(quote)?;
        let mut string = self.json.next_string_reader()?;
        let mut cut = 0;
        loop {
            let read = string.read(&mut self.piece[cut..]).map_err(Stop::in_string)?;
            if read == 0 {
                break;
            }
            let text = whole_characters(&self.piece[..cut + read]);
            self.output.borrow_mut().push_with(|out| self.format.push_text(out, text))?;
            let printed = text.len();
            self.piece.copy_within(printed..cut + read, 0);
            cut = cut + read - printed;
        }
        drop(string);
        Ok(self.push(quote)?)
    }

    fn begin_line(&self) -> Result<(), Stop> {
        let mut output = self.output.borrow_mut();
        output.push(self.matcher.path())?;
        Ok(output.push(if self.format == Format::Assignments { b" = " } else { b"\t" })?)
    }

    fn end_line(&self) -> Result<(), Stop> {
        let end: &[u8] = if self.format == Format::Assignments { b";\n" } else { b"\n" };
        Ok(self.output.borrow_mut().end_line(end)?)
    }

    fn push(&self, text: &[u8]) -> io::Result<()> {
        self.output.borrow_mut().push(text)
    }

    /// Prints the current value on one line, without white space between its tokens.
    fn copy(&mut self) -> Result<(), Stop> {
        let mut writer = JsonStreamWriter::new(Line(self.output));
        self.json.transfer_to(&mut writer)?;
        writer.finish_document_no_flush()?;
        self.end_line()
    }
}

/// A writer that appends to the unfinished line.
struct Line<'s, 'a>(&'s RefCell<Output<'a>>);

impl Write for Line<'_, '_> {
    #[inline]
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push(text)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the longest prefix that consists of complete UTF-8 characters.
fn whole_characters(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

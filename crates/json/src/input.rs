//! The parser on its input, and what its errors mean here.

use std::cell::RefCell;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};

use struson::reader::{
    JsonReader as _, JsonReaderPosition, JsonStreamReader, JsonSyntaxError, ReaderError,
    ReaderSettings, SyntaxErrorKind, TransferError,
};

use crate::error::{FilterError, Place};
use crate::output::Output;

/// Containers inside one another. Each takes memory while it is open; nothing here recurses.
pub const MAX_NESTING: u32 = 100_000;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The parser on an input.
pub(crate) type Json<'s, 'a> = JsonStreamReader<Input<'s, 'a>>;

/// What the parser reads from. Before it waits for more, complete lines are written.
pub(crate) struct Input<'s, 'a> {
    reader: BufReader<&'a mut dyn Read>,
    output: &'s RefCell<Output<'a>>,
    /// Why reading failed: the parser keeps only the words of it.
    failed: Option<FilterError>,
    /// Bytes that were dropped at the beginning.
    dropped: u64,
}

impl<'s, 'a> Input<'s, 'a> {
    /// Drops a byte order mark: it says nothing in UTF-8, and RFC 8259 lets a parser ignore it.
    pub(crate) fn new(
        reader: &'a mut dyn Read,
        output: &'s RefCell<Output<'a>>,
    ) -> Result<Self, FilterError> {
        let mut reader = BufReader::with_capacity(READ_BYTES, reader);
        let mut mark = Vec::new();
        if first_byte(&mut reader).map_err(FilterError::Read)? == BYTE_ORDER_MARK.first().copied() {
            let most = BYTE_ORDER_MARK.len() as u64;
            reader.by_ref().take(most).read_to_end(&mut mark).map_err(FilterError::Read)?;
            if mark != BYTE_ORDER_MARK {
                let place = Place { line: 1, column: 1, offset: 0 };
                return Err(malformed(place, problem(SyntaxErrorKind::MalformedJson)));
            }
        }
        Ok(Self { reader, output, failed: None, dropped: mark.len() as u64 })
    }

    fn read_more(&mut self, buffer: &mut [u8]) -> Result<usize, FilterError> {
        if self.reader.buffer().is_empty() {
            self.output.borrow_mut().flush_lines().map_err(FilterError::Write)?;
        }
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(FilterError::Read),
            }
        }
    }

    fn place(&self, position: &JsonReaderPosition) -> Place {
        let (line, column) = position.line_pos.map_or((0, 0), |at| (at.line, at.column));
        let offset = position.data_pos.unwrap_or_default() + self.dropped;
        Place { line: line + 1, column: column + 1, offset }
    }

    /// Both look alike to the parser.
    fn failed_or_not_utf8(&mut self, position: &JsonReaderPosition) -> FilterError {
        let place = self.place(position);
        self.failed.take().unwrap_or_else(|| malformed(place, "this is not UTF-8"))
    }
}

impl Read for Input<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_more(buffer).map_err(|error| {
            self.failed = Some(error);
            io::Error::from(ErrorKind::Other)
        })
    }
}

fn first_byte(reader: &mut BufReader<&mut dyn Read>) -> io::Result<Option<u8>> {
    loop {
        match reader.fill_buf() {
            Ok(bytes) => return Ok(bytes.first().copied()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A parser of a sequence of texts, in which numbers are text.
pub(crate) fn parser<R: Read>(input: R) -> JsonStreamReader<R> {
    let settings = ReaderSettings {
        allow_multiple_top_level: true,
        track_path: false,
        max_nesting_depth: Some(MAX_NESTING),
        restrict_number_values: false,
        ..ReaderSettings::default()
    };
    JsonStreamReader::new_custom(input, settings)
}

/// Why a value was not found or printed to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error(transparent)]
    Json(#[from] ReaderError),
    /// In the middle of a string, which cannot be read or is not UTF-8.
    #[error(transparent)]
    Text(io::Error),
    #[error(transparent)]
    Write(#[from] io::Error),
    #[error("the path to this value is longer than {0} bytes: JSON lines print no paths")]
    PathTooLong(usize),
}

impl Stop {
    /// What went wrong when a part of a string was asked for: the parser hides it in an error of
    /// reading.
    pub(crate) fn in_string(error: io::Error) -> Self {
        match error.downcast::<JsonSyntaxError>() {
            Ok(error) => Self::Json(error.into()),
            Err(error) => Self::Text(error),
        }
    }
}

impl From<TransferError> for Stop {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::ReaderError(error) => Self::Json(error),
            TransferError::WriterError(error) => Self::Write(error),
        }
    }
}

/// The error to tell, with its place.
pub(crate) fn explain(json: &mut Json, stop: Stop) -> FilterError {
    let position = json.current_position(false);
    let input = json.reader_mut();
    match stop {
        Stop::Write(error) => FilterError::Write(error),
        Stop::Text(_) => input.failed_or_not_utf8(&position),
        Stop::Json(ReaderError::SyntaxError(error)) => {
            malformed(input.place(&error.location), problem(error.kind))
        }
        Stop::Json(ReaderError::MaxNestingDepthExceeded { max_nesting_depth, location }) => {
            let most = max_nesting_depth;
            let problem = format!("more than {most} arrays and objects inside one another");
            malformed(input.place(&location), problem)
        }
        Stop::Json(ReaderError::IoError { location, .. }) => input.failed_or_not_utf8(&location),
        stop @ (Stop::Json(_) | Stop::PathTooLong(_)) => {
            malformed(input.place(&position), stop.to_string())
        }
    }
}

fn malformed(place: Place, problem: impl Into<String>) -> FilterError {
    FilterError::Malformed { place, problem: problem.into() }
}

/// What is wrong.
pub(crate) fn problem(kind: SyntaxErrorKind) -> String {
    let text = match kind {
        SyntaxErrorKind::CommentsNotEnabled => "JSON has no comments",
        SyntaxErrorKind::InvalidLiteral => "of words there are only `true`, `false` and `null`",
        SyntaxErrorKind::TrailingDataAfterLiteral => {
            "`true`, `false` or `null` is followed by something that does not separate values"
        }
        SyntaxErrorKind::TrailingDataAfterNumber => {
            "a number is followed by something that does not separate values"
        }
        SyntaxErrorKind::MalformedNumber => "this is not how JSON writes numbers",
        SyntaxErrorKind::UnexpectedClosingBracket => "a value is expected, not a closing bracket",
        SyntaxErrorKind::UnexpectedComma => "a value is expected, not `,`",
        SyntaxErrorKind::UnexpectedColon => "a value is expected, not `:`",
        SyntaxErrorKind::MissingComma => "`,` or the end of an array or object is expected",
        SyntaxErrorKind::TrailingCommaNotEnabled => "nothing follows this comma",
        SyntaxErrorKind::MissingColon => "`:` is expected after a key",
        SyntaxErrorKind::ExpectingMemberNameOrObjectEnd => {
            "a key in double quotes or `}` is expected"
        }
        SyntaxErrorKind::MalformedJson => "a value is expected",
        SyntaxErrorKind::NotEscapedControlCharacter => {
            "a control character stands here: strings have it only escaped"
        }
        SyntaxErrorKind::UnknownEscapeSequence => "there is no such escape sequence",
        SyntaxErrorKind::MalformedEscapeSequence => "this escape sequence is not complete",
        SyntaxErrorKind::UnpairedSurrogatePairEscapeSequence => {
            "half of a surrogate pair stands without its other half"
        }
        SyntaxErrorKind::IncompleteDocument => "the input ends before a value is complete",
        // Of what is not switched on here.
        other => return other.to_string(),
    };
    text.to_owned()
}

//! Configures the JSON parser, reads its input, and translates its errors.

use std::cell::RefCell;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};

use struson::reader::{
    JsonReader as _, JsonReaderPosition, JsonStreamReader, JsonSyntaxError, ReaderError,
    ReaderSettings, SyntaxErrorKind, TransferError,
};

use crate::error::{FilterError, Place};
use crate::output::Output;

/// Maximum nesting depth of arrays and objects. Open containers take memory on the heap; no
/// function recurses.
pub const MAX_NESTING: u32 = 100_000;

/// Size of the input's buffer in bytes.
const READ_BYTES: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A JSON parser that reads from an [`Input`].
pub(crate) type Json<'s, 'a> = JsonStreamReader<Input<'s, 'a>>;

/// The reader for the parser. It flushes complete output lines before each read that may block.
pub(crate) struct Input<'s, 'a> {
    reader: BufReader<&'a mut dyn Read>,
    output: &'s RefCell<Output<'a>>,
    /// The error of a failed read, or of a failed flush of the output before a read. It is kept
    /// here because the parser keeps only its message.
    failed: Option<FilterError>,
    /// Length in bytes of the byte order mark that was dropped, or 0.
    dropped: u64,
}

impl<'s, 'a> Input<'s, 'a> {
    /// Creates an input, and drops a byte order mark at its start. The mark has no meaning in
    /// UTF-8, and RFC 8259 allows parsers to ignore it. Fails if the input cannot be read, or
    /// begins with the first byte of the mark but not with the whole mark.
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

    /// Takes and returns the error in `failed`. If there is none, returns an encoding error at
    /// `position`. The parser reports failed reads and encoding errors in the same way.
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

/// Creates a parser for a sequence of JSON texts. It returns numbers as they are written.
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

/// The reason why filtering stopped early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error(transparent)]
    Json(#[from] ReaderError),
    /// Inside a string, a read failed or the bytes are not UTF-8.
    #[error(transparent)]
    Text(io::Error),
    #[error(transparent)]
    Write(#[from] io::Error),
    #[error(
        "the path to this value is longer than {0} bytes: use --format jsonl, which prints no paths"
    )]
    PathTooLong(usize),
}

impl Stop {
    /// Converts an error of a string reader. The parser returns syntax errors within strings as I/O
    /// errors; these become syntax errors again.
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

/// Converts the reason why filtering stopped into an error for callers. If the input is malformed
/// or exceeds a limit, the error has the position of the problem.
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
            let problem = format!("arrays and objects are nested more than {most} deep");
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

/// Returns a description of a syntax error for users, without its position.
pub(crate) fn problem(kind: SyntaxErrorKind) -> String {
    let text = match kind {
        SyntaxErrorKind::CommentsNotEnabled => "comments are not allowed in JSON",
        SyntaxErrorKind::InvalidLiteral => "expected `true`, `false` or `null`",
        SyntaxErrorKind::TrailingDataAfterLiteral => {
            "unexpected text after `true`, `false` or `null`"
        }
        SyntaxErrorKind::TrailingDataAfterNumber => "unexpected text after a number",
        SyntaxErrorKind::MalformedNumber => "invalid number",
        SyntaxErrorKind::UnexpectedClosingBracket => "expected a value, found a closing bracket",
        SyntaxErrorKind::UnexpectedComma => "expected a value, found `,`",
        SyntaxErrorKind::UnexpectedColon => "expected a value, found `:`",
        SyntaxErrorKind::MissingComma => "expected `,` or the end of the array or object",
        SyntaxErrorKind::TrailingCommaNotEnabled => "trailing comma",
        SyntaxErrorKind::MissingColon => "expected `:` after the key",
        SyntaxErrorKind::ExpectingMemberNameOrObjectEnd => "expected a key in double quotes or `}`",
        SyntaxErrorKind::MalformedJson => "expected a value",
        SyntaxErrorKind::NotEscapedControlCharacter => {
            "control characters in strings must be escaped"
        }
        SyntaxErrorKind::UnknownEscapeSequence => "unknown escape sequence",
        SyntaxErrorKind::MalformedEscapeSequence => "incomplete escape sequence",
        SyntaxErrorKind::UnpairedSurrogatePairEscapeSequence => "unpaired surrogate",
        SyntaxErrorKind::IncompleteDocument => "unexpected end of the input",
        // Errors of features that are not enabled.
        other => return other.to_string(),
    };
    text.to_owned()
}

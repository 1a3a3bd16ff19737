//! HTTP/1.1 as every model speaks it, on blocking or non-blocking connections.
//!
//! A model decides what waits, and where. [`advance`] does a connection's work between two waits,
//! which is the same for all models:
//!
//! - connections stay open unless the client asks to close them, speaks HTTP/1.0 without asking to
//!   keep them open, or sends a request that is rejected;
//! - pipelined requests are answered in order;
//! - bodies of a known length are skipped;
//! - a head that is too large gets status 431, a malformed one 400, and a body of unknown length
//!   501.
//!
//! There are no timeouts: a silent client keeps its connection, and with it a member of a pool.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use httparse::{EMPTY_HEADER, Error, Header, Status};

/// How a server handles a request: it responds at once or after a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// The server responds immediately.
    Hello,
    /// The server responds after [`HANDLER_DELAY`], as after a database query.
    Wait,
}

/// Delay of each response with [`Handler::Wait`].
pub const HANDLER_DELAY: Duration = Duration::from_millis(100);

impl Handler {
    /// All handlers with their names.
    pub const ALL: [(&'static str, Self); 2] = [("hello", Self::Hello), ("wait", Self::Wait)];

    /// Returns the handler with the given name, or `None` if there is none.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, handler)| handler)
    }

    /// Returns the handler's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Wait => "wait",
        }
    }
}

/// Maximum length of a request's head in bytes.
pub const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of fields in the head of a request.
const MAX_HEADER_FIELDS: usize = 64;
/// Size of the read buffer in bytes.
const READ_BYTES: usize = 4096;
/// Maximum number of bytes read and discarded before a connection is closed while the client is
/// still sending.
const MAX_DRAINED_BYTES: usize = 256 << 10;

/// Response with status 200 on a connection that stays open.
pub const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";
/// Response with status 200 after which the connection is closed.
const LAST_HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\
                            Connection: close\r\n\r\nhello\n";
/// Body of responses with status 200.
pub const BODY: &[u8] = b"hello\n";
const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LARGE: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\
                           Connection: close\r\n\r\n";
const NOT_IMPLEMENTED: &[u8] =
    b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A connection to a client, whose reads and writes either block or return `WouldBlock`.
pub trait Stream: Read + Write {
    /// Shuts down the sending side of the connection.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses, such as after the client has reset the connection.
    fn finish(&mut self) -> io::Result<()>;
}

impl Stream for &TcpStream {
    fn finish(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Event that a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// Input or its end.
    Read,
    /// Room in the send buffer.
    Write,
    /// The end of [`HANDLER_DELAY`].
    Pause,
}

/// Unfinished work on a connection between two calls of `advance`. Most connections have none.
#[derive(Debug, Default)]
struct Work {
    /// Bytes received but not yet parsed.
    incoming: Vec<u8>,
    /// Bytes of responses still to be written.
    outgoing: Vec<u8>,
    /// Bytes of a request body still to be skipped.
    body: u64,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Requests are received, and no delay has begun.
    #[default]
    Open,
    /// The delay for the first request in `incoming` has begun, and the next call answers it.
    Paused,
    /// The connection is closed once `outgoing` has been written.
    Closes,
    /// Like `Closes`, but the client may still be sending. Closing now would reset the connection
    /// before the client has read the response, so the sending side is shut down first.
    ShutsDown,
    /// The sending side is shut down, and the given number of bytes has been discarded since.
    Draining(usize),
}

/// The state of a waiting connection. An idle connection has no state and allocates nothing.
#[derive(Debug, Default)]
pub struct ConnectionState(Option<Box<Work>>);

impl ConnectionState {
    /// Returns whether the connection has no unfinished work.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Serves a connection until it has to wait, and returns the event that it waits for. Returns
/// `None` if the connection must be closed. Call this again when the event has happened; after
/// `WaitFor::Pause`, not before the delay has passed.
///
/// Reads at most once, so that other connections get their turn, except for input that is discarded
/// before the connection is closed.
pub fn advance(
    state: &mut ConnectionState,
    stream: &mut impl Stream,
    handler: Handler,
) -> Option<WaitFor> {
    let mut new = Work::default(); // on the stack, unless it has to be kept
    let work = state.0.as_deref_mut().unwrap_or(&mut new);
    let waits = work.advance(stream, handler)?;
    if work.is_idle() {
        state.0 = None;
    } else if state.0.is_none() {
        state.0 = Some(Box::new(new));
    }
    Some(waits)
}

/// Result of parsing the head at the start of the bytes received.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// The head is not complete yet, and has no error so far.
    Incomplete,
    /// The head is complete and describes a request that can be answered.
    Complete(Request),
    /// The head is wrong or not supported, and gets the given response.
    Rejected(&'static [u8]),
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Length of the request head, in bytes.
    length: usize,
    /// Length of the request body, in bytes.
    body: u64,
    closes: bool,
    /// Whether it is a HEAD request, whose response has no body.
    head_only: bool,
}

impl Work {
    fn is_idle(&self) -> bool {
        self.incoming.is_empty()
            && self.outgoing.is_empty()
            && self.body == 0
            && self.state == State::Open
    }

    fn advance(&mut self, stream: &mut impl Stream, handler: Handler) -> Option<WaitFor> {
        let mut has_read = false;
        loop {
            if let State::Draining(_) = self.state {
                return self.drain(stream);
            }
            let pauses = self.answer(handler);
            match self.write(stream) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(WaitFor::Write),
                Err(_) => return None,
            }
            match self.state {
                State::Closes => return None,
                State::ShutsDown => {
                    stream.finish().ok()?;
                    self.state = State::Draining(0);
                    continue;
                }
                _ if pauses => {
                    self.state = State::Paused;
                    return Some(WaitFor::Pause);
                }
                _ if has_read => return Some(WaitFor::Read),
                _ => {}
            }
            match self.read(stream) {
                Ok(0) => return None,
                Ok(_) => has_read = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(WaitFor::Read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    fn read(&mut self, stream: &mut impl Stream) -> io::Result<usize> {
        let mut buffer = [0; READ_BYTES];
        let read = stream.read(&mut buffer)?;
        let of_body = usize::try_from(self.body).unwrap_or(usize::MAX).min(read);
        self.body -= of_body as u64;
        self.incoming.extend_from_slice(&buffer[of_body..read]);
        Ok(read)
    }

    /// Moves complete requests out of `incoming` and adds their responses to `outgoing`. Discards
    /// all input after a request that is rejected or closes the connection. Returns whether a
    /// request is left that must be delayed first.
    fn answer(&mut self, handler: Handler) -> bool {
        let mut begin = 0;
        let mut pauses = false;
        while begin < self.incoming.len() && self.is_listening() {
            match head(&self.incoming[begin..]) {
                Head::Incomplete => break,
                Head::Complete(_) if handler == Handler::Wait && self.state == State::Open => {
                    pauses = true;
                    break;
                }
                Head::Complete(request) => {
                    let hello = if request.closes { LAST_HELLO } else { HELLO };
                    let body = if request.head_only { BODY.len() } else { 0 };
                    self.outgoing.extend_from_slice(&hello[..hello.len() - body]);
                    begin += request.length;
                    let of_body = (self.incoming.len() - begin) as u64;
                    let of_body = of_body.min(request.body);
                    self.body = request.body - of_body;
                    begin += usize::try_from(of_body).unwrap_or(usize::MAX);
                    self.state = match request.closes {
                        false => State::Open,
                        true if self.body > 0 => State::ShutsDown,
                        true => State::Closes,
                    };
                }
                Head::Rejected(refusal) => {
                    self.outgoing.extend_from_slice(refusal);
                    self.state = State::ShutsDown;
                }
            }
        }
        if begin == self.incoming.len() || !self.is_listening() {
            self.incoming = Vec::new();
        } else {
            self.incoming.drain(..begin);
        }
        pauses
    }

    fn is_listening(&self) -> bool {
        matches!(self.state, State::Open | State::Paused)
    }

    fn write(&mut self, stream: &mut impl Stream) -> io::Result<()> {
        let mut written = 0;
        let result = loop {
            if written == self.outgoing.len() {
                break Ok(());
            }
            match stream.write(&self.outgoing[written..]) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if written == self.outgoing.len() {
            self.outgoing = Vec::new();
        } else {
            self.outgoing.drain(..written);
        }
        result
    }

    /// Reads and discards input. Returns `WaitFor::Read` if there may be more, or `None` if the
    /// client has finished or has sent too much, or the connection has failed.
    fn drain(&mut self, stream: &mut impl Stream) -> Option<WaitFor> {
        let State::Draining(mut so_far) = self.state else { return Some(WaitFor::Read) };
        let mut buffer = [0; READ_BYTES];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(read) => so_far += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.state = State::Draining(so_far);
                    return Some(WaitFor::Read);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            if so_far > MAX_DRAINED_BYTES {
                return None;
            }
        }
    }
}

fn head(bytes: &[u8]) -> Head {
    let mut fields = [EMPTY_HEADER; MAX_HEADER_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(Status::Complete(length)) if length <= MAX_HEAD_BYTES => {
            let is_http_1_1 = request.version == Some(1);
            let head_only = request.method == Some("HEAD");
            parse_fields(length, is_http_1_1, head_only, request.headers)
        }
        Ok(Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => Head::Incomplete,
        Ok(_) | Err(Error::TooManyHeaders) => Head::Rejected(TOO_LARGE),
        Err(_) => Head::Rejected(BAD_REQUEST),
    }
}

fn parse_fields(length: usize, is_http_1_1: bool, head_only: bool, fields: &[Header<'_>]) -> Head {
    let (mut closes, mut body) = (!is_http_1_1, None);
    for field in fields {
        if field.name.eq_ignore_ascii_case("connection") {
            for word in field.value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                closes |= word.eq_ignore_ascii_case(b"close");
                closes &= !word.eq_ignore_ascii_case(b"keep-alive") || is_http_1_1;
            }
        } else if field.name.eq_ignore_ascii_case("content-length") {
            match decimal(field.value) {
                // Two different lengths are ambiguous: request smuggling.
                Some(bytes) if body.is_none_or(|before| before == bytes) => body = Some(bytes),
                _ => return Head::Rejected(BAD_REQUEST),
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Head::Rejected(NOT_IMPLEMENTED);
        }
    }
    Head::Complete(Request { length, body: body.unwrap_or(0), closes, head_only })
}

/// Parses a number that consists of digits only. Returns `None` for other text and for numbers that
/// are too large. Does not accept a sign, unlike `str::parse`.
fn decimal(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;

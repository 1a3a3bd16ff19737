//! What every model says and understands: requests and answers of HTTP/1.1, without waiting.
//!
//! A model decides who waits, and where. What a connection does between two waits is [`advance`], the same
//! for all: connections stay open unless either side says otherwise, requests may come several at once
//! and are answered in their order, bodies of a known length are passed over, a head that is too large is
//! answered with 431, one that is none with 400, and a body of unknown length with 501. Nothing has a deadline: a
//! client that says nothing more keeps its connection, and with it a member of a pool.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use httparse::{EMPTY_HEADER, Error, Header, Status};

/// What a server does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// Answers at once.
    Hello,
    /// Answers when [`HANDLER_DELAY`] is over, as if a database had been asked.
    Wait,
}

/// How long [`Handler::Wait`] waits.
pub const HANDLER_DELAY: Duration = Duration::from_millis(100);

impl Handler {
    /// Both, by name.
    pub const ALL: [(&'static str, Self); 2] = [("hello", Self::Hello), ("wait", Self::Wait)];

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, handler)| handler)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Wait => "wait",
        }
    }
}

/// Bytes of a request's head at most.
pub const MAX_HEAD_BYTES: usize = 16 << 10;
/// Fields of a request's head at most.
const MAX_HEADER_FIELDS: usize = 64;
/// Bytes that are read at once.
const READ_BYTES: usize = 4096;
/// Bytes that are still read of somebody who is still writing at the end, so that the answer arrives.
const MAX_DRAINED_BYTES: usize = 256 << 10;

/// The answer to a request.
pub const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";
/// The same to whoever wants to close the connection.
const LAST_HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\
                            Connection: close\r\n\r\nhello\n";
/// The body of the response.
pub const BODY: &[u8] = b"hello\n";
const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LARGE: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\
                           Connection: close\r\n\r\n";
const NOT_IMPLEMENTED: &[u8] =
    b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A connection, as a conversation needs it.
pub trait Stream: Read + Write {
    /// Tells the other side that nothing more comes.
    ///
    /// # Errors
    /// What the kernel says, such as that the other side has gone.
    fn finish(&mut self) -> io::Result<()>;
}

impl Stream for &TcpStream {
    fn finish(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// Something to read.
    Read,
    /// Room for what is to be written.
    Write,
    /// The end of [`HANDLER_DELAY`].
    Pause,
}

/// What has begun and is not done yet between two waits: nothing, most of the time.
#[derive(Debug, Default)]
struct Conversation {
    /// What has come and has not been answered.
    incoming: Vec<u8>,
    /// What could not be written yet.
    outgoing: Vec<u8>,
    /// Bytes of a body that are still to come.
    body: u64,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is no request, or none that is complete.
    #[default]
    Open,
    /// The first request that has come is answered after a pause.
    Paused,
    /// The connection is closed when everything has been written.
    Closes,
    /// The same, but the other side may still be writing: if the connection were closed then, the kernel would
    /// tell it so before it has read the answer.
    ShutsDown,
    /// Nothing is written any more; so many bytes have come since.
    Draining(usize),
}

/// What is state of a conversation while its connection waits; none holds no memory.
#[derive(Debug, Default)]
pub struct ConnectionState(Option<Box<Conversation>>);

impl ConnectionState {
    /// Whether nothing has begun.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Goes on with a conversation until it has to wait, and says what for; `None` is the end of it. Reads once at
/// most, so that others have their turn, but for what is passed over at the end.
pub fn advance(
    state: &mut ConnectionState,
    stream: &mut impl Stream,
    handler: Handler,
) -> Option<WaitFor> {
    let mut here = Conversation::default();
    let conversation = state.0.as_deref_mut().unwrap_or(&mut here);
    let waits = conversation.advance(stream, handler)?;
    if conversation.is_idle() {
        state.0 = None;
    } else if state.0.is_none() {
        state.0 = Some(Box::new(here));
    }
    Some(waits)
}

/// What stands at the beginning of what has come.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// Not all of a head.
    Incomplete,
    /// A whole one.
    Complete(Request),
    /// None, and this is the answer.
    Rejected(&'static [u8]),
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Bytes of its head.
    length: usize,
    body: u64,
    closes: bool,
    /// Only the answer's head is wanted.
    head_only: bool,
}

impl Conversation {
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

    /// Answers what has come, as far as that is possible now. Whether a pause has to come first.
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

    /// Reads what the other side still writes.
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
            let is_new = request.version == Some(1);
            let head_only = request.method == Some("HEAD");
            understood(length, is_new, head_only, request.headers)
        }
        Ok(Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => Head::Incomplete,
        Ok(_) | Err(Error::TooManyHeaders) => Head::Rejected(TOO_LARGE),
        Err(_) => Head::Rejected(BAD_REQUEST),
    }
}

fn understood(length: usize, is_new: bool, head_only: bool, fields: &[Header<'_>]) -> Head {
    let (mut closes, mut body) = (!is_new, None);
    for field in fields {
        if field.name.eq_ignore_ascii_case("connection") {
            for word in field.value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                closes |= word.eq_ignore_ascii_case(b"close");
                closes &= !word.eq_ignore_ascii_case(b"keep-alive") || is_new;
            }
        } else if field.name.eq_ignore_ascii_case("content-length") {
            match decimal(field.value) {
                // Two lengths could be understood in two ways.
                Some(bytes) if body.is_none_or(|before| before == bytes) => body = Some(bytes),
                _ => return Head::Rejected(BAD_REQUEST),
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Head::Rejected(NOT_IMPLEMENTED);
        }
    }
    Head::Complete(Request { length, body: body.unwrap_or(0), closes, head_only })
}

/// A number of digits alone: `parse` would take a sign, too.
fn decimal(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;

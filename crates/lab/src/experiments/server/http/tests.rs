//! Tests with requests and responses that are split into reads and writes of several sizes.

use std::collections::VecDeque;

use super::*;

/// A connection whose reads return the given pieces. An empty piece represents "would block".
struct Pieces {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<u8>,
    /// Maximum number of bytes that a write accepts. Unless it is `usize::MAX`, every other write
    /// would block.
    room: usize,
    is_blocked: bool,
    finished: bool,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.incoming.pop_front() {
            None => Ok(0),
            Some(piece) if piece.is_empty() => Err(ErrorKind::WouldBlock.into()),
            Some(mut piece) => {
                let bytes = piece.len().min(into.len());
                into[..bytes].copy_from_slice(&piece[..bytes]);
                if bytes < piece.len() {
                    self.incoming.push_front(piece.split_off(bytes));
                }
                Ok(bytes)
            }
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Every other write would block.
        self.is_blocked = !self.is_blocked && self.room < usize::MAX;
        if self.is_blocked {
            return Err(ErrorKind::WouldBlock.into());
        }
        let written = bytes.len().min(self.room);
        self.outgoing.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Pieces {
    fn finish(&mut self) -> io::Result<()> {
        self.finished = true;
        Ok(())
    }
}

/// Returns the responses to `text`, received in pieces of `piece` bytes and sent in writes of at
/// most `room` bytes, and the number of delays.
fn responses(text: &[u8], piece: usize, room: usize, handler: Handler) -> (String, usize) {
    let (stream, pauses) = run_to_end(text, piece, room, handler);
    (String::from_utf8(stream.outgoing).expect("text"), pauses)
}

/// Serves a connection that receives `text` in pieces of `piece` bytes until it must be closed.
/// Returns the connection and the number of delays.
fn run_to_end(text: &[u8], piece: usize, room: usize, handler: Handler) -> (Pieces, usize) {
    let incoming = text.chunks(piece).flat_map(|piece| [piece.to_vec(), Vec::new()]).collect();
    let mut stream =
        Pieces { incoming, outgoing: Vec::new(), room, is_blocked: false, finished: false };
    let (mut state, mut pauses) = (ConnectionState::default(), 0);
    while let Some(waits) = advance(&mut state, &mut stream, handler) {
        pauses += usize::from(waits == WaitFor::Pause);
    }
    (stream, pauses)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn requests_are_answered_however_they_arrive() {
    let three = GET.repeat(3);
    let hello = std::str::from_utf8(HELLO).expect("text");
    for piece in [1, 2, 7, 26, 27, 28, 1000] {
        for room in [1, 50, usize::MAX] {
            for (handler, pauses) in [(Handler::Hello, 0), (Handler::Wait, 3)] {
                let expected = (hello.repeat(3), pauses);
                assert_eq!(
                    responses(three.as_bytes(), piece, room, handler),
                    expected,
                    "{piece} {room}"
                );
            }
        }
    }
}

#[test]
fn a_connection_is_closed_when_either_side_says_so() {
    let closing = "GET / HTTP/1.1\r\nconnection: x, Close\r\n\r\n".to_owned() + GET;
    let old = "GET / HTTP/1.0\r\n\r\n".to_owned() + GET;
    for text in [closing, old] {
        for handler in [Handler::Hello, Handler::Wait] {
            let (answers, _) = responses(text.as_bytes(), 1000, usize::MAX, handler);
            assert_eq!(answers.as_bytes(), LAST_HELLO, "later requests are ignored");
        }
    }
    let state = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned() + GET;
    let (answers, _) = responses(state.as_bytes(), 1000, usize::MAX, Handler::Hello);
    assert_eq!(answers.as_bytes(), HELLO.repeat(2));
}

#[test]
fn malformed_requests_are_rejected_and_later_ones_ignored() {
    let large = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
    let endless = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MAX_HEADER_FIELDS + 1));
    for (text, refusal) in [
        (large.as_str(), TOO_LARGE),
        (&endless, TOO_LARGE),
        (&many, TOO_LARGE),
        ("hello\r\n\r\n", BAD_REQUEST),
        ("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", BAD_REQUEST),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", BAD_REQUEST),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", NOT_IMPLEMENTED),
    ] {
        let text = text.to_owned() + GET;
        for (piece, room) in [(1000, usize::MAX), (97, 1), (100_000, 7)] {
            let (answers, _) = responses(text.as_bytes(), piece, room, Handler::Hello);
            assert_eq!(answers.as_bytes(), refusal, "{}", &text[..30]);
        }
    }
}

#[test]
fn input_after_the_last_response_is_drained_up_to_a_limit() {
    let refused = "hello\r\n\r\n".to_owned();
    let closing =
        "POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n".to_owned();
    for (text, handler) in [(&refused, BAD_REQUEST), (&closing, LAST_HELLO)] {
        for (more, is_heard) in [(100_000, true), (2 * MAX_DRAINED_BYTES, false)] {
            let text = text.clone() + &"x".repeat(more);
            let (stream, _) = run_to_end(text.as_bytes(), 1000, usize::MAX, Handler::Hello);
            assert_eq!(stream.outgoing, handler);
            assert!(stream.finished, "{text:.30}: the sending side is shut down");
            assert_eq!(stream.incoming.is_empty(), is_heard, "{text:.30}");
        }
    }
    // Once the body has been received, there is nothing to drain.
    let whole = "POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody";
    let (stream, _) = run_to_end(whole.as_bytes(), 1000, usize::MAX, Handler::Hello);
    assert!(stream.outgoing == LAST_HELLO && !stream.finished);
}

#[test]
fn bodies_are_skipped_and_head_requests_get_no_body() {
    let text = "POST / HTTP/1.1\r\nContent-Length: 27\r\n\r\n".to_owned() + GET;
    assert_eq!(GET.len(), 27, "as if the body were a request");
    let head = "HEAD / HTTP/1.1\r\n\r\n";
    for piece in [1, 10, 1000] {
        let (answers, _) =
            responses((text.clone() + head).as_bytes(), piece, usize::MAX, Handler::Hello);
        let expected = [HELLO, &HELLO[..HELLO.len() - BODY.len()]].concat();
        assert_eq!(answers.as_bytes(), expected, "{piece}");
    }
}

#[test]
fn an_idle_connection_has_no_state() {
    let incoming = [GET.as_bytes().to_vec(), Vec::new(), b"GET".to_vec(), Vec::new()].into();
    let (outgoing, room) = (Vec::new(), usize::MAX);
    let mut stream = Pieces { incoming, outgoing, room, is_blocked: false, finished: false };
    let mut state = ConnectionState::default();
    let waits = advance(&mut state, &mut stream, Handler::Hello);
    assert_eq!((waits, state.0.is_none()), (Some(WaitFor::Read), true), "{state:?}");
    advance(&mut state, &mut stream, Handler::Hello);
    advance(&mut state, &mut stream, Handler::Hello);
    assert!(state.0.is_some(), "part of a head is kept");
    assert_eq!(size_of::<ConnectionState>(), 8);
}

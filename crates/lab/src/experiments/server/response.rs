//! Responses of a server, as the load generator parses them.

use httparse::{EMPTY_HEADER, Header, Status};

use super::http::{BODY, HELLO};

/// Size of the read buffer, in bytes. A response of this length or more whose head is still
/// incomplete is wrong.
pub const MAX_RESPONSE_BYTES: usize = 4096;
/// Maximum number of fields in the head of a response.
const MAX_HEADER_FIELDS: usize = 32;

/// Result of parsing the bytes received of a response so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// The beginning of a response, of which more bytes have to be read.
    Incomplete,
    /// The expected response.
    Complete {
        /// Whether the server closes the connection after the response.
        closes: bool,
    },
    /// A response that is malformed, too long, or not the expected one.
    Wrong,
}

/// Compares received bytes with the expected response: status 200, the body `hello\n`, and its
/// `Content-Length`. Other header fields differ from program to program.
pub fn check(received: &[u8]) -> Response {
    if received == HELLO {
        return Response::Complete { closes: false }; // the common case of our own models
    }
    let mut fields = [EMPTY_HEADER; MAX_HEADER_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(received) {
        Ok(Status::Partial) if received.len() < MAX_RESPONSE_BYTES => Response::Incomplete,
        Ok(Status::Complete(head)) if response.code == Some(200) => {
            let closes = closes(response.version, response.headers);
            check_body(&received[head..], response.headers, closes)
        }
        _ => Response::Wrong,
    }
}

fn check_body(received: &[u8], fields: &[Header<'_>], closes: bool) -> Response {
    if field(fields, "content-length") != Some(BODY.len().to_string().as_bytes()) {
        return Response::Wrong;
    }
    match received {
        BODY => Response::Complete { closes },
        part if BODY.starts_with(part) => Response::Incomplete,
        _ => Response::Wrong,
    }
}

fn closes(version: Option<u8>, fields: &[Header<'_>]) -> bool {
    match field(fields, "connection") {
        Some(value) if value.eq_ignore_ascii_case(b"close") => true,
        Some(value) if value.eq_ignore_ascii_case(b"keep-alive") => false,
        _ => version != Some(1),
    }
}

fn field<'a>(fields: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICORN: &str = "HTTP/1.1 200 OK\r\nDate: Tue, 24 Nov 2026 22:23:10 GMT\r\nConnection: close\r\n\
                           Content-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";

    #[test]
    fn a_response_is_complete_with_the_last_byte_of_its_body() {
        for (text, closes) in [
            (std::str::from_utf8(HELLO).expect("text"), false),
            (UNICORN, true),
            (&UNICORN.replace("close", "Keep-Alive"), false),
            (&UNICORN.replace("HTTP/1.1", "HTTP/1.0").replace("Connection: close\r\n", ""), true),
        ] {
            for length in 0..text.len() {
                let part = &text.as_bytes()[..length];
                assert_eq!(check(part), Response::Incomplete, "{length} bytes of {text}");
            }
            assert_eq!(check(text.as_bytes()), Response::Complete { closes }, "{text}");
        }
    }

    #[test]
    fn other_statuses_lengths_and_bodies_are_wrong() {
        for (from, to) in [
            ("200 OK", "404 Not Found"),
            ("Content-Length: 6", "Content-Length: 7"),
            ("Content-Length: 6", "X: y"),
            ("hello\n", "hallo\n"),
            ("hello\n", "hello\nH"),
            ("HTTP/1.1", "hello"),
        ] {
            assert_eq!(check(UNICORN.replace(from, to).as_bytes()), Response::Wrong, "{to}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_RESPONSE_BYTES));
        assert_eq!(check(endless.as_bytes()), Response::Wrong);
    }
}

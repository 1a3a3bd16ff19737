//! A client of the load generator, which sends requests, reads responses and tracks its phase.
//!
//! ```text
//! persistent:   Free --send--> Waiting --response--> Free
//! per request:  Free --connect--> Connecting --send--> Waiting --response--> Closing --EOF--> Free
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::response::{MAX_RESPONSE_BYTES, Response, check};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LAST_GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
/// Time limit for opening a persistent connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of requests that a client sends on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// All requests of a client: the connection stays open.
    Persistent,
    /// One request: the server closes the connection after the response, and the client opens
    /// another.
    PerRequest,
}

/// A client whose connection an epoll instance watches.
#[derive(Debug)]
pub struct Client {
    port: u16,
    reuse: Reuse,
    /// Number that identifies the client in epoll events.
    index: u64,
    stream: Option<TcpStream>,
    phase: Phase,
    /// Time at which the request in flight was due; `None` if there is none.
    due: Option<Instant>,
    /// Beginning of a response that arrives in several reads; empty between responses.
    received: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Free,
    Connecting,
    Waiting,
    /// The response is complete, and the server has yet to close the connection.
    Closing,
    /// A request failed or was not answered. The client sends no further requests.
    Abandoned,
}

/// Outcome of an event on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The client waits for another event, or is abandoned.
    Pending,
    /// The request in flight was answered.
    Answered {
        /// Time at which the answered request was due.
        due: Instant,
        /// Whether the client can send the next request.
        is_free: bool,
    },
    /// The connection of an answered request is closed or has failed, so the client is free.
    Closed,
}

impl Client {
    /// Creates a client whose epoll events have the data `index`. If connections are persistent,
    /// opens its connection, which may block for up to two seconds.
    ///
    /// # Errors
    /// Returns an error if the connection cannot be opened or watched, such as for lack of a
    /// descriptor.
    pub fn open(epoll: impl AsFd, port: u16, reuse: Reuse, index: u64) -> io::Result<Self> {
        let (phase, received) = (Phase::Free, Vec::new());
        let mut client = Self { port, reuse, index, stream: None, phase, due: None, received };
        if reuse == Reuse::Persistent {
            let stream = TcpStream::connect_timeout(&address(port), CONNECT_TIMEOUT)?;
            stream.set_nonblocking(true)?;
            client.watch(epoll.as_fd(), stream, EventFlags::IN)?;
        }
        Ok(client)
    }

    /// Makes `stream` the client's connection: sets its options, and adds it to the epoll instance
    /// with the given events.
    fn watch(
        &mut self,
        epoll: BorrowedFd<'_>,
        stream: TcpStream,
        flags: EventFlags,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        // Without TIME_WAIT: thousands of closed connections would use up the ports for a minute.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        let flags = flags | EventFlags::RDHUP;
        epoll::add(epoll, &stream, EventData::new_u64(self.index), flags)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Starts a request that was due at `due`. On a persistent connection, sends it. Otherwise,
    /// begins to open a connection, on which `handle_event` sends the request. The client must be
    /// free.
    ///
    /// # Errors
    /// Returns an error if the request cannot be sent, or the connection cannot be opened.
    pub fn send(&mut self, epoll: impl AsFd, due: Instant) -> io::Result<()> {
        self.due = Some(due);
        match self.reuse {
            Reuse::Persistent => {
                self.phase = Phase::Waiting;
                write_whole(self.stream.as_ref(), GET)
            }
            Reuse::PerRequest => {
                self.phase = Phase::Connecting;
                let stream = connect(self.port)?;
                self.watch(epoll.as_fd(), stream, EventFlags::OUT)
            }
        }
    }

    /// Returns whether a request is in flight: due, perhaps not sent yet, and not answered.
    pub fn is_waiting(&self) -> bool {
        self.due.is_some()
    }

    /// Returns whether the client sends no further requests.
    pub fn is_abandoned(&self) -> bool {
        self.phase == Phase::Abandoned
    }

    /// Stops watching the connection, which stays open. The client sends no further requests.
    /// Returns the time at which its request in flight was due, or `None` if it had none.
    pub fn abandon(&mut self, epoll: impl AsFd) -> Option<Instant> {
        self.phase = Phase::Abandoned;
        if let Some(stream) = &self.stream {
            let _ = epoll::delete(epoll, stream); // otherwise its events are ignored
        }
        self.due.take()
    }

    /// Handles an event on the client's connection and returns the outcome.
    ///
    /// # Errors
    /// Returns an error in these cases:
    /// - The connection could not be opened, or was closed too early.
    /// - The request could not be sent.
    /// - The response is wrong.
    pub fn handle_event(&mut self, epoll: impl AsFd) -> io::Result<Progress> {
        match self.phase {
            Phase::Connecting => self.send_first(epoll.as_fd()).map(|()| Progress::Pending),
            Phase::Waiting => self.receive(),
            Phase::Closing if self.is_closed() => {
                self.close();
                Ok(Progress::Closed)
            }
            Phase::Closing | Phase::Abandoned => Ok(Progress::Pending),
            Phase::Free => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn send_first(&mut self, epoll: BorrowedFd<'_>) -> io::Result<()> {
        let Some(stream) = &self.stream else { return Err(ErrorKind::NotConnected.into()) };
        sockopt::socket_error(stream)??;
        write_whole(Some(stream), LAST_GET)?;
        let flags = EventFlags::IN | EventFlags::RDHUP;
        epoll::modify(epoll, stream, EventData::new_u64(self.index), flags)?;
        self.phase = Phase::Waiting;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Progress> {
        let mut buffer = [0; MAX_RESPONSE_BYTES];
        let Some(mut stream) = self.stream.as_ref() else {
            return Err(ErrorKind::NotConnected.into());
        };
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Pending),
            Err(error) => return Err(error),
        };
        let response = if self.received.is_empty() {
            check(&buffer[..read])
        } else {
            self.received.extend_from_slice(&buffer[..read]);
            check(&self.received)
        };
        match response {
            Response::Incomplete => {
                if self.received.is_empty() {
                    self.received.extend_from_slice(&buffer[..read]);
                }
                Ok(Progress::Pending)
            }
            Response::Complete { closes } if closes == (self.reuse == Reuse::PerRequest) => {
                Ok(self.complete())
            }
            Response::Complete { .. } | Response::Wrong => Err(ErrorKind::InvalidData.into()),
        }
    }

    fn complete(&mut self) -> Progress {
        self.received = Vec::new();
        let Some(due) = self.due.take() else { return Progress::Pending };
        self.phase = match self.reuse {
            Reuse::Persistent => Phase::Free,
            Reuse::PerRequest => Phase::Closing,
        };
        if self.phase == Phase::Closing && self.is_closed() {
            self.close();
        }
        Progress::Answered { due, is_free: self.phase == Phase::Free }
    }

    /// Returns whether the connection, after a complete response, is of no further use: the server
    /// has closed it or sent more bytes, or it has failed.
    fn is_closed(&self) -> bool {
        let Some(mut stream) = self.stream.as_ref() else { return true };
        let read = stream.read(&mut [0; 1]);
        !matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    fn close(&mut self) {
        self.stream = None; // which removes it from the epoll instance
        self.phase = Phase::Free;
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Starts to open a connection. Once the socket is writable, the connection is open or has failed.
fn connect(port: u16) -> io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address(port)) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Writes a request, which is short enough to fit into the socket's buffer. A partial write is an
/// error.
fn write_whole(stream: Option<&TcpStream>, request: &[u8]) -> io::Result<()> {
    let mut stream = stream.ok_or(ErrorKind::NotConnected)?;
    match stream.write(request)? {
        written if written == request.len() => Ok(()),
        _ => Err(ErrorKind::WriteZero.into()),
    }
}

//! Clients: connections of one thread, which are open, and on which requests are sent when they are due.
//!
//! A generator that sends the next request only when the last one has been answered leaves out the requests
//! that would have come while the server stood still: coordinated omission. Here each request is due at a
//! moment that does not depend on the server, and its time counts from then, also if it has to wait because no
//! connection is free.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::http::HELLO;
use crate::engine::experiment::{Attempt, SubjectError};
use crate::support::histogram::{histogram, note};

/// What is asked.
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Events fetched at once.
const EVENTS_PER_WAIT: usize = 512;

/// Connections to one server.
#[derive(Debug)]
pub struct Clients {
    epoll: OwnedFd,
    all: Vec<Client>,
    /// Those on which nothing is asked, and which have not failed.
    free: VecDeque<usize>,
    /// Requests that are on their way.
    in_flight: usize,
    /// Connections that the server has closed, or on which something else came than the answer.
    pub failed: u64,
    /// Why there are no more, where there are fewer than wanted.
    pub refused: Option<io::Error>,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// When the request that is on its way was due.
    due: Option<Instant>,
    /// Bytes of its answer that have come.
    received: usize,
    /// Nothing more is done on it.
    abandoned: bool,
}

/// What came of requests one after the other on every connection.
#[derive(Debug)]
pub struct FullLoad {
    /// How many were answered.
    pub answered: u64,
    /// How many were not, in all the time that they had.
    pub unanswered: u64,
    /// From the first request until all had been answered, or given up.
    pub took: Duration,
}

/// What came of requests at a fixed rate.
#[derive(Debug)]
pub struct FixedRate {
    /// The times of all, from when each was due.
    pub times: Histogram<u64>,
    /// How many were answered.
    pub answered: u64,
    /// How many were not, in all the time that they had.
    pub unanswered: u64,
}

impl Clients {
    /// Opens so many connections, as far as that is possible.
    ///
    /// # Errors
    /// When not even one can be made ready.
    pub fn open(port: u16, wanted: u64) -> Result<Self, SubjectError> {
        // A request is to be sent when it is due, not 50 µs later.
        rustix::thread::set_current_timer_slack(NonZero::new(1)).attempt("set the timer slack")?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).attempt("make an epoll instance")?;
        let free = VecDeque::new();
        let mut clients =
            Self { epoll, all: Vec::new(), free, in_flight: 0, failed: 0, refused: None };
        for _ in 0..wanted {
            if let Err(error) = clients.connect(port) {
                clients.refused = Some(error);
                break;
            }
        }
        Ok(clients)
    }

    fn connect(&mut self, port: u16) -> io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        // So that thousands of closed connections do not hold their ports for a minute.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        let place = self.all.len();
        let flags = EventFlags::IN | EventFlags::RDHUP;
        epoll::add(&self.epoll, &stream, EventData::new_u64(place as u64), flags)?;
        self.all.push(Client { stream, due: None, received: 0, abandoned: false });
        self.free.push_back(place);
        Ok(())
    }

    /// How many connections there are.
    pub fn opened(&self) -> u64 {
        self.all.len() as u64
    }

    /// Sends a request on every connection, and waits until all have been answered, or none has for `patience`.
    /// How many have been. Those that have not are left alone from then on.
    ///
    /// # Errors
    /// When events cannot be fetched.
    pub fn ask_all(&mut self, patience: Duration) -> io::Result<u64> {
        let mut answered = 0;
        let mut last = Instant::now();
        let mut unsent = std::mem::take(&mut self.free);
        loop {
            // Not all at once, so that the server's queues are no part of this.
            while self.in_flight < EVENTS_PER_WAIT
                && let Some(place) = unsent.pop_front()
            {
                self.send_request(place, Instant::now());
            }
            if self.in_flight == 0 && unsent.is_empty() {
                return Ok(answered);
            }
            let before = answered;
            self.poll_responses(patience, &mut |_| answered += 1)?;
            if answered > before {
                last = Instant::now();
            } else if last.elapsed() >= patience {
                self.abandon_unanswered(); // whoever is not served stands in nobody's way
                last = Instant::now();
            }
        }
    }

    /// Sends so many requests a second for a time, each when it is due, and waits for the answers.
    ///
    /// # Errors
    /// When events cannot be fetched.
    pub fn at_rate(
        &mut self,
        per_second: f64,
        lasts: Duration,
        patience: Duration,
    ) -> Result<FixedRate, SubjectError> {
        let mut times = histogram()?;
        let (mut sent, mut answered) = (0_u64, 0);
        let begin = Instant::now();
        let due = |number: u64| begin + Duration::from_secs_f64(number as f64 / per_second);
        let (end, deadline) = (begin + lasts, begin + lasts + patience);
        let mut now = begin;
        while now < deadline {
            while due(sent) <= now
                && due(sent) < end
                && let Some(place) = self.free.pop_front()
            {
                self.send_request(place, due(sent));
                sent += 1;
            }
            let all_sent = due(sent) >= end;
            if all_sent && self.in_flight == 0 {
                break;
            }
            let next = if all_sent || self.free.is_empty() { deadline } else { due(sent) };
            self.poll_responses(next.saturating_duration_since(Instant::now()), &mut |time| {
                answered += 1;
                note(&mut times, time);
            })
            .attempt("wait for answers")?;
            now = Instant::now();
        }
        // Those that were not answered have taken so long at least.
        let mut unanswered = 0;
        for due in self.abandon_unanswered() {
            unanswered += 1;
            note(&mut times, now.saturating_duration_since(due));
        }
        while due(sent) < end {
            note(&mut times, now.saturating_duration_since(due(sent)));
            (sent, unanswered) = (sent + 1, unanswered + 1);
        }
        Ok(FixedRate { times, answered, unanswered })
    }

    /// Sends the next request on every free connection as soon as the last one has been answered, and waits for
    /// the answers to the last ones, at most for as long again.
    ///
    /// # Errors
    /// When events cannot be fetched.
    pub fn flat_out(&mut self, lasts: Duration) -> io::Result<FullLoad> {
        let begin = Instant::now();
        let mut answered = 0;
        loop {
            while begin.elapsed() < lasts
                && let Some(place) = self.free.pop_front()
            {
                self.send_request(place, begin);
            }
            let left = (2 * lasts).saturating_sub(begin.elapsed());
            if self.in_flight == 0 || left.is_zero() {
                break;
            }
            self.poll_responses(left, &mut |_| answered += 1)?;
        }
        let unanswered = self.abandon_unanswered().len() as u64;
        Ok(FullLoad { answered, unanswered, took: begin.elapsed() })
    }

    fn send_request(&mut self, place: usize, due: Instant) {
        let client = &mut self.all[place];
        if client.abandoned {
            return; // it has failed while it was to be asked
        }
        // It is so short that it always goes as a whole.
        match (&client.stream).write(GET) {
            Ok(written) if written == GET.len() => {
                (client.due, client.received) = (Some(due), 0);
                self.in_flight += 1;
            }
            _ => self.fail(place),
        }
    }

    /// Does nothing more on a connection that has failed.
    fn fail(&mut self, place: usize) {
        if !self.all[place].abandoned {
            self.abandon(place);
            self.failed += 1;
        }
    }

    /// Does nothing more on a connection, which stays open. When its request was due, if there was one.
    fn abandon(&mut self, place: usize) -> Option<Instant> {
        self.free.retain(|&free| free != place);
        let client = &mut self.all[place];
        client.abandoned = true;
        let _ = epoll::delete(&self.epoll, &client.stream); // if not, its events are not looked at
        let due = client.due.take();
        self.in_flight -= usize::from(due.is_some());
        due
    }

    /// Leaves the connections on which requests have not been answered. When those were due.
    fn abandon_unanswered(&mut self) -> Vec<Instant> {
        (0..self.all.len())
            .filter(|&place| self.all[place].due.is_some())
            .collect::<Vec<_>>()
            .into_iter()
            .filter_map(|place| self.abandon(place))
            .collect()
    }

    /// WaitFor for answers, for so long at most, and gives out how long each request took from when it was due.
    fn poll_responses(
        &mut self,
        most: Duration,
        answered: &mut dyn FnMut(Duration),
    ) -> io::Result<()> {
        for event in self.events(most)? {
            let place = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            if self.all[place].abandoned {
                continue;
            }
            match self.all[place].receive() {
                Ok(false) => {}
                Ok(true) => {
                    if let Some(due) = self.all[place].due.take() {
                        self.in_flight -= 1;
                        answered(due.elapsed());
                    }
                    self.free.push_back(place);
                }
                Err(_) => self.fail(place),
            }
        }
        Ok(())
    }

    /// WaitFor for events, for so long at most. `epoll_wait` counts whole milliseconds: a request that is due
    /// meanwhile would be sent that much too late, and with it all those that came to be due.
    fn events(&self, most: Duration) -> io::Result<Vec<epoll::Event>> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let wait = |events: &mut Vec<_>| {
            let spare = rustix::buffer::spare_capacity(events);
            epoll::wait(&self.epoll, spare, Some(&Timespec::default()))
        };
        if unless_interrupted(wait(&mut events))? == 0 && !most.is_zero() {
            let most: Option<Timespec> = most.try_into().ok();
            let mut any = [PollFd::new(&self.epoll, PollFlags::IN)];
            if unless_interrupted(poll(&mut any, most.as_ref()))? > 0 {
                unless_interrupted(wait(&mut events))?;
            }
        }
        Ok(events)
    }
}

/// Nothing came of a wait that was interrupted.
fn unless_interrupted(waited: rustix::io::Result<usize>) -> io::Result<usize> {
    match waited {
        Err(rustix::io::Errno::INTR) => Ok(0),
        other => Ok(other?),
    }
}

impl Client {
    /// Takes what has come. Whether that completes the answer.
    fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 512];
        let read = match self.stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let expected = HELLO.get(self.received..self.received + read);
        if self.due.is_none() || expected != Some(&buffer[..read]) {
            return Err(ErrorKind::InvalidData.into());
        }
        self.received += read;
        Ok(self.received == HELLO.len())
    }
}

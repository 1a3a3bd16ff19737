//! The load generator: clients in one thread, which send requests when they are due.
//!
//! A generator that waits for each response before it sends the next request leaves out the
//! requests that were due while the server stalled (coordinated omission). Here every request of a
//! load at a fixed rate is due at a time that does not depend on the server. Its latency counts
//! from that time, and so includes waiting for a free client.

use std::collections::VecDeque;
use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::client::{Client, Progress, Reuse};
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::support::histogram::{histogram, record};

/// Maximum number of events fetched by one system call, and of requests in flight in `ask_all`.
const EVENTS_PER_WAIT: usize = 512;

/// The clients of one server.
#[derive(Debug)]
pub struct Clients {
    epoll: OwnedFd,
    /// All clients, by the index in their epoll events.
    all: Vec<Client>,
    /// Indices of the clients that can send a request, the longest free first.
    free: VecDeque<usize>,
    /// Number of requests that wait for a response, without those of abandoned clients.
    in_flight: usize,
    /// Number of clients that failed, for example because the server closed or refused their
    /// connection, or sent a wrong response.
    pub failed: u64,
    /// Error that kept further connections from being opened, or `None` if all of them were opened.
    pub refused: Option<io::Error>,
}

/// Result of a load without pauses.
#[derive(Debug)]
pub struct FullLoad {
    /// Number of answered requests.
    pub answered: u64,
    /// Number of requests in flight at the deadline, without those that failed.
    pub unanswered: u64,
    /// Wall time from the first request until the load ended: after the last response, at the
    /// deadline, or when all clients had been abandoned.
    pub elapsed: Duration,
}

/// Result of a load at a fixed rate.
#[derive(Debug)]
pub struct FixedRate {
    /// Latencies in nanoseconds, each from the time at which the request was due. The latency of an
    /// unanswered request is the time until the load ended; failed requests are left out.
    pub times: Histogram<u64>,
    /// Number of answered requests.
    pub answered: u64,
    /// Number of requests that were in flight at the deadline, or were never sent because no client
    /// was free.
    pub unanswered: u64,
}

impl Clients {
    /// Creates clients and opens their connections, as many as possible up to `wanted`. If each
    /// connection is for one request, opens none yet. Sets the timer slack of this thread to 1 ns.
    ///
    /// # Errors
    /// Returns an error if the timer slack cannot be set, or the kernel refuses an epoll instance.
    /// If a connection cannot be opened, its error is stored in `refused` instead.
    pub fn open(port: u16, wanted: u64, reuse: Reuse) -> Result<Self, SubjectError> {
        // Requests are sent when they are due, not 50 µs later.
        rustix::thread::set_current_timer_slack(NonZero::new(1)).context("set the timer slack")?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("create an epoll instance")?;
        let (all, free) = (Vec::new(), VecDeque::new());
        let mut clients = Self { epoll, all, free, in_flight: 0, failed: 0, refused: None };
        for index in 0..wanted {
            match Client::open(&clients.epoll, port, reuse, index) {
                Ok(client) => {
                    clients.free.push_back(clients.all.len());
                    clients.all.push(client);
                }
                Err(error) => {
                    clients.refused = Some(error);
                    break;
                }
            }
        }
        Ok(clients)
    }

    /// Returns the number of clients that were created, including abandoned ones.
    pub fn opened(&self) -> u64 {
        self.all.len() as u64
    }

    /// Sends a request from every free client and waits until each has been answered or has failed.
    /// Whenever there is no response for `timeout`, the waiting clients are abandoned. Returns the
    /// number of responses.
    ///
    /// # Errors
    /// Returns an error if events cannot be fetched.
    pub fn ask_all(&mut self, timeout: Duration) -> io::Result<u64> {
        let mut answered = 0;
        let mut last = Instant::now();
        let mut unsent = std::mem::take(&mut self.free);
        loop {
            // Not all at the same time: the server's accept queue is not under test.
            while self.in_flight < EVENTS_PER_WAIT
                && let Some(index) = unsent.pop_front()
            {
                self.send_request(index, Instant::now());
            }
            if self.in_flight == 0 && unsent.is_empty() {
                return Ok(answered);
            }
            let before = answered;
            self.poll_responses(timeout, &mut |_| answered += 1)?;
            if answered > before {
                last = Instant::now();
            } else if last.elapsed() >= timeout {
                self.abandon_unanswered();
                last = Instant::now();
            }
        }
    }

    /// Sends `per_second` requests a second for `duration`, each as soon as it is due and a client
    /// is free. Then waits up to `timeout` for the last responses, and abandons the clients that
    /// are still without one.
    ///
    /// # Errors
    /// Returns an error if events cannot be fetched.
    ///
    /// # Panics
    /// Panics if `per_second` is not a positive number.
    pub fn at_rate(
        &mut self,
        per_second: f64,
        duration: Duration,
        timeout: Duration,
    ) -> Result<FixedRate, SubjectError> {
        let mut times = histogram()?;
        let (mut sent, mut answered) = (0_u64, 0);
        let begin = Instant::now();
        let due = |number: u64| begin + Duration::from_secs_f64(number as f64 / per_second);
        let (end, deadline) = (begin + duration, begin + duration + timeout);
        let mut now = begin;
        while now < deadline {
            while due(sent) <= now
                && due(sent) < end
                && let Some(index) = self.free.pop_front()
            {
                self.send_request(index, due(sent));
                sent += 1;
            }
            let all_sent = due(sent) >= end;
            if all_sent && self.in_flight == 0 {
                break;
            }
            let next = if all_sent || self.free.is_empty() { deadline } else { due(sent) };
            self.poll_responses(next.saturating_duration_since(Instant::now()), &mut |time| {
                answered += 1;
                record(&mut times, time);
            })
            .context("wait for responses")?;
            now = Instant::now();
        }
        // Requests without a response have taken at least this long.
        let mut unanswered = 0;
        for due in self.abandon_unanswered() {
            unanswered += 1;
            record(&mut times, now.saturating_duration_since(due));
        }
        while due(sent) < end {
            record(&mut times, now.saturating_duration_since(due(sent)));
            (sent, unanswered) = (sent + 1, unanswered + 1);
        }
        Ok(FixedRate { times, answered, unanswered })
    }

    /// Has every client send its next request immediately after a response, for `duration`. Then
    /// waits up to `duration` again for the last responses, and abandons the clients that are still
    /// without one. Returns early if all clients have been abandoned.
    ///
    /// # Errors
    /// Returns an error if events cannot be fetched.
    pub fn run_without_pauses(&mut self, duration: Duration) -> io::Result<FullLoad> {
        let begin = Instant::now();
        let mut answered = 0;
        loop {
            while begin.elapsed() < duration
                && let Some(index) = self.free.pop_front()
            {
                self.send_request(index, begin);
            }
            let remaining = (2 * duration).saturating_sub(begin.elapsed());
            if self.in_flight == 0 && begin.elapsed() >= duration || remaining.is_zero() {
                break;
            }
            if self.is_exhausted() {
                break;
            }
            self.poll_responses(remaining, &mut |_| answered += 1)?;
        }
        let unanswered = self.abandon_unanswered().len() as u64;
        Ok(FullLoad { answered, unanswered, elapsed: begin.elapsed() })
    }

    /// Returns whether every client has been abandoned.
    fn is_exhausted(&self) -> bool {
        self.in_flight == 0 && self.all.iter().all(Client::is_abandoned)
    }

    fn send_request(&mut self, index: usize, due: Instant) {
        if self.all[index].is_abandoned() {
            return; // it failed while it waited for its turn
        }
        self.in_flight += 1;
        if self.all[index].send(&self.epoll, due).is_err() {
            self.fail(index);
        }
    }

    /// Abandons a client and counts it as failed, unless it has been abandoned before.
    fn fail(&mut self, index: usize) {
        if !self.all[index].is_abandoned() {
            self.abandon(index);
            self.failed += 1;
        }
    }

    /// Abandons a client. Returns the time at which its request in flight was due, or `None` if it
    /// had none.
    fn abandon(&mut self, index: usize) -> Option<Instant> {
        self.free.retain(|&free| free != index);
        let due = self.all[index].abandon(&self.epoll);
        self.in_flight -= usize::from(due.is_some());
        due
    }

    /// Abandons the clients with unanswered requests, and returns the times at which these requests
    /// were due.
    fn abandon_unanswered(&mut self) -> Vec<Instant> {
        let unanswered = (0..self.all.len()).filter(|&index| self.all[index].is_waiting());
        let unanswered: Vec<_> = unanswered.collect();
        unanswered.into_iter().filter_map(|index| self.abandon(index)).collect()
    }

    /// Waits up to `limit` for events, handles them, and passes the latency of each answered
    /// request to `answered`.
    fn poll_responses(
        &mut self,
        limit: Duration,
        answered: &mut dyn FnMut(Duration),
    ) -> io::Result<()> {
        for event in self.events(limit)? {
            let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            match self.all[index].handle_event(&self.epoll) {
                Ok(Progress::Pending) => {}
                Ok(Progress::Answered { due, is_free }) => {
                    self.in_flight -= 1;
                    answered(due.elapsed());
                    self.free.extend(is_free.then_some(index));
                }
                Ok(Progress::Closed) => self.free.push_back(index),
                Err(_) => self.fail(index),
            }
        }
        Ok(())
    }

    /// Waits up to `limit` for events and returns those that have arrived, if any. Waits with
    /// `poll`: `epoll_wait` counts in milliseconds, and would delay the next request by up to a
    /// millisecond.
    fn events(&self, limit: Duration) -> io::Result<Vec<epoll::Event>> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let fetch = |events: &mut Vec<_>| {
            let spare = rustix::buffer::spare_capacity(events);
            epoll::wait(&self.epoll, spare, Some(&Timespec::default()))
        };
        if zero_if_interrupted(fetch(&mut events))? == 0 && !limit.is_zero() {
            let limit: Option<Timespec> = limit.try_into().ok();
            let mut any = [PollFd::new(&self.epoll, PollFlags::IN)];
            if zero_if_interrupted(poll(&mut any, limit.as_ref()))? > 0 {
                zero_if_interrupted(fetch(&mut events))?;
            }
        }
        Ok(events)
    }
}

fn zero_if_interrupted(waited: rustix::io::Result<usize>) -> io::Result<usize> {
    match waited {
        Err(rustix::io::Errno::INTR) => Ok(0),
        other => Ok(other?),
    }
}

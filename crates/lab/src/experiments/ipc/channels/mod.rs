//! Mechanisms that carry messages: one file each, and the table of them.

mod batches;
mod cell;
mod eventfd;
mod fifo;
mod file;
mod pipe;
mod posix_queue;
mod process_vm;
mod ring;
mod signal;
mod splice;
mod stream;
mod sysv_queue;
mod tcp;
mod unix;
mod uring;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::payload;
use crate::support::partners::Link;
use crate::support::syscalls::{Call, Tally};

/// An endpoint of a channel that carries whole messages of one length in both directions. Both
/// endpoints are created before the partners separate, and each partner owns one.
pub trait Endpoint: Send {
    /// Prepares the endpoint. Called once by the thread that uses it, before any message; by main
    /// after sub.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn bind_to_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the buffer for the next message, which the caller fills completely. Blocks until
    /// there is room.
    ///
    /// # Errors
    /// Returns the error of a failed system call, or `BrokenPipe` if the partner has exited.
    fn draft(&mut self) -> io::Result<&mut [u8]>;

    /// Sends the message in the buffer, or queues it until [`Endpoint::flush`].
    ///
    /// # Errors
    /// See [`Endpoint::draft`].
    fn send(&mut self) -> io::Result<()>;

    /// Blocks until there is a message and returns it. It is valid until the next call.
    ///
    /// # Errors
    /// See [`Endpoint::draft`], or `UnexpectedEof` if the partner has exited.
    fn receive(&mut self) -> io::Result<&[u8]>;

    /// Sends messages that are still queued.
    ///
    /// # Errors
    /// See [`Endpoint::draft`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the system calls that this endpoint has made for messages.
    fn calls(&self) -> Tally;

    // These loops are trait methods so that each mechanism gets its own copy, without dynamic
    // dispatch inside.

    /// Sends the messages with these numbers.
    ///
    /// # Errors
    /// See [`Endpoint::send`].
    fn send_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            payload::write(self.draft()?, number);
            self.send()?;
        }
        self.flush()
    }

    /// Receives and checks the messages with these numbers.
    ///
    /// # Errors
    /// See [`Endpoint::receive`], or `InvalidData` if a message is not the expected one.
    fn receive_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            verify(self.receive()?, number)?;
        }
        Ok(())
    }

    /// Sends each message and waits for its reply, which has the same content.
    ///
    /// # Errors
    /// See [`Endpoint::receive_all`].
    fn request_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            payload::write(self.draft()?, number);
            self.send()?;
            self.flush()?;
            verify(self.receive()?, number)?;
        }
        Ok(())
    }

    /// As [`Endpoint::request_all`], and passes the time of each round trip to `each`.
    ///
    /// # Errors
    /// See [`Endpoint::request_all`].
    fn request_each(
        &mut self,
        numbers: Range<u64>,
        each: &mut dyn FnMut(Duration),
    ) -> io::Result<()> {
        for number in numbers {
            let begun = Instant::now();
            payload::write(self.draft()?, number);
            self.send()?;
            self.flush()?;
            verify(self.receive()?, number)?;
            each(begun.elapsed());
        }
        Ok(())
    }

    /// Replies to each message with the same content.
    ///
    /// # Errors
    /// See [`Endpoint::receive_all`].
    fn reply_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            verify(self.receive()?, number)?;
            payload::write(self.draft()?, number);
            self.send()?;
            self.flush()?;
        }
        Ok(())
    }
}

/// Checks a message in full.
#[inline]
fn verify(message: &[u8], number: u64) -> io::Result<()> {
    if payload::is_intact(message, number) { Ok(()) } else { Err(corrupt_message(number)) }
}

#[cold]
fn corrupt_message(number: u64) -> io::Error {
    let message = format!("message {number} is damaged, or another one arrived in its place");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// What a channel is created for.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// Length of a message, in bytes.
    pub bytes: usize,
    /// Shows whether the other partner has exited.
    pub link: Arc<Link>,
}

impl ChannelConfig {
    /// Makes a system call and retries it when a signal interrupts it, unless the partner has
    /// exited.
    fn retry_interrupted<T>(
        &self,
        tally: &mut Tally,
        call: Call,
        mut make: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            tally.add(call);
            match make() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if self.link.is_broken() {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                }
                made => return made,
            }
        }
    }
}

/// The endpoints of main and of sub.
pub type Endpoints = [Box<dyn Endpoint>; 2];

/// Builds both endpoints from two one-way channels. `endpoint` gets the channel to receive from and the
/// one to send to.
fn duplex<T>(
    make: impl Fn() -> io::Result<T>,
    endpoint: impl Fn(&Arc<T>, &Arc<T>) -> Box<dyn Endpoint>,
) -> io::Result<Endpoints> {
    let (to_sub, to_main) = (Arc::new(make()?), Arc::new(make()?));
    Ok([endpoint(&to_main, &to_sub), endpoint(&to_sub, &to_main)])
}

/// A row of the table: a mechanism that carries messages.
#[derive(Debug)]
pub struct Mechanism {
    /// The value of the `mechanism` parameter.
    pub name: &'static str,
    /// One line for lists and reports.
    pub summary: &'static str,
    /// How a partner waits for the other.
    pub waiting: WaitStrategy,
    /// The longest message that it can carry on any machine, in bytes.
    pub max_message_bytes: usize,
    /// Whether it can be used between threads.
    pub between_threads: bool,
    /// Returns why messages of this length cannot be carried on this machine, or `None` if they
    /// can.
    pub unavailable: fn(usize) -> Option<String>,
    /// Creates both endpoints.
    pub make: fn(ChannelConfig) -> io::Result<Endpoints>,
}

/// How a partner waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Sleeps in the kernel.
    Sleep,
    /// Spins for about 25 µs, then sleeps.
    SpinThenSleep,
    /// Spins, and keeps its CPU busy.
    Spin,
    /// Spins, but yields the CPU between two polls.
    Yield,
}

impl WaitStrategy {
    /// Returns the text for facts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "asleep",
            Self::SpinThenSleep => "spinning, then asleep",
            Self::Spin => "spinning",
            Self::Yield => "yielding",
        }
    }
}

/// For mechanisms without a limit of their own.
const UNLIMITED_BYTES: usize = usize::MAX;

/// For mechanisms that work everywhere.
fn always_available(_: usize) -> Option<String> {
    None
}

/// All mechanisms, in display order.
pub const TABLE: &[&Mechanism] = &[
    &pipe::PIPE,
    &pipe::LARGE,
    &fifo::MECHANISM,
    &unix::STREAM,
    &unix::DATAGRAM,
    &unix::SEQPACKET,
    &tcp::MECHANISM,
    &posix_queue::MECHANISM,
    &sysv_queue::MECHANISM,
    &eventfd::MECHANISM,
    &signal::MECHANISM,
    &file::MECHANISM,
    &ring::MAPPED_FILE,
    &ring::FUTEX,
    &ring::SPIN_FUTEX,
    &ring::SPIN,
    &batches::MECHANISM,
    &cell::MECHANISM,
    &splice::MECHANISM,
    &process_vm::MECHANISM,
    &uring::MECHANISM,
];

/// Returns the names of all mechanisms.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|mechanism| mechanism.name).collect()
}

/// Returns the mechanism with this name.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    TABLE.iter().copied().find(|mechanism| mechanism.name == name)
}

/// Reads a kernel limit, by its path below `/proc/sys`.
fn sysctl(name: &str) -> Option<usize> {
    std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
}

/// Returns an explanation if messages of this length exceed a kernel limit.
fn exceeds_sysctl(bytes: usize, name: &str) -> Option<String> {
    let max = sysctl(name).filter(|&max| bytes > max)?;
    let name = name.replace('/', ".");
    Some(format!("{name} limits messages to {max} bytes"))
}

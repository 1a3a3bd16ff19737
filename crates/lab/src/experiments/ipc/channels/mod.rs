//! Mechanisms that carry messages, one file for each kind, and the table that lists them.

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
    /// Prepares the endpoint for the calling thread. Each partner must call this once on the thread
    /// that uses the endpoint, before any message: first sub, then main. The default does nothing.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn bind_to_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the buffer for the next message, which the caller must fill completely. May block
    /// until there is room for the message.
    ///
    /// # Errors
    /// Returns the error of a failed system call, `BrokenPipe` if the partner has exited, or an
    /// error of the mechanism, such as `NotConnected` before [`Endpoint::bind_to_thread`].
    fn draft(&mut self) -> io::Result<&mut [u8]>;

    /// Sends the message in the buffer that [`Endpoint::draft`] returned, or queues it until a
    /// later call or [`Endpoint::flush`]. May block until there is room for the message.
    ///
    /// # Errors
    /// See [`Endpoint::draft`].
    fn send(&mut self) -> io::Result<()>;

    /// Blocks until a message arrives, and returns it.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::draft`], or `UnexpectedEof` if the partner has exited.
    fn receive(&mut self) -> io::Result<&[u8]>;

    /// Sends all queued messages. The default does nothing, for mechanisms that queue none.
    ///
    /// # Errors
    /// See [`Endpoint::draft`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the numbers of system calls that the endpoint has made for messages so far.
    fn calls(&self) -> Tally;

    // These loops are trait methods so that each mechanism gets its own copy, without dynamic
    // dispatch inside.

    /// Sends the messages with the given numbers, and flushes.
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

    /// Receives and checks the messages with the given numbers.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::receive`], or `InvalidData` if a message is not the
    /// expected one.
    fn receive_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            verify(self.receive()?, number)?;
        }
        Ok(())
    }

    /// Sends each of the messages with the given numbers, waits for its reply, and checks that the
    /// reply has the same content.
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

    /// Does the same as [`Endpoint::request_all`], and passes the time of each round trip to
    /// `on_round_trip`, including the time for writing the message and checking the reply.
    ///
    /// # Errors
    /// See [`Endpoint::request_all`].
    fn request_each(
        &mut self,
        numbers: Range<u64>,
        on_round_trip: &mut dyn FnMut(Duration),
    ) -> io::Result<()> {
        for number in numbers {
            let begun = Instant::now();
            payload::write(self.draft()?, number);
            self.send()?;
            self.flush()?;
            verify(self.receive()?, number)?;
            on_round_trip(begun.elapsed());
        }
        Ok(())
    }

    /// Receives and checks the messages with the given numbers, and replies to each with the same
    /// content.
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

/// Returns the error `InvalidData` unless the whole message has the content for `number`.
#[inline]
fn verify(message: &[u8], number: u64) -> io::Result<()> {
    if payload::is_intact(message, number) { Ok(()) } else { Err(corrupt_message(number)) }
}

#[cold]
fn corrupt_message(number: u64) -> io::Error {
    let message = format!("message {number} is damaged, or another one arrived in its place");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Parameters of a channel.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// Length of each message in bytes, from 1 to [`Mechanism::max_message_bytes`].
    pub bytes: usize,
    /// Link between the partners, which is broken if one of them has ended early.
    pub link: Arc<Link>,
}

impl ChannelConfig {
    /// Calls `make`, which makes the system call `call`, until no signal interrupts the call.
    /// Returns `BrokenPipe` if a signal has interrupted it and the partner has exited. Counts every
    /// call in `tally`.
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

/// Builds both endpoints of a channel from two one-way channels, one for each direction, which
/// `make` creates. `endpoint` gets the channel to receive from and the one to send to.
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
    /// Name of the mechanism, which is also its value for the `mechanism` parameter.
    pub name: &'static str,
    /// Description in one line, for lists and reports.
    pub summary: &'static str,
    /// How a partner waits for the other.
    pub waiting: WaitStrategy,
    /// Maximum length of a message in bytes, on any machine; `usize::MAX` if only the machine
    /// limits it.
    pub max_message_bytes: usize,
    /// Whether the mechanism also works between threads.
    pub between_threads: bool,
    /// Returns why messages of the given length in bytes cannot be carried on this machine, or
    /// `None` if nothing is known to prevent it. Does not check `max_message_bytes`.
    pub unavailable: fn(usize) -> Option<String>,
    /// Creates a channel and returns the endpoints of main and of sub.
    pub make: fn(ChannelConfig) -> io::Result<Endpoints>,
}

/// Strategy by which a partner waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStrategy {
    /// The partner sleeps in the kernel.
    Sleep,
    /// The partner spins for about 25 µs, then sleeps.
    SpinThenSleep,
    /// The partner spins and keeps its CPU busy.
    Spin,
    /// The partner polls, and yields the CPU after every poll (`file`) or every 100 polls (`cell`).
    Yield,
}

impl WaitStrategy {
    /// Returns the description of the strategy for records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "asleep",
            Self::SpinThenSleep => "spinning, then asleep",
            Self::Spin => "spinning",
            Self::Yield => "yielding",
        }
    }
}

/// Maximum message length in bytes of mechanisms without a limit of their own.
const UNLIMITED_BYTES: usize = usize::MAX;

/// Returns `None`. Serves as [`Mechanism::unavailable`] for mechanisms that work on every machine.
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

/// Returns the names of all mechanisms, in display order.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|mechanism| mechanism.name).collect()
}

/// Returns the mechanism with the given name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    TABLE.iter().copied().find(|mechanism| mechanism.name == name)
}

/// Returns the kernel setting in the file `name` below `/proc/sys`, or `None` if the file cannot be
/// read or does not hold a single number.
fn sysctl(name: &str) -> Option<usize> {
    std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
}

/// Returns an error message if `bytes` exceeds the limit in the file `name` below `/proc/sys`.
/// Returns `None` if the limit is not exceeded or not known.
fn exceeds_sysctl(bytes: usize, name: &str) -> Option<String> {
    let max = sysctl(name).filter(|&max| bytes > max)?;
    let name = name.replace('/', ".");
    Some(format!("{name} limits messages to {max} bytes"))
}

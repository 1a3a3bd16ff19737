//! What messages are carried by: one file each, and the one table.

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
use crate::support::calls::{Call, Tally};
use crate::support::pair::Link;

/// One of the two ends of a channel that carries whole messages of one length, both ways. Both are made
/// before the partners part, and each has one.
pub trait Endpoint: Send {
    /// Gets ready: called once by whoever has this end, before any message; by main after sub.
    ///
    /// # Errors
    /// Returns the error of the system call that failed.
    fn bind_to_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Where the next message is to be written, all of it. May wait for room.
    ///
    /// # Errors
    /// What the kernel says; `BrokenPipe` when the partner has gone.
    fn draft(&mut self) -> io::Result<&mut [u8]>;

    /// Sends what was written there, at the latest with [`Endpoint::flush`].
    ///
    /// # Errors
    /// As [`Endpoint::draft`].
    fn send(&mut self) -> io::Result<()>;

    /// The next message, which stands until the one after it is asked for; waits until there is one.
    ///
    /// # Errors
    /// As [`Endpoint::draft`]; `UnexpectedEof` where the partner has gone.
    fn receive(&mut self) -> io::Result<&[u8]>;

    /// Sends what is held back, if anything is.
    ///
    /// # Errors
    /// As [`Endpoint::draft`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// System calls made here so far for messages.
    fn calls(&self) -> Tally;

    // The loops are here, so that each mechanism has its own, with nothing to look up in between.

    /// Writes and sends the messages of these numbers.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn send_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            payload::write(self.draft()?, number);
            self.send()?;
        }
        self.flush()
    }

    /// Receives and reads the messages of these numbers.
    ///
    /// # Errors
    /// As [`Endpoint::receive`]; `InvalidData` when a message is not the next one, whole.
    fn receive_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            verify(self.receive()?, number)?;
        }
        Ok(())
    }

    /// Sends each message and waits for its answer, which is the same again.
    ///
    /// # Errors
    /// As [`Endpoint::receive_all`].
    fn request_all(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            payload::write(self.draft()?, number);
            self.send()?;
            self.flush()?;
            verify(self.receive()?, number)?;
        }
        Ok(())
    }

    /// The same, and says what each round trip took.
    ///
    /// # Errors
    /// As [`Endpoint::request_all`].
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

    /// Answers each message with the same again.
    ///
    /// # Errors
    /// As [`Endpoint::receive_all`].
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

/// Reads a message in full.
#[inline]
fn verify(message: &[u8], number: u64) -> io::Result<()> {
    if payload::is_intact(message, number) { Ok(()) } else { Err(corrupt_message(number)) }
}

#[cold]
fn corrupt_message(number: u64) -> io::Error {
    let message = format!("where message {number} was due came another one, or it is not whole");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// What a channel is made for.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// How long each message is, in bytes.
    pub bytes: usize,
    /// By which one is told that the other has gone.
    pub link: Arc<Link>,
}

impl ChannelConfig {
    /// Does a system call, and again after a signal, unless the partner has gone.
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

/// Both ends: main's and sub's.
pub type Endpoints = [Box<dyn Endpoint>; 2];

/// Both ends of something that goes one way, made once for each way: an end is given what it receives
/// from, and what it sends to.
fn duplex<T>(
    make: impl Fn() -> io::Result<T>,
    end: impl Fn(&Arc<T>, &Arc<T>) -> Box<dyn Endpoint>,
) -> io::Result<Endpoints> {
    let (to_sub, to_main) = (Arc::new(make()?), Arc::new(make()?));
    Ok([end(&to_main, &to_sub), end(&to_sub, &to_main)])
}

/// A row of the table.
#[derive(Debug)]
pub struct Mechanism {
    /// Its name.
    pub name: &'static str,
    /// What it does, in some words.
    pub summary: &'static str,
    /// How one waits for the other.
    pub waiting: WaitStrategy,
    /// The longest message that it can carry anywhere, in bytes.
    pub max_message_bytes: usize,
    /// Whether it makes sense between threads.
    pub between_threads: bool,
    /// Why messages of this length cannot be carried on this machine, if so.
    pub unavailable: fn(usize) -> Option<String>,
    /// Makes one.
    pub make: fn(ChannelConfig) -> io::Result<Endpoints>,
}

/// How one waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Asleep.
    Sleep,
    /// By looking for some 25 µs, then asleep.
    SpinThenSleep,
    /// By looking again and again, so that the CPU is not free for the other.
    Spin,
    /// By looking again, and giving the CPU to others in between.
    Yield,
}

impl WaitStrategy {
    /// In some words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "asleep",
            Self::SpinThenSleep => "spinning, then asleep",
            Self::Spin => "spinning",
            Self::Yield => "yielding",
        }
    }
}

/// Mechanisms without a limit of their own.
const UNLIMITED_BYTES: usize = usize::MAX;

/// For those that work everywhere.
fn always_available(_: usize) -> Option<String> {
    None
}

/// All of them, in the order in which they are shown.
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

/// The names of all.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|mechanism| mechanism.name).collect()
}

/// The one of this name.
pub fn find(name: &str) -> Option<&'static Mechanism> {
    TABLE.iter().copied().find(|mechanism| mechanism.name == name)
}

/// A limit of the kernel's, by its place below `/proc/sys`.
fn sysctl(name: &str) -> Option<usize> {
    std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
}

/// Why messages of this length go beyond a limit of the kernel's, if so.
fn exceeds_sysctl(bytes: usize, name: &str) -> Option<String> {
    let most = sysctl(name).filter(|&most| bytes > most)?;
    let name = name.replace('/', ".");
    Some(format!("{name} allows messages of {most} bytes at most"))
}

//! The signals that a measurement has to hear of, from before its first run until its report
//! is written, so that none is lost between.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::inherited;
use crate::signal::{Arrived, Mask, SignalFd, is_pending, stop_by};
use rustix::process::Signal;

/// Those that ask contend to end.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Signals as they arrive; the first one that asks contend to end is remembered.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    interrupted: Cell<Option<Arrived>>,
    stopped: Cell<Duration>,
}

impl Signals {
    /// Begins to hear of signals instead of being ended by them.
    ///
    /// # Errors
    /// When the process has no free descriptor.
    pub fn block() -> io::Result<Self> {
        let numbers: Vec<_> = ENDING
            .iter()
            .chain(&[Signal::CHILD, Signal::CONT, Signal::TSTP])
            .map(|signal| signal.as_raw())
            .collect();
        Ok(Self {
            fd: SignalFd::block(&numbers)?,
            interrupted: Cell::new(None),
            stopped: Cell::default(),
        })
    }

    /// Takes the next signal that has arrived, if any.
    pub fn next(&self) -> Option<Arrived> {
        let arrived = self.fd.next()?;
        // What a process asks for holds even where a signal from the keyboard is forgiven.
        let counts = |before: Arrived| before.is_from_keyboard() && arrived.from_process;
        if is_ending(arrived) && self.interrupted.get().is_none_or(counts) {
            self.interrupted.set(Some(arrived));
        }
        Some(arrived)
    }

    /// Takes the next signal that asks contend to end, if any. On the way it stops when it is
    /// asked to, and forgets others.
    pub fn next_ending(&self) -> Option<Arrived> {
        std::iter::from_fn(|| self.next())
            .inspect(|arrived| {
                if arrived.signal == Signal::TSTP.as_raw() {
                    self.stop();
                }
            })
            .find(|&arrived| is_ending(arrived))
    }

    /// Stops this process, as the terminal has asked (Ctrl-Z), until it is continued.
    pub fn stop(&self) {
        let began = Instant::now();
        stop_by(Signal::TSTP.as_raw());
        self.stopped.set(self.stopped.get() + began.elapsed());
    }

    /// How long this process has been stopped in all.
    pub fn stopped(&self) -> Duration {
        self.stopped.get()
    }

    /// Forgets a request to end that came from the keyboard.
    pub fn forgive_terminal(&self) {
        if self.interrupted.get().is_some_and(Arrived::is_from_keyboard) {
            self.interrupted.set(None);
        }
    }

    /// The first signal that asked contend to end, among those that have arrived by now.
    pub fn interrupted(&self) -> Option<i32> {
        while self.next_ending().is_some() {}
        self.interrupted.get().map(|arrived| arrived.signal)
    }

    /// The mask from before, for starting children.
    pub fn mask_before(&self) -> Mask {
        self.fd.mask_before()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a signal waits to be heard that asks this process to end. One that was blocked when this
/// process started does not.
pub fn is_asked_to_end() -> bool {
    let asks = |signal: i32| is_pending(signal) && !inherited::is_blocked(signal);
    ENDING.iter().any(|signal| asks(signal.as_raw()))
}

fn is_ending(arrived: Arrived) -> bool {
    ENDING.iter().any(|signal| signal.as_raw() == arrived.signal)
}

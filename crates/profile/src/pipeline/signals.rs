//! The signals that a measurement has to hear of, from before its first run until its report
//! is written, so that none is lost between.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use contend_sys::Signal;
use contend_sys::signal::{Arrived, SignalFd};

/// Those that ask contend to end.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Signals as they arrive; the first one that asks contend to end is remembered.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    interrupted: Cell<Option<i32>>,
}

impl Signals {
    /// Begins to hear of signals instead of being ended by them.
    ///
    /// # Errors
    /// When the process has no free descriptor.
    pub fn block() -> io::Result<Self> {
        let numbers: Vec<_> = ENDING
            .iter()
            .chain(&[Signal::CHILD, Signal::CONT])
            .map(|signal| signal.as_raw())
            .collect();
        Ok(Self { fd: SignalFd::block(&numbers)?, interrupted: Cell::new(None) })
    }

    /// Takes the next signal that has arrived, if any.
    pub fn next(&self) -> Option<Arrived> {
        let arrived = self.fd.next()?;
        if is_ending(arrived) && self.interrupted.get().is_none() {
            self.interrupted.set(Some(arrived.signal));
        }
        Some(arrived)
    }

    /// Takes the next signal that asks contend to end, if any; forgets others on the way.
    pub fn next_ending(&self) -> Option<Arrived> {
        std::iter::from_fn(|| self.next()).find(|&arrived| is_ending(arrived))
    }

    /// The first signal that asked contend to end, among those that have arrived by now.
    pub fn interrupted(&self) -> Option<i32> {
        while self.next().is_some() {}
        self.interrupted.get()
    }

    /// For starting children with the mask from before.
    pub(super) fn blocked(&self) -> &SignalFd {
        &self.fd
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_ending(arrived: Arrived) -> bool {
    ENDING.iter().any(|signal| signal.as_raw() == arrived.signal)
}

//! Signals that contend handles during a run. They are blocked from before the first child starts
//! until the report has been written, so none is lost in between.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::inherited;
use crate::signal::{Mask, ReceivedSignal, SignalFd, is_pending, stop_by};
use rustix::process::Signal;

/// The signals that ask contend to end.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// The signals that contend handles, read from a signalfd, and the one that asked contend to end.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    interrupted: Cell<Option<ReceivedSignal>>,
    stopped: Cell<Duration>,
    before_stop: Cell<Option<fn()>>,
}

impl Signals {
    /// Blocks the signals for the calling thread, so that they are read from this value instead of
    /// acting on the process. Does not block those that have no effect on this process; see
    /// [`SignalFd::block`].
    ///
    /// # Errors
    /// Returns an error if the process has no free descriptor.
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
            before_stop: Cell::default(),
        })
    }

    /// Reads the next pending signal; `None` if there is none. Remembers a signal that asks contend
    /// to end, for [`Signals::interrupted`].
    pub fn next(&self) -> Option<ReceivedSignal> {
        let arrived = self.fd.next()?;
        // A request from a process replaces one from the keyboard, because the latter may be
        // discarded.
        let counts = |before: ReceivedSignal| before.is_from_keyboard() && arrived.from_process;
        if is_ending(arrived) && self.interrupted.get().is_none_or(counts) {
            self.interrupted.set(Some(arrived));
        }
        Some(arrived)
    }

    /// Reads pending signals until one asks contend to end, and returns that one, or `None` if none
    /// does. Stops the process on SIGTSTP, and ignores other signals.
    pub fn next_ending(&self) -> Option<ReceivedSignal> {
        std::iter::from_fn(|| self.next())
            .inspect(|arrived| {
                if arrived.signal == Signal::TSTP.as_raw() {
                    self.stop();
                }
            })
            .find(|&arrived| is_ending(arrived))
    }

    /// Stops this process, as the terminal has requested (Ctrl-Z), until SIGCONT, after the function that
    /// [`Signals::set_before_stop`] has set.
    pub fn stop(&self) {
        if let Some(hook) = self.before_stop.get() {
            hook();
        }
        let began = Instant::now();
        stop_by(Signal::TSTP.as_raw());
        self.stopped.set(self.stopped.get() + began.elapsed());
    }

    /// Sets a function that [`Signals::stop`] calls before it stops the process, such as one that
    /// restores the terminal; `None` for none.
    pub fn set_before_stop(&self, hook: Option<fn()>) {
        self.before_stop.set(hook);
    }

    /// Returns the total time for which [`Signals::stop`] has stopped this process.
    pub fn stopped(&self) -> Duration {
        self.stopped.get()
    }

    /// Forgets the request to end that has been read, if it came from the keyboard.
    pub fn discard_keyboard_interrupt(&self) {
        if self.is_keyboard_interrupt() {
            self.interrupted.set(None);
        }
    }

    /// Reads all pending signals, as [`Signals::next_ending`] does, and returns the number of the
    /// signal that asked contend to end, now or earlier; `None` if none has. The first one counts,
    /// unless it came from the keyboard and a process sent another one later.
    pub fn interrupted(&self) -> Option<i32> {
        while self.next_ending().is_some() {}
        self.interrupted.get().map(|arrived| arrived.signal)
    }

    /// Returns whether the signal that asked contend to end came from the keyboard, so that children in
    /// the foreground have received it, too.
    pub fn is_keyboard_interrupt(&self) -> bool {
        self.interrupted.get().is_some_and(ReceivedSignal::is_from_keyboard)
    }

    /// Returns the signal mask from before [`Signals::block`], but without SIGCHLD, for starting
    /// children.
    pub fn mask_before(&self) -> Mask {
        self.fd.mask_before()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns whether a signal that asks this process to end is pending. Signals that were blocked
/// when this process started do not count.
pub fn has_end_request() -> bool {
    let asks = |signal: i32| is_pending(signal) && !inherited::is_blocked(signal);
    ENDING.iter().any(|signal| asks(signal.as_raw()))
}

fn is_ending(arrived: ReceivedSignal) -> bool {
    ENDING.iter().any(|signal| signal.as_raw() == arrived.signal)
}

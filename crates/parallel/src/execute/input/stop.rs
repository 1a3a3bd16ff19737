//! Stops reading before the end of the input, even while waiting for a stream.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::launcher::Launcher;

/// Interval between checks whether reading has been stopped or the run is being ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A flag that ends the reading of an input before its end.
#[derive(Debug)]
pub(super) struct StopToken<'a> {
    launcher: &'a Launcher,
    stopped: AtomicBool,
    /// The pipe for the output, if it is watched. Once its reader has closed it, no more input is
    /// needed.
    watched: Mutex<Option<File>>,
}

impl<'a> StopToken<'a> {
    pub(super) fn new(launcher: &'a Launcher) -> Self {
        Self { launcher, stopped: AtomicBool::new(false), watched: Mutex::new(None) }
    }

    /// Stops reading, within [`POLL_INTERVAL`] if a reader waits for the stream.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.launcher.is_over()
    }

    /// Watches `pipe` from now on: if its reader closes it during [`Self::wait_for`], reading
    /// stops. `None` ends the watch.
    pub(super) fn watch(&self, pipe: Option<File>) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = pipe;
    }

    /// Waits until the stream `file` is readable or has ended. Returns `false` if the reader of
    /// `pipe` has closed it, or if the run is being ended.
    pub(super) fn wait_for_either(&self, file: &File, pipe: &File) -> io::Result<bool> {
        let time = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
        while !self.launcher.is_over() {
            let mut polled =
                [PollFd::new(file, PollFlags::IN), PollFd::new(pipe, PollFlags::empty())];
            match poll(&mut polled, Some(&time)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [is_there, is_left] = polled.map(|end| !end.revents().is_empty());
            if is_left || is_there {
                return Ok(!is_left);
            }
        }
        Ok(false)
    }

    /// Waits until the stream `file` is readable or has ended. Returns `false` if that takes longer
    /// than `timeout`, which must be less than a second, or if reading has been stopped. With
    /// `None`, the time is not limited.
    pub(super) fn wait_for(&self, file: &File, timeout: Option<Duration>) -> io::Result<bool> {
        loop {
            if self.is_stopped() {
                return Ok(false);
            }
            let time = timeout.unwrap_or(POLL_INTERVAL);
            let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
            let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            let mut polled = vec![PollFd::new(file, PollFlags::IN)];
            polled.extend(watched.iter().map(|pipe| PollFd::new(pipe, PollFlags::empty())));
            let happened = poll(&mut polled, Some(&time));
            if polled.iter().skip(1).any(|pipe| pipe.revents().contains(PollFlags::ERR)) {
                self.stop();
                return Ok(false);
            }
            match happened {
                Ok(0) if timeout.is_some() => return Ok(false),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

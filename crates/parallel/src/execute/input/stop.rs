//! Stopping before the end of the input, also while a stream is waited for.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::launcher::Launcher;

/// How often it is asked whether anyone still wants to read.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Whether anyone is to take more of an input.
#[derive(Debug)]
pub(super) struct StopToken<'a> {
    launcher: &'a Launcher,
    stopped: AtomicBool,
    /// Where what comes of the input goes: if its reader has gone, nobody needs more.
    watched: Mutex<Option<File>>,
}

impl<'a> StopToken<'a> {
    pub(super) fn new(launcher: &'a Launcher) -> Self {
        Self { launcher, stopped: AtomicBool::new(false), watched: Mutex::new(None) }
    }

    /// Nobody gets anything any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.launcher.is_over()
    }

    /// While a stream is waited for, the reader of this pipe is watched.
    pub(super) fn watch(&self, pipe: Option<File>) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = pipe;
    }

    /// Waits until a stream has something. `false` if nobody reads this pipe any more, or
    /// everything is being ended.
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

    /// Waits until a stream has something. `false` if it has nothing for so long, where a time is
    /// given, or nobody is to take more.
    pub(super) fn wait_for(&self, file: &File, patience: Option<Duration>) -> io::Result<bool> {
        loop {
            if self.is_stopped() {
                return Ok(false);
            }
            let time = patience.unwrap_or(POLL_INTERVAL);
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
                Ok(0) if patience.is_some() => return Ok(false),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

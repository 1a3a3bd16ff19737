//! Waiting for a stream.

use std::fs::File;
use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Parts;

/// How often it is asked whether anyone still wants to read.
const ASK: Duration = Duration::from_millis(100);

impl Parts<'_> {
    /// Waits until a stream has something. `false` if nobody reads this pipe any more, or
    /// everything is being ended.
    pub(super) fn wait_for_either(&self, file: &File, pipe: &File) -> io::Result<bool> {
        let time = Timespec { tv_sec: 0, tv_nsec: ASK.subsec_nanos().into() };
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
            let time = patience.unwrap_or(ASK);
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

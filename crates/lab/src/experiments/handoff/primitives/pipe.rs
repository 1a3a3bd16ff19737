//! Hand-offs with a byte written to a pipe.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;
use rustix::time::Timespec;

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `pipe` mechanism, as used by shell pipelines and many event loops.
pub const MECHANISM: Mechanism = Mechanism {
    name: "pipe",
    summary: "a byte through a pipe: write to post, read to wait",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).context("make a pipe")?;
        Ok(Box::new(BytePipe { read, write }))
    },
};

struct BytePipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl SyncPrimitive for BytePipe {
    fn post(&self) -> io::Result<()> {
        rustix::io::write(&self.write, b"x")?;
        Ok(())
    }

    fn release(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut end = [PollFd::new(&self.write, PollFlags::OUT)];
        // A full pipe wakes the reader without another byte.
        if matches!(poll(&mut end, Some(&now)), Ok(1)) && end[0].revents().contains(PollFlags::OUT)
        {
            let _ = self.post();
        }
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        rustix::io::read(&self.read, &mut [0_u8; 1])?;
        Ok(WaitOutcome::default())
    }
}

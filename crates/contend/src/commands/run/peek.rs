//! How much there is in a pipe, without taking any of it.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;

use super::direct::Kind;

/// Less than this is little, in bytes.
const LITTLE: u64 = 32 << 10;
/// A source that has begun to write and then has been silent for this long is slow.
const SILENCE: Duration = Duration::from_millis(5);
/// A source that has not written more than a little after this time is slow.
const LONGEST: Duration = Duration::from_millis(50);
/// How often it is asked how much there is.
const INTERVAL: Duration = Duration::from_micros(500);

/// Whether standard input is a stream that is over after a little, or that brings little at a time.
/// Waits until there is something to read, or the stream is over.
pub(super) fn is_little(input: Kind) -> bool {
    let stdin = io::stdin();
    if input != Kind::Stream || stdin.is_terminal() {
        return input == Kind::Stream;
    }
    let stdin = stdin.as_fd();
    let mut known = 0;
    let (mut begun, mut grown) = (Instant::now(), Instant::now());
    loop {
        let time = (known > 0).then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, time.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return false,
            Ok(_) => {}
        }
        let is_over = fds[0].revents().contains(PollFlags::HUP);
        // Not every stream can say how much there is.
        let Ok(bytes) = ioctl_fionread(stdin) else { return false };
        if is_over || bytes >= LITTLE {
            return bytes < LITTLE;
        }
        if bytes == 0 {
            // Somebody else has read it, or it is no stream that counts.
            return false;
        }
        if bytes > known {
            grown = Instant::now();
            begun = if known == 0 { grown } else { begun };
            known = bytes;
        }
        if grown.elapsed() > SILENCE || begun.elapsed() > LONGEST {
            return true;
        }
        std::thread::sleep(INTERVAL);
    }
}

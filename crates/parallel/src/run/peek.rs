//! Measures how much data a stream holds, without reading it.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use contend_commands::Simple;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;

use super::standard_input::Kind;
use crate::plan::fast_path::may_write_first;

/// Length in bytes below which a stream is small.
const SMALL_STREAM_BYTES: u64 = 32 << 10;
/// Time to wait for the end of a stream after its first bytes.
const EOF_TIMEOUT: Duration = Duration::from_millis(5);
/// Poll interval for the number of bytes in a stream.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Time to wait for the first bytes of a stream if a stage may write before it reads.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_millis(20);

/// Returns whether waiting for standard input would delay output: it is a stream without data, and
/// one of the stages may write before it reads. Blocks for up to 20 ms.
pub(super) fn delays_output(input: Kind, stages: &[Simple]) -> bool {
    if input != Kind::Stream || !may_write_first(stages) {
        return false;
    }
    let begun = Instant::now();
    loop {
        let left = FIRST_BYTES_TIMEOUT.saturating_sub(begun.elapsed());
        let time = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let stdin = io::stdin();
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&time)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            Ok(ready) => return ready == 0,
        }
    }
}

/// Returns whether standard input, of the kind `input`, is a terminal or a short stream. A short
/// stream ends after less than 32 KiB, and within about 5 ms of its first bytes. Blocks until the
/// stream has data or has ended.
pub(super) fn is_little(input: Kind) -> bool {
    let stdin = io::stdin();
    if input != Kind::Stream || stdin.is_terminal() {
        return input == Kind::Stream;
    }
    let stdin = stdin.as_fd();
    let mut begun: Option<Instant> = None;
    loop {
        let time = begun.map(|_| Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, time.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return false,
            Ok(_) => {}
        }
        let is_over = fds[0].revents().contains(PollFlags::HUP);
        // Some streams cannot report the number of available bytes.
        let Ok(bytes) = ioctl_fionread(stdin) else { return false };
        if is_over || bytes >= SMALL_STREAM_BYTES {
            return bytes < SMALL_STREAM_BYTES;
        }
        if begun.get_or_insert_with(Instant::now).elapsed() > EOF_TIMEOUT {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

//! The clocks, and sleeping until the next sample.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use contend_record::trace::Clocks;
use contend_sys::Pid;
use contend_sys::clock::{ClockId, nanoseconds};
use contend_sys::interrupt::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::Config;

/// Returns the time until the next sample, `stride` intervals after the last one, or until the end of the
/// observation if that comes first.
pub(super) fn next(config: &Config, stride: u32, begun: Instant, last: &Instant) -> Duration {
    let until = (stride * config.interval).saturating_sub(last.elapsed());
    let rest = config.limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    rest.map_or(until, |rest| until.min(rest))
}

/// Returns a descriptor that is readable once the named process has ended, if there is a single one.
pub(super) fn ends(targets: &[Pid]) -> Option<OwnedFd> {
    match targets {
        [one] => pidfd_open(*one, PidfdFlags::empty()).ok(),
        _ => None,
    }
}

/// Sleeps for `time`, or until a signal arrives or the process of `ends` has ended. Returns whether the
/// latter has happened.
pub(super) fn sleep(signals: &Signals, ends: Option<&OwnedFd>, time: Duration) -> io::Result<bool> {
    let end = ends.map_or_else(|| signals.as_fd(), |end| end.as_fd());
    let mut fds =
        [PollFd::new(signals, PollFlags::IN), PollFd::from_borrowed_fd(end, PollFlags::IN)];
    let limit = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut fds, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(ends.is_some() && !fds[1].revents().is_empty())
}

/// Returns the time in nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Returns what other clocks read now, which is shortly after `monotonic`.
pub(super) fn clocks(monotonic: u64) -> Clocks {
    let since = now() - monotonic;
    let at_start = |clock| nanoseconds(clock).saturating_sub(since);
    Clocks {
        monotonic,
        boottime: at_start(ClockId::Boottime),
        realtime: at_start(ClockId::Realtime),
    }
}

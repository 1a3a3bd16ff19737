//! Hand-offs by polling, with a sleep between two polls, as in the original program of the test
//! report.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::polling::polling;
use super::{Mechanism, SleepTiming};

/// The `sleep` mechanism. It is slow, as the test report says: a waiter that polls slightly too
/// early sleeps for a whole period.
pub const MECHANISM: Mechanism = Mechanism {
    name: "sleep",
    summary: "poll, with a sleep of a period in between",
    waits: true,
    sleeps: true,
    counts: true,
    make: |timing| polling(move || pause(timing)),
};

/// Sleeps for the period, extended to the next tick if ticks are simulated. A signal ends the sleep
/// early.
pub(super) fn pause(timing: SleepTiming) -> io::Result<()> {
    let slept = match next_tick(timing) {
        Some(deadline) => clock_nanosleep_absolute(ClockId::Monotonic, &deadline),
        None => match clock_nanosleep_relative(ClockId::Monotonic, &timespec(timing.period)) {
            NanosleepRelativeResult::Err(error) => Err(error),
            _ => Ok(()),
        },
    };
    match slept {
        Ok(()) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the time of the first tick that is at least a period from now, on `CLOCK_MONOTONIC`;
/// `None` if no ticks are simulated.
pub(super) fn next_tick(SleepTiming { period, tick }: SleepTiming) -> Option<Timespec> {
    let tick = tick.as_nanos();
    (tick > 0).then(|| {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec.try_into().unwrap_or(0));
        let deadline = (now + period).as_nanos().div_ceil(tick) * tick;
        timespec(Duration::from_nanos(u64::try_from(deadline).unwrap_or(u64::MAX)))
    })
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

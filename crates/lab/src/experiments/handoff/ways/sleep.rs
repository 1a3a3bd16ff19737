//! Looking, and sleeping for a time in between: the document's original form.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::polling::polling;
use super::{Mechanism, Terms};

/// Ruinous, as the document says: whoever comes a moment too early sleeps for a whole period.
pub const MECHANISM: Mechanism = Mechanism {
    name: "sleep",
    summary: "looking, and sleeping for a period in between",
    waits: true,
    sleeps: true,
    counts: true,
    make: |terms| polling(move || pause(terms)),
};

/// Sleeps for the period, to the end of a tick if there are ticks.
pub(super) fn pause(terms: Terms) -> io::Result<()> {
    let slept = match end(terms) {
        Some(end) => clock_nanosleep_absolute(ClockId::Monotonic, &end),
        None => match clock_nanosleep_relative(ClockId::Monotonic, &timespec(terms.period)) {
            NanosleepRelativeResult::Err(error) => Err(error),
            _ => Ok(()),
        },
    };
    match slept {
        Ok(()) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The first tick when the period is over; none if there are no ticks.
pub(super) fn end(Terms { period, tick }: Terms) -> Option<Timespec> {
    let tick = tick.as_nanos();
    (tick > 0).then(|| {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec.try_into().unwrap_or(0));
        let end = (now + period).as_nanos().div_ceil(tick) * tick;
        timespec(Duration::from_nanos(u64::try_from(end).unwrap_or(u64::MAX)))
    })
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

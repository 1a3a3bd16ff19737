//! Hand-offs by polling, with a timer between two polls.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::polling::polling;
use super::sleep::{next_tick, timespec};
use super::{Mechanism, SleepTiming};
use crate::engine::experiment::ErrorContext;

/// The `timer` mechanism, the counterpart of the waitable timer in the test report.
pub const MECHANISM: Mechanism = Mechanism {
    name: "timer",
    summary: "poll, with a wait for a timer (timerfd) in between",
    waits: true,
    sleeps: true,
    counts: true,
    make: |timing| {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let timer = timer.context("make a timer")?;
        polling(move || await_timer(&timer, timing))
    },
};

/// Arms the timer for the period, or for the first tick after it if ticks are simulated, and blocks
/// until the timer expires.
fn await_timer(timer: &OwnedFd, timing: SleepTiming) -> io::Result<()> {
    let (flags, it_value) = match next_tick(timing) {
        Some(deadline) => (TimerfdTimerFlags::ABSTIME, deadline),
        None => (TimerfdTimerFlags::empty(), timespec(timing.period)),
    };
    let once = Itimerspec { it_interval: Timespec::default(), it_value };
    timerfd_settime(timer, flags, &once)?;
    rustix::io::read(timer, &mut [0_u8; 8])?;
    Ok(())
}

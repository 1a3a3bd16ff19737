//! Looking, and waiting for a timer in between.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::flag::Flag;
use super::sleep::{end, timespec};
use super::{Mechanism, Terms, Waited, Way};
use crate::experiment::Attempt;

/// The document's waitable timer.
pub const MECHANISM: Mechanism = Mechanism {
    name: "timer",
    summary: "looking, and waiting for a timer (timerfd) in between",
    make: |terms| {
        let flag = Flag::new().attempt("map shared memory")?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        Ok(Box::new(Polling { flag, timer: timer.attempt("make a timer")?, terms }))
    },
};

struct Polling {
    flag: Flag,
    timer: OwnedFd,
    terms: Terms,
}

impl Way for Polling {
    fn post(&self) -> io::Result<()> {
        self.flag.post();
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        let mut in_vain = 0;
        while !self.flag.take() {
            in_vain += 1;
            let (flags, it_value) = match end(self.terms) {
                Some(end) => (TimerfdTimerFlags::ABSTIME, end),
                None => (TimerfdTimerFlags::empty(), timespec(self.terms.period)),
            };
            let once = Itimerspec { it_interval: Timespec::default(), it_value };
            timerfd_settime(&self.timer, flags, &once)?;
            rustix::io::read(&self.timer, &mut [0_u8; 8])?;
        }
        Ok(Waited { in_vain })
    }
}

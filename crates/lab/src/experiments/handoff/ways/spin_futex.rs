//! Looking for a while, then sleeping.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use contend_sys::shared::{Line, Shared};
use rustix::thread::futex;

use super::flag::Flag;
use super::{Mechanism, Waited, Way};
use crate::engine::experiment::Attempt;

/// What good mutexes do.
pub const MECHANISM: Mechanism = Mechanism {
    name: "spin-futex",
    summary: "looking some thousand times, then sleeping on a futex",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        let flag = Flag::new().attempt("map shared memory")?;
        let asleep = Shared::new(Line(AtomicBool::new(false))).attempt("map shared memory")?;
        Ok(Box::new(SpinThenFutex { flag, asleep }))
    },
};

/// Looks before sleeping: some 50 µs where a pause takes 25 ns.
const LOOKS: u32 = 2000;

struct SpinThenFutex {
    flag: Flag,
    /// The waiter sleeps, or is about to.
    asleep: Shared<Line<AtomicBool>>,
}

impl Way for SpinThenFutex {
    fn post(&self) -> io::Result<()> {
        self.flag.post();
        // What is written is seen by who goes to sleep, or that it goes to sleep is seen here.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            futex::wake(self.flag.posted(), futex::Flags::empty(), 1)?;
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        for in_vain in 0..LOOKS {
            if self.flag.take() {
                return Ok(Waited { in_vain: in_vain.into() });
            }
            std::hint::spin_loop();
        }
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !self.flag.take() {
            super::futex::sleep(&self.flag)?;
        }
        self.asleep.store(false, Ordering::Relaxed);
        Ok(Waited { in_vain: LOOKS.into() })
    }
}

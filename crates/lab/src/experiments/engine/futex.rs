//! `engine/futex`: a futex to another CPU and back.

use std::sync::atomic::{AtomicU32, Ordering};

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;
use rustix::thread::futex::{self, Flags};

use super::ping_pong::{self, PingPong, WaitStyle};
use crate::engine::experiment::{Demands, Experiment, Fit, Sampling};

/// The definition of `engine/futex`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/futex",
    summary: "a futex to another CPU and back: what every hand-off that sleeps is made of",
    about: "The same as engine/cache-line, but whoever waits sleeps in a futex until the other one \
            wakes it: two wake-ups, and nothing around them. What a hand-off by handoff/mechanisms \
            takes on two CPUs is to be set beside half of it.",
    view: View::Futex,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: |_| ping_pong::unavailable(),
    hands_over: |_| true,
    demands: Demands::NONE,
    subject: |_| Ok(Box::new(PingPong::<FutexWait>::new()?)),
};

/// Sleeps until it is woken.
pub struct FutexWait;

impl WaitStyle for FutexWait {
    fn publish(line: &AtomicU32, number: u32) {
        line.store(number, Ordering::Release);
        let _ = futex::wake(line, Flags::empty(), 1); // it cannot fail for an address of ours
    }

    fn wait_while(line: &AtomicU32, number: u32) {
        let _ = futex::wait(line, Flags::empty(), number, None); // or for no reason: it is looked again
    }
}

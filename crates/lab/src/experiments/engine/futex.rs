//! `engine/futex`: a round trip between two CPUs with futex wake-ups.

use std::sync::atomic::{AtomicU32, Ordering};

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;
use rustix::thread::futex::{self, Flags};

use super::ping_pong::{self, PingPong, WaitStyle};
use crate::engine::experiment::{Demands, Experiment, Fit, Sampling};

/// The definition of `engine/futex`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/futex",
    summary: "round trip between two CPUs by futex: the floor of a blocking hand-off",
    about: "As engine/cache-line, but each side sleeps on a futex until the other wakes it: two \
        wake-ups, and nothing else. Half of it is the lower bound for the blocking mechanisms of \
        handoff/mechanisms on two CPUs.",
    view: View::Futex,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: |_| ping_pong::unavailable(),
    alternates_cpus: |_| true,
    demands: Demands::NONE,
    subject: |_| Ok(Box::new(PingPong::<FutexWait>::new()?)),
};

/// The wait style of a thread that sleeps on a futex.
pub struct FutexWait;

impl WaitStyle for FutexWait {
    fn publish(line: &AtomicU32, number: u32) {
        line.store(number, Ordering::Release);
        let _ = futex::wake(line, Flags::empty(), 1); // cannot fail for a valid address
    }

    fn wait_while(line: &AtomicU32, number: u32) {
        let _ = futex::wait(line, Flags::empty(), number, None); // the caller checks again
    }
}

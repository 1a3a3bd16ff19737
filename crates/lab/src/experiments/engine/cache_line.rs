//! `engine/cache-line`: a cache line to another CPU and back.

use std::sync::atomic::{AtomicU32, Ordering};

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;

use super::ping_pong::{self, PingPong, WaitStyle};
use crate::engine::experiment::{Demands, Experiment, Fit, Sampling, never_hands_over};

/// The definition of `engine/cache-line`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/cache-line",
    summary: "a cache line to another CPU and back: the sentinel",
    about: "Two threads, each bound to a CPU of its own, hand a number to and fro by spinning on \
            it. The median over parts of a sample is taken, since single parts are cut up by \
            interrupts. It tells how far apart two CPUs are; in a virtual machine it changes when \
            the host moves a CPU to another core, which spoils whatever two CPUs do together. \
            Before and after every sample of such an experiment it runs for about 10 ms.",
    view: View::CacheLine,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: |_| ping_pong::unavailable(),
    hands_over: never_hands_over,
    demands: Demands::NONE,
    subject: |_| Ok(Box::new(PingPong::<SpinWait>::new()?)),
};

/// Looks again and again.
pub struct SpinWait;

impl WaitStyle for SpinWait {
    #[inline]
    fn publish(line: &AtomicU32, number: u32) {
        line.store(number, Ordering::Release);
    }

    #[inline]
    fn wait_while(_: &AtomicU32, _: u32) {
        std::hint::spin_loop();
    }
}

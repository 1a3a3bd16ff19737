//! `engine/cache-line`: the round trip of a cache line between two CPUs.

use std::sync::atomic::{AtomicU32, Ordering};

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;

use super::ping_pong::{self, PingPong, WaitStyle};
use crate::engine::experiment::{Demands, Experiment, Fit, Sampling, never_alternates_cpus};

/// The definition of `engine/cache-line`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/cache-line",
    summary: "round trip of a cache line between two CPUs (their distance)",
    about: "Two threads, each bound to a CPU of its own, pass a number back and forth by spinning. \
        The value is the median over batches of a sample, because interrupts disturb single \
        batches. It shows the distance between two CPUs. In a virtual machine, it changes when the \
        hypervisor moves a virtual CPU to another core, which invalidates any measurement that \
        involves two CPUs; it therefore runs for about 10 ms before and after every sample of such \
        an experiment.",
    view: View::CacheLine,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: |_| ping_pong::unavailable(),
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE,
    subject: |_| Ok(Box::new(PingPong::<SpinWait>::new()?)),
};

/// The wait style of a spinning thread.
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

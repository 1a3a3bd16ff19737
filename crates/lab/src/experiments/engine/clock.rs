//! `engine/clock`: the time to read the clock.

use std::hint::black_box;
use std::time::Instant;

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;

use crate::engine::experiment::{
    Demands, Experiment, Fit, Sampling, always_available, never_alternates_cpus,
};
use crate::engine::timing::Timed;

/// The definition of `engine/clock`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/clock",
    summary: "time to read CLOCK_MONOTONIC",
    about: "Reads the clock that times all experiments. It takes about ten times as long where a \
        program cannot read it without a system call (on many machines, with a clock source other \
        than tsc).",
    view: View::Table,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: always_available,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE,
    subject: |_| {
        Ok(Box::new(Timed::new(|| {
            black_box(Instant::now());
            Ok(())
        })))
    },
};

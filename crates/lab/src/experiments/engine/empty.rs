//! `engine/empty`: an empty operation, which shows the error of the calibration.

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sampling, always_available, never_alternates_cpus,
};
use crate::engine::timing::{Overhead, Timed, clock_resolution};

/// The definition of `engine/empty`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/empty",
    summary: "time of an empty operation after calibration (should be 0)",
    about: "Times an empty loop as all other experiments are timed, and subtracts the calibrated \
        time of the clock and of the loop. The result should be 0. Its distance from 0 is the \
        systematic error of other figures, for each iteration.",
    view: View::Table,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: always_available,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE,
    subject: |_| Ok(Box::new(Timed::new(|| Ok(())).with_facts(calibration()))),
};

/// Measures the cost and the resolution of the clock, and the cost of the loop, as facts.
fn calibration() -> Facts {
    let overhead = Overhead::measure();
    let fact = |name: &str, value: f64| (name.to_owned(), format!("{value:.2}").into());
    Facts::from([
        fact("clock_ns", overhead.clock),
        fact("clock_resolution_ns", clock_resolution()),
        fact("empty_loop_ns", overhead.iteration),
    ])
}

//! `engine/empty`: an operation that does nothing.

use contend_record::lab::{Unit, View};
use contend_record::parameters::Parameters;

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sampling, always_available, never_hands_over,
};
use crate::engine::timing::{Overhead, Timed, clock_resolution};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/empty",
    summary: "an empty operation: what the calibration leaves over",
    about: "Times a loop around nothing, as every other experiment is timed, and subtracts what \
            the calibration found for the clock and the loop. What is left should be 0; how far \
            it is from 0 is what any other figure may be off for each iteration.",
    view: View::Table,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: always_available,
    hands_over: never_hands_over,
    demands: Demands::NONE,
    subject: |_| Ok(Box::new(Timed::new(|| Ok(())).with_facts(calibration()))),
};

/// What was measured of the clock and the loop themselves.
fn calibration() -> Facts {
    let overhead = Overhead::measure();
    let fact = |name: &str, value: f64| (name.to_owned(), format!("{value:.2}").into());
    Facts::from([
        fact("clock_ns", overhead.clock),
        fact("clock_resolution_ns", clock_resolution()),
        fact("empty_loop_ns", overhead.iteration),
    ])
}

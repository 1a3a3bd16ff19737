//! `saturation/compute`: workers limited by the CPU alone.

use contend_record::lab::View;

use super::workers::Workload;
use super::{about, experiment, saturation_subject};
use crate::engine::experiment::Experiment;
use crate::support::work::Work;

/// The definition of `saturation/compute`.
pub const EXPERIMENT: Experiment = experiment(
    "saturation/compute",
    "scaling of pure computation over processes and threads",
    about!(
        "Workers compute in registers and share nothing but the CPUs. One process with one thread \
         is program 5 of the test report on inter-process synchronisation, one process with two \
         threads is program 6, and two processes with one thread each are program 7. One unit of \
         `work` is 500,000 steps of a random number generator."
    ),
    View::Computing,
    |parameters| {
        Ok(saturation_subject(parameters, |work, _| {
            Compute(Work::steps(work * STEPS_PER_WORK_UNIT))
        }))
    },
);

/// Number of steps of the random number generator in one unit of `work`.
const STEPS_PER_WORK_UNIT: u64 = 500_000;

struct Compute(Work);

impl Workload for Compute {
    fn prepare(&self) -> Box<dyn FnOnce() + '_> {
        Box::new(|| self.0.run())
    }
}

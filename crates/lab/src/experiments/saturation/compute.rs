//! `saturation/compute`: work that needs nothing but a CPU.

use contend_record::lab::View;

use super::workers::Workload;
use super::{about, row, saturation};
use crate::engine::experiment::Experiment;
use crate::support::work::Work;

/// The definition of `saturation/compute`.
pub const EXPERIMENT: Experiment = row(
    "saturation/compute",
    "computing: processes and threads, from one worker to two for each CPU",
    about!(
        "Workers compute in registers: nothing is shared but the CPUs. One process with one thread is \
         the document's case 5, one with two its 6, two with one each its 7. One `work` is 500,000 steps of a \
         generator of random numbers."
    ),
    View::Computing,
    |parameters| {
        Ok(saturation(parameters, |work, _| Compute(Work::steps(work * STEPS_PER_WORK_UNIT))))
    },
);

/// Steps for each unit of work.
const STEPS_PER_WORK_UNIT: u64 = 500_000;

struct Compute(Work);

impl Workload for Compute {
    fn prepare(&self) -> Box<dyn FnOnce() + '_> {
        Box::new(|| self.0.work())
    }
}

//! Predicts whether a cluster runs the first group of a plan faster than this machine.

use super::executor::EngineKind;
use crate::plan::estimate::expect;
use crate::plan::flow::Amount;
use crate::plan::ir::Plan;

/// Expected wall times in seconds of a plan's first group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// On this machine.
    pub here: f64,
    /// On the cluster, until all parts are complete.
    pub there: f64,
}

/// Least ratio of the two times for which a cluster is worth it: neither of them is known well.
const MIN_FACTOR: f64 = 1.5;

/// What an engine takes besides the work of the commands, in seconds. `docs/measurements/clusters.md` has the measurements.
#[derive(Debug, Clone, Copy)]
struct Overhead {
    /// Until the first task of a batch runs.
    start: f64,
    /// For each part.
    part: f64,
}

impl Overhead {
    fn of(engine: &EngineKind) -> Self {
        match engine {
            EngineKind::Local => Self { start: 0.02, part: 0.03 },
            EngineKind::Spark { .. } => Self { start: 20.0, part: 0.04 },
            // By default, its scheduler looks at new jobs every 3 s.
            EngineKind::Slurm { .. } => Self { start: 4.0, part: 0.03 },
        }
    }
}

/// Predicts the times of a plan's first group over files. The engine runs `slots` parts of `parts` at the same time, each on one
/// CPU, and this machine has `jobs` CPUs. Each of `levels` levels of combinations is one more batch. The rates are the usual ones of the commands, on this machine.
pub fn predict(
    plan: &Plan,
    input: Amount,
    engine: &EngineKind,
    (parts, slots, levels): (u64, u64, usize),
    jobs: usize,
) -> Prediction {
    let group = &plan.steps[..1.min(plan.steps.len())];
    let wall = |jobs| expect(group, input, jobs).wall();
    let (parts, slots) = (parts.max(1), slots.max(1));
    let overhead = Overhead::of(engine);
    let in_turn = parts.div_ceil(slots) as f64;
    let batches = overhead.start * (1 + levels) as f64;
    let there = batches + in_turn * (overhead.part + wall(1) / parts as f64);
    Prediction { here: wall(jobs), there }
}

impl Prediction {
    /// Returns whether the cluster is expected to be clearly faster.
    pub fn is_worth_it(self) -> bool {
        self.here > MIN_FACTOR * self.there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::planned;

    fn predicted(megabytes: u64, slots: u64) -> Prediction {
        let plan = planned("sort | uniq -c");
        let input = Amount { bytes: megabytes * 1_000_000, line: 40.0 };
        let slurm = EngineKind::Slurm { options: Vec::new() };
        predict(&plan, input, &slurm, (megabytes.div_ceil(64), slots, 0), 4)
    }

    #[test]
    fn a_cluster_is_worth_it_for_much_data_and_many_slots() {
        assert!(!predicted(64, 100).is_worth_it(), "{:?}", predicted(64, 100));
        assert!(predicted(100_000, 100).is_worth_it(), "{:?}", predicted(100_000, 100));
        assert!(!predicted(100_000, 4).is_worth_it(), "{:?}", predicted(100_000, 4));
    }

    #[test]
    fn more_slots_than_parts_do_not_help() {
        assert_eq!(predicted(6_400, 100).there.to_bits(), predicted(6_400, 200).there.to_bits());
        assert!(predicted(6_400, 50).there > predicted(6_400, 100).there);
    }
}

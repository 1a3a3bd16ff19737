//! Predicts whether a cluster runs the first group of a plan faster than this machine.

use serde::{Deserialize, Serialize};

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

/// What is known of a cluster. `contend run --probe` measures it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The number of parts that run at the same time, each on one CPU.
    pub slots: u64,
    /// The time in seconds until the first part of a job runs; `None` if it has not been measured.
    pub start_seconds: Option<f64>,
    /// The time in seconds that each part takes besides its commands; `None` if it has not been measured.
    pub part_seconds: Option<f64>,
    /// The bytes that all slots together read in a second; `None` if they have not been measured.
    pub bytes_per_second: Option<f64>,
}

/// What an engine takes besides the work of the commands, in seconds, unless it has been measured. `docs/measurements/clusters.md` has the measurements.
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

/// Predicts the times of a plan's first group over files, which are divided into `parts`. Each of `levels` levels of combinations is
/// one more batch. This machine has `jobs` CPUs. The rates are the usual ones of the commands, on this machine.
pub fn predict(
    plan: &Plan,
    input: Amount,
    engine: &EngineKind,
    capacity: Capacity,
    (parts, levels): (u64, usize),
    jobs: usize,
) -> Prediction {
    let group = &plan.steps[..1.min(plan.steps.len())];
    let wall = |jobs| expect(group, input, jobs).wall();
    let (parts, slots) = (parts.max(1), capacity.slots.max(1));
    let usual = Overhead::of(engine);
    let start = capacity.start_seconds.unwrap_or(usual.start);
    let of_part = capacity.part_seconds.unwrap_or(usual.part);
    let in_turn = parts.div_ceil(slots) as f64;
    let batches = start * (1 + levels) as f64;
    let read = capacity.bytes_per_second.map_or(0.0, |rate| input.bytes as f64 / rate.max(1.0));
    let there = batches + read.max(in_turn * (of_part + wall(1) / parts as f64));
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
        let (start_seconds, part_seconds, bytes_per_second) = (None, None, None);
        with(Capacity { slots, start_seconds, part_seconds, bytes_per_second }, megabytes)
    }

    fn with(capacity: Capacity, megabytes: u64) -> Prediction {
        let plan = planned("sort | uniq -c");
        let input = Amount { bytes: megabytes * 1_000_000, line: 40.0 };
        let slurm = EngineKind::Slurm { options: Vec::new() };
        predict(&plan, input, &slurm, capacity, (megabytes.div_ceil(64), 0), 4)
    }

    #[test]
    fn a_cluster_is_worth_it_for_much_data_and_many_slots() {
        assert!(!predicted(64, 100).is_worth_it(), "{:?}", predicted(64, 100));
        assert!(predicted(100_000, 100).is_worth_it(), "{:?}", predicted(100_000, 100));
        assert!(!predicted(100_000, 4).is_worth_it(), "{:?}", predicted(100_000, 4));
    }

    #[test]
    fn what_has_been_measured_counts() {
        let measured = Capacity {
            slots: 100,
            start_seconds: Some(60.0),
            part_seconds: Some(0.0),
            bytes_per_second: Some(1e9),
        };
        let (usual, slow) = (predicted(100_000, 100), with(measured, 100_000));
        assert!(slow.there >= 160.0, "100 GB at 1 GB/s, after a minute: {slow:?}");
        assert!(usual.there < slow.there, "{usual:?}");
        let fast = with(Capacity { bytes_per_second: Some(1e12), ..measured }, 100_000);
        assert!(fast.there < slow.there, "{fast:?}");
    }

    #[test]
    fn more_slots_than_parts_do_not_help() {
        assert_eq!(predicted(6_400, 100).there.to_bits(), predicted(6_400, 200).there.to_bits());
        assert!(predicted(6_400, 50).there > predicted(6_400, 100).there);
    }
}

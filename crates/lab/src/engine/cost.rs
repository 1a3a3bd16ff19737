//! Expected durations of cases, on which the plan of a run is based.

use std::time::Duration;

use contend_record::parameters::Parameters;

use crate::engine::experiment::Sampling;

/// The wall time that a case is expected to take on an idle machine with two cores.
///
/// A cost is an estimate that an experiment declares
/// ([`Demands::cost`](super::experiment::Demands::cost)). During a run, the engine scales it by the
/// ratio of measured to declared durations of earlier cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Time before the first sample, for example to start a runtime or to generate input.
    pub setup: Duration,
    /// Time of one sample.
    pub sample: Duration,
    /// Work that a run does once for several cases, or `None`.
    pub shared: Option<SharedCost>,
}

/// Work that several cases of a run need, such as compiling a probe. The first of these cases does
/// it for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCost {
    /// Name of the work, the same in all cases that share it.
    pub name: &'static str,
    /// Expected duration of the work.
    pub time: Duration,
}

impl Cost {
    /// The cost of most cases: 100 ms of setup, such as starting a process, and 150 ms per sample.
    pub const DEFAULT: Self = Self::of_millis(100, 150);

    /// Creates a cost without shared work from the times of setup and of one sample, in
    /// milliseconds.
    pub const fn of_millis(setup: u64, sample: u64) -> Self {
        let [setup, sample] = [Duration::from_millis(setup), Duration::from_millis(sample)];
        Self { setup, sample, shared: None }
    }

    /// Returns the time until the first sample is complete, without shared work.
    pub fn first(&self) -> Duration {
        self.setup + self.sample
    }

    /// Returns the time of setup and of all samples, without shared work, or `None` if the number
    /// of samples is not fixed.
    pub fn all(&self, sampling: Sampling) -> Option<Duration> {
        match sampling {
            Sampling::Adaptive => None,
            Sampling::Fixed(count) => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                Some(self.setup + self.sample.saturating_mul(count))
            }
        }
    }
}

/// A model that computes the cost of a case from its parameters.
#[derive(Debug, Clone, Copy)]
pub enum CostModel {
    /// A cost that grows linearly with some parameters.
    Linear {
        /// Cost of a case in which the parameters of `per_ns` are 0 or missing.
        base: Cost,
        /// Pairs of a parameter's name and the time that each unit of the parameter adds to a
        /// sample, in nanoseconds.
        per_ns: &'static [(&'static str, u64)],
    },
    /// A function that computes the cost of a case.
    ByCase(fn(&Parameters) -> Cost),
}

impl CostModel {
    /// The model in which every case has the cost [`Cost::DEFAULT`].
    pub const DEFAULT: Self = Self::Linear { base: Cost::DEFAULT, per_ns: &[] };

    /// Returns the cost of the case with the given parameters.
    pub fn of(&self, parameters: &Parameters) -> Cost {
        match *self {
            Self::Linear { base, per_ns } => {
                let more = per_ns.iter().map(|&(name, ns)| {
                    Duration::from_nanos(ns.saturating_mul(parameters.number(name).unwrap_or(0)))
                });
                Cost { sample: base.sample + more.sum::<Duration>(), ..base }
            }
            Self::ByCase(cost) => cost(parameters),
        }
    }
}

/// Returns the total time that cases with these costs need for setup and first samples, one case
/// after another. Each piece of shared work counts once.
pub fn first_samples<'a>(costs: impl Iterator<Item = &'a Cost> + Clone) -> Duration {
    let own: Duration = costs.clone().map(Cost::first).sum();
    own + shared(costs)
}

/// Returns the total time of the shared work in `costs`. Each piece, identified by its name, counts
/// once.
pub fn shared<'a>(costs: impl Iterator<Item = &'a Cost>) -> Duration {
    let mut done: Vec<SharedCost> = Vec::new();
    for shared in costs.filter_map(|cost| cost.shared) {
        if !done.iter().any(|other| other.name == shared.name) {
            done.push(shared);
        }
    }
    done.iter().map(|shared| shared.time).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILED: Option<SharedCost> =
        Some(SharedCost { name: "compiler", time: Duration::from_secs(9) });

    #[test]
    fn shared_work_counts_once() {
        let cost = Cost { shared: COMPILED, ..Cost::of_millis(1000, 500) };
        let costs = [cost, cost, Cost::of_millis(0, 1000)];
        assert_eq!(first_samples(costs.iter()), Duration::from_secs(9 + 3 + 1));
        assert_eq!(shared(costs[2..].iter()), Duration::ZERO);
    }

    #[test]
    fn a_linear_cost_grows_with_its_parameters() {
        let per_ns = &[("n", 1_000_000), ("copies", 1_000_000_000)];
        let model = CostModel::Linear { base: Cost::of_millis(10, 20), per_ns };
        let of = |parameters: &Parameters| model.of(parameters).sample.as_millis();
        let small = Parameters::new().with("n", 300);
        assert_eq!((of(&small), of(&small.with("copies", 2))), (320, 2320));
        assert_eq!(model.of(&Parameters::new()), Cost::of_millis(10, 20));
    }

    #[test]
    fn setup_is_paid_once_for_all_samples() {
        let cost = Cost::of_millis(1000, 500);
        assert_eq!(cost.all(Sampling::Fixed(4)), Some(Duration::from_secs(3)));
        assert_eq!(cost.all(Sampling::Adaptive), None);
    }
}

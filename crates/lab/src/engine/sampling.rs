//! Collects the samples of a case, decides when there are enough, and summarises them.

use std::collections::BTreeMap;
use std::time::Duration;

use contend_record::lab::{Case, Metric, Stage, Stopped, Unit};
use contend_record::stats::{self, Estimate, MIN_CI95_SAMPLES};

use crate::engine::experiment::{Sample, Sampling, StageSample};
use crate::engine::plan::PlannedCase;
use crate::engine::protocol::Measurement;

/// Width below which an interval counts as narrow, relative to the median.
const MAX_RELATIVE_WIDTH: f64 = 0.02;
/// Minimum number of undisturbed samples before the interval is checked: with fewer, it may be
/// narrow by chance. For the same reason, it has to be narrow at two checks in a row.
const MIN_INTERVAL_SAMPLES: usize = 12;

/// The samples of a case so far.
#[derive(Debug)]
pub struct Samples {
    sampling: Sampling,
    /// Upper bound on the number of samples with adaptive sampling, disturbed ones included.
    limit: usize,
    seed: u64,
    taken: Vec<Sample>,
    /// Indexes of samples taken while other programs used the CPUs, or the hypervisor moved a
    /// virtual CPU.
    disturbed: Vec<usize>,
    /// Number of undisturbed samples at which the interval is computed next. Checks are rare
    /// because each takes milliseconds.
    next_check: usize,
    /// Whether the interval was narrow at the previous check.
    was_narrow: bool,
    /// Number of iterations in each sample.
    pub iterations: u64,
}

impl Samples {
    /// Creates an empty set of samples. `limit` is the maximum number of samples with adaptive
    /// sampling, and `seed` seeds the random numbers that determine the intervals.
    pub fn new(sampling: Sampling, limit: usize, seed: u64) -> Self {
        Self {
            sampling,
            limit,
            seed,
            taken: Vec::new(),
            disturbed: Vec::new(),
            next_check: MIN_INTERVAL_SAMPLES,
            was_narrow: false,
            iterations: 1,
        }
    }

    /// Adds a sample and returns its index.
    pub fn push(&mut self, sample: Sample) -> usize {
        self.taken.push(sample);
        self.taken.len() - 1
    }

    /// Marks the sample at `index` as disturbed by other programs or by the hypervisor.
    pub fn mark_disturbed(&mut self, index: usize) {
        if !self.disturbed.contains(&index) {
            self.disturbed.push(index);
        }
    }

    /// Returns the number of samples, disturbed ones included.
    pub fn count(&self) -> usize {
        self.taken.len()
    }

    /// Returns the number of samples that are not marked as disturbed.
    fn undisturbed(&self) -> usize {
        self.taken.len() - self.disturbed.len()
    }

    /// Returns why no more samples are needed, or `None` if more are. With adaptive sampling,
    /// computes the interval at `MIN_INTERVAL_SAMPLES` undisturbed samples, and again each time
    /// their number has grown by a quarter, and remembers whether it was narrow.
    pub fn check_complete(&mut self) -> Option<Stopped> {
        match self.sampling {
            Sampling::Fixed(count) => (self.taken.len() >= count).then_some(Stopped::Count),
            Sampling::Adaptive if self.taken.len() >= self.limit => Some(Stopped::Count),
            Sampling::Adaptive if self.undisturbed() < self.next_check => None,
            Sampling::Adaptive => {
                self.next_check = self.undisturbed() + self.undisturbed().div_ceil(4);
                let counted = self.counted();
                let values = counted.iter().map(|&(_, sample)| sample.value).collect();
                let estimate = Estimate::from_samples(values, self.seed)?;
                let width = estimate.ci95[1] - estimate.ci95[0];
                let narrow = width < MAX_RELATIVE_WIDTH * estimate.median.abs();
                let was_narrow = std::mem::replace(&mut self.was_narrow, narrow);
                (narrow && was_narrow).then_some(Stopped::Interval)
            }
        }
    }

    /// Returns the samples that count, each with whether it is disturbed. Disturbed samples of an
    /// adaptive case do not count once there are [`MIN_CI95_SAMPLES`] undisturbed ones, which
    /// replace them.
    fn counted(&self) -> Vec<(bool, &Sample)> {
        let all = self.taken.iter().enumerate();
        let all = all.map(|(index, sample)| (self.disturbed.contains(&index), sample));
        let retaken = self.sampling == Sampling::Adaptive && self.undisturbed() >= MIN_CI95_SAMPLES;
        all.filter(|&(disturbed, _)| !(disturbed && retaken)).collect()
    }

    /// Returns the record of the case `planned`, with statistics over the samples that count, and
    /// with the limit and the facts of the last one. `stopped` is why the case takes no more
    /// samples, or `None` if it continues or was never started.
    pub fn summarise(&self, planned: &PlannedCase, stopped: Option<Stopped>) -> Case {
        let experiment = planned.experiment;
        let mut case = Case::new(
            experiment.name,
            experiment.view,
            planned.parameters.clone(),
            experiment.unit,
        );
        let counted = self.counted();
        case.retaken = self.taken.len() - counted.len();
        case.disturbed =
            (0..counted.len()).filter(|&index| counted.get(index).is_some_and(|k| k.0)).collect();
        case.samples = counted.iter().map(|&(_, sample)| sample.value).collect();
        case.outliers = stats::outliers(&case.samples);
        case.min = case.samples.iter().copied().reduce(f64::min);
        case.max = case.samples.iter().copied().reduce(f64::max);
        if let Some(estimate) = Estimate::from_samples(case.samples.clone(), self.seed) {
            case.median = Some(estimate.median);
            case.ci95 = (case.samples.len() >= MIN_CI95_SAMPLES).then_some(estimate.ci95);
        }
        case.iterations = self.iterations;
        case.stopped = stopped;
        case.metrics = metrics(counted.iter().map(|&(_, sample)| sample));
        case.stages = stages(&counted.iter().map(|&(_, sample)| sample).collect::<Vec<_>>());
        if let Some((_, last)) = counted.last() {
            case.limit.clone_from(&last.limit);
            case.facts = last.facts.clone();
        }
        case
    }
}

fn metrics<'a>(samples: impl Iterator<Item = &'a Sample>) -> BTreeMap<String, Metric> {
    let mut values: BTreeMap<String, (Unit, Vec<f64>)> = BTreeMap::new();
    for (name, &(value, unit)) in samples.flat_map(|sample| &sample.metrics) {
        values.entry(name.clone()).or_insert_with(|| (unit, Vec::new())).1.push(value);
    }
    values.into_iter().map(|(name, (unit, values))| (name, Metric::of(unit, values))).collect()
}

/// Returns the stages of the first sample, each with its times in all samples.
fn stages(samples: &[&Sample]) -> Vec<Stage> {
    let metric = |index: usize, of: fn(&StageSample) -> f64| {
        let values = samples.iter().filter_map(|sample| sample.stages.get(index)).map(of);
        Metric::of(Unit::Nanoseconds, values.collect())
    };
    let first = samples.first().map_or(&[][..], |sample| &sample.stages);
    let stage = |(index, one): (usize, &StageSample)| Stage {
        stage: one.stage.clone(),
        real: metric(index, |stage| stage.real),
        user: metric(index, |stage| stage.user),
        system: metric(index, |stage| stage.system),
    };
    first.iter().enumerate().map(stage).collect()
}

/// Returns the number of iterations with which a sample takes about `target`, extrapolated from
/// `trial`, a sample of `iterations` iterations. The result is at least 1, and at most a hundred
/// times `iterations` or 10^12, whichever is lower.
pub fn iterations_for(target: Duration, trial: &Measurement, iterations: u64) -> u64 {
    let took = trial.elapsed.as_secs_f64().max(1e-9);
    let factor = (target.as_secs_f64() / took).clamp(0.0, 100.0);
    let wanted = (iterations as f64 * factor).round().clamp(1.0, 1e12);
    // Between 1 and 1e12, which `u64` can represent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
    let wanted = wanted as u64;
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::experiment::{
        Demands, Experiment, Fit, Size, SubjectError, always_available, never_alternates_cpus,
    };
    use contend_record::lab::View;
    use contend_record::parameters::Parameters;
    use proptest::prelude::*;

    const SUBJECTLESS: Experiment = Experiment {
        name: "mock/adaptive",
        summary: "x",
        about: "x",
        view: View::Table,
        unit: Unit::Nanoseconds,
        sampling: Sampling::Adaptive,
        fit: Fit::None,
        settings: &[],
        cases: |_| Vec::new(),
        unavailable: always_available,
        alternates_cpus: never_alternates_cpus,
        demands: Demands::NONE,
        subject: |_| Err(SubjectError::Unexpected("it is never made".to_owned())),
    };

    fn samples(sampling: Sampling, values: &[f64]) -> Samples {
        let mut samples = Samples::new(sampling, 300, 7);
        for &value in values {
            samples.push(Sample::of(value));
        }
        samples
    }

    fn case(samples: &Samples) -> Case {
        samples.summarise(&PlannedCase::new(&SUBJECTLESS, Parameters::new(), Size::Full), None)
    }

    #[test]
    fn a_narrow_interval_is_enough() {
        let tight =
            [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 100.1, 99.9, 100.0, 100.1, 99.9, 100.0];
        let mut narrow = samples(Sampling::Adaptive, &tight);
        assert_eq!(narrow.check_complete(), None, "one check may be chance");
        for &value in &tight[..3] {
            narrow.push(Sample::of(value));
        }
        assert_eq!(narrow.check_complete(), Some(Stopped::Interval));
        let mut wide = samples(Sampling::Adaptive, &tight.map(|value| value * value * value));
        wide.push(Sample::of(2e6));
        for value in tight {
            wide.push(Sample::of(value * 9e3));
        }
        assert_eq!((wide.check_complete(), wide.check_complete()), (None, None));
        let mut few = samples(Sampling::Adaptive, &[100.0; 5]);
        assert_eq!(few.check_complete(), None);
        let mut fixed = samples(Sampling::Fixed(2), &[1.0, 99.0]);
        assert_eq!(fixed.check_complete(), Some(Stopped::Count));
    }

    #[test]
    fn two_narrow_intervals_must_be_consecutive() {
        let mut samples = samples(Sampling::Adaptive, &[100.0; 12]);
        assert_eq!(samples.check_complete(), None, "the first narrow interval");
        for value in 0..30 {
            samples.push(Sample::of(f64::from(value) * 10.0));
        }
        assert_eq!(samples.check_complete(), None, "a wide interval");
        for _ in 0..150 {
            samples.push(Sample::of(100.0));
        }
        assert_eq!(samples.check_complete(), None, "narrow after a wide one");
        for _ in 0..100 {
            samples.push(Sample::of(100.0));
        }
        assert_eq!(samples.check_complete(), Some(Stopped::Interval));
    }

    #[test]
    fn outliers_are_marked_and_stay() {
        let case = case(&samples(Sampling::Adaptive, &[1.0, 1.1, 0.9, 1.0, 1.05, 9.0, 0.95]));
        assert_eq!(case.outliers, [5]);
        assert_eq!(case.samples.len(), 7);
        assert_eq!(case.max, Some(9.0));
        assert_eq!(case.median, Some(1.0));
    }

    #[test]
    fn disturbed_samples_are_dropped_once_there_are_enough_others() {
        let mut taken = samples(Sampling::Adaptive, &[1.0, 1.0, 1.0, 7.0, 1.0, 1.0]);
        taken.mark_disturbed(3);
        taken.mark_disturbed(3);
        let marked = case(&taken);
        assert_eq!((marked.disturbed.as_slice(), marked.retaken), ([3].as_slice(), 0));
        taken.push(Sample::of(1.0));
        let retaken = case(&taken);
        assert_eq!((retaken.disturbed.len(), retaken.retaken), (0, 1));
        assert_eq!(retaken.samples, [1.0; 6]);
    }

    proptest! {
        #[test]
        fn iterations_lead_to_the_target(cost in 1e-9..1.0_f64) {
            let target = Duration::from_millis(25);
            let mut iterations = 1;
            for _ in 0..8 {
                let elapsed = Duration::from_secs_f64(cost * iterations as f64);
                let trial = Measurement { elapsed, ..Measurement::default() };
                iterations = iterations_for(target, &trial, iterations);
            }
            let took = cost * iterations as f64;
            prop_assert!(iterations == 1 || (took > 0.012 && took < 0.05), "{took}");
        }
    }
}

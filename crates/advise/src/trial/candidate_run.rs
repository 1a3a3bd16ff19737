//! The state of one candidate in a trial, with its samples.

use std::time::Duration;

use contend_record::advice::{Measurement, Verdict};
use contend_record::stats::{Estimate, median};

use super::rounds::Mismatch;

/// Minimum number of pairs of runs for a verdict of faster, slower or cheaper. A pair is one run of
/// the candidate and one of the original in the same round.
const MIN_PAIRS: usize = 3;
/// Minimum number of samples for a confidence interval of their median. The interval of fewer
/// samples is their range.
const MIN_PAIRS_FOR_MEDIAN: usize = 6;
/// Numbers of pairs after which a verdict is attempted. Attempts after every pair would accept
/// chance differences.
const JUDGED_AFTER_PAIRS: [usize; 5] = [MIN_PAIRS_FOR_MEDIAN, 10, 18, 32, MAX_PAIRS];
/// Number of pairs after which a candidate that is still undecided counts as unclear.
const MAX_PAIRS: usize = 60;
/// Smallest relevant difference in wall time, relative to the original.
const MIN_DIFFERENCE: f64 = 0.01;
/// Difference in wall time, relative to the original, that all samples must exceed for a verdict
/// from fewer than `MIN_PAIRS_FOR_MEDIAN` pairs. If the pairs confirm an earlier result,
/// `MIN_DIFFERENCE` is enough.
const CLEAR_DIFFERENCE: f64 = 0.05;
/// Half width of the interval of wall-time ratios below which an undecided candidate counts as
/// neither faster nor slower.
const EQUAL_HALF_WIDTH: f64 = 0.02;
/// Maximum probability that chance alone explains the agreement of pairs, unless all of them agree.
const MAX_CHANCE: f64 = 0.01;
/// Share of CPU time that a candidate must save to be recommended if it saves no wall time.
const MIN_CPU_SAVING: f64 = 0.05;

/// Wall and CPU times in seconds, and their ratios to the original's times of the same round. Each
/// has one value per round.
#[derive(Debug, Default)]
struct Samples {
    walls: Vec<f64>,
    cpus: Vec<f64>,
    wall_ratios: Vec<f64>,
    cpu_ratios: Vec<f64>,
}

impl Samples {
    fn append(&mut self, mut later: Self) {
        self.walls.append(&mut later.walls);
        self.cpus.append(&mut later.cpus);
        self.wall_ratios.append(&mut later.wall_ratios);
        self.cpu_ratios.append(&mut later.cpu_ratios);
    }

    fn count(&self) -> usize {
        self.walls.len()
    }
}

/// A candidate and its state in the trial. `T` describes what runs.
#[derive(Debug)]
pub struct CandidateRun<T> {
    /// Index of the candidate among all candidates.
    pub place: usize,
    /// What to run.
    pub what: T,
    samples: Samples,
    /// The samples on which the candidate first beat the original; `None` until then. Fresh samples
    /// must confirm the result: in repeated tests, chance alone may put a candidate ahead at some
    /// point.
    qualified: Option<Samples>,
    difference: Option<String>,
    /// Whether `difference` is one of the output, rather than of the exit code.
    is_of_output: bool,
    verdict: Option<Verdict>,
}

impl<T> CandidateRun<T> {
    /// Creates a candidate that has not run. `place` is its index among all candidates.
    pub fn new(place: usize, what: T) -> Self {
        Self {
            place,
            what,
            samples: Samples::default(),
            qualified: None,
            difference: None,
            is_of_output: false,
            verdict: None,
        }
    }

    /// Returns whether the candidate has no verdict yet, and so keeps running.
    pub fn in_question(&self) -> bool {
        self.verdict.is_none()
    }

    /// Rejects the candidate because its output or its exit code differs from the original's.
    pub(super) fn reject(&mut self, found: &Mismatch) {
        self.difference = Some(found.to_string());
        self.is_of_output = matches!(found, Mismatch::Output(_));
        self.verdict = Some(Verdict::Wrong);
    }

    /// Returns whether the candidate was rejected because of its output.
    pub(super) fn is_rejected_for_output(&self) -> bool {
        self.verdict == Some(Verdict::Wrong) && self.is_of_output
    }

    /// Withdraws the rejection of the candidate if it was because of its output.
    pub(super) fn readmit(&mut self) {
        if self.is_rejected_for_output() {
            self.difference = None;
            self.verdict = None;
        }
    }

    /// Decides that the candidate is slower, because one run had not ended after `limit`, many
    /// times the wall time of the original.
    pub(super) fn give_up(&mut self, limit: Duration) {
        self.difference = Some(format!("it had not ended after {limit:.1?}"));
        self.verdict = Some(Verdict::Slower);
    }

    /// Adds the wall and CPU time of the candidate, and those of the original in the same round, in
    /// seconds.
    pub(super) fn add(&mut self, (wall, cpu): (f64, f64), (own_wall, own_cpu): (f64, f64)) {
        self.samples.walls.push(wall);
        self.samples.cpus.push(cpu);
        self.samples.wall_ratios.push(wall / own_wall.max(1e-9));
        self.samples.cpu_ratios.push(cpu / own_cpu.max(1e-9));
    }

    /// Tries to reach a verdict on the candidate. Does nothing unless the number of pairs is in
    /// [`JUDGED_AFTER_PAIRS`]. Leaves the candidate undecided while its samples are inconclusive;
    /// after `MAX_PAIRS`, it counts as unclear. A first recommendation only sets the samples aside:
    /// fresh ones have to confirm it. `seed` seeds the resampling.
    pub(super) fn judge(&mut self, seed: u64) {
        if self.verdict.is_some() || !JUDGED_AFTER_PAIRS.contains(&self.samples.count()) {
            return;
        }
        let verdict = self.verdict_now(seed);
        if verdict.is_some_and(Verdict::recommends) && self.qualified.is_none() {
            self.qualified = Some(std::mem::take(&mut self.samples));
        } else {
            self.verdict = verdict;
        }
    }

    /// Tries to reach a verdict on an undecided candidate after the last of a fixed number of rounds,
    /// by its interval. Does nothing if there are too few samples for an interval. `seed` seeds the
    /// resampling.
    pub(super) fn judge_at_end(&mut self, seed: u64) {
        if self.verdict.is_none() && self.samples.count() >= MIN_PAIRS_FOR_MEDIAN {
            self.verdict = self.verdict_now(seed);
        }
    }

    fn verdict_now(&self, seed: u64) -> Option<Verdict> {
        let [low, high] = interval(&self.samples.wall_ratios, seed)?;
        let narrow = high - low < 2.0 * EQUAL_HALF_WIDTH;
        if high < 1.0 - MIN_DIFFERENCE {
            Some(Verdict::Faster)
        } else if low > 1.0 + MIN_DIFFERENCE {
            Some(Verdict::Slower)
        } else if narrow {
            Some(if self.is_cheaper(seed) { Verdict::Cheaper } else { Verdict::NoDifference })
        } else if self.samples.count() >= MAX_PAIRS {
            Some(Verdict::Unclear)
        } else {
            None
        }
    }

    fn is_cheaper(&self, seed: u64) -> bool {
        let slower = interval(&self.samples.wall_ratios, seed).is_some_and(|[low, _]| low > 1.0);
        let cpu = interval(&self.samples.cpu_ratios, seed);
        !slower && cpu.is_some_and(|[_, high]| high < 1.0 - MIN_CPU_SAVING)
    }

    /// Gives a verdict to a candidate that has run but is undecided at the end of the trial. It is
    /// unclear unless the pairs [`agree`] on a relevant difference in wall time, or agree on a
    /// saving in CPU time while the median wall time has not increased. If there are fewer than
    /// [`MIN_PAIRS`] fresh pairs, those that have been set aside count as well.
    pub(super) fn finish(&mut self) {
        if self.samples.count() < MIN_PAIRS
            && let Some(mut earlier) = self.qualified.take()
        {
            earlier.append(std::mem::take(&mut self.samples));
            self.samples = earlier;
        }
        if self.verdict.is_some() || self.samples.count() == 0 {
            return;
        }
        // Few samples can prove only a large difference.
        let enough = self.qualified.is_some() || self.samples.count() >= MIN_PAIRS_FOR_MEDIAN;
        let matters = if enough { MIN_DIFFERENCE } else { CLEAR_DIFFERENCE };
        let below = |ratios: &[f64], limit: f64| agree(ratios, |ratio| ratio < limit);
        let walls = &self.samples.wall_ratios;
        self.verdict = Some(if below(walls, 1.0 - matters) {
            Verdict::Faster
        } else if agree(walls, |ratio| ratio > 1.0 + matters) {
            Verdict::Slower
        } else if below(&self.samples.cpu_ratios, 1.0 - MIN_CPU_SAVING) && middle(walls) <= 1.0 {
            Verdict::Cheaper
        } else {
            Verdict::Unclear
        });
    }

    /// Returns the measurements and the verdict. `seed` seeds the resampling.
    pub fn measurement(&self, seed: u64) -> Measurement {
        let estimate = |samples: &[f64]| {
            let mut estimate = Estimate::from_samples(samples.to_vec(), seed)?;
            estimate.ci95 = interval(samples, seed)?;
            Some(estimate)
        };
        let untried = self.samples.count() == 0 && self.qualified.is_none();
        let wall = estimate(&self.samples.walls);
        Measurement {
            measured_wall_seconds: wall.as_ref().map(|wall| wall.median),
            measured_interval: wall.map(|wall| wall.ci95),
            measured_cpu_seconds: estimate(&self.samples.cpus).map(|cpu| cpu.median),
            wall_ratio: estimate(&self.samples.wall_ratios),
            cpu_ratio: estimate(&self.samples.cpu_ratios),
            output_equal: match (&self.difference, self.samples.walls.is_empty()) {
                (Some(_), _) if self.verdict == Some(Verdict::Wrong) => Some(false),
                (None, false) => Some(true),
                _ => None,
            },
            difference: self.difference.clone(),
            verdict: self.verdict.unwrap_or(if untried {
                Verdict::NotTried
            } else {
                Verdict::Unclear
            }),
        }
    }
}

/// Returns the 95% confidence interval of the median, or the range if there are fewer than
/// [`MIN_PAIRS_FOR_MEDIAN`] samples. Returns `None` without samples. `seed` seeds the resampling.
pub(super) fn interval(samples: &[f64], seed: u64) -> Option<[f64; 2]> {
    if samples.len() >= MIN_PAIRS_FOR_MEDIAN {
        return Some(Estimate::from_samples(samples.to_vec(), seed)?.ci95);
    }
    range(samples)
}

/// Returns whether there are at least [`MIN_PAIRS`] samples and all of them pass `test`, or all but
/// a few. If some fail, the probability that chance yields no more failures must be at most
/// [`MAX_CHANCE`]. By chance, each sample passes or fails with equal probability.
fn agree(samples: &[f64], test: impl Fn(f64) -> bool) -> bool {
    let count = samples.len();
    let failed = samples.iter().filter(|&&sample| !test(sample)).count();
    if count < MIN_PAIRS || failed == 0 {
        return count >= MIN_PAIRS;
    }
    // The chance that at most `failed` of `count` samples fail, from the binomial distribution.
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut chance = term;
    for done in 0..failed {
        term *= (count - done) as f64 / (done + 1) as f64;
        chance += term;
    }
    chance <= MAX_CHANCE
}

fn middle(samples: &[f64]) -> f64 {
    median(samples).unwrap_or(f64::INFINITY)
}

/// Returns the minimum and maximum, or `None` without samples.
fn range(samples: &[f64]) -> Option<[f64; 2]> {
    let least = samples.iter().copied().reduce(f64::min)?;
    let most = samples.iter().copied().reduce(f64::max)?;
    Some([least, most])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ratios: &[f64], cpu: f64) -> Verdict {
        let mut one = CandidateRun::new(0, ());
        for _ in 0..10 {
            for ratio in ratios {
                one.add((*ratio, cpu), (1.0, 1.0));
                one.judge(1);
            }
        }
        one.finish();
        one.verdict.expect("finished")
    }

    #[test]
    fn intervals_on_one_side_decide() {
        assert_eq!(judged(&[0.7, 0.72, 0.69, 0.71, 0.75, 0.7], 1.0), Verdict::Faster);
        assert_eq!(judged(&[1.3, 1.32, 1.29, 1.31, 1.35, 1.3], 0.5), Verdict::Slower);
        assert_eq!(judged(&[0.999; 8], 1.0), Verdict::NoDifference);
        assert_eq!(judged(&[0.999; 8], 0.6), Verdict::Cheaper);
        assert_eq!(judged(&[0.5, 1.5, 0.6, 1.4, 0.7, 1.3], 1.0), Verdict::Unclear);
    }

    #[test]
    fn a_winner_must_be_confirmed_by_fresh_samples() {
        let mut one = CandidateRun::new(0, ());
        for ratio in [0.9; 6] {
            one.add((ratio, 1.0), (1.0, 1.0));
        }
        one.judge(1);
        assert!(one.in_question(), "once");
        for ratio in [1.0; 6] {
            one.add((ratio, 1.0), (1.0, 1.0));
        }
        one.judge(1);
        assert_eq!(one.verdict, Some(Verdict::NoDifference));
    }

    #[test]
    fn few_pairs_must_all_agree() {
        let judged = |ratios: &[f64]| {
            let mut one = CandidateRun::new(0, ());
            for ratio in ratios {
                one.add((*ratio, 1.0), (1.0, 1.0));
            }
            one.finish();
            one.verdict
        };
        assert_eq!(judged(&[0.5, 0.6, 0.7]), Some(Verdict::Faster));
        assert_eq!(judged(&[0.5, 0.6, 1.0]), Some(Verdict::Unclear));
        assert_eq!(judged(&[0.5, 0.6]), Some(Verdict::Unclear));
        assert_eq!(judged(&[]), None, "it did not run");
        let mut ratios = vec![0.7; 11];
        ratios.insert(4, 1.4);
        assert_eq!(judged(&ratios), Some(Verdict::Faster), "one of 12 may differ");
        ratios.insert(4, 1.4);
        assert_eq!(judged(&ratios), Some(Verdict::Unclear), "two of 13 may not");
        assert_eq!(judged(&[0.5, 0.6, 0.7, 0.5, 0.6, 0.7, 0.8]), Some(Verdict::Faster));
    }

    #[test]
    fn a_clear_saving_of_cpu_time_counts_if_wall_times_scatter() {
        let judged = |cpu: f64, shift: f64| {
            let mut one = CandidateRun::new(0, ());
            for wall in [0.6, 1.1, 0.8, 1.2, 0.9, 0.7, 1.05] {
                one.add((wall + shift, cpu), (1.0, 1.0));
            }
            one.finish();
            one.verdict
        };
        assert_eq!(judged(0.7, 0.0), Some(Verdict::Cheaper));
        assert_eq!(judged(0.97, 0.0), Some(Verdict::Unclear), "it saves too little");
        assert_eq!(judged(0.7, 0.3), Some(Verdict::Unclear), "it may be slower");
    }

    #[test]
    fn one_different_exit_code_is_enough() {
        let mut one = CandidateRun::new(0, ());
        one.add((0.1, 0.1), (1.0, 1.0));
        one.reject(&Mismatch::Status { found: 1, expected: 0 });
        one.readmit();
        one.judge(1);
        assert!(!one.in_question());
        assert_eq!(one.verdict, Some(Verdict::Wrong));
    }
}

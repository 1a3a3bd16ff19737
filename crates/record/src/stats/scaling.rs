//! Two laws of throughput as a function of the number of workers: Amdahl's and Gunther's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MIN_CI95_SAMPLES, central_95, median, resampled_medians};

/// A scaling law fitted to measurements. By the law, n workers that each do as much work as one
/// alone have n / (1 + contention × (n − 1) + coherency × n × (n − 1)) times the throughput of one
/// worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// Which of the two laws was fitted.
    pub law: Law,
    /// Share of the work that only one worker at a time can do, from 0 to 1; more than 1 only if
    /// `unfit` is present. The interval may extend beyond 1.
    pub contention: Coefficient,
    /// Cost of coordination between any two workers, as a share of the work; null for Amdahl's law,
    /// which has no such term.
    pub coherency: Option<Coefficient>,
    /// Number of workers at each point through which the law was fitted.
    pub workers: Vec<u64>,
    /// Why the points do not support the law, so that its coefficients have no meaning; absent if
    /// the points support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<Unfit>,
}

/// The reason why points do not support a scaling law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Unfit {
    /// A point has fewer than two samples. A single one may be due to a disturbance.
    OneSample,
    /// By the fit, more than all of the work would be serial.
    SerialShareAboveOne {
        /// Serial share of the work by the fit, above 1.
        share: f64,
    },
    /// By the fit, coordination with one other worker would take longer than the work itself.
    CoherencyAboveOne {
        /// Coherency coefficient by the fit, above 1.
        coherency: f64,
    },
    /// Several workers, each with as much work as one worker alone, took less than 0.9 times its
    /// time: the serial share would be negative.
    Superlinear {
        /// Number of workers at the fastest point.
        workers: u64,
        /// Time that the workers took, divided by the time of one worker.
        time: f64,
    },
    /// Most samples of a point were disturbed: other processes used the CPUs, or the hypervisor
    /// moved a virtual CPU, so the time of its workers is not known.
    Disturbed {
        /// Number of workers at the disturbed point.
        workers: u64,
        /// Number of disturbed samples at the point.
        disturbed: usize,
        /// Number of samples at the point.
        samples: usize,
    },
}

/// Relative decrease of the time, compared with one worker, that may be due to chance.
const CHANCE_SPEED_UP: f64 = 0.1;

impl Unfit {
    /// Returns the reason why `points`, with the given medians, do not support a law with the
    /// coefficients `found` (contention and coherency), or `None` if they do. `first` is the index
    /// of the point with one worker.
    fn of(points: &[Point<'_>], medians: &[f64], first: usize, found: [f64; 2]) -> Option<Self> {
        if points.iter().any(|(_, times)| times.len() < 2) {
            return Some(Self::OneSample);
        }
        let [share, coherency] = found;
        if share > 1.0 {
            return Some(Self::SerialShareAboveOne { share });
        }
        if coherency > 1.0 {
            return Some(Self::CoherencyAboveOne { coherency });
        }
        let times = medians.iter().map(|median| median / medians[first]);
        let fastest = points.iter().zip(times).min_by(|a, b| a.1.total_cmp(&b.1));
        let superlinear = fastest.filter(|(_, time)| *time < 1.0 - CHANCE_SPEED_UP);
        superlinear.map(|(&(workers, _), time)| Self::Superlinear { workers, time })
    }
}

/// The name of a scaling law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Amdahl's law (1967), in the form for work that grows with the number of workers.
    Amdahl,
    /// Gunther's universal scalability law ("A Simple Capacity Model of Massively Parallel
    /// Transaction Systems", 1993).
    Universal,
}

/// A coefficient of a scaling law. It has no unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coefficient {
    /// The best fit; 0 if it would be negative.
    pub value: f64,
    /// 95 % interval, lower and upper end, by percentile bootstrap over the samples; null if any
    /// point has fewer than six samples, or if some resamples do not determine the coefficients.
    pub ci95: Option<[f64; 2]>,
}

/// A number of workers, and samples of the time that they took, in any unit. At every point, each
/// worker must do the same amount of work.
pub type Point<'a> = (u64, &'a [f64]);

impl Scaling {
    /// Fits `law` to `points`. Returns `None` if no point has one worker, if there are not more
    /// points than coefficients, if a point has no samples or a median of 0 or less, or if the
    /// points do not determine the coefficients. The same seed gives the same intervals.
    pub fn through(law: Law, points: &[Point<'_>], seed: u64) -> Option<Self> {
        let coefficients = if law == Law::Amdahl { 1 } else { 2 };
        let first = points.iter().position(|point| point.0 == 1)?;
        if points.len() <= coefficients {
            return None;
        }
        let medians: Option<Vec<f64>> = points.iter().map(|(_, times)| median(times)).collect();
        let medians = medians?;
        let workers: Vec<u64> = points.iter().map(|point| point.0).collect();
        let found = fit(law, &workers, &medians, first)?;
        let unfit = Unfit::of(points, &medians, first, found);
        let enough = points.iter().all(|(_, times)| times.len() >= MIN_CI95_SAMPLES);
        let intervals = enough.then(|| resampled(law, &workers, points, first, seed)).flatten();
        let coefficient = |place: usize| Coefficient {
            value: found[place],
            ci95: intervals.map(|intervals| intervals[place]),
        };
        let coherency = (law == Law::Universal).then(|| coefficient(1));
        Some(Self { law, contention: coefficient(0), coherency, workers, unfit })
    }

    /// Returns the throughput of `workers` workers by the law, divided by that of one worker.
    pub fn speed_up(&self, workers: f64) -> f64 {
        let coherency = self.coherency.map_or(0.0, |coherency| coherency.value);
        let others = workers - 1.0;
        workers / (1.0 + self.contention.value * others + coherency * workers * others)
    }

    /// Returns the number of workers, at least 1, with the highest throughput by the law. Returns
    /// `None` if coherency is absent or 0: throughput then never decreases, provided that
    /// contention is at most 1.
    pub fn peak(&self) -> Option<f64> {
        let coherency = self.coherency.filter(|coherency| coherency.value > 0.0)?.value;
        Some(((1.0 - self.contention.value).max(0.0) / coherency).sqrt().max(1.0))
    }
}

fn resampled(
    law: Law,
    workers: &[u64],
    points: &[Point<'_>],
    first: usize,
    seed: u64,
) -> Option<[[f64; 2]; 2]> {
    let mut random = fastrand::Rng::with_seed(seed);
    let drawn: Vec<Vec<f64>> =
        points.iter().map(|(_, times)| resampled_medians(times, &mut random)).collect();
    let draws = drawn.first()?.len();
    let fits: Option<Vec<[f64; 2]>> = (0..draws)
        .map(|draw| {
            let times: Vec<f64> = drawn.iter().map(|medians| medians[draw]).collect();
            fit(law, workers, &times, first)
        })
        .collect();
    let fits = fits?;
    Some([0, 1].map(|place| central_95(fits.iter().map(|fit| fit[place]).collect())))
}

/// Fits contention and coherency, both at least 0, by least squares of relative errors. By the
/// fitted law, the time of n workers, relative to that of one, is 1 + contention × (n − 1) +
/// coherency × n × (n − 1). For Amdahl's law, coherency is 0. `first` is the index of the point
/// with one worker. Returns `None` if a time is 0 or less, or if the points do not determine the
/// coefficients.
fn fit(law: Law, workers: &[u64], times: &[f64], first: usize) -> Option<[f64; 2]> {
    let one = times[first];
    if one <= 0.0 || times.iter().any(|&time| time <= 0.0) {
        return None;
    }
    let (mut xx, mut xy, mut zz, mut zy, mut xz) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (&workers, time) in workers.iter().zip(times) {
        let (n, time) = (workers as f64, time / one);
        let (x, z, y) = ((n - 1.0) / time, n * (n - 1.0) / time, (time - 1.0) / time);
        xx += x * x;
        xy += x * y;
        zz += z * z;
        zy += z * y;
        xz += x * z;
    }
    if xx <= 0.0 {
        return None; // every point has one worker
    }
    let alone = [(xy / xx).max(0.0), 0.0];
    if law == Law::Amdahl {
        return Some(alone);
    }
    let determinant = xx * zz - xz * xz;
    if determinant <= 1e-12 * xx * zz {
        return None; // with two different numbers of workers, the coefficients are not unique
    }
    let both = [(xy * zz - zy * xz) / determinant, (zy * xx - xy * xz) / determinant];
    Some(match both {
        [contention, _] if contention < 0.0 => [0.0, (zy / zz).max(0.0)],
        [_, coherency] if coherency < 0.0 => alone,
        both => both,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(workers: &[u64], contention: f64, coherency: f64) -> Vec<Vec<f64>> {
        let time = |&workers: &u64| {
            let n = workers as f64;
            let mean = 100.0 * (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0));
            [-1.0, 0.5, 0.0, 1.0, -0.5, 0.2, -0.2].map(|off| mean * (1.0 + off / 1000.0)).to_vec()
        };
        workers.iter().map(time).collect()
    }

    fn through(law: Law, workers: &[u64], times: &[Vec<f64>]) -> Option<Scaling> {
        let points: Vec<Point<'_>> =
            workers.iter().copied().zip(times.iter().map(Vec::as_slice)).collect();
        Scaling::through(law, &points, 7)
    }

    #[test]
    fn ideal_workers_have_no_coefficients() {
        let workers = [1, 2, 3, 4];
        let found = through(Law::Universal, &workers, &times(&workers, 0.0, 0.0)).expect("a law");
        assert!(found.contention.value < 1e-9 && found.coherency.expect("it has one").value < 1e-9);
        assert!((found.speed_up(4.0) - 4.0).abs() < 1e-6 && found.peak().is_none());
        let [low, high] = found.contention.ci95.expect("samples enough");
        assert!(low <= 0.0 && (0.0..0.01).contains(&high));
    }

    #[test]
    fn too_few_points_give_no_law_and_few_samples_no_interval() {
        let two = times(&[1, 2], 0.1, 0.0);
        assert_eq!(through(Law::Universal, &[1, 2], &two), None);
        assert!(through(Law::Amdahl, &[1, 2], &two).is_some());
        assert_eq!(through(Law::Amdahl, &[2, 3], &two), None, "nobody was alone");
        assert_eq!(through(Law::Amdahl, &[1], &two[..1]), None);
        let few: Vec<_> = two.iter().map(|times| times[..5].to_vec()).collect();
        let found = through(Law::Amdahl, &[1, 2], &few).expect("a law");
        assert_eq!(found.contention.ci95, None);
    }

    #[test]
    fn throughput_peaks_where_another_worker_costs_what_it_adds() {
        let workers = [1, 2, 4, 8, 16, 32];
        let found = through(Law::Universal, &workers, &times(&workers, 0.1, 0.01)).expect("a law");
        let peak = found.peak().expect("there is one");
        assert!((peak - 90.0_f64.sqrt()).abs() < 0.01, "{peak}");
        assert!(found.speed_up(peak) > found.speed_up(peak + 1.0));
        assert!(found.speed_up(peak) > found.speed_up(peak - 1.0));
    }

    #[test]
    fn a_law_that_its_points_do_not_support_says_why() {
        let unfit = |law, times: &[&[f64]]| {
            let points: Vec<Point<'_>> = (1..).zip(times.iter().copied()).collect();
            Scaling::through(law, &points, 7).expect("a law").unfit
        };
        for law in [Law::Amdahl, Law::Universal] {
            let (one, two) = ([1.0, 1.0, 1.01], [1.3, 1.31, 1.29]);
            assert_eq!(unfit(law, &[&one, &two, &[1.6; 3]]), None, "{law:?}");
            let single = unfit(law, &[&one, &[1.3], &[1.6; 3]]);
            assert_eq!(single, Some(Unfit::OneSample), "{law:?}");
            // Times from a real, disturbed run: 224 % of the work would be serial.
            let disturbed = unfit(law, &[&one, &[3.24; 3], &[5.48; 3]]);
            assert!(
                matches!(disturbed, Some(Unfit::SerialShareAboveOne { share }) if share > 2.0),
                "{law:?}: {disturbed:?}"
            );
            // Here, the disturbance affected the samples of one worker.
            let faster = unfit(law, &[&one, &[0.5; 3], &[0.6; 3]]);
            let expected = Unfit::Superlinear { workers: 2, time: 0.5 };
            assert_eq!(faster, Some(expected), "{law:?}");
            assert_eq!(unfit(law, &[&one, &[0.95; 3], &[0.95; 3]]), None, "{law:?}: chance");
        }
        let settling = unfit(Law::Universal, &[&[1.0; 3], &[4.0; 3], &[10.0; 3]]);
        assert_eq!(settling, Some(Unfit::CoherencyAboveOne { coherency: 1.5 }));
    }

    proptest! {
        #[test]
        fn the_fit_recovers_the_law_of_the_points(
            contention in 0.0..0.9_f64, coherency in 0.0..0.2_f64,
        ) {
            let workers = [1, 2, 3, 4, 8];
            let times = times(&workers, contention, coherency);
            let found = through(Law::Universal, &workers, &times).expect("a law");
            let [low, high] = found.contention.ci95.expect("samples enough");
            prop_assert!((found.contention.value - contention).abs() < 1e-6);
            prop_assert!(low <= contention + 1e-9 && contention - 1e-9 <= high);
            prop_assert!((found.coherency.expect("one").value - coherency).abs() < 1e-6);
            let amdahl = through(Law::Amdahl, &workers, &times).expect("a law");
            prop_assert!(amdahl.contention.value >= contention - 1e-9);
            prop_assert_eq!(found.unfit, None);
        }
    }
}

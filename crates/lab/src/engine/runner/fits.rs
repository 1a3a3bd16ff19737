//! Fits laws to the results of several cases: lines over a parameter, and scaling laws over the
//! number of workers. The slope of a line is the cost of one more unit.

use std::collections::BTreeMap;

use contend_record::lab::{Case, Fit, ScalingFit};
use contend_record::parameters::Parameters;
use contend_record::stats::{Law, Line, Point, Scaling, Unfit};

use crate::engine::experiment;
use crate::engine::plan::PlannedCase;

/// Fits lines to the cases of each experiment that asks for them. Cases that differ only in the
/// parameter of the line form a group, which has one line for the value of the samples and one for
/// each metric of its first case. Omits lines that the points do not determine. `cases` are the
/// records of the cases in `planned`.
pub(super) fn fits(planned: &[PlannedCase], cases: &[Case]) -> Vec<Fit> {
    let mut groups: BTreeMap<(usize, Parameters), Vec<(&'static str, &Case)>> = BTreeMap::new();
    for (index, (planned, case)) in planned.iter().zip(cases).enumerate() {
        let experiment::Fit::Line(over) = planned.experiment.fit else { continue };
        if case.samples.is_empty() || case.parameters.number(over).is_none() {
            continue;
        }
        let common = case.parameters.without(over);
        let first = (0..index).find(|&other| {
            cases[other].experiment == case.experiment
                && cases[other].parameters.without(over) == common
        });
        groups.entry((first.unwrap_or(index), common)).or_default().push((over, case));
    }
    groups.into_iter().flat_map(|((_, common), members)| fits_of(&common, &members)).collect()
}

fn fits_of(common: &Parameters, members: &[(&'static str, &Case)]) -> Vec<Fit> {
    let Some(&(over, first)) = members.first() else { return Vec::new() };
    let line = |values: &dyn Fn(&Case) -> Vec<f64>| {
        let points: Vec<_> = members
            .iter()
            .flat_map(|&(over, case)| {
                let x = case.parameters.number(over).unwrap_or(0) as f64;
                values(case).into_iter().map(move |y| (x, y))
            })
            .collect();
        Line::through(&points)
    };
    let fit = |metric: &str, unit, line| Fit {
        experiment: first.experiment.clone(),
        parameters: common.clone(),
        over: over.to_owned(),
        metric: metric.to_owned(),
        unit,
        line,
    };
    let own = line(&|case| case.samples.clone()).map(|line| fit("value", first.unit, line));
    let others = first.metrics.iter().filter_map(|(name, metric)| {
        let values = |case: &Case| {
            case.metrics.get(name).map_or_else(Vec::new, |metric| metric.samples.clone())
        };
        line(&values).map(|line| fit(name, metric.unit, line))
    });
    own.into_iter().chain(others).collect()
}

/// Cases that differ only in their number of workers, each with that number.
type Members<'a> = Vec<(u64, &'a Case)>;

/// Fits scaling laws to the cases of each experiment that asks for them. `cases` are the records of
/// the cases in `planned`, which were measured with `cpus` usable CPUs. `seed` seeds the random
/// numbers that determine the intervals.
pub(super) fn scaling(
    planned: &[PlannedCase],
    cases: &[Case],
    cpus: f64,
    seed: u64,
) -> Vec<ScalingFit> {
    let mut groups: BTreeMap<(&str, &str, Parameters), Members<'_>> = BTreeMap::new();
    for (planned, case) in planned.iter().zip(cases) {
        if planned.experiment.fit != experiment::Fit::Scaling || case.samples.is_empty() {
            continue;
        }
        for (over, other) in [("threads", "processes"), ("processes", "threads")] {
            let [workers, others] = [over, other].map(|name| case.parameters.number(name));
            if let (Some(workers), Some(1)) = (workers, others) {
                let common = case.parameters.without(over);
                let group = groups.entry((&case.experiment, over, common)).or_default();
                group.push((workers, case));
            }
        }
    }
    groups
        .into_iter()
        .flat_map(|((experiment, over, parameters), members)| {
            let points: Vec<Point<'_>> =
                members.iter().map(|(workers, case)| (*workers, case.samples.as_slice())).collect();
            let fit = move |law: Scaling| ScalingFit {
                experiment: experiment.to_owned(),
                parameters: parameters.clone(),
                over: over.to_owned(),
                disturbed: fitted_members(&members, &law)
                    .map(|(_, case)| case.disturbed.len())
                    .sum(),
                law: mark_disturbed_law(law, &members),
            };
            laws(&points, cpus, seed).into_iter().map(fit)
        })
        .collect()
}

/// Returns the members to whose samples the law was fitted.
fn fitted_members<'a>(
    members: &'a [(u64, &'a Case)],
    law: &Scaling,
) -> impl Iterator<Item = &'a (u64, &'a Case)> {
    members.iter().filter(|(workers, _)| law.workers.contains(workers))
}

/// Returns the law, marked as unfit if more than half of the samples at one of its points are
/// disturbed. If the law is already unfit for another reason, that reason stays.
fn mark_disturbed_law(law: Scaling, members: &[(u64, &Case)]) -> Scaling {
    let mostly = |case: &Case| 2 * case.disturbed.len() > case.samples.len();
    let point = fitted_members(members, &law).find(|(_, case)| mostly(case));
    let disturbed = point.map(|&(workers, case)| Unfit::Disturbed {
        workers,
        disturbed: case.disturbed.len(),
        samples: case.samples.len(),
    });
    Scaling { unfit: law.unfit.or(disturbed), ..law }
}

/// Fits Amdahl's law and the universal law to the points at which each worker has a CPU of its own.
/// The universal law needs one more point than Amdahl's; if these points do not determine it, it is
/// fitted to all points. Omits a law that its points do not determine.
fn laws(points: &[Point<'_>], cpus: f64, seed: u64) -> Vec<Scaling> {
    let has_cpus = |point: &&Point<'_>| point.0 as f64 <= cpus + 0.01;
    let within: Vec<Point<'_>> = points.iter().filter(has_cpus).copied().collect();
    let amdahl = Scaling::through(Law::Amdahl, &within, seed);
    let universal = Scaling::through(Law::Universal, &within, seed)
        .or_else(|| Scaling::through(Law::Universal, points, seed));
    amdahl.into_iter().chain(universal).collect()
}

#[cfg(test)]
mod tests {
    use contend_record::lab::Unit;

    use super::super::tests::ADAPTIVE;
    use super::*;
    use crate::engine::experiment::{Experiment, Size};

    const SCALES: Experiment = Experiment { fit: experiment::Fit::Scaling, ..ADAPTIVE };

    /// Returns the laws fitted to cases with 1, 2 and 3 threads. Each case has seven equal samples
    /// of `seconds`, the first `disturbed` of which are disturbed.
    fn laws_with(disturbed: [usize; 3], seconds: [f64; 3]) -> Vec<ScalingFit> {
        let cases: Vec<Case> = (1..)
            .zip(disturbed.into_iter().zip(seconds))
            .map(|(threads, (disturbed, seconds))| {
                let parameters = Parameters::new().with("processes", 1).with("threads", threads);
                let mut case = Case::new(SCALES.name, SCALES.view, parameters, Unit::Nanoseconds);
                case.samples = vec![1e9 * seconds; 7];
                case.disturbed = (0..disturbed).collect();
                case
            })
            .collect();
        let planned: Vec<_> = cases
            .iter()
            .map(|case| PlannedCase::new(&SCALES, case.parameters.clone(), Size::Full))
            .collect();
        scaling(&planned, &cases, 4.0, 42).into_iter().filter(|fit| fit.over == "threads").collect()
    }

    /// Times in seconds with 1, 2 and 3 threads that each do the same amount of work, a tenth of
    /// which is serial.
    const SECONDS_WITH_SERIAL_TENTH: [f64; 3] = [1.0, 1.1, 1.2];

    #[test]
    fn a_law_with_enough_undisturbed_samples_is_fitted() {
        for disturbed in [[0, 0, 0], [3, 3, 3]] {
            let fits = laws_with(disturbed, SECONDS_WITH_SERIAL_TENTH);
            assert_eq!(fits.len(), 2, "both laws");
            for fit in fits {
                assert_eq!(fit.law.unfit, None, "{disturbed:?}");
                assert!((fit.law.contention.value - 0.1).abs() < 1e-6, "{fit:?}");
                assert_eq!(fit.disturbed, disturbed.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn a_law_is_unfit_where_most_samples_of_a_point_were_disturbed() {
        for (disturbed, workers, of_point) in
            [([7, 7, 7], 1, 7), ([0, 4, 0], 2, 4), ([3, 3, 5], 3, 5)]
        {
            for fit in laws_with(disturbed, SECONDS_WITH_SERIAL_TENTH) {
                let reason = Unfit::Disturbed { workers, disturbed: of_point, samples: 7 };
                assert_eq!(fit.law.unfit, Some(reason), "{disturbed:?}");
                assert_eq!(fit.disturbed, disturbed.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn an_impossible_law_has_its_own_reason() {
        for fit in laws_with([7, 7, 7], [1.0, 3.24, 5.48]) {
            let unfit = fit.law.unfit;
            assert!(matches!(unfit, Some(Unfit::SerialShareAboveOne { .. })), "{unfit:?}");
        }
    }
}

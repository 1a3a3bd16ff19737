//! Lines through cases that differ in one parameter alone: what one unit more takes. And the laws by
//! which work scales with its workers.

use std::collections::BTreeMap;

use contend_record::lab::{Case, Fit, ScalingFit};
use contend_record::parameters::Parameters;
use contend_record::stats::{Law, Line, Point, Scaling};

use crate::engine::experiment;
use crate::engine::plan::PlannedCase;

/// All lines.
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

/// Cases that differ in their number of workers alone, each with that number.
type Members<'a> = Vec<(u64, &'a Case)>;

/// Every law that the cases tell of. `cpus` can work at the same time.
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
                disturbed: disturbed(&members, &law),
                law,
            };
            laws(&points, cpus, seed).into_iter().map(fit)
        })
        .collect()
}

/// How many samples of the cases that a law was laid through were disturbed.
fn disturbed(members: &[(u64, &Case)], law: &Scaling) -> usize {
    let behind = members.iter().filter(|(workers, _)| law.workers.contains(workers));
    behind.map(|(_, case)| case.disturbed.len()).sum()
}

/// Amdahl's law is laid through what has a CPU for each worker. The universal one needs a point more:
/// where there are too few CPUs, those with several workers for a CPU count, too.
fn laws(points: &[Point<'_>], cpus: f64, seed: u64) -> Vec<Scaling> {
    let has_cpus = |point: &&Point<'_>| point.0 as f64 <= cpus + 0.01;
    let within: Vec<Point<'_>> = points.iter().filter(has_cpus).copied().collect();
    let amdahl = Scaling::through(Law::Amdahl, &within, seed);
    let universal = Scaling::through(Law::Universal, &within, seed)
        .or_else(|| Scaling::through(Law::Universal, points, seed));
    amdahl.into_iter().chain(universal).collect()
}

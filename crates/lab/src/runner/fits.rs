//! Lines through cases that differ in one parameter alone: what one unit more takes.

use std::collections::BTreeMap;

use contend_record::lab::{Case, Fit};
use contend_record::parameters::Parameters;
use contend_record::stats::Line;

use crate::plan::PlannedCase;

/// All lines.
pub(super) fn fits(planned: &[PlannedCase], cases: &[Case]) -> Vec<Fit> {
    let mut groups: BTreeMap<(usize, Parameters), Vec<(&'static str, &Case)>> = BTreeMap::new();
    for (index, (planned, case)) in planned.iter().zip(cases).enumerate() {
        let Some(over) = planned.experiment.fit_over else { continue };
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

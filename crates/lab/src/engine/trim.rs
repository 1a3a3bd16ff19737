//! Selects the cases to leave out of a plan so that it fits into a time limit.
//!
//! Cases of an experiment that differ only in numbers, such as `n`, form a group: one subject at
//! several sizes. Each step considers one of the most expensive sizes of each group, and leaves out
//! the one with the highest cost in relation to its worth, until the remaining cases fit:
//!
//! | case that a step leaves out | worth |
//! |---|---|
//! | one of three or more sizes of a group | [`SIZE_WORTH`] |
//! | one of two sizes, both of which a line needs | [`LINE_WORTH`] |
//! | the last size, and with it the whole group | [`GROUP_WORTH`] |
//!
//! Sizes thus tend to be left out before whole groups, and expensive cases before cheap ones.

use std::time::Duration;

use contend_record::parameters::{Parameters, Value};

use crate::engine::cost::{self, Cost};

const SIZE_WORTH: f64 = 1.0;
const LINE_WORTH: f64 = 2.0;
const GROUP_WORTH: f64 = 6.0;

/// Minimum ratio of a size's cost to that of the most expensive size of its group at which both
/// count as equally expensive.
const SIMILAR_COST_RATIO: f64 = 0.75;

/// A case that `trim` may leave out.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Parameters of the case.
    pub parameters: &'a Parameters,
    /// Expected times of the setup, of a sample, and of shared work.
    pub cost: Cost,
}

/// Returns the indexes of the candidates to leave out, in ascending order, so that the setup, the
/// first samples and the shared work of the others are expected to take at most `limit`.
pub fn trim(candidates: &[Candidate<'_>], limit: Duration) -> Vec<usize> {
    let mut groups = groups(candidates);
    let mut left_out = Vec::new();
    while cost::first_samples(groups.iter().flatten().map(|&index| &candidates[index].cost)) > limit
    {
        let Some((group, member)) = next_to_leave_out(candidates, &groups) else { break };
        left_out.push(groups[group].remove(member));
        groups.retain(|group| !group.is_empty());
    }
    left_out.sort_unstable();
    left_out
}

/// Returns the groups, each as the indexes of its candidates in ascending order. The sizes of a
/// group thus keep the order of the plan, which is usually ascending.
fn groups(candidates: &[Candidate<'_>]) -> Vec<Vec<usize>> {
    let key = |candidate: &Candidate<'_>| {
        let words = candidate.parameters.iter();
        let words = words.map(|(name, value)| match value {
            Value::Number(_) => (name.to_owned(), None),
            other => (name.to_owned(), Some(other.to_string())),
        });
        (candidate.experiment.to_owned(), words.collect::<Vec<_>>())
    };
    let mut groups: Vec<(_, Vec<usize>)> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let key = key(candidate);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Selects the case to leave out next: among the sizes that [`size_to_leave_out`] selects, one per
/// group, the one with the highest cost in relation to its worth. The cost of a group's last size
/// includes the group's part of the shared work. Returns the index of the group and the index in
/// the group, or `None` if there is no group.
fn next_to_leave_out(
    candidates: &[Candidate<'_>],
    groups: &[Vec<usize>],
) -> Option<(usize, usize)> {
    let losses = groups.iter().enumerate().map(|(group, members)| {
        let costs: Vec<f64> =
            members.iter().map(|&index| candidates[index].cost.first().as_secs_f64()).collect();
        let member = size_to_leave_out(&costs);
        let (worth, shared) = match members.len() {
            1 => (GROUP_WORTH, shared_seconds(candidates, groups, members[member])),
            2 => (LINE_WORTH, 0.0),
            _ => (SIZE_WORTH, 0.0),
        };
        ((costs[member] + shared) / worth, (group, member))
    });
    losses.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, index)| index)
}

/// Returns the index of the size to leave out first: the most expensive one, or one that costs
/// about as much. `costs` has the costs of a group's sizes, in ascending order of size. Of several
/// such sizes, prefers the largest that is not at an end of the group, since a line needs both
/// ends. If there is none, prefers the smallest, since the largest size gives the best mean.
fn size_to_leave_out(costs: &[f64]) -> usize {
    let max = costs.iter().copied().fold(0.0, f64::max);
    let last = costs.len().saturating_sub(1);
    let alike = |index: &usize| costs[*index] >= SIMILAR_COST_RATIO * max;
    let middle = (1..last).rev().find(alike);
    middle.or_else(|| (0..=last).find(alike)).unwrap_or(last)
}

/// Returns the time of the shared work of the case at `index`, in seconds, divided by the number of
/// groups that need the work; 0 if the case has no shared work.
fn shared_seconds(candidates: &[Candidate<'_>], groups: &[Vec<usize>], index: usize) -> f64 {
    let Some(shared) = candidates[index].cost.shared else { return 0.0 };
    let uses = |&&index: &&usize| {
        candidates[index].cost.shared.is_some_and(|other| other.name == shared.name)
    };
    let users = groups.iter().filter(|members| members.iter().any(|index| uses(&index))).count();
    shared.time.as_secs_f64() / users.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cost::SharedCost;

    /// Returns the cases that are left out, each as "subject size". A case in `cases` has a
    /// subject, a size, and the time of its first sample in milliseconds.
    fn left_out(cases: &[(&str, u64, u64)], limit_millis: u64) -> Vec<String> {
        let costs = cases.iter().map(|&(unit, n, millis)| (unit, n, Cost::of_millis(0, millis)));
        left_out_with(&costs.collect::<Vec<_>>(), limit_millis)
    }

    fn left_out_with(cases: &[(&str, u64, Cost)], limit_millis: u64) -> Vec<String> {
        let parameters: Vec<_> = cases
            .iter()
            .map(|&(unit, n, _)| Parameters::new().with("unit", unit).with("n", n))
            .collect();
        let candidates: Vec<_> = cases
            .iter()
            .zip(&parameters)
            .map(|(&(_, _, cost), parameters)| Candidate { experiment: "e", parameters, cost })
            .collect();
        let name = |index: usize| format!("{} {}", cases[index].0, cases[index].1);
        trim(&candidates, Duration::from_millis(limit_millis)).into_iter().map(name).collect()
    }

    #[test]
    fn nothing_is_left_out_of_a_plan_that_fits() {
        assert!(left_out(&[("a", 1, 400), ("b", 1, 600)], 1000).is_empty());
        assert!(left_out(&[], 0).is_empty());
    }

    #[test]
    fn sizes_go_before_subjects() {
        let cases = [("a", 1, 300), ("a", 10, 300), ("a", 100, 300), ("b", 1, 500)];
        assert_eq!(left_out(&cases, 1100), ["a 10"], "a line needs both ends");
        assert_eq!(left_out(&cases, 800), ["a 1", "a 10"], "the largest gives the best mean");
        assert_eq!(left_out(&cases, 300), ["a 1", "a 10", "b 1"]);
        assert_eq!(left_out(&cases, 0).len(), 4);
    }

    #[test]
    fn a_size_that_costs_far_more_than_the_others_goes_first() {
        let cases = [("a", 1, 100), ("a", 10, 200), ("a", 100, 5000), ("b", 1, 100)];
        assert_eq!(left_out(&cases, 400), ["a 100"]);
        assert_eq!(left_out(&cases, 300), ["a 10", "a 100"]);
    }

    #[test]
    fn expensive_subjects_go_before_cheap_ones() {
        let cases = [("a", 1, 9000), ("b", 1, 100), ("b", 10, 100), ("c", 1, 8000)];
        assert_eq!(left_out(&cases, 8500), ["a 1"]);
        assert_eq!(left_out(&cases, 500), ["a 1", "c 1"], "the line of b costs little");
    }

    #[test]
    fn subjects_that_share_an_expensive_step_go_together() {
        let shared = Some(SharedCost { name: "compiler", time: Duration::from_secs(20) });
        let compiled = Cost { shared, ..Cost::of_millis(0, 100) };
        let cases = [
            ("go-1", 1, compiled),
            ("go-2", 1, compiled),
            ("c", 1, Cost::of_millis(0, 1500)),
            ("d", 1, Cost::of_millis(0, 1500)),
        ];
        assert_eq!(left_out_with(&cases, 5000), ["go-1 1", "go-2 1"]);
        assert!(left_out_with(&cases, 23_200).is_empty());
    }
}

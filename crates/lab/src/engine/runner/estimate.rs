//! Estimates of the time until a run ends.
//!
//! The estimate for an unmeasured case is its declared cost, scaled by the ratio of measured
//! durations to declared costs. The ratio is that of measured cases of the same experiment if there
//! are any, and otherwise that of all measured cases, but then at least 1. It is clamped to the
//! range from `MIN_SLOWDOWN` to `MAX_SLOWDOWN`, and is 1 before the first sample.

use std::time::Duration;

use super::case_state::CaseState;
use crate::engine::experiment::Sampling;

/// Upper bound on the ratio of measured to declared durations. A case that took many times as long
/// as declared says little about other cases.
const MAX_SLOWDOWN: f64 = 4.0;
const MIN_SLOWDOWN: f64 = 0.1;

/// Returns the expected duration of a case's first visit, including shared work unless another case
/// has done it.
pub(super) fn first_visit(states: &[CaseState<'_>], index: usize) -> Duration {
    let name = states[index].planned.experiment.name;
    declared(states, index).mul_f64(slowdown(states, name))
}

/// Returns the declared duration of a case's first visit, including shared work unless another case
/// has done it.
pub(super) fn declared(states: &[CaseState<'_>], index: usize) -> Duration {
    let cost = &states[index].planned.cost;
    let shared = cost.shared.filter(|shared| !shared_work(states).any(|name| name == shared.name));
    cost.first() + shared.map_or(Duration::ZERO, |shared| shared.time)
}

/// Returns the names of the shared work done by visited cases.
fn shared_work<'a>(states: &'a [CaseState<'_>]) -> impl Iterator<Item = &'static str> + use<'a> {
    let visited = states.iter().filter(|state| state.visits > 0);
    visited.filter_map(|state| state.planned.cost.shared).map(|shared| shared.name)
}

/// Returns the expected ratio of measured to declared durations for first visits to the cases of
/// `experiment`. Cases of other experiments show that the machine is slow, but not that it is fast:
/// short cases often take less time than declared.
fn slowdown(states: &[CaseState<'_>], experiment: &str) -> f64 {
    let ratio = |is_counted: &dyn Fn(&CaseState<'_>) -> bool| {
        let measured = states.iter().filter(|state| state.samples.count() > 0);
        let sums = measured.filter(|state| is_counted(state)).fold((0.0, 0.0), |sums, state| {
            let [taken, declared] =
                [state.first_visit, state.declared].map(|time| time.as_secs_f64());
            (sums.0 + taken, sums.1 + declared)
        });
        (sums.1 > 0.0).then(|| sums.0 / sums.1)
    };
    let own = ratio(&|state| state.planned.experiment.name == experiment);
    let all = || ratio(&|_| true).map(|ratio| ratio.max(1.0));
    own.or_else(all).unwrap_or(1.0).clamp(MIN_SLOWDOWN, MAX_SLOWDOWN)
}

/// Returns the expected time until the run ends, where `budget` is the remaining budget.
///
/// Cases that have not been visited are expected to take their first sample even if the budget is
/// used. All other samples share the rest of the budget.
pub(super) fn remaining(states: &[CaseState<'_>], budget: Duration) -> Duration {
    let (mut first, mut more) = (Duration::ZERO, Duration::ZERO);
    let mut done: Vec<&str> = shared_work(states).collect();
    let mut is_open_ended = false;
    for state in states.iter().filter(|state| !state.is_done()) {
        let mut sample = mean(state);
        if state.visits == 0 {
            let cost = &state.planned.cost;
            let shared = cost.shared.filter(|shared| !done.contains(&shared.name));
            done.extend(shared.map(|shared| shared.name));
            let declared = cost.first() + shared.map_or(Duration::ZERO, |shared| shared.time);
            let slowdown = slowdown(states, state.planned.experiment.name);
            first += declared.mul_f64(slowdown);
            sample = cost.sample.mul_f64(slowdown);
        }
        match state.planned.sampling {
            Sampling::Adaptive => is_open_ended = true,
            Sampling::Fixed(count) => more += sample.saturating_mul(missing(state, count)),
        }
    }
    let wanted = if is_open_ended { budget } else { budget.min(first + more) };
    first.max(wanted)
}

/// Returns the number of samples that a case with a fixed `count` still needs after its first one.
fn missing(state: &CaseState<'_>, count: usize) -> u32 {
    let taken = state.samples.count().max(1);
    u32::try_from(count.saturating_sub(taken)).unwrap_or(u32::MAX)
}

/// Returns the mean duration of a case's visits; zero before the first one.
fn mean(state: &CaseState<'_>) -> Duration {
    state.visited.checked_div(state.visits).unwrap_or_default()
}

//! Records of cases, and warnings about conditions that make measurements less reliable.

use std::time::Duration;

use contend_record::Warning;
use contend_record::lab::Case;
use contend_record::stats::MIN_CI95_SAMPLES;
use contend_record::warning::WarningId;

use super::case_state::CaseState;
use crate::engine::experiment::Sampling;
use crate::engine::noise::{self, Others, Reading};

/// Returns the record of a case so far.
pub(super) fn case(state: &CaseState<'_>) -> Case {
    let mut case = state.samples.summarise(state.planned, state.stopped);
    case.facts.extend(state.facts.clone());
    if state.processes > 0 {
        case.facts.insert("processes".to_owned(), state.processes.into());
    }
    case.timeline.clone_from(&state.steps);
    case.warnings.clone_from(&state.warnings);
    case.skipped.clone_from(&state.skipped);
    let all = case.samples.len();
    if !case.disturbed.is_empty() {
        let message = format!(
            "{} of {} taken while other programs or the hypervisor used more than {:.0} % of the \
             CPUs, or the hypervisor moved a virtual CPU",
            case.disturbed.len(),
            if all == 1 { "1 sample was".to_owned() } else { format!("{all} samples were") },
            100.0 * noise::TOLERATED_SHARE
        );
        case.warnings.push(Warning::new(WarningId::OtherLoad, message));
    }
    let lost = lost_cpu(&case);
    // Subjects with a fixed number of samples may give their CPU to partners.
    let alone = state.planned.sampling == Sampling::Adaptive;
    if alone && lost >= 1.0 && !case.samples.is_empty() {
        let message = format!(
            "preempted {lost:.1} times in a sample although it never waits: something else used \
             its CPU"
        );
        case.warnings.push(Warning::new(WarningId::InvoluntarySwitches, message));
    }
    if case.skipped.is_none()
        && state.planned.sampling == Sampling::Adaptive
        && (1..MIN_CI95_SAMPLES).contains(&all)
    {
        let samples = if all == 1 { "sample is" } else { "samples are" };
        let message = format!("{all} {samples} too few for an interval");
        case.warnings.push(Warning::new(WarningId::FewSamples, message));
    }
    case
}

/// Returns the mean number of preemptions in a sample, or 0 if the case does not count them, if the
/// subject waits at least once in a sample, on average, or if its children use CPU time.
fn lost_cpu(case: &Case) -> f64 {
    let mean = |name: &str| {
        let samples = case.metrics.get(name).map_or(&[][..], |metric| &metric.samples);
        samples.iter().sum::<f64>() / samples.len().max(1) as f64
    };
    let turns = case.iterations as f64;
    if mean("voluntary_switches") * turns >= 1.0 || mean("cpu_children") >= 1.0 {
        return 0.0;
    }
    mean("involuntary_switches") * turns
}

/// Returns warnings about conditions that make the measurements of the whole run less reliable.
/// `before` and `after` are readings of the accounting of `cpus` CPUs, taken `wall` apart.
pub(super) fn run_warnings(
    before: Reading,
    after: Reading,
    wall: Duration,
    cpus: usize,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let others = Others::between(before, after, wall, cpus);
    let steal = after.steal.saturating_sub(before.steal);
    let throttled = after.throttled.saturating_sub(before.throttled);
    if others.is_disturbance {
        let share = 100.0 * others.share.min(1.0);
        let message = format!("other programs used {share:.0} % of the CPUs during the run");
        warnings.push(Warning::new(WarningId::OtherLoad, message));
    }
    if steal.as_secs_f64() > 0.01 * wall.as_secs_f64() * cpus as f64 {
        let message = format!("the hypervisor stole {:.2} s of CPU time", steal.as_secs_f64());
        warnings.push(Warning::new(WarningId::Steal, message));
    }
    let thermal_throttle_count =
        after.thermal_throttle_count.saturating_sub(before.thermal_throttle_count);
    if thermal_throttle_count > 0 {
        let message =
            format!("the processor was throttled {thermal_throttle_count} times because of heat");
        warnings.push(Warning::new(WarningId::Frequency, message));
    }
    if throttled > Duration::ZERO {
        let message = format!(
            "the cgroup's CPU quota throttled the run for {:.2} s",
            throttled.as_secs_f64()
        );
        warnings.push(Warning::new(WarningId::Throttled, message));
    }
    warnings
}

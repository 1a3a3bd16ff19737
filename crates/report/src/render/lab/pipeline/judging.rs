//! How far the figures of a run can distinguish two pipelines.
//!
//! Wall times are only compared if other processes did not spoil them: a case is spoiled if others
//! used the CPUs during every sample and its wall time is far above what its CPU time needs. CPU
//! times are always compared. Two figures count as different if they differ by more than a margin,
//! which is wider with few samples and on a busy machine.

use std::cmp::Ordering;

use contend_record::lab::{Case, RunRecord, Stage};

use super::super::conclusion::is_disturbed;
use super::{cpu, real};

/// Returns the difference, as a share of the smaller figure, above which two figures count as
/// different.
fn margin(record: &RunRecord, one: &Case, other: &Case) -> f64 {
    match one.samples.len().min(other.samples.len()) {
        _ if is_disturbed(record) => 0.1,
        3.. => 0.03,
        _ => 0.05,
    }
}

/// Returns whether the wall time of a case says more about other processes than about the case. At
/// best a pipeline takes as long as its slowest stage works, and as all stages need on all CPUs.
pub fn is_spoiled(record: &RunRecord, case: &Case) -> bool {
    const STRETCHED: f64 = 1.25;
    let slowest = case.stages.iter().map(Stage::cpu).fold(0.0, f64::max);
    let least = slowest.max(cpu(case) / record.host.usable_cpus().max(1.0));
    case.disturbed.len() == case.samples.len() && real(case) > STRETCHED * least
}

/// Compares the new case's wall time with the old one's; `None` if either is spoiled.
pub fn real_time(record: &RunRecord, new: &Case, old: &Case) -> Option<Ordering> {
    let spoiled = is_spoiled(record, new) || is_spoiled(record, old);
    (!spoiled).then(|| against(real(new), real(old), margin(record, new, old)))
}

/// Compares the new case's CPU time with the old one's.
pub fn cpu_time(record: &RunRecord, new: &Case, old: &Case) -> Ordering {
    against(cpu(new), cpu(old), margin(record, new, old))
}

/// Compares two figures; equal if they differ by no more than the margin.
pub fn against(new: f64, old: f64, margin: f64) -> Ordering {
    let apart = (new - old).abs() / new.min(old).max(1e-9);
    if apart > margin { new.total_cmp(&old) } else { Ordering::Equal }
}

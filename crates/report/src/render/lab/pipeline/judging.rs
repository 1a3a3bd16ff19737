//! How far this run's figures can tell one pipeline from another.
//!
//! Real times are only compared where others did not spoil them: a case is spoiled when others
//! used the CPUs during every sample and its real time is well above what its CPU time needs.
//! CPU times are compared in any case. Two figures count as different when they are farther apart
//! than a margin, which is wider with few samples and with others at work.

use std::cmp::Ordering;

use contend_record::lab::{Case, RunRecord, Stage};

use super::super::verdict::is_disturbed;
use super::{cpu, real};

/// How far apart, as a part of the smaller, two figures must be for one to be the larger.
fn margin(record: &RunRecord, one: &Case, other: &Case) -> f64 {
    match one.samples.len().min(other.samples.len()) {
        _ if is_disturbed(record) => 0.1,
        3.. => 0.03,
        _ => 0.05,
    }
}

/// Whether the case's real time says more about others than about it: at best a pipeline takes
/// as long as its slowest stage works, and as all stages work on all CPUs.
pub fn is_spoiled(record: &RunRecord, case: &Case) -> bool {
    const STRETCHED: f64 = 1.25;
    let slowest = case.stages.iter().map(Stage::cpu).fold(0.0, f64::max);
    let least = slowest.max(cpu(case) / record.host.usable_cpus().max(1.0));
    case.disturbed.len() == case.samples.len() && real(case) > STRETCHED * least
}

/// The new case's real time against the old one's; `None` where others have spoiled one.
pub fn real_time(record: &RunRecord, new: &Case, old: &Case) -> Option<Ordering> {
    let spoiled = is_spoiled(record, new) || is_spoiled(record, old);
    (!spoiled).then(|| against(real(new), real(old), margin(record, new, old)))
}

/// The new case's CPU time against the old one's.
pub fn cpu_time(record: &RunRecord, new: &Case, old: &Case) -> Ordering {
    against(cpu(new), cpu(old), margin(record, new, old))
}

/// Equal where they are no farther apart than the margin.
pub fn against(new: f64, old: f64, margin: f64) -> Ordering {
    let apart = (new - old).abs() / new.min(old).max(1e-9);
    if apart > margin { new.total_cmp(&old) } else { Ordering::Equal }
}

//! Compares the times of two pipelines, as far as the measurements of a run can distinguish them.
//!
//! Wall times are compared only if disturbances did not spoil them. A case is spoiled if every
//! sample was disturbed, by other processes or the hypervisor, and the wall time is far longer than
//! the CPU time explains. CPU times are always compared. Two times count as different if they
//! differ by more than a margin, which is wider with few samples and in a disturbed run.

use std::cmp::Ordering;

use contend_record::lab::{Case, RunRecord, Stage};

use super::super::conclusion::is_disturbed;
use super::{cpu, real};

/// Returns the difference above which two times count as different, as a share of the smaller one.
fn margin(record: &RunRecord, one: &Case, other: &Case) -> f64 {
    match one.samples.len().min(other.samples.len()) {
        _ if is_disturbed(record) => 0.1,
        3.. => 0.03,
        _ => 0.05,
    }
}

/// Returns whether disturbances spoiled the wall time of a case: every sample was disturbed, and
/// the wall time is more than 1.25 times its lower bound. The bound is the longer of two times: the
/// CPU time of the slowest stage, and that of all stages divided by the number of CPUs.
pub fn is_spoiled(record: &RunRecord, case: &Case) -> bool {
    const MIN_SPOILED_RATIO: f64 = 1.25;
    let slowest = case.stages.iter().map(Stage::cpu).fold(0.0, f64::max);
    let least = slowest.max(cpu(case) / record.host.usable_cpus().max(1.0));
    case.disturbed.len() == case.samples.len() && real(case) > MIN_SPOILED_RATIO * least
}

/// Compares the wall time of `new` with that of `old`. Within the margin, they count as equal.
/// Returns `None` if either is spoiled.
pub fn real_time(record: &RunRecord, new: &Case, old: &Case) -> Option<Ordering> {
    let spoiled = is_spoiled(record, new) || is_spoiled(record, old);
    (!spoiled).then(|| against(real(new), real(old), margin(record, new, old)))
}

/// Compares the CPU time of `new` with that of `old`. Within the margin, they count as equal.
pub fn cpu_time(record: &RunRecord, new: &Case, old: &Case) -> Ordering {
    against(cpu(new), cpu(old), margin(record, new, old))
}

/// Compares the time `new` with the time `old`. They count as equal if they differ by at most
/// `margin`, a share of the smaller one.
pub fn against(new: f64, old: f64, margin: f64) -> Ordering {
    let apart = (new - old).abs() / new.min(old).max(1e-9);
    if apart > margin { new.total_cmp(&old) } else { Ordering::Equal }
}

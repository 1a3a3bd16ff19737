//! Finds pipelines with more runnable stages, on average, than CPUs.

use contend_record::pipe::{BottleneckKind, Finding, FindingId, Stage};
use contend_record::units::time;

use super::{Facts, finding};

/// Share of a stage's lifetime spent queued for a CPU above which the finding names the stage.
const MIN_QUEUED_SHARE: f64 = 0.10;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let wanted = facts.total.runnable_mean;
    if wanted <= facts.cpus {
        return Vec::new();
    }
    let queued = |stage: &&Stage| stage.run_queue_seconds > MIN_QUEUED_SHARE * stage.wall_seconds;
    let stages: Vec<_> = facts.stages.iter().filter(queued).map(|stage| stage.index).collect();
    if stages.is_empty() {
        return Vec::new();
    }
    // If one stage is the bottleneck, the others have time to spare.
    let advice = match facts.bottleneck.kind {
        BottleneckKind::None => "",
        BottleneckKind::Machine if facts.stages.len() as f64 > facts.cpus => {
            " Saving CPU time in any stage shortens the run, and so does merging stages, which saves \
             the pipes between them."
        }
        BottleneckKind::Machine => " Saving CPU time in any stage shortens the run.",
        _ => {
            " Speeding up a stage other than the bottleneck saves CPU time, but hardly any wall time."
        }
    };
    let message = format!(
        "On average {wanted:.1} stages were runnable on {} CPU{}; they were queued for {} in \
         total.{advice}",
        facts.cpus,
        if (facts.cpus - 1.0).abs() < 1e-9 { "" } else { "s" },
        time(facts.total.run_queue_seconds),
    );
    vec![finding(FindingId::MoreRunnableThanCpus, stages, message)]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;

    #[test]
    fn only_stages_that_queue_are_named() {
        let queued = |index| Stage { run_queue_seconds: 0.4, ..stage(index) };
        let found = apply(find, &[queued(1), stage(2), queued(3)]);
        assert_eq!(found[0].stages, [1, 3]);
        assert!(apply(find, &[queued(1), queued(2)]).is_empty(), "2 CPUs are enough for 2");
    }
}

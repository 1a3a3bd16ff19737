//! Finds stages that are so quick, compared with a stage that is the bottleneck, that changing them
//! cannot matter.

use contend_record::pipe::{BottleneckKind, Finding, FindingId, Stage};
use contend_record::units::time;

use super::{Facts, finding};

/// Share of the bottleneck stage's service time below which another stage cannot matter.
const MAX_SHARE_OF_SLOWEST: f64 = 0.03;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let slowest = match (facts.bottleneck.kind, facts.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) => facts.stages.get(index - 1),
        _ => None,
    };
    let Some(slowest) = slowest else {
        return Vec::new();
    };
    let limit = MAX_SHARE_OF_SLOWEST * slowest.service_seconds();
    let cannot_matter =
        |stage: &&Stage| stage.index != slowest.index && stage.service_seconds() < limit;
    let stages: Vec<_> =
        facts.stages.iter().filter(cannot_matter).map(|stage| stage.index).collect();
    if stages.is_empty() {
        return Vec::new();
    }
    let (plural, names) = match stages.as_slice() {
        [one] => ("", one.to_string()),
        several => ("s", several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    let message = format!(
        "Stage{plural} {names}: busy for under {} (3 % of stage {}), not worth optimising.",
        time(limit),
        slowest.index,
    );
    vec![finding(FindingId::CannotMatter, stages, message)]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_with, stage};
    use super::*;

    #[test]
    fn only_stages_below_the_limit_are_named() {
        let working = |index, on_cpu_seconds| Stage { on_cpu_seconds, ..stage(index) };
        let stages = [working(1, 0.02), working(2, 0.5), working(3, 1.0)];
        let found = apply_with(find, &stages, &[], Some(3), 0, 1.0);
        assert_eq!(found[0].stages, [1]);
        assert!(apply_with(find, &stages, &[], None, 0, 1.0).is_empty());
    }
}

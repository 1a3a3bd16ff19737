//! Finds bottleneck stages that could use idle CPUs if their work were divided between two stages.

use contend_record::pipe::{BottleneckKind, Finding, FindingId, Limit, Stage};
use contend_record::units::time;

use super::{Facts, finding};
use crate::pipeline::verdict::short;

/// Minimum number of idle CPUs, on average over the run.
const MIN_IDLE_CPUS: f64 = 0.3;
/// Minimum saving, as a share of the run.
const MIN_SAVING_SHARE: f64 = 0.1;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let bottleneck = facts.bottleneck;
    let is_candidate = bottleneck.kind == BottleneckKind::Stage
        && bottleneck.limit == Some(Limit::Cpu)
        && !facts.other_load;
    let stage = bottleneck.stage.and_then(|index| facts.stages.get(index - 1));
    let Some(stage) = stage.filter(|stage| is_candidate && can_be_divided(stage)) else {
        return Vec::new();
    };
    let cpu: f64 = facts.stages.iter().map(Stage::cpu_seconds).sum();
    let idle = facts.cpus - cpu / facts.wall_seconds;
    // Two halves can take no less than the next slowest stage, and than the CPUs need for all.
    let others = facts.stages.iter().filter(|other| other.index != stage.index);
    let needed = others.map(Stage::service_seconds).fold(cpu / facts.cpus, f64::max);
    let saved = stage.service_seconds() - (stage.service_seconds() / 2.0).max(needed);
    if idle < MIN_IDLE_CPUS || saved < MIN_SAVING_SHARE * facts.wall_seconds {
        return Vec::new();
    }
    let message = format!(
        "Stage {} `{}` needs a whole CPU while {idle:.1} of {} CPUs are idle: if it does several \
         things, two stages that each do some of them could save up to {}.",
        stage.index,
        short(&stage.command),
        facts.cpus,
        time(saved),
    );
    vec![finding(FindingId::CouldBeSplit, vec![stage.index], message)]
}

/// Returns whether the stage works on one CPU while its input arrives. A barrier works alone, a
/// stage with several busy tasks uses several CPUs already, and one that starts programs can start
/// several at once.
fn can_be_divided(stage: &Stage) -> bool {
    const MAX_CPUS: f64 = 1.1;
    !stage.holds_output
        && stage.children_seen == 0
        && stage.cpu_seconds() < MAX_CPUS * stage.service_seconds()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_with, stage};
    use super::*;

    fn busy(index: usize, seconds: f64) -> Stage {
        Stage { user_seconds: seconds, on_cpu_seconds: seconds, ..stage(index) }
    }

    #[test]
    fn the_only_busy_stage_could_use_the_other_cpu() {
        let found = apply_with(find, &[busy(1, 0.1), busy(2, 1.0)], &[], Some(2), 0, 1.0);
        assert_eq!(found[0].stages, [2]);
        assert!(found[0].message.ends_with("could save up to 450 ms."), "{}", found[0].message);
    }

    #[test]
    fn nothing_is_said_if_no_cpu_is_idle_or_another_stage_is_as_slow() {
        let of = |stages: &[Stage]| apply_with(find, stages, &[], Some(2), 0, 1.0);
        assert!(of(&[busy(1, 0.9), busy(2, 1.0)]).is_empty());
        let barrier = Stage { holds_output: true, ..busy(2, 1.0) };
        assert!(of(&[busy(1, 0.1), barrier]).is_empty());
        let parallel = Stage { user_seconds: 1.5, ..busy(2, 1.0) };
        assert!(of(&[busy(1, 0.1), parallel]).is_empty());
    }
}

//! Finds stages that did not end with exit code 0, and reports how each of them ended. Stages ended
//! by SIGPIPE and those with an unknown status are not reported.

use std::collections::BTreeSet;

use contend_record::pipe::{Finding, FindingId, Outcome, Stage};
use contend_record::signal;

use super::{Facts, finding};
use crate::pipeline::verdict::short;

/// The signal that kills a writer whose reader has ended early, which is not an error.
const SIGPIPE: i32 = 13;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    unfinished(facts.stages)
        .into_iter()
        .chain(facts.stages.iter().filter_map(finding_for))
        .collect()
}

/// Reports stages that were still running when contend was interrupted, in one finding per signal
/// that killed them.
fn unfinished(stages: &[Stage]) -> Vec<Finding> {
    let signals: BTreeSet<_> = stages.iter().filter_map(interrupted_by).collect();
    let by = |signal| {
        let ended: Vec<_> =
            stages.iter().filter(|stage| interrupted_by(stage) == Some(signal)).collect();
        let message = match ended.as_slice() {
            [one] => format!(
                "Interrupted: stage {} `{}` was still running and was killed by {}.",
                one.index,
                short(&one.command),
                signal_name(signal),
            ),
            several => format!(
                "Interrupted: {} stages were still running and were killed by {}.",
                several.len(),
                signal_name(signal),
            ),
        };
        let indices = ended.iter().map(|stage| stage.index).collect();
        finding(FindingId::StageUnfinished, indices, message)
    };
    signals.into_iter().map(by).collect()
}

fn interrupted_by(stage: &Stage) -> Option<i32> {
    match stage.outcome {
        Outcome::Interrupted(signal) => Some(signal),
        _ => None,
    }
}

fn finding_for(stage: &Stage) -> Option<Finding> {
    let (index, command) = (stage.index, short(&stage.command));
    let (id, message) = match stage.outcome {
        Outcome::NotFound => (
            FindingId::StageNotFound,
            format!(
                "Stage {index} `{command}` exited with 127, the status of a shell for a command that \
                 was not found."
            ),
        ),
        Outcome::NotExecutable => (
            FindingId::StageNotExecutable,
            format!(
                "Stage {index} `{command}` exited with 126, the status of a shell for a command that \
                 cannot be executed."
            ),
        ),
        Outcome::Killed(SIGPIPE)
        | Outcome::Interrupted(_)
        | Outcome::Unknown
        | Outcome::Unobserved
        | Outcome::Running => return None,
        Outcome::Killed(signal) => (
            FindingId::StageKilled,
            format!("Stage {index} `{command}` was killed by {}.", signal_name(signal)),
        ),
        // A shell exits with this code if SIGPIPE has killed one of its commands.
        Outcome::Exited if stage.exit_code == 128 + SIGPIPE => return None,
        Outcome::Exited if stage.exit_code != 0 => (
            FindingId::StageFailed,
            format!("Stage {index} `{command}` exited with {}.", stage.exit_code),
        ),
        Outcome::Exited => return None,
    };
    Some(finding(id, vec![index], message))
}

/// Returns the name of a signal, such as `SIGTERM`, or its number if it has no name.
fn signal_name(number: i32) -> String {
    signal::name(number).map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;

    #[test]
    fn each_way_of_ending_has_its_finding() {
        let cases = [
            (Outcome::NotFound, 127, Some(FindingId::StageNotFound)),
            (Outcome::NotExecutable, 126, Some(FindingId::StageNotExecutable)),
            (Outcome::Killed(9), 137, Some(FindingId::StageKilled)),
            (Outcome::Killed(SIGPIPE), 141, None),
            (Outcome::Interrupted(2), 130, Some(FindingId::StageUnfinished)),
            (Outcome::Exited, 1, Some(FindingId::StageFailed)),
            (Outcome::Exited, 141, None),
            (Outcome::Exited, 0, None),
        ];
        for (outcome, exit_code, expected) in cases {
            let found = apply(find, &[Stage { outcome, exit_code, ..stage(1) }]);
            assert_eq!(found.first().map(|f| f.id), expected, "{outcome:?}");
        }
    }

    #[test]
    fn stages_ended_by_the_same_signal_share_a_sentence() {
        let ended = |index| Stage { outcome: Outcome::Interrupted(15), ..stage(index) };
        let found = apply(find, &[ended(1), stage(2), ended(3)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].stages, [1, 3]);
        assert!(found[0].message.contains("2 stages") && found[0].message.contains("SIGTERM"));
    }
}

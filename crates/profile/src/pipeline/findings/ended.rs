//! Stages that did not end with status 0, each by how it ended.

use contend_record::pipe::{Finding, FindingId, Outcome, Stage};

use super::{Facts, finding};
use crate::pipeline::verdict::short;

/// Writers die by this signal when their reader has had enough: no fault.
const SIGPIPE: i32 = 13;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    facts.stages.iter().filter_map(of_stage).collect()
}

fn of_stage(stage: &Stage) -> Option<Finding> {
    let (index, command) = (stage.index, short(&stage.command));
    let (id, message) = match stage.outcome {
        Outcome::NotFound => (
            FindingId::StageNotFound,
            format!(
                "Stage {index} `{command}` ended with status 127, by which shells say that a \
                 command was not found."
            ),
        ),
        Outcome::NotExecutable => (
            FindingId::StageNotExecutable,
            format!(
                "Stage {index} `{command}` ended with status 126, by which shells say that a \
                 command could not be executed."
            ),
        ),
        Outcome::Killed(SIGPIPE) => return None,
        Outcome::Killed(signal) => (
            FindingId::StageKilled,
            format!("Stage {index} `{command}` was killed by {}.", signal_name(signal)),
        ),
        Outcome::Interrupted(signal) => (
            FindingId::StageUnfinished,
            format!(
                "Stage {index} `{command}` was still running when contend was told to end; {} \
                 ended it.",
                signal_name(signal)
            ),
        ),
        // A shell says so of a command of its own that such a death has met.
        Outcome::Exited if stage.exit_code == 128 + SIGPIPE => return None,
        Outcome::Exited if stage.exit_code != 0 => (
            FindingId::StageFailed,
            format!("Stage {index} `{command}` ended with status {}.", stage.exit_code),
        ),
        Outcome::Exited => return None,
    };
    Some(finding(id, vec![index], message))
}

/// The name of a signal, or its number where it has none that is the same everywhere.
fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        SIGPIPE => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
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
}

//! Finds the stages that make the difference between two pipelines.

use contend_record::pipe::{BottleneckKind, PipeRecord, Stage};
use contend_record::units::time;
use contend_record::versus::Variant;

use super::super::layout::cut;

/// Maximum number of differing parts that are described, largest first.
const MAX_PARTS: usize = 2;
/// Maximum width of a command in a sentence, in columns.
const MAX_COMMAND_COLUMNS: usize = 40;
/// Minimum difference in CPU time, as a share of the first pipeline's, to describe a stage that both
/// pipelines have.
const MIN_SHARE: f64 = 0.05;
/// Minimum difference in CPU time between a part and the part that replaces it, as a share of the
/// former, to give both times.
const MIN_CHANGE_SHARE: f64 = 0.1;

/// A part of two pipelines: consecutive stages of one, and those of the other at the same place.
/// Each stage that both have is a part of its own.
#[derive(Debug, PartialEq)]
struct Part<'a> {
    before: &'a [Stage],
    after: &'a [Stage],
}

impl Part<'_> {
    fn is_same(&self) -> bool {
        matches!((self.before, self.after), ([a], [b]) if a.command == b.command)
    }

    fn cpu_saved(&self) -> f64 {
        cpu(self.before) - cpu(self.after)
    }
}

/// Returns whether the CPU time of a stage is known. In a saved parallel run, contend itself may have
/// done the stage's work, which is then part of contend's CPU time.
fn is_measured(stage: &Stage) -> bool {
    stage.samples > 0 || stage.cpu_seconds() > 0.0
}

fn cpu(stages: &[Stage]) -> f64 {
    stages.iter().map(Stage::cpu_seconds).sum()
}

/// Returns sentences about the bottlenecks of both pipelines and the parts in which they differ
/// most.
pub(super) fn reasons(first: &Variant, other: &Variant) -> Vec<String> {
    let (a, b) = (&first.profile, &other.profile);
    let mut parts = parts(&a.stages, &b.stages);
    let least = MIN_SHARE * cpu(&a.stages);
    parts.retain(|part| !part.is_same() || part.cpu_saved().abs() > least);
    parts.retain(|part| part.before.iter().chain(part.after).all(is_measured));
    parts.sort_by(|a, b| b.cpu_saved().abs().total_cmp(&a.cpu_saved().abs()));
    let mut reasons = Vec::new();
    if let (Some(of_first), Some(of_other)) = (bottleneck(a), bottleneck(b)) {
        reasons.push(format!(
            "Bottleneck of {}: {of_first}; of {}: {of_other}.",
            first.name, other.name
        ));
    }
    for part in parts.iter().take(MAX_PARTS) {
        reasons.push(sentence(part, &first.name, &other.name));
    }
    reasons
}

/// Returns a phrase for the bottleneck of a run, or `None` if none was found.
fn bottleneck(record: &PipeRecord) -> Option<String> {
    let found = &record.bottleneck;
    Some(
        match (found.kind, found.stage.and_then(|index| record.stages.get(index.checked_sub(1)?))) {
            (BottleneckKind::Stage, Some(stage)) => format!(
                "stage {} `{}`, busy for {} of {}",
                stage.index,
                cut(&stage.command, MAX_COMMAND_COLUMNS),
                time(stage.service_seconds()),
                time(record.wall_seconds)
            ),
            (BottleneckKind::Machine, _) => "the CPUs".to_owned(),
            (BottleneckKind::Input, _) => "the input".to_owned(),
            (BottleneckKind::Output, _) => "the reader of the output".to_owned(),
            _ => return None,
        },
    )
}

fn sentence(part: &Part<'_>, first: &str, other: &str) -> String {
    let stages = |stages: &[Stage], of: &str| {
        let commands: Vec<_> = stages.iter().map(|stage| stage.command.as_str()).collect();
        let text = cut(&commands.join(" | "), MAX_COMMAND_COLUMNS);
        let (from, to) = (stages[0].index, stages[stages.len() - 1].index);
        let which =
            if from == to { format!("Stage {from}") } else { format!("Stages {from} to {to}") };
        format!("{which} of {of} `{text}`")
    };
    match (part.before, part.after) {
        ([_, ..], []) => format!(
            "{} is left out: {} of CPU time.",
            stages(part.before, first),
            time(cpu(part.before))
        ),
        ([], [_, ..]) => {
            format!("{} is new: {} of CPU time.", stages(part.after, other), time(cpu(part.after)))
        }
        _ if part.is_same() => format!(
            "{} needs {} of CPU time in {other} instead of {}.",
            stages(part.before, first),
            time(cpu(part.after)),
            time(cpu(part.before))
        ),
        _ => {
            let after = stages(part.after, other);
            let (cpu_before, cpu_after) = (cpu(part.before), cpu(part.after));
            let is_similar = part.cpu_saved().abs() < MIN_CHANGE_SHARE * cpu_before;
            let change = if is_similar {
                format!("about the same CPU time ({})", time(cpu_after))
            } else {
                format!("{} of CPU time instead of {}", time(cpu_after), time(cpu_before))
            };
            format!(
                "{} became {}: {change}.",
                stages(part.before, first),
                after[..1].to_lowercase() + &after[1..],
            )
        }
    }
}

/// Divides two pipelines into parts: each stage of the longest common subsequence of their commands
/// is a part, and so are the stages between two of these.
fn parts<'a>(before: &'a [Stage], after: &'a [Stage]) -> Vec<Part<'a>> {
    // common[i][j] is the length of the longest common subsequence of before[i..] and after[j..].
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i][j] = if before[i].command == after[j].command {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut parts = Vec::new();
    let (mut i, mut j, mut from_i, mut from_j) = (0, 0, 0, 0);
    while i < before.len() && j < after.len() {
        if before[i].command == after[j].command {
            parts.push(Part { before: &before[from_i..i], after: &after[from_j..j] });
            parts.push(Part { before: &before[i..=i], after: &after[j..=j] });
            (i, j) = (i + 1, j + 1);
            (from_i, from_j) = (i, j);
        } else if common[i + 1][j] >= common[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    parts.push(Part { before: &before[from_i..], after: &after[from_j..] });
    parts.retain(|part| !part.before.is_empty() || !part.after.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(commands: &[(&str, f64)]) -> Vec<Stage> {
        let stage = |(place, (command, user_seconds)): (usize, &(&str, f64))| Stage {
            index: place + 1,
            command: (*command).to_owned(),
            user_seconds: *user_seconds,
            ..Stage::default()
        };
        commands.iter().enumerate().map(stage).collect()
    }

    #[test]
    fn stages_are_aligned_by_their_commands() {
        let before = stages(&[("cat x", 0.1), ("grep a", 0.5), ("sort", 2.0), ("uniq", 0.3)]);
        let after = stages(&[("grep a x", 0.5), ("sort -u", 1.0), ("wc", 0.1)]);
        assert_eq!(parts(&before, &after).len(), 1, "they have nothing in common");
        let after = stages(&[("grep a", 0.6), ("sort", 2.1), ("head", 0.1), ("uniq", 0.3)]);
        let parts = parts(&before, &after);
        let lengths: Vec<_> = parts.iter().map(|p| (p.before.len(), p.after.len())).collect();
        assert_eq!(lengths, [(1, 0), (1, 1), (1, 1), (0, 1), (1, 1)]);
        assert!(parts[1].is_same() && !parts[0].is_same());
    }

    #[test]
    fn each_kind_of_difference_has_a_sentence() {
        let before = stages(&[("cat x", 0.1), ("sort", 2.0), ("uniq", 0.3)]);
        let after = stages(&[("sort", 1.0), ("uniq -d", 0.2), ("wc", 0.1)]);
        let text: Vec<_> =
            parts(&before, &after).iter().map(|part| sentence(part, "A", "B")).collect();
        assert_eq!(
            text,
            [
                "Stage 1 of A `cat x` is left out: 100 ms of CPU time.",
                "Stage 2 of A `sort` needs 1.00 s of CPU time in B instead of 2.00 s.",
                "Stage 3 of A `uniq` became stages 2 to 3 of B `uniq -d | wc`: about the same CPU \
                 time (300 ms).",
            ]
        );
        let added = Part { before: &[], after: &after[2..] };
        assert_eq!(sentence(&added, "A", "B"), "Stage 3 of B `wc` is new: 100 ms of CPU time.");
        assert!(!is_measured(&stages(&[("sort", 0.0)])[0]) && is_measured(&before[0]));
        let slower = Part { before: &before[2..], after: &after[..1] };
        assert_eq!(
            sentence(&slower, "A", "B"),
            "Stage 3 of A `uniq` became stage 1 of B `sort`: 1.00 s of CPU time instead of 300 ms."
        );
    }
}

//! Finds stages between others that are too cheap to be worth a process: they write about as much as
//! they read, and most of their CPU time is system time, for moving data through pipes.

use contend_record::pipe::{Figure, Finding, FindingId, Stage};
use contend_record::units::time;

use super::{Facts, approximate_prefix, bytes, finding};
use crate::pipeline::verdict::short;

/// Minimum share of system time in a stage's CPU time.
const MIN_SYSTEM_SHARE: f64 = 0.75;
/// Minimum share of a stage in the CPU time of all stages. The cost of a cheaper stage hardly
/// matters.
const MIN_CPU_SHARE: f64 = 0.05;
/// Minimum number of bytes that a stage moves. With less, most system time is that of starting.
const MIN_BYTES: u64 = 10_000_000;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let all: f64 = facts.stages.iter().map(Stage::cpu_seconds).sum();
    // The first and the last stage may spend system time on files or sockets.
    let inner = facts.stages.iter().filter(|stage| (2..facts.stages.len()).contains(&stage.index));
    let stages = inner.filter(|stage| mostly_copies(stage, all));
    stages
        .map(|stage| {
            let moved = stage.bytes_in.unwrap_or(0);
            let message = format!(
                "Stage {} `{}` spends {:.0} % of its {} of CPU time in the kernel, to move {}{}: doing its \
                 work in a neighbouring stage would save a process and a copy.",
                stage.index,
                short(&stage.command),
                100.0 * stage.system_seconds / stage.cpu_seconds(),
                time(stage.cpu_seconds()),
                approximate_prefix(stage.is_approximate(Figure::BytesIn)),
                bytes(moved as f64),
            );
            finding(FindingId::MostlyCopies, vec![stage.index], message)
        })
        .collect()
}

/// Returns whether the stage does little besides moving data. `all` is the CPU time of all stages,
/// in seconds. A stage with children may do more.
fn mostly_copies(stage: &Stage, all: f64) -> bool {
    let cpu = stage.cpu_seconds();
    let (Some(bytes_in), Some(bytes_out)) = (stage.bytes_in, stage.bytes_out) else {
        return false;
    };
    stage.children_seen == 0
        && bytes_in >= MIN_BYTES
        && bytes_in.abs_diff(bytes_out) <= bytes_in / 20
        && cpu > MIN_CPU_SHARE * all
        && stage.system_seconds > MIN_SYSTEM_SHARE * cpu
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;

    fn copying(index: usize, user: f64, system: f64) -> Stage {
        Stage {
            user_seconds: user,
            system_seconds: system,
            bytes_in: Some(50_000_000),
            bytes_out: Some(50_000_000),
            ..stage(index)
        }
    }

    #[test]
    fn a_stage_whose_time_is_that_of_its_pipes_is_named() {
        let stages = [copying(1, 0.01, 0.19), copying(2, 0.01, 0.19), copying(3, 0.8, 0.2)];
        let found = apply(find, &stages);
        assert_eq!(found.len(), 1, "the first one may read files");
        assert_eq!(found[0].stages, [2]);
        let message = &found[0].message;
        assert!(message.contains("spends 95 % of its 200 ms"), "{message}");
        assert!(message.contains("to move 50.0 MB"), "{message}");
    }

    #[test]
    fn cheap_small_and_single_stages_do_not_matter() {
        let of = |stage: Stage| apply(find, &[copying(1, 1.0, 0.2), stage, copying(3, 0.8, 0.2)]);
        assert!(of(copying(2, 0.0, 0.02)).is_empty(), "1 %");
        let small = Stage { bytes_in: Some(1_000_000), ..copying(2, 0.01, 0.19) };
        assert!(of(small).is_empty());
        let filter = Stage { bytes_out: Some(10_000_000), ..copying(2, 0.01, 0.19) };
        assert!(of(filter).is_empty(), "it does more than copy");
        assert_eq!(of(copying(2, 0.01, 0.19)).len(), 1);
    }
}

//! Finds pipelines and stages for which starting programs costs more than the programs' work.

use contend_record::pipe::{Finding, FindingId, Stage};
use contend_record::units::time;

use super::{Facts, approximate_prefix, bytes, finding};
use crate::pipeline::verdict::short;

/// Wall time in seconds below which a run may be mostly start-up.
const MAX_SHORT_RUN_SECONDS: f64 = 0.05;
/// Upper bound of the CPU time for starting and ending a program, in seconds; it is usually 1 ms to
/// 2 ms.
const MAX_START_CPU_SECONDS: f64 = 0.0025;
/// Minimum number of processes and threads created on the machine for a finding about a stage that
/// starts programs.
const MIN_FORKS: u64 = 50;
/// Minimum number of children that samples must have found for a finding about a stage that starts
/// programs, if other programs were running, too.
const MIN_CHILDREN_SEEN: u64 = 8;
/// CPU time in seconds below which a program hardly did more than start and end.
const MAX_CHILD_CPU_SECONDS: f64 = 0.01;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    short_pipeline(facts).into_iter().chain(starts_programs(facts)).collect()
}

fn short_pipeline(facts: &Facts<'_>) -> Option<Finding> {
    if facts.is_attached {
        return None; // the stages were started earlier
    }
    let cpu: f64 = facts.stages.iter().map(Stage::cpu_seconds).sum();
    let each = cpu / facts.stages.len().max(1) as f64;
    if facts.wall_seconds >= MAX_SHORT_RUN_SECONDS || each > MAX_START_CPU_SECONDS {
        return None;
    }
    let moved = facts.total.bytes.unwrap_or(0);
    let message = format!(
        "The run of {}, with {} of CPU time for each stage and at most {}{} of data, is mostly the \
         cost of starting and ending programs.",
        time(facts.wall_seconds),
        time(each),
        approximate_prefix(facts.total.bytes_approximate),
        bytes(moved as f64),
    );
    let stages = facts.stages.iter().map(|stage| stage.index).collect();
    Some(finding(FindingId::StartupCost, stages, message))
}

/// Reports the stage whose children used the most CPU time, if many programs were started during
/// the run, each did little work, and their CPU time was at least a tenth of the wall time. The
/// kernel counts forks only for the whole machine. If other programs were running, samples must
/// therefore have found `MIN_CHILDREN_SEEN` children, and one child for every three samples.
fn starts_programs(facts: &Facts<'_>) -> Option<Finding> {
    let stage = facts
        .stages
        .iter()
        .max_by(|a, b| a.children_cpu_seconds.total_cmp(&b.children_cpu_seconds))?;
    let cpu = stage.children_cpu_seconds;
    let each = cpu / facts.forks.max(1) as f64;
    let often_new =
        stage.children_seen >= MIN_CHILDREN_SEEN && 3 * stage.children_seen >= stage.samples;
    let little = each <= MAX_CHILD_CPU_SECONDS && (often_new || !facts.other_load);
    if facts.forks < MIN_FORKS || !little || cpu < 0.1 * facts.wall_seconds {
        return None;
    }
    let how_many = if facts.other_load {
        // Samples miss processes that start and end between two of them.
        format!("it started at least {} processes", thousands(stage.children_seen))
    } else {
        let forks = facts.forks;
        let forks = thousands(forks);
        format!(
            "the machine created {forks} processes in that time, with {} of CPU time each",
            time(each)
        )
    };
    let message = format!(
        "Stage {} `{}` starts other programs: they used {} of its {} of CPU time, and {how_many}. \
         A single program that does all the work would save most of that.",
        stage.index,
        short(&stage.command),
        time(cpu),
        time(stage.cpu_seconds()),
    );
    Some(finding(FindingId::StartupCost, vec![stage.index], message))
}

/// Formats a number with commas between its thousands.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_with, stage};
    use super::*;

    #[test]
    fn the_number_of_started_processes_is_reported_as_far_as_it_is_known() {
        let starter =
            Stage { children_cpu_seconds: 60.0, children_seen: 10_829, samples: 5_475, ..stage(1) };
        let total = contend_record::pipe::Total::default();
        let facts = Facts {
            stages: &[starter],
            boundaries: &[],
            total: &total,
            bottleneck: &contend_record::pipe::Bottleneck::default(),
            wall_seconds: 143.0,
            is_attached: false,
            cpus: 2.0,
            forks: 40_000,
            other_load: true,
        };
        let message = &find(&facts)[0].message;
        assert!(message.contains("it started at least 10,829 processes"), "{message}");
        assert!(!message.contains("sample"), "{message}");
        assert_eq!(
            [thousands(7), thousands(1_000), thousands(1_234_567)],
            ["7", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn a_short_pipeline_reports_its_startup_cost() {
        assert_eq!(apply_with(find, &[stage(1)], &[], None, 1, 0.004).len(), 1);
        assert!(apply_with(find, &[stage(1)], &[], None, 1, 0.5).is_empty());
        let works = Stage { user_seconds: 0.02, ..stage(1) };
        assert!(apply_with(find, &[works], &[], None, 1, 0.03).is_empty());
    }

    #[test]
    fn many_small_programs_are_named_and_few_large_ones_are_not() {
        let starter = Stage { children_cpu_seconds: 0.6, user_seconds: 0.8, ..stage(2) };
        let stages = [stage(1), starter];
        let found = apply_with(find, &stages, &[], Some(2), 600, 1.0);
        assert_eq!(found[0].stages, [2]);
        assert!(apply_with(find, &stages, &[], Some(2), 3, 1.0).is_empty());
    }
}

//! Findings about a run. Each rule has a file, and `findings` applies all rules.

mod bytes_unseen;
mod cannot_matter;
mod could_be_split;
mod ended;
mod holds_output;
mod mostly_copies;
mod outlived_reader;
mod runnable;
mod startup_cost;
mod tiny_calls;

use contend_record::pipe::{Bottleneck, Boundary, Finding, FindingId, Stage, Total};

/// The facts about a finished run that rules examine.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The stages, first to last.
    pub stages: &'a [Stage],
    /// The pipes between the stages.
    pub boundaries: &'a [Boundary],
    /// The totals over all stages.
    pub total: &'a Total,
    /// The verdict on the bottleneck.
    pub bottleneck: &'a Bottleneck,
    /// The pipeline's wall time.
    pub wall_seconds: f64,
    /// Whether contend was attached to the running pipeline, and may have seen only a part of the
    /// run.
    pub is_attached: bool,
    /// Number of CPUs that the pipeline can use at once.
    pub cpus: f64,
    /// Number of processes and threads created on the whole machine during the run.
    pub forks: u64,
    /// Whether other programs used a notable share of the CPUs during the run.
    pub other_load: bool,
}

/// A rule: a function that returns its findings about the facts.
type Rule = fn(&Facts<'_>) -> Vec<Finding>;

/// All rules, in the order in which their findings are shown.
const RULES: &[Rule] = &[
    ended::find,
    outlived_reader::find,
    holds_output::find,
    startup_cost::find,
    runnable::find,
    could_be_split::find,
    mostly_copies::find,
    tiny_calls::find,
    bytes_unseen::find,
    cannot_matter::find,
];

/// Applies all rules and returns their findings, in display order.
pub fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(facts)).collect()
}

fn finding(id: FindingId, stages: Vec<usize>, message: String) -> Finding {
    Finding { id, stages, message }
}

/// Returns the prefix of a byte count in a sentence: `about ` if the count is approximate,
/// otherwise an empty string.
fn approximate_prefix(approximate: bool) -> &'static str {
    if approximate { "about " } else { "" }
}

/// Formats a number of bytes for a sentence, with a decimal unit from B to GB.
fn bytes(count: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    units.iter().find(|(size, _)| count >= *size).map_or_else(
        || format!("{count:.0} B"),
        |(size, name)| format!("{:.1} {name}", count / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::pipe::{BottleneckKind, Limit};

    /// Applies a rule to the stages of a pipeline that ran for 1 s on 2 CPUs.
    pub(super) fn apply(rule: Rule, stages: &[Stage]) -> Vec<Finding> {
        apply_with(rule, stages, &[], Some(1), 0, 1.0)
    }

    pub(super) fn apply_with(
        rule: Rule,
        stages: &[Stage],
        boundaries: &[Boundary],
        slowest: Option<usize>,
        forks: u64,
        wall_seconds: f64,
    ) -> Vec<Finding> {
        let kind = slowest.map_or(BottleneckKind::None, |_| BottleneckKind::Stage);
        let limit = slowest.map(|_| Limit::Cpu);
        let bottleneck = Bottleneck { kind, stage: slowest, limit, evidence: String::new() };
        let total = Total { runnable_mean: stages.len() as f64, ..Total::default() };
        rule(&Facts {
            stages,
            boundaries,
            total: &total,
            bottleneck: &bottleneck,
            wall_seconds,
            is_attached: false,
            cpus: 2.0,
            forks,
            other_load: false,
        })
    }

    pub(super) fn stage(index: usize) -> Stage {
        Stage { index, command: format!("c{index}"), wall_seconds: 1.0, ..Stage::default() }
    }

    #[test]
    fn bytes_are_shown_with_units() {
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(bytes(65_536.0), "65.5 kB");
        assert_eq!(bytes(2.5e9), "2.5 GB");
    }
}

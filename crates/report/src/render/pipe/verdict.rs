//! Renders the bottleneck as a sentence, and the findings.

use std::fmt::Write as _;

use contend_record::advice::RewriteId;
use contend_record::pipe::{
    Bottleneck, BottleneckKind, Finding, FindingId, Limit, PipeRecord, Stage,
};

use super::super::layout::{BOLD, WARN, cut, dimmed, paragraph, paragraph_after};
use super::super::units::{bytes, counted, seconds};
use super::Detail;
use super::tables::{main_wait, mark};

/// Maximum number of findings in a summary, besides failures.
const MAX_FINDINGS: usize = 3;

/// Minimum amount of data for which CPU time per gigabyte is meaningful, in bytes.
const MIN_RATE_BYTES: u64 = 10_000_000;

/// Maximum width of a command in the verdict, in columns.
const MAX_COMMAND_COLUMNS: usize = 40;

/// Writes the name of the bottleneck, and the evidence for it.
pub(super) fn bottleneck(out: &mut String, record: &PipeRecord, width: usize) {
    let name = bottleneck_name(&record.bottleneck, &record.stages, width);
    let _ = write!(out, "{BOLD}{name}{BOLD:#}");
    let length = unicode_width::UnicodeWidthStr::width(name.as_str());
    paragraph_after(out, length, &format!(". {}", record.bottleneck.evidence), width);
}

/// Writes the stages that failed or did not end by themselves. A profile of a failed pipeline may say
/// little, so they come before the verdict.
pub(super) fn failures(out: &mut String, record: &PipeRecord, width: usize) {
    for finding in record.findings.iter().filter(|finding| is_failure(finding.id)) {
        let _ = write!(out, "{WARN}!{WARN:#} ");
        paragraph_after(out, 2, &finding.message, width);
    }
}

fn is_failure(id: FindingId) -> bool {
    matches!(
        id,
        FindingId::StageNotFound
            | FindingId::StageNotExecutable
            | FindingId::StageKilled
            | FindingId::StageFailed
            | FindingId::StageUnfinished
    )
}

/// Returns the name of the bottleneck in a sentence, in at most `width` columns if possible.
pub(crate) fn bottleneck_name(bottleneck: &Bottleneck, stages: &[Stage], width: usize) -> String {
    match (bottleneck.kind, bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) => {
            let stage = stages.get(index.wrapping_sub(1)); // numbers begin with 1
            let limit = match bottleneck.limit {
                Some(Limit::Wait) => stage.and_then(main_wait).map_or("waiting", wait_name),
                _ => "CPU-bound",
            };
            let (before, after) = (format!("Bottleneck: stage {index}, "), format!(" ({limit})"));
            let room = width.saturating_sub(before.len() + after.len() + 1);
            let command = stage.map_or("", |stage| stage.command.as_str());
            format!("{before}{}{after}", cut(command, room.min(MAX_COMMAND_COLUMNS)))
        }
        (BottleneckKind::Machine, _) => "Bottleneck: the CPUs".to_owned(),
        (BottleneckKind::Input, _) => "Bottleneck: the input".to_owned(),
        (BottleneckKind::Output, _) => "Bottleneck: the reader of the output".to_owned(),
        _ => "No bottleneck found".to_owned(),
    }
}

/// Returns a phrase, such as `disk-bound`, for a stage whose longest waits have the name `kind` in
/// the record.
fn wait_name(kind: &'static str) -> &'static str {
    match kind {
        "sleep" => "sleeping",
        "lock" => "waiting for a lock",
        "disk" => "disk-bound",
        "child" => "waiting for a child process",
        "poll" => "waiting in poll",
        "network" => "network-bound",
        "pipe" => "waiting for another pipe",
        "terminal" => "waiting for the terminal",
        "stopped" => "stopped",
        _ => "waiting",
    }
}

/// Writes the findings other than [`failures`]. A summary has at most three important findings, and
/// the number of further important ones. A full report has all findings and, for enough data, the CPU
/// time per gigabyte.
pub(super) fn findings(out: &mut String, record: &PipeRecord, detail: Detail, width: usize) {
    let is_shown = |one: &&Finding| {
        !is_failure(one.id) && (detail == Detail::Full || is_important(record, one))
    };
    let shown: Vec<&Finding> = record.findings.iter().filter(is_shown).collect();
    let most = if detail == Detail::Full { shown.len() } else { MAX_FINDINGS };
    for finding in shown.iter().take(most) {
        paragraph(out, "- ", &finding.message, width);
    }
    if let Some(more @ 1..) = shown.len().checked_sub(most) {
        dimmed(out, &format!("  {} with --verbose", counted(more as u64, "more finding")), width);
    }
    if detail == Detail::Full {
        cost_of_data(out, record, width);
    }
}

/// Returns whether a summary may show the finding. It never shows findings that repeat the
/// suggestions or the verdict, or that concern irrelevant stages.
fn is_important(record: &PipeRecord, finding: &Finding) -> bool {
    match finding.id {
        FindingId::CannotMatter | FindingId::DataParallel => false,
        // `contend run` uses the idle CPUs without a change to the pipeline.
        FindingId::CouldBeSplit => {
            record.candidates.iter().all(|one| one.rewrite != RewriteId::ParallelRun)
        }
        FindingId::MostlyCopies => record.bottleneck.kind == BottleneckKind::Machine,
        FindingId::StartupCost => record.bottleneck.kind != BottleneckKind::None,
        FindingId::HoldsOutput => finding.stages.iter().any(|&stage| delays_others(record, stage)),
        _ => true,
    }
}

/// Returns whether the stages after the one at `index`, from 1, need more than 2 % of the wall
/// time, so that their wait for it matters.
fn delays_others(record: &PipeRecord, index: usize) -> bool {
    const MIN_SHARE: f64 = 0.02;
    let later = record.stages.iter().filter(|stage| stage.index > index);
    later.map(Stage::service_seconds).sum::<f64>() > MIN_SHARE * record.wall_seconds
}

fn cost_of_data(out: &mut String, record: &PipeRecord, width: usize) {
    let (Some(cost), Some(moved)) = (record.total.cpu_seconds_per_gigabyte, record.total.bytes)
    else {
        return;
    };
    if moved < MIN_RATE_BYTES {
        return;
    }
    let about = mark(record.total.bytes_approximate);
    let line = format!(
        "CPU time per gigabyte: {about}{} ({about}{} through the stage that moved most data).",
        seconds(cost),
        bytes(moved as f64)
    );
    paragraph(out, "- ", &line, width);
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::tests::record;
    use super::*;
    use contend_record::pipe::Total;

    #[test]
    fn the_bottleneck_has_a_name_and_a_kind() {
        let name = bottleneck_name(&record().bottleneck, &record().stages, 80);
        assert_eq!(name, "Bottleneck: stage 2, while read -r 漢字; do sleep 1; done (sleeping)");
        let nothing = Bottleneck { kind: BottleneckKind::None, ..record().bottleneck };
        assert_eq!(bottleneck_name(&nothing, &[], 80), "No bottleneck found");
    }

    #[test]
    fn a_summary_has_three_findings_and_counts_the_others() {
        let mut record = record();
        let finding = |id, message: &str| Finding { id, stages: vec![], message: message.into() };
        record.findings = vec![
            finding(FindingId::StageFailed, "zero"),
            finding(FindingId::OutlivedReader, "one"),
            finding(FindingId::CannotMatter, "never"),
            finding(FindingId::TinyReads, "two"),
            finding(FindingId::TinyWrites, "three"),
            finding(FindingId::BytesUnseen, "four"),
        ];
        let text = plain_output(|out| findings(out, &record, Detail::Summary, 80));
        assert_eq!(text, "- one\n- two\n- three\n  1 more finding with --verbose\n");
        let text = plain_output(|out| findings(out, &record, Detail::Full, 80));
        assert_eq!(text, "- one\n- never\n- two\n- three\n- four\n");
        assert_eq!(plain_output(|out| failures(out, &record, 80)), "! zero\n");
    }

    #[test]
    fn a_barrier_is_important_if_later_stages_have_something_to_do() {
        let mut record = record();
        let barrier = |stage| Finding {
            id: FindingId::HoldsOutput,
            stages: vec![stage],
            message: format!("barrier {stage}"),
        };
        record.findings = vec![barrier(1), barrier(2)];
        let text = plain_output(|out| findings(out, &record, Detail::Summary, 80));
        assert_eq!(text, "- barrier 1\n");
        record.stages[1].on_cpu_seconds = 0.01;
        record.stages[1].other_wait_seconds = 0.0;
        assert_eq!(plain_output(|out| findings(out, &record, Detail::Summary, 80)), "");
    }

    #[test]
    fn only_ten_megabytes_and_more_have_a_cost_per_gigabyte() {
        let said = |bytes: u64, bytes_approximate: bool| {
            let cost = Some(9.0909);
            let total = Total {
                bytes: Some(bytes),
                bytes_approximate,
                cpu_seconds_per_gigabyte: cost,
                ..Total::default()
            };
            plain_output(|out| cost_of_data(out, &PipeRecord { total, ..record() }, 100))
        };
        assert_eq!(said(9_999_999, false), "");
        let line = |figures: &str| format!("- CPU time per gigabyte: {figures}.\n");
        assert_eq!(
            said(10_000_000, false),
            line("9.09s (10.0MB through the stage that moved most data)")
        );
        assert_eq!(
            said(10_000_000, true),
            line("~9.09s (~10.0MB through the stage that moved most data)")
        );
    }
}

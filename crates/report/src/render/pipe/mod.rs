//! Renders a profiled pipeline as text for a terminal of at least 60 columns.
//!
//! ```text
//! PipeRecord ─┬─ trial ──────── the rewrite to use, and what was tried       (--try)
//!             ├─ summary ────── headline, a row with a bar for each stage
//!             ├─ phases ─────── the bottleneck of each phase               (with barriers)
//!             ├─ verdict ────── stages that failed, the bottleneck in a sentence, findings
//!             ├─ warnings ───── all except those under the headline
//!             ├─ suggestions ── rewrites, and `contend run`
//!             ├─ answers ────── predicted times                            (--what-if)
//!             ├─ over_time ──── a lane for each stage and pipe             (--verbose)
//!             └─ tables ─────── times, data, pipes, runs, method             (--verbose)
//! ```
//!
//! Without `--verbose`, a report fits on one screen: it has at most three findings and two
//! suggestions. Colours are escape sequences in the report; the caller removes them if the output
//! is not a terminal.

pub mod bar;
mod over_time;
pub(super) mod phases;
pub(super) mod runs;
mod summary;
mod tables;
mod verdict;

use contend_record::pipe::PipeRecord;

use super::advice;
use super::layout::{MIN_REPORT_COLUMNS, dimmed, paragraph, warn};
use super::text::printable;
use super::units::{bytes, counted, seconds};
pub(super) use summary::facts;
pub(super) use tables::ending;
pub(crate) use verdict::bottleneck_name;

/// Minimum wall time, in seconds, for which CPU time is shown as a share of wall time. In shorter
/// runs, the work of starting and ending the stages, which the kernel does not count, dominates.
const MIN_CPU_SHARE_SECONDS: f64 = 0.005;

/// Amount of detail in the report of a profiled pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// One screen: the stages, the bottleneck, the most important findings, and the best
    /// suggestions.
    Summary,
    /// All findings, suggestions and measurements, and the method of measurement.
    Full,
}

/// Returns the report of a profiled pipeline, for a terminal with `width` columns, or with 60 if
/// `width` is smaller.
pub fn report(record: &PipeRecord, detail: Detail, width: usize) -> String {
    let record = &visible(record);
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    advice::trial(&mut out, record, detail, width);
    summary::headline(&mut out, record, width);
    summary::disturbances(&mut out, record, width);
    out.push('\n');
    summary::stages(&mut out, record, width);
    out.push('\n');
    phases::phases(&mut out, record, width);
    verdict::failures(&mut out, record, width);
    verdict::bottleneck(&mut out, record, width);
    // A winner of the trial answers what the findings of a summary are for.
    if detail == Detail::Full || record.trial.as_ref().is_none_or(|trial| trial.winner.is_none()) {
        verdict::findings(&mut out, record, detail, width);
    }
    for warning in record.warnings.iter().filter(|warning| !warning.is_disturbance()) {
        warn(&mut out, &warning.message, width);
    }
    advice::suggestions(&mut out, record, detail, width);
    advice::answers(&mut out, record, width);
    match detail {
        Detail::Summary => more(&mut out, record, width),
        Detail::Full => {
            over_time::lanes(&mut out, record, width);
            tables::all(&mut out, record, width);
            method(&mut out, record, width);
        }
    }
    out
}

/// Returns a report of the answers to `--what-if` from the record of an earlier run.
pub fn answers(record: &PipeRecord, width: usize) -> String {
    let record = &visible(record);
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    paragraph(&mut out, "", &format!("Recorded: {}", record.command), width);
    summary::headline(&mut out, record, width);
    advice::answers(&mut out, record, width);
    advice::basis(&mut out, record, width);
    out
}

/// Writes the options that show or save more, with explanations if everything fits on one line.
fn more(out: &mut String, record: &PipeRecord, width: usize) {
    let mut options = vec![("--verbose", " (all figures)")];
    if advice::has_untried(record) {
        options.push(("--try", " (test the rewrites)"));
    }
    options.push(("--json FILE", ""));
    let line = |is_explained: bool| {
        let each = options.iter().map(|(option, does)| {
            let does = if is_explained { does } else { "" };
            format!("{option}{does}")
        });
        format!("More: {}", each.collect::<Vec<_>>().join("   "))
    };
    let text = Some(line(true)).filter(|text| text.len() <= width);
    out.push('\n');
    dimmed(out, &text.unwrap_or_else(|| line(false)), width);
}

/// Writes the method of measurement and its cost, and the basis of predictions.
fn method(out: &mut String, record: &PipeRecord, width: usize) {
    let observed = &record.observation;
    let note = format!(
        "Sampled from {}: {}, {} apart; contend used {} of CPU time and {} of memory.",
        observed.method,
        counted(observed.ticks, "sample"),
        seconds(observed.mean_interval_seconds),
        seconds(observed.own_cpu_seconds),
        bytes(observed.own_max_rss_bytes as f64),
    );
    out.push('\n');
    dimmed(out, &note, width);
    advice::basis(out, record, width);
}

/// Returns the record without control characters in its commands, messages and evidence, so that
/// none affects the terminal. Candidates, the trial and answers to `--what-if` stay as they are.
fn visible(record: &PipeRecord) -> PipeRecord {
    let mut record = record.clone();
    let texts = [&mut record.command, &mut record.bottleneck.evidence]
        .into_iter()
        .chain(record.phases.iter_mut().map(|phase| &mut phase.bottleneck.evidence))
        .chain(record.stages.iter_mut().map(|stage| &mut stage.command))
        .chain(record.findings.iter_mut().map(|finding| &mut finding.message))
        .chain(record.warnings.iter_mut().map(|warning| &mut warning.message));
    for text in texts {
        *text = printable(text);
    }
    record
}

#[cfg(test)]
mod tests {
    use super::super::testing::plain;
    use super::*;
    use contend_record::Host;
    use contend_record::advice::{Trial, TrialInput};
    use contend_record::pipe::{
        Bottleneck, BottleneckKind, Boundary, Finding, FindingId, Limit, OtherWaits, Stage, Total,
        WaitingSide,
    };
    use unicode_width::UnicodeWidthStr as _;

    /// Returns the record of a pipeline of two stages.
    pub(super) fn record() -> PipeRecord {
        let stage = |index: usize, command: &str, on_cpu: f64, blocked: f64| Stage {
            index,
            command: command.to_owned(),
            wall_seconds: 4.0,
            user_seconds: on_cpu,
            system_seconds: 0.01,
            cpu_percent: 25.0 * on_cpu,
            on_cpu_seconds: on_cpu,
            blocked_seconds: blocked,
            other_wait_seconds: 4.0 - on_cpu - blocked,
            other_waits: OtherWaits { sleep: 4.0 - on_cpu - blocked, ..OtherWaits::default() },
            bytes_in: Some(77_000_000),
            bytes_out: Some(65_126_280),
            reads: Some(18_800),
            writes: None,
            max_rss_bytes: 2_100_000,
            first_output_seconds: Some(0.0042),
            ..Stage::default()
        };
        PipeRecord {
            wall_seconds: 4.0,
            stages: vec![
                stage(
                    1,
                    "sed 's/a rather long expression, too long for most terminals/x/'",
                    0.5,
                    3.5,
                ),
                stage(2, "while read -r 漢字; do sleep 1; done", 0.2, 0.0),
            ],
            boundaries: vec![Boundary {
                from: 1,
                to: 2,
                bytes: Some(77_000_000),
                bytes_approximate: false,
                bytes_per_second: Some(19_250_000.0),
                mean_fill_bytes: Some(63_000.0),
                most_fill_bytes: Some(65_536),
                capacity_bytes: Some(65_536),
                writer_blocked_seconds: 3.5,
                reader_starved_seconds: 0.0,
                waiting_side: WaitingSide::Writer,
            }],
            total: Total { user_seconds: 0.7, cpu_percent: 18.0, ..Total::default() },
            bottleneck: Bottleneck {
                kind: BottleneckKind::Stage,
                stage: Some(2),
                limit: Some(Limit::Wait),
                evidence: "Stage 2 was waiting.".to_owned(),
            },
            findings: vec![Finding {
                id: FindingId::TinyReads,
                stages: vec![2],
                message: "Stage 2 reads in small pieces.".to_owned(),
            }],
            host: Host { cpus_allowed: 2, ..Host::default() },
            ..PipeRecord::default()
        }
    }

    #[test]
    fn report_fits_its_width() {
        for width in [60, 72, 80, 100, 120, 200] {
            for detail in [Detail::Summary, Detail::Full] {
                for line in plain(&report(&record(), detail, width)).lines() {
                    assert!(line.width() <= width, "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn the_summary_is_a_part_of_the_full_report() {
        let summary = plain(&report(&record(), Detail::Summary, 80));
        let full = plain(&report(&record(), Detail::Full, 80));
        for line in summary.lines().filter(|line| !line.starts_with("More:")) {
            assert!(full.contains(line), "{line}");
        }
        assert!(full.contains("1st out") && !summary.contains("1st out"), "{summary}");
    }

    #[test]
    fn a_winner_replaces_the_findings_in_the_summary() {
        let mut record = record();
        let trial = Trial::without_candidates(TrialInput::Own, 30.0);
        record.trial = Some(Trial { winner: Some(0), ..trial.clone() });
        let shows = |record: &PipeRecord, detail| {
            let report = plain(&report(record, detail, 80));
            assert!(report.contains("Bottleneck: stage 2"), "{report}");
            [report.contains("Stage 2 was waiting."), report.contains("reads in small pieces")]
        };
        assert_eq!(shows(&record, Detail::Summary), [true, false]);
        assert_eq!(shows(&record, Detail::Full), [true, true]);
        record.trial = Some(trial);
        assert_eq!(shows(&record, Detail::Summary), [true, true]);
    }

    #[test]
    fn the_options_for_more_fit_on_one_line() {
        for width in [60, 80] {
            let report = plain(&report(&record(), Detail::Summary, width));
            let last = report.lines().last().expect("a line");
            assert!(last.starts_with("More:") && last.ends_with("--json FILE"), "{last}");
        }
    }
}

//! Renders the phases into which barriers divide a run.

use std::fmt::Write as _;

use contend_record::pipe::{BottleneckKind, Phase, PipeRecord};
use unicode_width::UnicodeWidthStr as _;

use super::super::layout::{DIM, cut, prose_width};
use super::super::units::seconds;

/// Maximum width of each of two commands in a cell, in columns.
const MAX_COMMAND_COLUMNS: usize = 16;

/// Writes a table with a row for each phase: when it was, its length, its bottleneck, and the share
/// of its length that the bottleneck explains. Writes nothing if there are fewer than two phases.
pub(super) fn phases(out: &mut String, record: &PipeRecord, width: usize) {
    if record.phases.len() < 2 {
        return;
    }
    let spans: Vec<_> = record.phases.iter().map(span).collect();
    let lengths: Vec<_> = record.phases.iter().map(|phase| seconds(phase.seconds())).collect();
    let widest = |cells: &[String], heading: &str| {
        cells.iter().map(|cell| cell.width()).chain([heading.width()]).max().unwrap_or(0)
    };
    let (span_width, length_width) = (widest(&spans, "phase"), widest(&lengths, "length"));
    let indent = record.phases.len().to_string().len() + 3;
    let fixed = indent + span_width + length_width + "explained".len() + 6;
    let room = prose_width(width).saturating_sub(fixed);
    let names: Vec<_> = record.phases.iter().map(|phase| cut(&name(record, phase), room)).collect();
    let name_width = widest(&names, "bottleneck");
    let line = |number: &str, [span, length, name, explained]: [&str; 4]| {
        let number_width = indent - 1;
        let name_padding = " ".repeat(name_width.saturating_sub(name.width()));
        format!(
            "{number:>number_width$} {span:<span_width$}  {length:>length_width$}  \
             {name}{name_padding}  {explained:>9}"
        )
    };
    let heading = line("", ["phase", "length", "bottleneck", "explained"]);
    let _ = writeln!(out, "{DIM}{heading}{DIM:#}");
    for (place, phase) in record.phases.iter().enumerate() {
        let explained = explained(phase.explained_share);
        let number = (place + 1).to_string();
        let cells = [&spans[place], &lengths[place], &names[place], &explained];
        let _ = writeln!(out, "{}", line(&number, cells.map(String::as_str)).trim_end());
    }
    out.push('\n');
}

/// Formats the share of a time that bottlenecks explain.
pub(in crate::render) fn explained(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

fn span(phase: &Phase) -> String {
    format!("{}–{}", seconds(phase.begin_seconds), seconds(phase.end_seconds))
}

/// Returns the name of a phase's bottleneck, with the stage with which it alternates, if any.
pub(in crate::render) fn name(record: &PipeRecord, phase: &Phase) -> String {
    match (phase.bottleneck.kind, phase.bottleneck.stage) {
        (BottleneckKind::Stage, Some(index)) => {
            let command = |index: usize| {
                record
                    .stages
                    .get(index.wrapping_sub(1))
                    .map_or("", |stage| stage.command.as_str())
                    .to_owned()
            };
            match phase.alternates_with {
                Some(other) => format!(
                    "{index} {} and {other} {}, in turn",
                    cut(&command(index), MAX_COMMAND_COLUMNS),
                    cut(&command(other), MAX_COMMAND_COLUMNS)
                ),
                None => format!("{index} {}", command(index)),
            }
        }
        (BottleneckKind::Machine, _) => "the CPUs".to_owned(),
        (BottleneckKind::Input, _) => "the input".to_owned(),
        (BottleneckKind::Output, _) => "the reader of the output".to_owned(),
        _ => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::tests::record;
    use super::*;
    use contend_record::pipe::{Bottleneck, Limit};

    fn phase(begin_seconds: f64, end_seconds: f64, stage: Option<usize>) -> Phase {
        let kind = stage.map_or(BottleneckKind::Machine, |_| BottleneckKind::Stage);
        let limit = Some(Limit::Cpu);
        Phase {
            begin_seconds,
            end_seconds,
            bottleneck: Bottleneck { kind, stage, limit, evidence: String::new() },
            explained_share: 0.934,
            ..Phase::default()
        }
    }

    #[test]
    fn every_phase_has_a_row() {
        let mut record = record();
        let alternating = Phase { alternates_with: Some(1), ..phase(2.0, 4.0, Some(2)) };
        record.phases = vec![phase(0.0, 2.0, None), alternating];
        for width in [60, 100] {
            let text = plain_output(|out| phases(out, &record, width));
            insta::assert_snapshot!(format!("phases_at_{width}_columns"), text);
        }
    }

    #[test]
    fn a_single_phase_is_not_shown() {
        let mut record = record();
        record.phases = vec![phase(0.0, 4.0, Some(2))];
        assert_eq!(plain_output(|out| phases(out, &record, 80)), "");
    }
}

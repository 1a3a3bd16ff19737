//! Renders answers to `--what-if`.

use std::fmt::Write as _;

use comfy_table::Cell;
use contend_record::advice::WhatIf;
use contend_record::pipe::PipeRecord;
use unicode_width::UnicodeWidthStr as _;

use super::super::layout::{BOLD, aligned_left, cut, paragraph, plain_table, styled_lines};
use super::super::text::printable;
use super::super::units::seconds;
use super::{unchanged, why_no_wall_times};

/// Width of the columns for wall and CPU time in a table, including the gaps around them.
const TIMES_COLUMNS: usize = 20;

/// A row of the table of answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question, or `unchanged` for the unchanged pipeline. Not safe to show yet.
    pub question: String,
    /// Predicted wall time in seconds; `None` in all rows if wall times are not predicted.
    pub wall_seconds: Option<f64>,
    /// Predicted CPU time in seconds.
    pub cpu_seconds: f64,
    /// The predicted bottleneck; empty for the unchanged pipeline. Not safe to show yet.
    pub bottleneck: String,
}

/// Returns the answers to `--what-if`, after the prediction for the unchanged pipeline. Empty if there are
/// none.
pub fn all_answers(record: &PipeRecord) -> Vec<Answer> {
    if record.what_if.is_empty() {
        return Vec::new();
    }
    let now = unchanged(record);
    let of = |answer: &WhatIf| Answer {
        question: answer.question.clone(),
        wall_seconds: now.wall_seconds.map(|_| answer.wall_seconds),
        cpu_seconds: answer.cpu_seconds,
        bottleneck: answer.bottleneck.clone(),
    };
    let unchanged = Answer {
        question: "unchanged".to_owned(),
        wall_seconds: now.wall_seconds,
        cpu_seconds: now.cpu_seconds,
        bottleneck: String::new(),
    };
    [unchanged].into_iter().chain(record.what_if.iter().map(of)).collect()
}

/// Returns what the figures of answers are, in a sentence.
pub fn note_on_answers(record: &PipeRecord) -> String {
    why_no_wall_times(record).unwrap_or_else(|| {
        let wall = seconds(record.wall_seconds);
        format!("All rows are predictions; the unchanged pipeline took {wall}.")
    })
}

/// Writes a table of the answers to `--what-if`. Writes nothing if there are none.
pub fn answers(out: &mut String, record: &PipeRecord, width: usize) {
    let all = all_answers(record);
    let Some(unchanged) = all.first() else { return };
    let _ = writeln!(out, "\n{BOLD}What if{BOLD:#}");
    let mut headings = vec!["question", "CPU", "bottleneck"];
    if unchanged.wall_seconds.is_some() {
        headings.insert(1, "wall");
    }
    let last = headings.len() - 1;
    let aligned = |(position, text): (usize, String)| {
        if position == last { Cell::new(text) } else { aligned_left(position, 1, text) }
    };
    let mut table = plain_table();
    table.set_header(headings.iter().map(|h| (*h).to_owned()).enumerate().map(aligned));
    // The questions get a third of the line, and the last column gets the remainder beside the
    // times.
    let widest = width / 3;
    let question = |answer: &Answer| cut(&printable(&answer.question), widest);
    let longest = all.iter().map(|answer| question(answer).width()).max().unwrap_or(0);
    let rest = width.saturating_sub(longest.max("question".len()) + TIMES_COLUMNS);
    for answer in &all {
        let mut row = vec![question(answer)];
        row.extend(answer.wall_seconds.map(seconds));
        row.push(seconds(answer.cpu_seconds));
        row.push(cut(&printable(&answer.bottleneck), rest.max("bottleneck".len())));
        table.add_row(row.into_iter().enumerate().map(aligned));
    }
    out.push_str(&styled_lines(table, None, width));
    paragraph(out, "", &note_on_answers(record), width);
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::tests::{candidate, record};
    use super::*;

    #[test]
    fn the_unchanged_pipeline_is_predicted_too() {
        let record = record(Some(4.0), candidate(Some(3.0), 4.0));
        let text = plain_output(|out| answers(out, &record, 100));
        let unchanged = text.lines().find(|line| line.starts_with("unchanged")).expect("a row");
        assert!(unchanged.contains("4.00s") && !unchanged.contains("7.00s"), "{unchanged}");
        assert!(text.contains("took 7.00s"), "{text}");
    }

    #[test]
    fn the_answers_follow_the_unchanged_pipeline() {
        let record = record(Some(4.0), candidate(Some(3.0), 4.0));
        let all = all_answers(&record);
        let names: Vec<&str> = all.iter().map(|answer| answer.question.as_str()).collect();
        assert_eq!(names, ["unchanged", "cpus 8"]);
        assert!(all_answers(&PipeRecord::default()).is_empty());
    }

    #[test]
    fn on_a_busy_machine_answers_have_no_wall_times() {
        let busy = record(None, candidate(None, 4.0));
        let text = plain_output(|out| answers(out, &busy, 100));
        assert!(!text.contains("wall ") && !text.contains("3.50s"), "{text}");
        assert!(text.contains("Wall times are not predicted"), "{text}");
    }
}

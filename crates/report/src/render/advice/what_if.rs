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

/// Writes a table of the answers to `--what-if`. Writes nothing if there are none.
pub fn answers(out: &mut String, record: &PipeRecord, width: usize) {
    if record.what_if.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}What if{BOLD:#}");
    let now = unchanged(record);
    let mut headings = vec!["question", "CPU", "bottleneck"];
    let mut unchanged = vec!["unchanged".to_owned(), seconds(now.cpu_seconds), String::new()];
    if let Some(wall) = now.wall_seconds {
        headings.insert(1, "wall");
        unchanged.insert(1, seconds(wall));
    }
    let last = headings.len() - 1;
    let aligned = |(position, text): (usize, String)| {
        if position == last { Cell::new(text) } else { aligned_left(position, 1, text) }
    };
    let mut table = plain_table();
    table.set_header(headings.iter().map(|h| (*h).to_owned()).enumerate().map(aligned));
    table.add_row(unchanged.into_iter().enumerate().map(aligned));
    // The questions get a third of the line, and the last column gets the remainder beside the
    // times.
    let widest = width / 3;
    let question = |answer: &WhatIf| cut(&printable(&answer.question), widest);
    let longest = record.what_if.iter().map(|answer| question(answer).width()).max().unwrap_or(0);
    let rest = width.saturating_sub(longest.max("question".len()) + TIMES_COLUMNS);
    for answer in &record.what_if {
        let mut row = vec![
            question(answer),
            seconds(answer.cpu_seconds),
            cut(&printable(&answer.bottleneck), rest.max("bottleneck".len())),
        ];
        if now.wall_seconds.is_some() {
            row.insert(1, seconds(answer.wall_seconds));
        }
        table.add_row(row.into_iter().enumerate().map(aligned));
    }
    out.push_str(&styled_lines(table, None, width));
    let note = why_no_wall_times(record).unwrap_or_else(|| {
        "All rows are predictions; the unchanged pipeline took ".to_owned()
            + &seconds(record.wall_seconds)
            + "."
    });
    paragraph(out, "", &note, width);
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
    fn on_a_busy_machine_answers_have_no_wall_times() {
        let busy = record(None, candidate(None, 4.0));
        let text = plain_output(|out| answers(out, &busy, 100));
        assert!(!text.contains("wall ") && !text.contains("3.50s"), "{text}");
        assert!(text.contains("Wall times are not predicted"), "{text}");
    }
}

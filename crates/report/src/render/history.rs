//! Renders the list of stored runs.

use super::layout::{aligned_left, cut, fitted_lines, paragraph, plain_table};
use super::picture;
use super::text::printable;
use super::units::seconds;
use crate::store::Entry;
use unicode_width::UnicodeWidthStr;

/// Gap between two columns of the list, in columns.
const GAP: usize = 2;
/// Minimum width of a label in the list, in columns, if there is a longer one.
const MIN_LABEL_COLUMNS: usize = 16;
/// Minimum width of a title in the list, in columns.
const MIN_TITLE_COLUMNS: usize = 12;

/// Returns a table with a row for each run, for a terminal with `width` columns, or a sentence if
/// there are no runs. Machines are listed if there are several, and labels if there are any.
pub fn list(entries: &[Entry], width: usize) -> String {
    let Some(first) = entries.first() else {
        return "No runs are saved yet.\n".to_owned();
    };
    let longest = |text: fn(&Entry) -> &String| {
        entries.iter().map(|entry| printable(text(entry)).width()).max().unwrap_or(0)
    };
    let has_labels = entries.iter().any(|entry| !entry.label.is_empty());
    let has_hosts = entries.iter().any(|entry| entry.host != first.host);
    let mut headings = vec!["run", "started (UTC)", "kind", "ended"];
    headings.extend(has_hosts.then_some("host"));
    headings.extend(has_labels.then_some("label"));
    headings.push("measured");
    let columns = headings.len();
    let mut rows = vec![headings.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for entry in entries {
        let mut cells = vec![
            entry.id.to_string(),
            printable(&entry.started_at).replace('T', " ").replace('Z', ""),
            printable(kind(&entry.schema)),
            printable(&entry.ending),
        ];
        cells.extend(has_hosts.then(|| printable(&entry.host)));
        rows.push(cells);
    }
    let fixed = columns - 1 - usize::from(has_labels);
    let used: usize = (0..fixed)
        .map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0) + GAP)
        .sum();
    let room = width.saturating_sub(used);
    // A label takes the room that the longest title leaves, or up to half of it if both are long.
    let title = longest(|entry| &entry.title).max("measured".len());
    let label = if has_labels {
        let share = room.saturating_sub(title + GAP).max((room / 2).saturating_sub(GAP));
        longest(|entry| &entry.label).max("label".len()).min(share.max(MIN_LABEL_COLUMNS))
    } else {
        0
    };
    let taken = if has_labels { label + GAP } else { 0 };
    let room = room.saturating_sub(taken).max(MIN_TITLE_COLUMNS);
    for (row, entry) in rows[1..].iter_mut().zip(entries) {
        row.extend(has_labels.then(|| cut(&printable(&entry.label), label)));
        row.push(cut(&printable(&entry.title), room));
    }
    let mut table = plain_table();
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(column, text)| {
            let side = usize::from(column > 0);
            aligned_left(1 - side, 1, text)
        }));
    }
    fitted_lines(table, 1, width)
}

/// The wall times of runs of the same pipeline on the same machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// What was measured.
    pub title: String,
    /// The machine.
    pub host: String,
    /// Wall times in seconds, oldest first.
    pub wall_seconds: Vec<f64>,
}

/// Returns a line for each trend: a picture of the wall times, oldest first, from the shortest to the
/// longest, both in numbers, and what was measured. Empty without trends.
pub fn trends(trends: &[Trend], width: usize) -> String {
    const MAX_PICTURE_COLUMNS: usize = 24;
    if trends.is_empty() {
        return String::new();
    }
    let has_hosts = trends.iter().any(|one| one.host != trends[0].host);
    let headings = ["wall time", "range", "measured"];
    let mut rows = vec![headings.map(str::to_owned)];
    for trend in trends {
        let (least, most) = trend
            .wall_seconds
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), time| (low.min(*time), high.max(*time)));
        let picture = picture::trend(&trend.wall_seconds, MAX_PICTURE_COLUMNS.min(width / 3));
        let title = if has_hosts {
            format!("{}: {}", printable(&trend.host), printable(&trend.title))
        } else {
            printable(&trend.title)
        };
        rows.push([picture, format!("{} to {}", seconds(least), seconds(most)), title]);
    }
    let used = |column: usize| {
        let widest = rows.iter().map(|row: &[String; 3]| row[column].width()).max();
        widest.unwrap_or(0) + GAP
    };
    let room = width.saturating_sub(used(0) + used(1)).max(MIN_TITLE_COLUMNS);
    let mut table = plain_table();
    for [picture, range, title] in rows {
        table.add_row([picture, range, cut(&title, room)].map(|text| aligned_left(0, 1, text)));
    }
    fitted_lines(table, 1, width)
}

/// Returns the first line of the report of a saved run of the lab: its number, label and start, and
/// what it measured. `is_quick` says whether the run measured a smaller form of its cases.
pub fn heading(entry: &Entry, is_quick: bool, width: usize) -> String {
    let label = match printable(&entry.label) {
        label if label.is_empty() => label,
        label => format!(" ({label})"),
    };
    let started = printable(&entry.started_at).replace('T', " ").replace('Z', " UTC");
    let quick = if is_quick { ", --quick" } else { "" };
    let title = printable(&entry.title);
    let text = format!("run {}{label}, {started}{quick}: {title}", entry.id);
    let mut out = String::new();
    paragraph(&mut out, "", &text, width);
    out
}

/// Returns the word for the kind of a record with the given schema: `pipe`, `versus`, `run`, `doctor`,
/// `lab`. Returns a schema of another program unchanged.
pub fn kind(schema: &str) -> &str {
    schema.strip_prefix("contend.").and_then(|rest| rest.split('/').next()).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: i64, schema: &str, title: &str, ending: &str) -> Entry {
        Entry {
            id,
            started_at: "2026-01-02T03:04:05Z".into(),
            schema: schema.into(),
            title: title.into(),
            ending: ending.into(),
            label: String::new(),
            host: "here".into(),
        }
    }

    fn text(entries: &[Entry]) -> String {
        anstream::adapter::strip_str(&list(entries, 80)).to_string()
    }

    #[test]
    fn each_run_is_one_line() {
        let lab = entry(7, "contend.lab/1", "suite process-thread", "complete");
        let pipe = entry(12, "contend.pipe/1", "sort x | uniq -c", "exit 0");
        insta::assert_snapshot!(text(&[pipe, lab]), @r"
        run  started (UTC)        kind  ended     measured
         12  2026-01-02 03:04:05  pipe  exit 0    sort x | uniq -c
          7  2026-01-02 03:04:05  lab   complete  suite process-thread
        ");
        assert_eq!(list(&[], 80), "No runs are saved yet.\n");
    }

    #[test]
    fn trends_are_pictures_with_their_range() {
        let trend = |title: &str, host: &str, wall_seconds: &[f64]| Trend {
            title: title.to_owned(),
            host: host.to_owned(),
            wall_seconds: wall_seconds.to_vec(),
        };
        let one = trend("sort x | uniq -c", "here", &[0.5, 0.51, 0.6]);
        let other = trend("zcat log.gz | grep -c error", "there", &[2.0; 4]);
        let plain =
            |list: &[Trend], width| anstream::adapter::strip_str(&trends(list, width)).to_string();
        insta::assert_snapshot!(plain(&[one.clone(), other], 60), @r"
        wall time range          measured
        ▁▂█       500ms to 600ms here: sort x | uniq -c
        ▄▄▄▄      2.00s to 2.00s there: zcat log.gz | grep -c err…
        ");
        insta::assert_snapshot!(plain(&[one], 40), @r"
        wall time range          measured
        ▁▂█       500ms to 600ms sort x | uni…
        ");
        assert_eq!(trends(&[], 80), "");
    }

    #[test]
    fn the_heading_of_a_report_identifies_the_run() {
        let lab = entry(3, "contend.lab/1", "units/create", "complete");
        let text = "run 3, 2026-01-02 03:04:05 UTC: units/create\n";
        assert_eq!(heading(&lab, false, 80), text);
        let text = "run 3 (switch), 2026-01-02 03:04:05 UTC, --quick: units/create\n";
        assert_eq!(heading(&Entry { label: "switch".into(), ..lab }, true, 80), text);
    }

    #[test]
    fn a_label_takes_the_room_that_titles_leave() {
        let label = "before the change of the number of workers";
        let with = |title: &str| {
            let run = entry(1, "contend.pipe/1", title, "exit 0");
            text(&[Entry { label: label.into(), ..run }])
        };
        insta::assert_snapshot!(with("true"), @r"
        run  started (UTC)        kind  ended   label                           measured
          1  2026-01-02 03:04:05  pipe  exit 0  before the change of the numb…  true
        ");
        insta::assert_snapshot!(with("sort words.txt | uniq -c | sort -rn | head -n 20"), @r"
        run  started (UTC)        kind  ended   label               measured
          1  2026-01-02 03:04:05  pipe  exit 0  before the change…  sort words.txt | un…
        ");
    }

    #[test]
    fn machines_and_labels_have_columns_if_they_matter() {
        let pipe =
            Entry { label: "before".into(), ..entry(1, "contend.pipe/1", "sort x", "exit 0") };
        let other = Entry { host: "there".into(), ..entry(2, "contend.run/1", "sort x", "exit 0") };
        insta::assert_snapshot!(text(&[other, pipe]), @r"
        run  started (UTC)        kind  ended   host   label   measured
          2  2026-01-02 03:04:05  run   exit 0  there          sort x
          1  2026-01-02 03:04:05  pipe  exit 0  here   before  sort x
        ");
    }
}

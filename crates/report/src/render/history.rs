//! Renders the list of stored runs.

use super::layout::{aligned_left, cut, fitted_lines, plain_table};
use super::text::printable;
use crate::store::Entry;

/// Returns a table with a row for each run, for a terminal with `width` columns, or a sentence if
/// there are no runs.
pub fn list(entries: &[Entry], width: usize) -> String {
    if entries.is_empty() {
        return "No runs are saved yet.\n".to_owned();
    }
    let mut table = plain_table();
    let row = |cells: [String; 4]| {
        cells.into_iter().enumerate().map(|(i, text)| {
            let side = usize::from(i > 0);
            aligned_left(1 - side, 1, text)
        })
    };
    table.add_row(row(["run", "started (UTC)", "ended", "measured"].map(str::to_owned)));
    for entry in entries {
        let started = entry.started_at.replace('T', " ").replace('Z', "");
        let what = cut(&printable(&entry.title), width.saturating_sub(46).max(12));
        table.add_row(row([entry.id.to_string(), started, entry.ending.clone(), what]));
    }
    fitted_lines(table, 1, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_one_line() {
        let entry = Entry {
            id: 7,
            started_at: "2026-01-02T03:04:05Z".into(),
            schema: "contend.lab/1".into(),
            title: "suite process-thread".into(),
            ending: "complete".into(),
        };
        let text = anstream::adapter::strip_str(&list(&[entry], 80)).to_string();
        insta::assert_snapshot!(text, @r"
        run  started (UTC)        ended     measured
          7  2026-01-02 03:04:05  complete  suite process-thread
        ");
        assert_eq!(list(&[], 80), "No runs are saved yet.\n");
    }
}

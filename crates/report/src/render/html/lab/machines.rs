//! The page of several runs of the lab, such as those of different machines: the source document's table,
//! if it has one, and each experiment with a bar for each run.

use contend_record::lab::{Case, Chapter, RunRecord, Unit};
use maud::{Markup, html};

use super::super::chart::Colour;
use super::super::chart::rows::{self, Row};
use super::super::frame::{Figure, Page};
use super::super::table::{Cell, Table};
use super::super::{machine, number_of};
use super::{MAX_BARS, case_name, format_of, interval_text, short_name, title};
use crate::render::lab::source;
use crate::render::lab::synchronisation::report_rows;
use crate::render::text::printable;
use crate::render::units::cpus;

/// Largest number of runs on one page, which is that of distinct colours.
pub const MAX_RUNS: usize = 8;

/// Returns the page of several runs, with a name for each, in this order; at most [`MAX_RUNS`] are shown.
///
/// # Errors
/// Returns an error if a record cannot be written as JSON.
pub fn page(runs: &[(String, &RunRecord)]) -> serde_json::Result<String> {
    let runs = &runs[..runs.len().min(MAX_RUNS)];
    let records: Vec<&RunRecord> = runs.iter().map(|(_, record)| *record).collect();
    let subject = format!("lab: {}", number_of(runs.len(), "run"));
    let mut sections = vec![("Runs".to_owned(), machines(runs).markup("Runs"))];
    if let Some(table) = document(runs) {
        let citation = source::of(Chapter::Synchronisation).citation();
        let note = "Cells: largest CPU load in percent of all CPUs, seconds for 10,000 turns. `tick`: sleeps end at \
                    multiples of 15.625 ms, as on Windows. Rows 5 to 7 do a fixed amount of work here, half a minute \
                    in the report.";
        let section = html! {
            (table.markup("Table 3.1 of the report, with these runs"))
            p.method { (note) }
            p.method { (citation) }
        };
        sections.push(("The report's table".to_owned(), section));
    }
    let mut experiments: Vec<&str> = Vec::new();
    for record in &records {
        experiments.extend(
            record
                .experiments()
                .into_iter()
                .filter(|name| !experiments.contains(name))
                .collect::<Vec<_>>(),
        );
    }
    for name in experiments {
        sections.push((name.to_owned(), experiment(runs, name)));
    }
    let page = Page {
        subject: &subject,
        kind: "lab",
        facts: runs.iter().map(|(name, _)| printable(name)).collect(),
        result: html! { p { "The same experiments on " (number_of(runs.len(), "run")) ". Figures are medians." } },
        sections,
        warnings: Vec::new(),
        origin: Vec::new(),
        record: serde_json::to_string(&records)?,
    };
    Ok(page.render())
}

/// Returns the runs with their machines.
fn machines(runs: &[(String, &RunRecord)]) -> Table {
    let mut table = Table::new(&["run", "machine", "started at", "measured with"]);
    for (name, record) in runs {
        table.push(vec![
            printable(name).into(),
            printable(&machine(&record.host)).into(),
            printable(&record.started_at).into(),
            record.contend.as_ref().map_or_else(String::new, ToString::to_string).into(),
        ]);
    }
    table
}

/// Returns the table of the synchronisation report; `None` if no run has measured its programs.
fn document(runs: &[(String, &RunRecord)]) -> Option<Table> {
    let records: Vec<&RunRecord> = runs.iter().map(|(_, record)| *record).collect();
    let rows = report_rows(&records);
    if rows.is_empty() {
        return None;
    }
    let has_tick: Vec<bool> = (0..runs.len())
        .map(|run| rows.iter().any(|row| !row.measured[run][1].is_empty()))
        .collect();
    let mut headings: Vec<String> = ["No", "main to sub", "sub to main"].map(str::to_owned).into();
    headings.extend(["1 core", "2 cores", "4 cores"].map(|cores| format!("report, {cores}")));
    for ((name, record), has_tick) in runs.iter().zip(&has_tick) {
        let name = format!("{}, {} CPUs", printable(name), cpus(record.host.usable_cpus()));
        headings.push(name.clone());
        headings.extend(has_tick.then(|| format!("{name}, tick")));
    }
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for row in &rows {
        let mut cells: Vec<Cell> = vec![row.number.into()];
        cells.extend(row.mechanisms.map(Cell::from));
        cells.extend(row.document.map(Cell::from));
        for ([here, tick], has_tick) in row.measured.iter().zip(&has_tick) {
            cells.push(here.clone().into());
            cells.extend(has_tick.then(|| Cell::from(tick.clone())));
        }
        table.push(cells);
    }
    Some(table)
}

/// Returns the figures of an experiment, one for each unit.
fn experiment(runs: &[(String, &RunRecord)], name: &str) -> Markup {
    let cases = |record: &'_ RunRecord| -> Vec<Case> {
        let all = record.cases.iter();
        all.filter(|case| case.experiment == name && case.median.is_some()).cloned().collect()
    };
    let of_runs: Vec<Vec<Case>> = runs.iter().map(|(_, record)| cases(record)).collect();
    let mut units: Vec<Unit> = Vec::new();
    for case in of_runs.iter().flatten() {
        if !units.contains(&case.unit) {
            units.push(case.unit);
        }
    }
    html! { @for unit in units { (figure(runs, &of_runs, name, unit).markup()) } }
}

fn figure(runs: &[(String, &RunRecord)], of_runs: &[Vec<Case>], name: &str, unit: Unit) -> Figure {
    let format = format_of(unit);
    // The cases of the first run that has each.
    let mut known: Vec<&Case> = Vec::new();
    for case in of_runs.iter().flatten().filter(|case| case.unit == unit) {
        if !known.iter().any(|other| other.parameters.has_same_entries(&case.parameters)) {
            known.push(case);
        }
    }
    let mut headings = vec!["case".to_owned()];
    headings.extend(runs.iter().map(|(name, _)| format!("#{}", printable(name))));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    let mut bars = Vec::new();
    for case in &known {
        let of_run = |cases: &'_ Vec<Case>| {
            let mut same = cases.iter().filter(|other| {
                other.unit == unit && other.parameters.has_same_entries(&case.parameters)
            });
            same.next().cloned()
        };
        let found: Vec<Option<Case>> = of_runs.iter().map(of_run).collect();
        let mut row: Vec<Cell> = vec![case_name(case).into()];
        for (run, found) in found.iter().enumerate() {
            let Some((case, median)) = found.as_ref().and_then(|case| Some((case, case.median?)))
            else {
                row.push(Cell::default());
                continue;
            };
            row.push(Cell::number(interval_text(case, format), median));
            let label = format!("{}: {}", printable(&runs[run].0), short_name(case, &known));
            let bar = Row::bar(label, median.max(0.0), interval_text(case, format), Colour(run));
            bars.push(Row { interval: case.ci95, ..bar });
        }
        table.push(row);
    }
    let shown = bars.len().min(MAX_BARS);
    let alternative =
        format!("Bars of {name} for each of {} and each case.", number_of(runs.len(), "run"));
    let scale = rows::scale(&bars[..shown]);
    let more = match bars.len() - shown {
        0 => String::new(),
        more => format!(" {more} more bars are left out; the table has all cases."),
    };
    Figure {
        title: title(name, unit),
        legend: runs
            .iter()
            .enumerate()
            .map(|(run, (name, _))| (Colour(run), printable(name)))
            .collect(),
        chart: rows::draw(&bars[..shown], &scale, format, &[], &alternative),
        table,
        method: format!("Medians with 95 % intervals, on a common scale.{more}"),
    }
}

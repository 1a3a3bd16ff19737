//! The page of several runs of the lab, such as those of different machines: the source document's table,
//! if it has one, and each experiment with a bar for each run.

use contend_record::lab::{Case, Chapter, RunRecord, Unit};
use contend_record::parameters::Parameters;
use maud::{Markup, html};

use super::super::chart::Colour;
use super::super::chart::rows::{self, Row};
use super::super::frame::{Figure, Page};
use super::super::table::{Cell, Table};
use super::super::{machine, number_of, prose};
use super::{
    MAX_BARS, axis, case_name, cases_of, facts, format_of, interval_text, marks, method, models,
    short_name, title, unmeasured,
};
use crate::compare;
use crate::render::lab::synchronisation::report_rows;
use crate::render::lab::{run_warnings, source};
use crate::render::text::printable;
use crate::render::units::cpus;

/// Largest number of runs on one page, which is that of distinct colours.
pub const MAX_RUNS: usize = 8;

/// A case of any run.
struct Matched<'a> {
    /// Its parameters, without those in which equal cases may differ.
    parameters: Parameters,
    /// The case of each run; `None` if a run does not include it.
    cases: Vec<Option<&'a Case>>,
}

impl AsRef<Parameters> for Matched<'_> {
    fn as_ref(&self) -> &Parameters {
        &self.parameters
    }
}

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
            p.method { (prose(note)) }
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
    let rows = compare::rows(&records);
    for name in experiments {
        sections.push((name.to_owned(), experiment(runs, &rows, name)));
    }
    let warnings = runs.iter().flat_map(|(name, record)| {
        run_warnings(record).into_iter().map(move |message| format!("{name}: {message}"))
    });
    let page = Page {
        subject: &subject,
        kind: "lab",
        facts: runs.iter().map(|(name, _)| printable(name)).collect(),
        result: html! { p { "The same experiments on " (number_of(runs.len(), "run")) ". Figures are medians." } },
        sections,
        warnings: warnings.collect(),
        // The first section has the machines.
        origin: Vec::new(),
        record: serde_json::to_string(&records)?,
    };
    Ok(page.render())
}

/// Returns the runs with their machines, and how they went.
fn machines(runs: &[(String, &RunRecord)]) -> Table {
    let mut table = Table::new(&["run", "machine", "started at", "measured with", "result"]);
    for (name, record) in runs {
        table.push(vec![
            printable(name).into(),
            printable(&machine(&record.host)).into(),
            printable(&record.started_at).into(),
            record.contend.as_ref().map_or_else(String::new, ToString::to_string).into(),
            facts(record).join(", ").into(),
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

/// Returns the figures of an experiment, one for each unit, and what each run could not measure.
fn experiment(runs: &[(String, &RunRecord)], rows: &[compare::Row<'_>], name: &str) -> Markup {
    let is_of_it =
        |row: &&compare::Row<'_>| row.iter().flatten().any(|case| case.experiment == name);
    let all: Vec<Matched<'_>> = rows
        .iter()
        .filter(is_of_it)
        .map(|row| Matched { parameters: compare::parameters(row), cases: row.clone() })
        .collect();
    let mut units: Vec<Unit> = Vec::new();
    for case in all.iter().flat_map(|row| row.cases.iter().flatten()) {
        if case.median.is_some() && !units.contains(&case.unit) {
            units.push(case.unit);
        }
    }
    let named: Vec<(&str, &RunRecord)> =
        runs.iter().map(|(name, record)| (name.as_str(), *record)).collect();
    html! {
        @for unit in units { (figure(runs, &all, name, unit).markup()) }
        @for (run, record) in runs {
            (unmeasured(Some(run), &cases_of(record, name)))
        }
        (models::markup(&named, name))
    }
}

fn figure(runs: &[(String, &RunRecord)], all: &[Matched<'_>], name: &str, unit: Unit) -> Figure {
    let is_measured = |case: &Case| case.unit == unit && case.median.is_some();
    let known: Vec<&Matched<'_>> =
        all.iter().filter(|row| row.cases.iter().flatten().any(|case| is_measured(case))).collect();
    let measured: Vec<&Case> = known
        .iter()
        .flat_map(|row| row.cases.iter().flatten().copied())
        .filter(|case| is_measured(case))
        .collect();
    let mut bars = bars(runs, &known, unit);
    let scale = rows::bars_or_points(&mut bars);
    let alternative = format!(
        "{} of {name} for each of {} and each case.",
        marks(&scale),
        number_of(runs.len(), "run")
    );
    let more = match measured.len() - bars.len() {
        0 => String::new(),
        more => format!(" {more} more figures are only in the table."),
    };
    Figure {
        title: title(name, unit),
        legend: runs
            .iter()
            .enumerate()
            .map(|(run, (name, _))| (Colour(run), printable(name)))
            .collect(),
        chart: rows::draw(&bars, &scale, format_of(unit), &[], &alternative),
        table: table(runs, &known, unit),
        method: format!("{}{}{more}", method(&measured), axis(&scale)),
    }
}

/// Returns a bar for each case and run, at most [`MAX_BARS`]. Its label names the case, and its figure the run.
fn bars(runs: &[(String, &RunRecord)], known: &[&Matched<'_>], unit: Unit) -> Vec<Row> {
    let format = format_of(unit);
    let mut bars = Vec::new();
    for row in known.iter().take(MAX_BARS) {
        let label = short_name(*row, known);
        for (run, case) in row.cases.iter().enumerate() {
            let Some((case, median)) = of_unit(*case, unit) else { continue };
            let value = format!("{}: {}", printable(&runs[run].0), interval_text(case, format));
            let bar = Row::bar(label.clone(), median, value, Colour(run));
            bars.push(Row { interval: case.ci95, ..bar });
        }
    }
    bars.truncate(MAX_BARS);
    bars
}

/// Returns a table with a row for each case and a column for each run.
fn table(runs: &[(String, &RunRecord)], known: &[&Matched<'_>], unit: Unit) -> Table {
    let mut headings = vec!["case".to_owned()];
    headings.extend(runs.iter().map(|(name, _)| format!("#{}", printable(name))));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for row in known {
        let mut cells: Vec<Cell> = vec![case_name(*row).into()];
        cells.extend(row.cases.iter().map(|case| match of_unit(*case, unit) {
            Some((case, median)) => Cell::number(interval_text(case, format_of(unit)), median),
            None => Cell::default(),
        }));
        table.push(cells);
    }
    table
}

/// Returns a case with its median, if it was measured in the given unit.
fn of_unit(case: Option<&Case>, unit: Unit) -> Option<(&Case, f64)> {
    let case = case.filter(|case| case.unit == unit)?;
    Some((case, case.median?))
}

#[cfg(test)]
mod tests {
    use contend_record::Warning;
    use contend_record::lab::{Ending, Fit, View};
    use contend_record::stats::Line;
    use contend_record::warning::WarningId;

    use super::super::tests::labels;
    use super::*;
    use crate::render::lab::sample;

    fn case(turns: u64, value: f64) -> Case {
        let parameters = Parameters::new().with("placement", "free").with("turns", turns);
        sample::case(("handoff/0", View::HandoffPreset), parameters, value, &[])
    }

    fn text(records: &[RunRecord]) -> String {
        let names = ["one", "two"].map(str::to_owned);
        let runs: Vec<(String, &RunRecord)> = names.into_iter().zip(records).collect();
        let page = page(&runs).expect("JSON");
        page.split_once("<script").expect("the record").0.to_owned()
    }

    #[test]
    fn cases_that_were_scaled_from_different_turns_are_in_one_row() {
        let records = [96, 19].map(|turns| sample::record(None, vec![case(turns, 1e9)]));
        let text = text(&records);
        let row =
            "<td>placement=free</td><td class=\"number\" data-value=\"1000000000\">1.00s</td>";
        assert_eq!(text.matches(row).count(), 1, "{text}");
        assert!(!text.contains("turns="), "{text}");
        assert_eq!(text.matches("class=\"mark c").count(), 2, "{text}");
    }

    #[test]
    fn equal_cases_of_one_run_have_a_row_each() {
        let records =
            [[1e9, 2e9], [3e9, 4e9]].map(|values| values.map(|value| case(96, value)).to_vec());
        let text = text(&records.map(|cases| sample::record(None, cases)));
        for value in ["1.00s", "2.00s", "3.00s", "4.00s"] {
            assert!(text.contains(&format!(">{value}</td>")), "{value}: {text}");
        }
    }

    #[test]
    fn each_run_has_its_warnings_its_ending_and_what_it_did_not_measure() {
        let mut quiet = sample::record(None, vec![case(96, 1e9)]);
        let mut skipped = case(96, 1e9);
        (skipped.median, skipped.samples) = (None, Vec::new());
        skipped.skipped = Some("no room".to_owned());
        let mut failed = case(19, 1e9);
        (failed.median, failed.samples) = (None, Vec::new());
        failed.parameters = Parameters::new().with("placement", "same-cpu");
        let mut cut = sample::record(None, vec![skipped, failed]);
        (cut.quick, cut.ending) = (true, Ending::Interrupted);
        cut.warnings.push(Warning::new(WarningId::Frequency, "the processor was hot"));
        let line = Line { slope: 2048.0, slope_ci95: None, intercept: 0.0, points: 3 };
        quiet.fits.push(Fit {
            experiment: "handoff/0".to_owned(),
            parameters: Parameters::new(),
            over: "turns".to_owned(),
            metric: "value".to_owned(),
            unit: Unit::Nanoseconds,
            line,
        });
        let text = text(&[quiet, cut]);
        for expected in [
            "</strong>two: the processor was hot",
            "two: not measured: placement=free turns=96: no room",
            "two: no samples: placement=same-cpu: the run did not reach it",
            "0 of 2 cases measured, 1.00s, seed 1, interrupted, a smaller form of the cases (--quick)",
            "Lines through the cases",
            "<td>turns</td><td class=\"number\" data-value=\"2048\">2.05µs</td>",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn the_method_follows_from_the_samples_and_runs_are_in_the_figures() {
        let one = || sample::record(None, vec![case(96, 1e9), case(19, 1e12)]);
        let text = text(&[one(), one()]);
        assert!(text.contains("Medians of 2 samples for each case. The axis is log"), "{text}");
        assert!(!text.contains("95 %"), "{text}");
        assert_eq!(labels(&text), ["turns=96", "turns=96", "turns=19", "turns=19"]);
        assert!(text.contains(">one: 1.00s</text>") && text.contains(">two: 1.00s</text>"));
        assert!(text.contains("data-text=\"turns=96: two: 1.00s\""), "{text}");
    }
}

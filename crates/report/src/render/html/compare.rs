//! The page of a comparison of runs of the lab.

use contend_record::compare::{Case, CompareRecord, Figure as Figures, Run, Side};
use contend_record::lab::Unit;
use contend_record::stats::Ratio;
use maud::{Markup, html};

use super::chart::rows::{self, Row};
use super::chart::{COLOURS, Colour};
use super::frame::{Figure, Page};
use super::lab::short_name;
use super::table::{Cell, Table};
use super::{machine, number_of};
use crate::render::compare::section::{
    MISSING, disturbed, doubt, in_tables, legend, metrics_of, quantity_of,
};
use crate::render::compare::unequal::{self, unequal};
use crate::render::compare::{runs as described, warnings};
use crate::render::lab::disturbance::MARK;
use crate::render::lab::shown;
use crate::render::lab::table::spread;
use crate::render::text::printable;
use crate::render::units::ratio;

/// Largest number of bars in a chart. The table has all cases.
const MAX_BARS: usize = 40;
/// Largest number of runs with bars, each in its own colour. The table has all runs.
const MAX_DRAWN_RUNS: usize = COLOURS;

/// The ratio of equal figures, at which a line goes through the bars.
const EQUAL: [f64; 1] = [1.0];

/// Returns the page of a comparison.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &CompareRecord) -> serde_json::Result<String> {
    let names: Vec<&str> = record.runs.iter().map(|run| run.name.as_str()).collect();
    let subject = format!("lab runs {}", names.join(", "));
    let compared = || in_tables(record);
    let facts = vec![
        number_of(record.runs.len(), "run"),
        format!("{} in at least two of them", number_of(compared().count(), "case")),
    ];
    let runs = runs(record).markup("Compared runs");
    let mut sections = vec![("Runs".to_owned(), runs)];
    for name in record.experiments() {
        let cases: Vec<&Case> = compared().filter(|case| case.experiment == name).collect();
        if !cases.is_empty() {
            sections.push((printable(name), experiment(record, name, &cases).markup()));
        }
    }
    let differences = unmeasured(record);
    sections.extend(differences.map(|markup| (unequal::HEADING.to_owned(), markup)));
    let mut origin = Vec::new();
    origin.extend(record.contend.as_ref().map(|writer| ("Compared with", writer.to_string())));
    let page = Page {
        subject: &subject,
        kind: "compare",
        facts,
        result: result(record),
        sections,
        warnings: warnings(record),
        origin,
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

/// Returns the baseline of the ratios, their meaning, and the legend of the signs in the tables.
fn result(record: &CompareRecord) -> Markup {
    let baseline = record.runs.first().map_or("", |run| run.name.as_str());
    let mut units: Vec<&str> = Vec::new();
    for unit in in_tables(record).filter_map(|case| case.value.as_ref()).map(|value| value.unit) {
        let more = match unit {
            Unit::Nanoseconds => "time",
            Unit::Bytes => "bytes",
            Unit::Units => "units",
            Unit::Count => "events",
        };
        if !units.contains(&more) {
            units.push(more);
        }
    }
    let meaning = match units.as_slice() {
        [] => String::new(),
        [one] => format!(" Above 1 means more {one} than there."),
        [others @ .., last] => {
            format!(" Above 1 means more {} or {last} than there.", others.join(", "))
        }
    };
    let signs = legend(record);
    html! {
        p { "Ratios are to run " strong { (printable(baseline)) } "." (meaning) }
        @if !signs.is_empty() { p { (signs) } }
    }
}

/// Returns the cases that not all runs have measured, with the reasons; `None` if there are none.
fn unmeasured(record: &CompareRecord) -> Option<Markup> {
    let kinds = unequal(record);
    let list = html! {
        @for kind in &kinds {
            p { (kind.standing) }
            ul { @for cases in &kind.cases { li { (cases) } } }
        }
    };
    (!kinds.is_empty()).then_some(list)
}

/// The compared runs with their machines, and how they went.
fn runs(record: &CompareRecord) -> Table {
    let mut table = Table::new(&["run", "from", "machine", "started at", "contend", "result"]);
    for (index, run) in record.runs.iter().enumerate() {
        let writer = run.contend.as_ref().map(ToString::to_string).unwrap_or_default();
        table.push(vec![
            printable(&run.name).into(),
            printable(&described::origin(run)).into(),
            printable(&machine(&run.host)).into(),
            printable(&run.started_at).into(),
            printable(&writer).into(),
            printable(&described::content_and_result(record, index, run)).into(),
        ]);
    }
    table
}

/// The ratios of all cases of an experiment; without any, only the figures of the runs.
fn experiment(record: &CompareRecord, name: &str, cases: &[&Case]) -> Figure {
    let bars = bars(record, cases);
    if bars.is_empty() {
        return Figure {
            title: printable(name),
            legend: Vec::new(),
            chart: html! {},
            table: table(record, cases),
            method: method(record, cases, &bars),
        };
    }
    let drawn = record.runs.iter().enumerate().take(MAX_DRAWN_RUNS).skip(1);
    let alternative = format!(
        "Bars of {name}: the ratio of each case in {} to the first run, which is the line at 1.",
        number_of(record.runs.len().saturating_sub(1), "other run")
    );
    let shown = &bars[..bars.len().min(MAX_BARS)];
    Figure {
        title: format!("{}: ratio to the first run", printable(name)),
        legend: drawn.map(|(number, run)| (Colour(number), printable(&run.name))).collect(),
        chart: rows::draw(shown, &rows::scale_with(shown, &EQUAL), ratio, &EQUAL, &alternative),
        table: table(record, cases),
        method: method(record, cases, &bars),
    }
}

/// Returns how the ratios were computed, and what the chart lacks.
fn method(record: &CompareRecord, cases: &[&Case], bars: &[Row]) -> String {
    let mut sentences = vec![match bars {
        [] => "Medians.".to_owned(),
        _ if bars.iter().any(|bar| bar.interval.is_some()) => {
            "Ratios of medians; thin lines are 95 % intervals (percentile bootstrap).".to_owned()
        }
        _ => "Ratios of medians.".to_owned(),
    }];
    if let Some(more @ 1..) = bars.len().checked_sub(MAX_BARS) {
        sentences.push(format!("{more} more ratios are in the table."));
    }
    if let (Some(more @ 1..), [_, ..]) = (record.runs.len().checked_sub(MAX_DRAWN_RUNS), bars) {
        let more = number_of(more, "more run");
        sentences.push(format!("The ratios of {more} are only in the table."));
    }
    let lacks_first = |case: &&&Case| !case.sides.first().is_some_and(Side::is_measured);
    let lacking = cases.iter().filter(lacks_first).count();
    if let (1.., Some(first)) = (lacking, record.runs.first()) {
        let cases = number_of(lacking, "case");
        sentences.push(format!("No ratios of {cases}, as run {} lacks them.", first.name));
    }
    let quantity = cases.first().map_or("", |case| quantity_of(case));
    if !quantity.is_empty() {
        sentences.push(format!("Figures: {quantity}."));
    }
    sentences.join(" ")
}

/// Returns a bar for each ratio of the runs that have bars. Its label names the case, and its figure the run.
fn bars(record: &CompareRecord, cases: &[&Case]) -> Vec<Row> {
    let mut bars = Vec::new();
    for case in cases {
        let Some(value) = &case.value else { continue };
        let label = short_name(*case, cases);
        let runs = record.runs.iter().zip(&value.ratios).enumerate().take(MAX_DRAWN_RUNS);
        bars.extend(
            runs.skip(1).filter_map(|(number, (run, found))| {
                Some(bar(&label, run, number, found.as_ref()?))
            }),
        );
    }
    bars
}

/// Returns a table with a row for each case: the median of each run with its further metrics, and the ratio of
/// each run to the first one.
fn table(record: &CompareRecord, cases: &[&Case]) -> Table {
    let metrics = cases.first().map_or(&[][..], |case| metrics_of(case));
    let mut headings = vec!["case".to_owned()];
    for run in &record.runs {
        let name = printable(&run.name);
        headings.push(format!("#{name}"));
        headings.extend(metrics.iter().map(|(heading, _)| format!("#{name} {heading}")));
    }
    headings
        .extend(record.runs.iter().skip(1).map(|run| format!("#{} ratio", printable(&run.name))));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for case in cases {
        let mut row: Vec<Cell> = vec![printable(&case.parameters.to_string()).into()];
        for run in 0..record.runs.len() {
            let mark = disturbed(case, run).map(|_| MARK);
            row.push(median(case.value.as_ref(), run, mark));
            row.extend(
                metrics.iter().map(|(_, metric)| median(case.metrics.get(*metric), run, None)),
            );
        }
        row.extend((1..record.runs.len()).map(|run| {
            let found = case.value.as_ref().and_then(|value| value.ratios.get(run)?.as_ref());
            found.map_or_else(|| MISSING.into(), |found| Cell::number(text(found), found.ratio))
        }));
        table.push(row);
    }
    table
}

/// Returns the cell of the median of a run with the given mark.
fn median(figures: Option<&Figures>, run: usize, mark: Option<char>) -> Cell {
    let found =
        figures.and_then(|figures| Some((figures.medians.get(run).copied()??, figures.unit)));
    found.map_or_else(
        || MISSING.into(),
        |(value, unit)| {
            Cell::number(shown(value, unit).chars().chain(mark).collect::<String>(), value)
        },
    )
}

fn bar(label: &str, run: &Run, number: usize, found: &Ratio) -> Row {
    let value = format!("{}: {}", printable(&run.name), text(found));
    Row { interval: found.ci95, ..Row::bar(label, found.ratio, value, Colour(number)) }
}

/// Returns a ratio with the mark of a doubtful one, and with its interval or its range.
fn text(found: &Ratio) -> String {
    let value: String = ratio(found.ratio).chars().chain(doubt(found)).collect();
    format!("{value} {}", spread(found.ci95, found.range, ratio)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use contend_record::Warning;
    use contend_record::compare::Origin;
    use contend_record::lab::{self, Metric, View};
    use contend_record::parameters::Parameters;
    use contend_record::warning::WarningId;

    use super::super::lab::tests::labels;
    use super::*;
    use crate::compare::compare;
    use crate::compare::tests::{case, run};
    use crate::render::testing::LAB;

    /// Returns the page of a comparison, without its record.
    fn page_of(runs: Vec<Vec<lab::Case>>) -> String {
        let record = compare(&runs.into_iter().map(run).collect::<Vec<_>>());
        let page = page(&record).expect("JSON");
        page.split_once("<script").expect("the record").0.to_owned()
    }

    #[test]
    fn cases_that_not_all_runs_have_are_listed() {
        let mut skipped = case(2, &[]);
        skipped.skipped = Some("no room".to_owned());
        let text = page_of(vec![
            vec![case(1, &[1.0; 9]), skipped],
            vec![case(1, &[2.0; 9]), case(2, &[2.0; 9])],
            vec![case(2, &[3.0; 9])],
        ]);
        for expected in [
            "<h2>Not measured in all runs</h2>",
            "<p>measured in A and B; not part of C:</p><ul><li>units/create kind=fork n=1</li></ul>",
            "<p>measured in B and C; not measured in A (no room):</p>",
            "No ratios of 1 case, as run A lacks them.",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let same = page_of(vec![vec![case(1, &[1.0; 9])]; 2]);
        assert!(text.contains("<td class=\"number\">-</td>"), "{text}");
        assert!(!same.contains("Not measured in all runs") && !same.contains("No ratios"));
    }

    #[test]
    fn disturbed_and_doubtful_figures_are_marked_and_explained() {
        let mut disturbed = case(1, &[2.0; 9]);
        disturbed.disturbed = vec![1];
        disturbed.warnings = vec![Warning::new(WarningId::OtherLoad, "1 of 9 samples")];
        let text = page_of(vec![
            vec![case(1, &[2.0; 9]), case(2, &[1.0; 2])],
            vec![disturbed, case(2, &[3.0; 2])],
        ]);
        for expected in [
            ">2.00ns!</td>",
            ">1.00~ [1.00, 1.00]</td>",
            ">3.00? (3.00 to 3.00)</td>",
            "!: some samples were disturbed by other load.",
            "</strong>B: units/create kind=fork n=1: 1 of 9 samples",
            "2 of 2 cases measured; against A: 1 within noise, 1 with too few samples",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn the_meaning_of_a_ratio_follows_from_the_units() {
        let with_unit = |n, unit| {
            let mut case = case(n, &[1.0; 9]);
            case.unit = unit;
            case
        };
        let page = |cases: Vec<lab::Case>| page_of(vec![cases.clone(), cases]);
        assert!(page(vec![case(1, &[1.0; 9])]).contains("Above 1 means more time than there."));
        let text = page(vec![with_unit(1, Unit::Units), with_unit(2, Unit::Count)]);
        assert!(text.contains("Above 1 means more units or events than there."), "{text}");
        let text =
            page(vec![with_unit(1, Unit::Bytes), case(2, &[1.0; 9]), with_unit(3, Unit::Units)]);
        assert!(text.contains("more bytes, time or units than"), "{text}");
        assert!(!page_of(vec![vec![], vec![]]).contains("Above 1"));
    }

    #[test]
    fn the_load_of_the_programs_of_the_document_is_in_the_table() {
        let preset = |load| {
            let mut case = lab::Case::new(
                "handoff/0",
                View::HandoffPreset,
                Parameters::new(),
                Unit::Nanoseconds,
            );
            case.samples = vec![1e9; 2];
            case.metrics.insert("load_max".to_owned(), Metric::of(Unit::Count, vec![load; 2]));
            case
        };
        let text = page_of(vec![vec![preset(21.0)], vec![preset(42.0)]]);
        assert!(text.contains("B load") && text.contains(">42</td>"), "{text}");
        assert!(text.contains("Figures: 10,000 turns; load: largest CPU load"), "{text}");
    }

    #[test]
    fn no_two_runs_have_bars_of_the_same_colour() {
        let text = page_of((1..=12).map(|n| vec![case(1, &[f64::from(n); 9])]).collect());
        for class in 1..COLOURS {
            assert_eq!(text.matches(&format!("class=\"mark c{class}\"")).count(), 1, "{class}");
        }
        assert!(!text.contains("class=\"mark c0\""), "the first run has no bar");
        assert!(text.contains("The ratios of 3 more runs are only in the table."), "{text}");
        assert!(text.contains("L ratio") && text.contains(">12.0 [12.0, 12.0]</td>"), "{text}");
    }

    #[test]
    fn the_labels_of_a_run_are_distinct_and_without_constant_parameters() {
        for json in [LAB[0], LAB[4]] {
            let record: lab::RunRecord = serde_json::from_str(json).expect("a record");
            let origin = |number| Origin::Kept { number, label: String::new() };
            let record = compare(&[(origin(1), record.clone()), (origin(2), record)]);
            for name in record.experiments() {
                let cases: Vec<&Case> =
                    in_tables(&record).filter(|case| case.experiment == name).collect();
                let figure = experiment(&record, name, &cases).markup().into_string();
                let labels = labels(&figure);
                let distinct: HashSet<&str> = labels.iter().copied().collect();
                assert_eq!(distinct.len(), labels.len(), "{name}: {labels:?}");
                assert!(labels.iter().all(|label| !label.contains('…')), "{labels:?}");
            }
        }
        let text = page_of(vec![vec![case(1, &[1.0; 9]), case(2, &[1.0; 9])]; 2]);
        assert_eq!(labels(&text), ["n=1", "n=2"], "the kind is constant");
        assert!(text.contains(">B: 1.00~ [1.00, 1.00]</text>"), "{text}");
    }

    #[test]
    fn an_experiment_without_ratios_has_no_chart() {
        let text = page_of(vec![
            vec![],
            vec![case(1, &[1.0; 9]), case(2, &[1.0; 9])],
            vec![case(1, &[1.0; 9]), case(2, &[1.0; 9])],
        ]);
        assert!(text.contains("<figcaption>units/create</figcaption>"), "{text}");
        assert!(text.contains("Medians. No ratios of 2 cases, as run A lacks them."), "{text}");
        assert!(!text.contains("<svg"), "{text}");
    }

    #[test]
    fn the_line_of_equal_figures_is_at_its_proportional_place() {
        let text = page_of(vec![vec![case(1, &[2.0; 9])], vec![case(1, &[1.0; 9])]]);
        assert!(text.contains(r#"x="0%" width="50%""#), "{text}");
        assert!(text.contains(r#"<line class="divider" x1="100%" x2="100%""#), "{text}");
    }
}

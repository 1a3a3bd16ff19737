//! Chapter of the suite `callback`: compares the results of its source, an evaluation of 2018, with
//! the measurements of the run, and shows the cost of units in every runtime.

use contend_record::lab::{Case, RunRecord, Unit, View};
use contend_record::parameters::names;

use super::super::super::layout::paragraph;
use super::super::super::units::{count, ratio};
use super::super::chapter::Content;
use super::super::table::{grid, parameter, row};
use super::super::{Reported, find, shown};
use super::conclusions::CONCLUSIONS;
use super::kinds::{Kind, kinds};
use super::{memory_chart, memory_table, round_trip_section};

/// Results in the document: a number of units, the total bytes of that many callback threads, and
/// the total bytes of that many processes.
const REPORTED: [(u64, f64, f64); 5] = [
    (100, 76_144.0, 358_848.0),
    (1000, 881_656.0, 2_877_360.0),
    (2000, 1_496_296.0, 5_636_232.0),
    (5000, 5_734_120.0, 14_160_616.0),
    (10_000, 13_004_640.0, 28_402_248.0),
];

/// Renders the run's measurements of the evaluation next to the results in the document.
pub fn section(cases: &[&Case], width: usize) -> String {
    let mut out = grid(&rows(cases), 1, width);
    let note = "Compared with the document (lightweight callback threads in Elixir, evaluation, 2018). Sizes are the growth of \
                :erlang.memory(:total). callback: a reconstruction of the document's scheme with its faults. sister: \
                the same program with the library in elixir/. The document read its figures \"at once\"; 1 s and 6 s \
                count from then. begun: functions that had begun to run.";
    paragraph(&mut out, "", note, width);
    out
}

/// Returns the chapter, or `None` if the run has measured neither the evaluation, nor the memory of
/// units, nor round trips.
pub fn chapter(record: &RunRecord, width: usize) -> Option<Content> {
    let cases = |view| -> Vec<&Case> {
        record.cases_of(view).filter(|case| case.median.is_some()).collect()
    };
    let (document, trips) = (cases(View::RuntimeDocument), cases(View::RuntimeRoundTrip));
    let has_memory = !cases(View::RuntimeMemory).is_empty();
    let tables = [
        (!document.is_empty()).then(|| section(&document, width)),
        has_memory.then(|| memory_table(record, width)),
        (!trips.is_empty()).then(|| round_trip_section(&trips, width)),
    ];
    let tables: Vec<_> = tables.into_iter().flatten().collect();
    if tables.is_empty() {
        return None;
    }
    let mut meaning: Vec<_> =
        [one_at_a_time(record), then_and_now(record)].into_iter().flatten().collect();
    meaning.extend(ranks(&kinds(record)));
    let conclusions = if document.is_empty() { &[][..] } else { &CONCLUSIONS };
    let details = if has_memory { memory_chart(record, width) } else { None };
    Some(Content {
        conclusions,
        meaning,
        tables,
        details: details.into_iter().collect(),
        complete: &[View::RuntimeDocument, View::RuntimeMemory, View::RuntimeRoundTrip],
        ..Content::default()
    })
}

fn case<'a>(record: &'a RunRecord, form: &str, n: u64) -> Option<&'a Case> {
    let n = n.to_string();
    find(record, View::RuntimeDocument, &[(names::FORM, form), (names::N, &n)])
        .filter(|case| case.median.is_some())
}

fn size(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| shown(value, Unit::Bytes))
}

fn rows(cases: &[&Case]) -> Vec<Vec<String>> {
    let headings = [
        "form",
        "n",
        "document",
        "at once",
        "after 1 s",
        "after 6 s",
        "left",
        "begun at once",
        "begun after 6 s",
    ];
    let mut rows = vec![row(headings)];
    for case in cases {
        let begun = |name| case.metric(name).map_or_else(String::new, count);
        rows.push(vec![
            parameter(*case, names::FORM),
            case.parameters.number(names::N).map_or_else(String::new, |n| count(n as f64)),
            size(reported_bytes(case)),
            size(case.median),
            size(case.metric("after_1s")),
            size(case.metric("after_6s")),
            size(case.metric("left")),
            begun("begun_at_once"),
            begun("begun_6s"),
        ]);
    }
    rows
}

/// Returns the document's figure for a case; `None` without a figure.
pub fn reported(case: &Case) -> Option<Reported> {
    Some(Reported { value: reported_bytes(case)?, source: "the document" })
}

/// Returns the total bytes that the document reports for the form and the number of units of a
/// case, or `None` if it reports none.
fn reported_bytes(case: &Case) -> Option<f64> {
    let n = case.parameters.number(names::N)?;
    let &(_, callback, process) = REPORTED.iter().find(|row| row.0 == n)?;
    match case.parameters.text(names::FORM)? {
        "callback" => Some(callback),
        "process" => Some(process),
        _ => None,
    }
}

/// Returns the largest number of units in the document that was measured in the given form, with
/// its case, or `None` if none was.
pub fn largest<'a>(record: &'a RunRecord, form: &str) -> Option<(u64, &'a Case)> {
    REPORTED.iter().rev().find_map(|&(n, ..)| Some((n, case(record, form, n)?)))
}

/// Describes how many functions had begun after six seconds, with the document's scheme and with
/// the library. Returns `None` if either was not measured.
fn one_at_a_time(record: &RunRecord) -> Option<String> {
    let (n, case) = largest(record, "callback")?;
    let (m, sister) = largest(record, "sister")?;
    let begun = |case: &Case| case.metric("begun_6s");
    let theirs = match begun(sister)? {
        all if all >= m as f64 => format!("all {}", count(all)),
        some => format!("{} of {}", count(some), count(m as f64)),
    };
    Some(format!(
        "In the document's scheme, functions that sleep for a second run one after another: after 6 s {} of {} had \
         begun. With the library in elixir/ {theirs} had, and {} remained in use after their end.",
        count(begun(case)?),
        count(n as f64),
        shown(sister.metric("left")?, Unit::Bytes),
    ))
}

/// Compares the size of a process as measured in the run with the size in the document. Returns
/// `None` if the run did not measure it.
fn then_and_now(record: &RunRecord) -> Option<String> {
    let (n, case) = largest(record, "process")?;
    let (reported, at_once) = (reported_bytes(case)?, case.median?);
    Some(format!(
        "A process takes {} here, {} times the document's figure.",
        shown(at_once / n as f64, Unit::Bytes),
        ratio(at_once / reported)
    ))
}

/// Compares the smallest unit with the largest, among those with a size distinguishable from 0.
/// Returns `None` if there are none.
fn ranks(kinds: &[Kind<'_>]) -> Option<String> {
    let mut totals: Vec<_> =
        kinds.iter().filter_map(|kind| Some((kind.total()?, &kind.unit))).collect();
    totals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((least, small), (most, large)) = (totals.first()?, totals.last()?);
    Some(format!(
        "A waiting unit takes from {} ({small}) to {} ({large}), including kernel memory: 1 GB holds {} of the \
         former and {} of the latter.",
        shown(*least, Unit::Bytes),
        shown(*most, Unit::Bytes),
        count(1e9 / least),
        count(1e9 / most),
    ))
}

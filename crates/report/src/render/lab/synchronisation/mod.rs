//! Chapter of the suite `synchronisation`: the table of its source, a test report, with additional
//! columns for the run, and whether the run's measurements confirm the report's conclusions.

mod conclusions;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;

use super::super::layout::{columns_left_out, paragraph};
use super::super::units::{nanoseconds, seconds};
use super::chapter::Content;
use super::table::{grid, row};
use super::{Reported, find};

/// A row of table 3.1 in the report.
struct Row {
    /// Number of the program in the report.
    number: &'static str,
    /// Mechanisms for hand-offs from the main process to the sub-process, and back; for workers,
    /// their number and an empty string.
    mechanisms: [&'static str; 2],
    /// The report's largest load in percent and time in seconds, with 1, 2 and 4 cores; empty if
    /// not reported.
    document: [&'static str; 3],
    measured: Measured,
}

/// The cases of a run that correspond to a row of the report's table.
enum Measured {
    /// The presets named by the number of the row, with and without the tick.
    HandOff,
    /// Workers that compute: the number of processes, and the number of threads in each.
    Workers([&'static str; 2]),
}

const fn turns(
    number: &'static str,
    mechanisms: [&'static str; 2],
    document: [&'static str; 3],
) -> Row {
    Row { number, mechanisms, document, measured: Measured::HandOff }
}

const fn workers(
    number: &'static str,
    words: &'static str,
    counts: [&'static str; 2],
    document: [&'static str; 3],
) -> Row {
    Row { number, mechanisms: [words, ""], document, measured: Measured::Workers(counts) }
}

/// The rows of table 3.1 in the report, in its order.
const ROWS: [Row; 15] = [
    turns("0", ["semaphore", "sleep"], ["49%, 1", "2%, 124", "5%, 156"]),
    turns("0+", ["semaphore", "sleep"], ["", "9.8%, 156", ""]),
    turns("1", ["none", "none, sleeping"], ["51%, 11", "15%, 156", "5%, 156"]),
    turns("1a", ["none", "none"], ["", "36%, 1", ""]),
    turns("1a+", ["none", "none"], ["", "100%, 37", ""]),
    turns("2", ["semaphore", "semaphore"], ["65%, 1", "22%, 1", "6%, <1"]),
    turns("2+", ["semaphore", "semaphore"], ["", "53%, 37", ""]),
    turns("3", ["semaphore", "timer"], ["47%, 1", "8%, 138", ""]),
    turns("4", ["event", "event"], ["60%, 1", "20%, 1", ""]),
    turns("4+", ["event", "event"], ["", "52.8%, 37", ""]),
    workers("5", "1 process, 1 thread", ["1", "1"], ["100%, 33", "53%, 32", ""]),
    workers("6", "1 process, 2 threads", ["1", "2"], ["100%, 88", "100%, 37", ""]),
    workers("7", "2 processes", ["2", "1"], ["100%, 66", "100%, 33", ""]),
    turns("8", ["semaphore", "sleep"], ["", "11%, 145", ""]),
    turns("9", ["semaphore", "sleep"], ["", "11%, 9", ""]),
];

/// The timer tick of the report's system, in microseconds.
const TICK: &str = "15625";

/// Returns the chapter, or `None` if the run has measured nothing that the report contains.
pub fn chapter(record: &RunRecord, width: usize) -> Option<Content> {
    let rows: Vec<_> = ROWS.iter().filter_map(|row| line(record, row, width)).collect();
    if rows.is_empty() {
        return None;
    }
    let words = if width >= MIN_MECHANISM_COLUMNS { 3 } else { 1 };
    let rows: Vec<_> = std::iter::once(headings(width)).chain(rows).collect();
    let mut table = grid(&rows, words, width);
    let hidden = [
        (MIN_MECHANISM_COLUMNS, "main to sub"),
        (MIN_MECHANISM_COLUMNS, "sub to main"),
        (MIN_MODEL_COLUMNS, "model"),
    ];
    let hidden = hidden.iter().filter(|(least, _)| width < *least).map(|(_, heading)| heading);
    columns_left_out(&mut table, &hidden.collect::<Vec<_>>(), width);
    paragraph(&mut table, "", LEGEND, width);
    for text in [scaled(record), changed(record)].into_iter().flatten() {
        paragraph(&mut table, "", &text, width);
    }
    let meaning = [tick, same_cpu, wake_up, model];
    Some(Content {
        conclusions: &conclusions::CONCLUSIONS,
        meaning: meaning.into_iter().filter_map(|sentence| sentence(record)).collect(),
        tables: vec![table],
        ..Content::default()
    })
}

const LEGEND: &str = "Cells: largest CPU load in percent of all CPUs, seconds for 10,000 turns. `here`: plain \
    Linux; `tick`: sleeps end at multiples of 15.625 ms, as on Windows. Rows 5 to 7 do a fixed \
    amount of work here, half a minute in the report.";

/// Minimum width at which the predictions of the model are shown, in columns.
const MIN_MODEL_COLUMNS: usize = 80;
/// Minimum width at which the mechanisms are shown, in columns.
const MIN_MECHANISM_COLUMNS: usize = 106;

fn headings(width: usize) -> Vec<String> {
    let mut headings = row(["No"]);
    if width >= MIN_MECHANISM_COLUMNS {
        headings.extend(row(["main to sub", "sub to main"]));
    }
    headings.extend(row(["1 core", "2 cores", "4 cores"]));
    for heading in ["here", "tick"] {
        headings.push(heading.to_owned());
        if width >= MIN_MODEL_COLUMNS {
            headings.push("model".to_owned());
        }
    }
    headings
}

fn line(record: &RunRecord, row: &Row, width: usize) -> Option<Vec<String>> {
    let (here, ticking) = measured(record, row);
    here.or(ticking)?;
    let mut line = vec![row.number.to_owned()];
    if width >= MIN_MECHANISM_COLUMNS {
        line.extend(row.mechanisms.map(str::to_owned));
    }
    line.extend(row.document.map(str::to_owned));
    for case in [here, ticking] {
        line.push(case.map_or_else(String::new, cell));
        if width >= MIN_MODEL_COLUMNS {
            let model = case.and_then(|case| case.metric("predicted"));
            line.push(model.map_or_else(String::new, |predicted| short(predicted / 1e9)));
        }
    }
    Some(line)
}

/// A row of the report's table, with what several runs have measured for it.
pub struct ReportRow {
    /// Number of the program in the report.
    pub number: &'static str,
    /// Mechanisms for hand-offs from the main process to the sub-process, and back.
    pub mechanisms: [&'static str; 2],
    /// The report's largest load and time, with 1, 2 and 4 cores; empty if not reported.
    pub document: [&'static str; 3],
    /// For each run, largest load and time without a tick, and with that of the report's system; empty if
    /// not measured.
    pub measured: Vec<[String; 2]>,
}

/// Returns the rows of the report's table for which any of the runs has a measurement.
pub fn report_rows(records: &[&RunRecord]) -> Vec<ReportRow> {
    let rows = ROWS.iter().map(|row| {
        let of_run = |record: &&RunRecord| {
            let (here, ticking) = measured(record, row);
            [here, ticking].map(|case| case.map_or_else(String::new, cell))
        };
        ReportRow {
            number: row.number,
            mechanisms: row.mechanisms,
            document: row.document,
            measured: records.iter().map(of_run).collect(),
        }
    });
    rows.filter(|row| row.measured.iter().flatten().any(|cell| !cell.is_empty())).collect()
}

/// Returns the report's time of the program that a case reproduces, on the machine with the most similar
/// number of cores; `None` if it was not measured there.
pub(super) fn reported(record: &RunRecord, case: &Case) -> Option<Reported> {
    let row = ROWS.iter().find(|row| row.number == case.name())?;
    if !has_original_parameters(row.number, case) {
        return None;
    }
    let (column, source) = match record.host.usable_cpus() {
        ..1.5 => (0, "the report, 1 core"),
        ..3.5 => (1, "the report, 2 cores"),
        _ => (2, "the report, 4 cores"),
    };
    let (_, time) = row.document[column].split_once(", ")?;
    let seconds: f64 = time.trim_start_matches('<').parse().ok()?;
    Some(Reported { value: 1e9 * seconds, source })
}

/// Returns the case of a row without a tick, and then the case with the report's tick; `None` for a
/// case that was not measured. Workers have no case with a tick.
fn measured<'a>(record: &'a RunRecord, row: &Row) -> (Option<&'a Case>, Option<&'a Case>) {
    match row.measured {
        Measured::Workers([processes, threads]) => {
            let parameters = [(names::PROCESSES, processes), (names::THREADS, threads)];
            (find(record, View::Computing, &parameters), None)
        }
        Measured::HandOff => (without_tick(record, row.number), with_tick(record, row.number)),
    }
}

/// Returns the measured case of the preset `number` that has the tick `tick`, in microseconds, and
/// otherwise the report's parameters. If `tick` is `None`, the case must not have this parameter.
/// Returns `None` if there is no such case.
fn preset<'a>(record: &'a RunRecord, number: &str, tick: Option<&str>) -> Option<&'a Case> {
    record.cases_of(View::HandoffPreset).find(|case| {
        let has = case.parameters.get(names::TICK_US).map(ToString::to_string);
        case.name() == number
            && case.median.is_some()
            && has.as_deref() == tick
            && has_original_parameters(number, case)
    })
}

/// Returns whether a case has the parameters of the report's program with the given number, apart
/// from the tick and the number of turns.
fn has_original_parameters(number: &str, case: &Case) -> bool {
    let placement = match number {
        "8" => "two-cpus",
        "9" => "same-cpu",
        _ => "free",
    };
    let known = ["placement", "tick_us", "turns"];
    case.parameters.text(names::PLACEMENT) == Some(placement)
        && case.parameters.iter().all(|(name, _)| known.contains(&name))
}

/// Returns a sentence about presets measured with parameters other than the report's, or `None` if
/// there are none.
fn changed(record: &RunRecord) -> Option<String> {
    let other = |case: &&Case| {
        case.metric("load_max").is_some() && !has_original_parameters(case.name(), case)
    };
    let count = record.cases_of(View::HandoffPreset).filter(other).count();
    (count > 0)
        .then(|| format!("{count} cases have other parameters than the report's and are left out."))
}

/// Returns the measured case of the preset `number` without a tick, or `None` if there is none with
/// the report's parameters.
fn without_tick<'a>(record: &'a RunRecord, number: &str) -> Option<&'a Case> {
    preset(record, number, Some("0")).or_else(|| preset(record, number, None))
}

/// Returns the measured case of the preset `number` with the report's tick, or `None` if there is
/// none with the report's parameters.
fn with_tick<'a>(record: &'a RunRecord, number: &str) -> Option<&'a Case> {
    preset(record, number, Some(TICK))
}

/// Returns the largest load of a case, or its mean load if only that was measured, in percent of
/// all CPUs. Returns `None` without either.
fn load(case: &Case) -> Option<f64> {
    case.metric("load_max").or_else(|| case.metric("load"))
}

fn cell(case: &Case) -> String {
    let time = case.median.map_or_else(String::new, |value| short(value / 1e9));
    let load = load(case).map_or_else(String::new, |load| format!("{}%, ", short(load)));
    format!("{load}{time}")
}

/// Formats a number with two decimal places below 1, with one below 10, and with none above.
fn short(value: f64) -> String {
    match value {
        ..0.995 => format!("{value:.2}"),
        ..9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns all measured cases for which the model has a prediction.
fn presets(record: &RunRecord) -> impl Iterator<Item = &Case> {
    let is = |case: &&Case| case.metric("predicted").is_some() && case.median.is_some();
    record.cases.iter().filter(is)
}

/// Lists the presets whose times were scaled to 10,000 turns, grouped by the number of turns that
/// ran. Returns `None` if there are none.
fn scaled(record: &RunRecord) -> Option<String> {
    let mut by_turns: Vec<(u64, Vec<String>)> = Vec::new();
    for case in presets(record) {
        let Some(turns) = case.parameters.number(names::TURNS).filter(|&turns| turns != 10_000)
        else {
            continue;
        };
        let tick = if case.parameters.number(names::TICK_US) > Some(0) { " with tick" } else { "" };
        let name = format!("{}{tick}", case.name());
        match by_turns.iter_mut().find(|(other, _)| *other == turns) {
            Some((_, names)) => names.push(name),
            None => by_turns.push((turns, vec![name])),
        }
    }
    by_turns.sort();
    let part = |(turns, names): &(u64, Vec<String>)| format!("from {turns}: {}", names.join(", "));
    let parts: Vec<_> = by_turns.iter().map(part).collect();
    let text = format!("Scaled to 10,000 turns {}.", parts.join("; "));
    (!parts.is_empty()).then_some(text)
}

/// Returns the relative error of the model's prediction for a case, in percent, or `None` if there
/// is no prediction or measurement.
fn model_error(case: &Case) -> Option<f64> {
    Some(100.0 * (case.metric("predicted")? / case.median? - 1.0))
}

/// Describes how accurately the model predicts all cases. Returns `None` if there are no
/// predictions.
fn model(record: &RunRecord) -> Option<String> {
    let all: Vec<_> = presets(record).filter_map(|case| Some((model_error(case)?, case))).collect();
    let worst = all.iter().copied().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let within = all.iter().filter(|(error, _)| error.abs() <= 10.0).count();
    Some(format!(
        "The model, turns x (P(partner not ready) x sleep + work), predicts {within} of {} cases within \
         10 %; its largest error is {} ({:+.1} %).",
        all.len(),
        worst.1.experiment,
        worst.0
    ))
}

fn tick(record: &RunRecord) -> Option<String> {
    let (here, ticking) = (without_tick(record, "0")?, with_tick(record, "0")?);
    Some(format!(
        "Linux has no 15.6 ms tick: a turn of program 0, a sleep of 1 ms, takes {}, and {} if the tick is \
         emulated ({} and {} for 10,000 turns).",
        nanoseconds(here.metric("p50")?),
        nanoseconds(ticking.metric("p50")?),
        seconds(here.median? / 1e9),
        seconds(ticking.median? / 1e9),
    ))
}

/// Share of turns in which the partner is not ready, in percent, above which the main process
/// mostly has to wait.
const MIN_UNREADY_PERCENT: f64 = 50.0;

fn same_cpu(record: &RunRecord) -> Option<String> {
    let case = with_tick(record, "9")?;
    let not_ready = case.metric("not_ready")?;
    let time = seconds(case.median? / 1e9);
    let why = if not_ready > MIN_UNREADY_PERCENT {
        "the main process keeps running after the signal, and the sub-process runs only when it sleeps"
    } else {
        "the sub-process has usually finished before the main process checks"
    };
    Some(format!(
        "On a single CPU (program 9) the report needed 9 s; here it takes {time} with the tick, as the \
         sub-process is not ready in {not_ready:.0} % of the turns: {why}.",
    ))
}

/// Compares a hand-off by semaphore on one CPU with one between two CPUs and one where the
/// scheduler chooses. Returns `None` if not all of them were measured.
fn wake_up(record: &RunRecord) -> Option<String> {
    let of = |placement| {
        let parameters = [
            (names::MECHANISM, "semaphore"),
            (names::PARTNERS, "process"),
            (names::PLACEMENT, placement),
        ];
        find(record, View::HandoffMechanisms, &parameters)?.median
    };
    let (free, same, two) = (of("free")?, of("same-cpu")?, of("two-cpus")?);
    let awake = of("two-awake").map_or_else(String::new, |awake| {
        format!(" ({} if both are kept awake)", nanoseconds(awake))
    });
    Some(format!(
        "A hand-off by semaphore takes {} on one CPU and {} between two CPUs, of which one must be woken \
         up{awake}; where the scheduler chooses, it takes {}.",
        nanoseconds(same),
        nanoseconds(two),
        nanoseconds(free),
    ))
}

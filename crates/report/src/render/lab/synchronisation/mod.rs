//! Suite `synchronisation`: the table of the test report that it follows with this machine as one more
//! column, what holds of its findings, and where Linux does otherwise.

mod findings;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;

use super::super::layout::{BOLD, paragraph, paragraph_after};
use super::super::units::{nanoseconds, seconds};
use super::find;
use super::table::{grid, row};
use super::verdict;

/// A row of the report's table 3.1.
struct Row {
    /// What the report calls it.
    number: &'static str,
    /// Main to sub, and sub to main.
    mechanisms: [&'static str; 2],
    /// Largest load and seconds with 1, 2 and 4 cores.
    document: [&'static str; 3],
    measured: Measured,
}

/// What stands for it here.
enum Measured {
    /// The preset of its number.
    HandOff,
    /// So many processes with so many threads.
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

/// The report's table.
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

/// The report's tick, in microseconds.
const TICK: &str = "15625";

/// The table, the findings, and what is otherwise here.
pub fn chapter(record: &RunRecord, width: usize) -> String {
    let rows: Vec<_> = ROWS.iter().filter_map(|row| line(record, row, width)).collect();
    if rows.is_empty() {
        // Nothing was measured that could stand beside it.
        return changed(record).map_or_else(String::new, |text| format!("\n{text}\n"));
    }
    let heading = "Beside the test report";
    let mut out = format!("\n{BOLD}{heading}{BOLD:#}");
    let rest = " (synchronisation between processes, Windows XP and 7; its table 3.1)";
    paragraph_after(&mut out, heading.len(), rest, width);
    out.push('\n');
    let words = if width >= WIDE { 3 } else { 1 };
    let rows: Vec<_> = std::iter::once(headings(width)).chain(rows).collect();
    out.push_str(&grid(&rows, words, width));
    paragraph(&mut out, "", LEGEND, width);
    for text in [scaled(record), model(record), changed(record)].into_iter().flatten() {
        paragraph(&mut out, "", &text, width);
    }
    out.push('\n');
    out.push_str(&verdict::paragraphs(&findings::FINDINGS, record, width));
    out.push_str(&otherwise(record, width));
    out
}

const LEGEND: &str = "Each cell has the largest load in percent of all CPUs, and seconds for 10,000 \
    turns. `here` is as the kernel does it, `tick` has sleeps end at multiples of 15.625 ms, as on the \
    report's machines. Its 5 to 7 worked for half a minute; here each worker does a fixed piece.";

/// From this width there is room for what the model says.
const MODELS: usize = 80;
/// From this width there is room for mechanisms.
const WIDE: usize = 106;

fn headings(width: usize) -> Vec<String> {
    let mut headings = row(["No"]);
    if width >= WIDE {
        headings.extend(row(["main to sub", "sub to main"]));
    }
    headings.extend(row(["1 core", "2 cores", "4 cores"]));
    for heading in ["here", "tick"] {
        headings.push(heading.to_owned());
        if width >= MODELS {
            headings.push("model".to_owned());
        }
    }
    headings
}

fn line(record: &RunRecord, row: &Row, width: usize) -> Option<Vec<String>> {
    let (here, ticking) = measured(record, row);
    here.or(ticking)?;
    let mut line = vec![row.number.to_owned()];
    if width >= WIDE {
        line.extend(row.mechanisms.map(str::to_owned));
    }
    line.extend(row.document.map(str::to_owned));
    for case in [here, ticking] {
        line.push(case.map_or_else(String::new, cell));
        if width >= MODELS {
            let model = case.and_then(|case| case.metric("predicted"));
            line.push(model.map_or_else(String::new, |predicted| short(predicted / 1e9)));
        }
    }
    Some(line)
}

/// What was measured as this row: as it is, and with the report's tick.
fn measured<'a>(record: &'a RunRecord, row: &Row) -> (Option<&'a Case>, Option<&'a Case>) {
    match row.measured {
        Measured::Workers([processes, threads]) => {
            let parameters = [(names::PROCESSES, processes), (names::THREADS, threads)];
            (find(record, View::Computing, &parameters), None)
        }
        Measured::HandOff => (as_it_is(record, row.number), with_tick(record, row.number)),
    }
}

/// A preset with a tick or without one, as the report has it otherwise.
fn preset<'a>(record: &'a RunRecord, number: &str, tick: Option<&str>) -> Option<&'a Case> {
    record.cases_of(View::HandoffPreset).find(|case| {
        let has = case.parameters.get(names::TICK_US).map(ToString::to_string);
        case.name() == number
            && case.median.is_some()
            && has.as_deref() == tick
            && is_the_reports(number, case)
    })
}

/// Whether nothing else was chosen than the report's case has.
fn is_the_reports(number: &str, case: &Case) -> bool {
    let placement = match number {
        "8" => "two-cpus",
        "9" => "same-cpu",
        _ => "free",
    };
    let known = ["placement", "tick_us", "turns"];
    case.parameters.text(names::PLACEMENT) == Some(placement)
        && case.parameters.iter().all(|(name, _)| known.contains(&name))
}

/// What was measured of the presets, but not as the report has it.
fn changed(record: &RunRecord) -> Option<String> {
    let other =
        |case: &&Case| case.metric("load_max").is_some() && !is_the_reports(case.name(), case);
    let count = record.cases_of(View::HandoffPreset).filter(other).count();
    (count > 0).then(|| {
        format!("{count} cases with parameters that the report does not have are left out here.")
    })
}

/// A preset as the kernel does it.
fn as_it_is<'a>(record: &'a RunRecord, number: &str) -> Option<&'a Case> {
    preset(record, number, Some("0")).or_else(|| preset(record, number, None))
}

/// A preset with the report's tick.
fn with_tick<'a>(record: &'a RunRecord, number: &str) -> Option<&'a Case> {
    preset(record, number, Some(TICK))
}

/// The largest load, in percent of all CPUs.
fn load(case: &Case) -> Option<f64> {
    case.metric("load_max").or_else(|| case.metric("load"))
}

fn cell(case: &Case) -> String {
    let time = case.median.map_or_else(String::new, |value| short(value / 1e9));
    let load = load(case).map_or_else(String::new, |load| format!("{}%, ", short(load)));
    format!("{load}{time}")
}

/// Three digits at most.
fn short(value: f64) -> String {
    match value {
        ..0.995 => format!("{value:.2}"),
        ..9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// All presets that were measured.
fn presets(record: &RunRecord) -> impl Iterator<Item = &Case> {
    let is = |case: &&Case| case.metric("predicted").is_some() && case.median.is_some();
    record.cases.iter().filter(is)
}

/// Which cases were scaled from how many turns.
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

/// How far the model is off in a case, in percent.
fn off(case: &Case) -> Option<f64> {
    Some(100.0 * (case.metric("predicted")? / case.median? - 1.0))
}

/// How far it is off in all.
fn model(record: &RunRecord) -> Option<String> {
    let all: Vec<_> = presets(record).filter_map(|case| Some((off(case)?, case))).collect();
    let worst = all.iter().copied().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let within = all.iter().filter(|(off, _)| off.abs() <= 10.0).count();
    Some(format!(
        "The model, turns x (part not ready x sleep + work), is within 10 % of what was measured in \
         {within} of {} cases, and farthest off in {} ({:+.1} %).",
        all.len(),
        worst.1.experiment,
        worst.0
    ))
}

/// Where Linux does otherwise than the report's system, from what was measured.
fn otherwise(record: &RunRecord, width: usize) -> String {
    let sentences: Vec<_> =
        [tick(record), same_cpu(record), wake_up(record)].into_iter().flatten().collect();
    if sentences.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{BOLD}Where this system does otherwise{BOLD:#}\n");
    for sentence in sentences {
        paragraph(&mut out, "- ", &sentence, width);
    }
    out
}

fn tick(record: &RunRecord) -> Option<String> {
    let (here, ticking) = (as_it_is(record, "0")?, with_tick(record, "0")?);
    Some(format!(
        "No tick of 15.6 ms: a turn of 0, which is a sleep of 1 ms, lasts {} here, and {} with such a \
         tick put in: {} and {} for 10,000.",
        nanoseconds(here.metric("p50")?),
        nanoseconds(ticking.metric("p50")?),
        seconds(here.median? / 1e9),
        seconds(ticking.median? / 1e9),
    ))
}

fn same_cpu(record: &RunRecord) -> Option<String> {
    let case = with_tick(record, "9")?;
    let not_ready = case.metric("not_ready")?;
    let time = seconds(case.median? / 1e9);
    let why = if not_ready > 50.0 {
        "main, which has told sub, goes on and looks first; sub runs when main sleeps"
    } else {
        "sub has run when main looks"
    };
    Some(format!(
        "On one and the same CPU (9) the report's turns took 9 s in all. Here they take {time} with its \
         tick, since main looks in vain in {not_ready:.0} % of them: {why}."
    ))
}

/// What a turn by semaphores costs where, and where the scheduler puts the partners.
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
        format!(", {} where both are kept awake", nanoseconds(awake))
    });
    Some(format!(
        "A turn handed over by a semaphore takes {} on one CPU, {} on two of which one has fallen \
         asleep{awake}. Where the scheduler puts the partners wherever it likes it takes {}, {:.1} times \
         as long as on one CPU.",
        nanoseconds(same),
        nanoseconds(two),
        nanoseconds(free),
        free / same,
    ))
}

//! The page of a diagnosis.

mod over_time;
mod processes;
#[cfg(test)]
mod tests;
mod waits;

use contend_record::doctor::{
    Cause, DoctorRecord, Finding, Layer, LayerId, Thread, ThreadName, ThreadState,
};
use maud::{Markup, html};

use super::chart::rows::{self, Row};
use super::chart::{Colour, Scale};
use super::frame::{Figure, Page, made_with};
use super::table::{Cell, Table};
use super::{command, exit, gains, number_of, origin, prose};
use crate::render::doctor::{cause_name, layer_name, observed, state_name, symptom_name};
use crate::render::text::printable;
use crate::render::units::{counted, cpus, percent, ratio, seconds};

/// Largest number of threads in the chart. The table has all of the record.
const MAX_THREADS: usize = 24;
/// Largest number of threads that a finding names.
const MAX_NAMED: usize = 6;

/// Returns the page of a diagnosis.
///
/// # Errors
/// Returns an error if the record cannot be written as JSON.
pub fn page(record: &DoctorRecord) -> serde_json::Result<String> {
    let observed = observed(record);
    let mut facts = vec![
        format!("{} observed", seconds(record.observed_seconds)),
        format!("{} of CPU time", seconds(record.cpu_seconds)),
        format!(
            "{:.1} of {} CPUs busy",
            record.cpu_seconds / record.observed_seconds.max(f64::MIN_POSITIVE),
            cpus(record.cpus)
        ),
        counted(observed.processes, "process"),
        counted(observed.threads, "thread"),
    ];
    facts.extend(record.exit_code.and_then(exit));
    let mut sections = Vec::new();
    if !record.findings.is_empty() {
        let each = record.findings.iter().enumerate();
        let all = html! { @for (number, finding) in each { (self::finding(number + 1, finding)) } };
        sections.push(("What would help".to_owned(), all));
    }
    if let Some(tried) = &record.trials {
        sections.push(("Remedies tried".to_owned(), gains::remedies(tried).markup()));
    }
    let times = html! {
        (moments(record).markup())
        @if let Some(series) = &record.time_series { (over_time::causes(series).markup()) }
        (states(record).markup())
    };
    sections.push(("Where the time went".to_owned(), times));
    if !record.processes.is_empty() {
        sections.push(("Processes".to_owned(), processes::section(record)));
    }
    if !record.threads.is_empty() {
        let series = record.time_series.as_ref().filter(|series| !series.threads.is_empty());
        let all = html! {
            (threads(record).markup())
            @if let Some(series) = series { (over_time::threads(series).markup()) }
            @if let Some(figure) = waits::figure(record) { (figure.markup()) }
        };
        sections.push(("Threads".to_owned(), all));
    }
    sections.push(("How it was observed".to_owned(), layers(&record.observation.layers)));
    let page = Page {
        subject: &record.command,
        kind: "doctor",
        facts,
        result: html! { p { (printable(&record.diagnosis)) } (made_with(&command::of_doctor(record))) },
        sections,
        warnings: record.warnings.iter().map(|warning| warning.message.clone()).collect(),
        origin: origin(&record.host, record.contend.as_ref(), &record.started_at),
        record: serde_json::to_string(record)?,
    };
    Ok(page.render())
}

fn finding(number: usize, finding: &Finding) -> Markup {
    let gain = finding.gain_share.map(|share| percent(share, 1.0)).filter(|text| !text.is_empty());
    let named: Vec<String> = finding.threads.iter().take(MAX_NAMED).map(thread_name).collect();
    let more = finding.threads.len() - named.len();
    html! {
        article {
            h3 { (number) ". " (symptom_name(finding.symptom)) @if let Some(gain) = gain { ": would save about " (gain) " of the time" } }
            p { (prose(&finding.message)) }
            p { strong { "Remedy: " } (prose(&finding.remedy)) }
            @if let Some(command) = &finding.command { pre { code { (printable(command)) } } }
            dl {
                @if !finding.argument.is_empty() { dt { "Estimated from" } dd { (printable(&finding.argument)) } }
                @if !finding.unless.is_empty() { dt { "Unless" } dd { (printable(&finding.unless)) } }
                @if !named.is_empty() {
                    dt { "Threads" }
                    dd { (named.join(", ")) @if more > 0 { " and " (more) " more" } }
                }
            }
            @if !finding.evidence.is_empty() {
                details {
                    summary { "Evidence" }
                    dl {
                        @for evidence in &finding.evidence {
                            dt { (evidence.name.replace('_', " ")) }
                            dd { (ratio(evidence.value)) }
                        }
                    }
                }
            }
        }
    }
}

fn thread_name(thread: &ThreadName) -> String {
    let name = printable(&thread.name);
    match &thread.function {
        Some(function) => format!("{name} ({}, in {})", thread.tid, printable(function)),
        None => format!("{name} ({})", thread.tid),
    }
}

/// The causes of all moments of the observation.
fn moments(record: &DoctorRecord) -> Figure {
    let mut table = Table::new(&["cause", "#time", "#share"]);
    let mut bars = Vec::new();
    for moments in record.moments.iter().filter(|moments| moments.seconds > 0.0) {
        let (name, share) = (cause_name(moments.cause), percent(moments.share, 1.0));
        table.push(vec![
            name.into(),
            Cell::number(seconds(moments.seconds), moments.seconds),
            Cell::number(share.clone(), moments.share),
        ]);
        let value = format!("{} {share}", seconds(moments.seconds));
        bars.push(Row::bar(name, moments.share, value, cause_colour(moments.cause)));
    }
    let alternative = match record.moments.iter().max_by(|a, b| a.share.total_cmp(&b.share)) {
        Some(most) => format!(
            "Bars of the share of each cause. The largest is: {}, {}.",
            cause_name(most.cause),
            percent(most.share, 1.0)
        ),
        None => "No moments were recorded.".to_owned(),
    };
    Figure {
        title: "Why no more CPUs were used, at each moment".to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &Scale::over(0.0, 1.0), share_of_time, &[], &alternative),
        table,
        method: format!(
            "Each moment of the {} has one cause: from the number of threads that run, are queued, or wait.",
            seconds(record.observed_seconds)
        ),
    }
}

/// The time of all threads by state.
fn states(record: &DoctorRecord) -> Figure {
    let mut states: Vec<(ThreadState, f64)> =
        record.state_seconds.iter().map(|(state, time)| (*state, *time)).collect();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    states.retain(|(_, time)| *time > 0.0);
    let mut table = Table::new(&["state", "#time", "#share"]);
    let mut bars = Vec::new();
    for (state, time) in &states {
        let share = percent(*time, record.thread_seconds);
        table.push(vec![
            state_name(*state).into(),
            Cell::number(seconds(*time), *time),
            Cell::number(share.clone(), time / record.thread_seconds.max(f64::MIN_POSITIVE)),
        ]);
        let value = format!("{} {share}", seconds(*time));
        bars.push(Row::bar(state_name(*state), *time, value, state_colour(*state)));
    }
    let alternative = states.first().map_or_else(
        || "No time of threads was recorded.".to_owned(),
        |(state, time)| {
            format!(
                "Bars of the time of all threads by state. The largest is: {}, {}.",
                state_name(*state),
                seconds(*time)
            )
        },
    );
    let scale = rows::scale(&bars);
    Figure {
        title: "Time of all threads by state".to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: format!(
            "The bars add up to the {} for which all threads together were observed.",
            seconds(record.thread_seconds)
        ),
    }
}

/// The time of each thread by state.
fn threads(record: &DoctorRecord) -> Figure {
    let mut table = Table::new(&["thread", "#id", "in", "#CPU time", "#observed", "mostly"]);
    for thread in &record.threads {
        let running = time_in(thread, ThreadState::Running);
        let mostly = thread.state_seconds.iter().max_by(|a, b| a.1.total_cmp(b.1));
        table.push(vec![
            printable(&thread.name.name).into(),
            Cell::number(thread.name.tid.to_string(), f64::from(thread.name.tid)),
            thread.name.function.as_deref().map(printable).unwrap_or_default().into(),
            Cell::number(seconds(running), running),
            Cell::number(seconds(thread.observed_seconds), thread.observed_seconds),
            mostly.map_or_else(String::new, |(state, _)| state_name(*state).to_owned()).into(),
        ]);
    }
    let shown: Vec<&Thread> = record.threads.iter().take(MAX_THREADS).collect();
    let row = |thread: &&Thread| {
        let parts = ThreadState::ALL.into_iter().map(|state| {
            let time = time_in(thread, state);
            let text = format!(
                "{}: {} {} ({})",
                printable(&thread.name.name),
                state_name(state),
                seconds(time),
                percent(time, thread.observed_seconds)
            );
            (time, state_colour(state), text)
        });
        let running = time_in(thread, ThreadState::Running);
        Row::stacked(thread_name(&thread.name), format!("{} CPU", seconds(running)), parts)
    };
    let bars: Vec<Row> = shown.iter().map(row).collect();
    let in_chart = |state: ThreadState| shown.iter().any(|thread| time_in(thread, state) > 0.0);
    let legend = states_legend(in_chart);
    let scale = rows::scale(&bars);
    let left_out = record.threads.len() - shown.len();
    let title = match left_out {
        0 => "Time of each thread by state".to_owned(),
        _ => format!("Time of the {} threads with the most CPU time, by state", shown.len()),
    };
    let alternative = format!(
        "A stacked bar for each of {}: time by state. The one with the most CPU time is {}.",
        number_of(shown.len(), "thread"),
        shown.first().map_or_else(String::new, |thread| printable(&thread.name.name)),
    );
    Figure {
        title,
        legend,
        chart: rows::draw(&bars, &scale, seconds, &[], &alternative),
        table,
        method: format!(
            "Amounts are the scheduler's; the kind of a wait is from samples.{}",
            not_listed(record.threads.len(), observed(record).threads, "thread")
        ),
    }
}

/// Says that a table has only the first of all things of a kind, with a space before it; empty if it has all.
fn not_listed(listed: usize, all: u64, name: &str) -> String {
    match all.saturating_sub(listed as u64) {
        0 => String::new(),
        _ => format!(" The table has {listed} of {}.", counted(all, name)),
    }
}

fn time_in(thread: &Thread, state: ThreadState) -> f64 {
    thread.state_seconds.get(&state).copied().unwrap_or(0.0)
}

fn layers(layers: &[Layer]) -> Markup {
    let mut table = Table::new(&["source", "used", "otherwise"]);
    for layer in layers.iter().filter(|layer| layer.used || layer.id != LayerId::WaitChannels) {
        let reason = layer.reason.as_deref().map(printable).unwrap_or_default();
        let used = if layer.used { "yes" } else { "no" };
        table.push(vec![layer_name(layer.id).into(), used.into(), reason.into()]);
    }
    table.markup("Sources of information")
}

fn share_of_time(value: f64) -> String {
    format!("{:.0}%", 100.0 * value)
}

/// Returns the legend of the states in a chart. States with the same colour share an entry.
fn states_legend(is_in_chart: impl Fn(ThreadState) -> bool) -> Vec<(Colour, String)> {
    let in_chart = ThreadState::ALL.into_iter().filter(|state| is_in_chart(*state));
    legend_of(in_chart.map(|state| (state_colour(state), state_name(state))))
}

/// Returns a legend in which names with the same colour share an entry.
fn legend_of(named: impl Iterator<Item = (Colour, &'static str)>) -> Vec<(Colour, String)> {
    let mut legend: Vec<(Colour, String)> = Vec::new();
    for (colour, name) in named {
        match legend.iter_mut().find(|(known, _)| *known == colour) {
            Some((_, names)) => names.push_str(&format!(", {name}")),
            None => legend.push((colour, name.to_owned())),
        }
    }
    legend
}

fn state_colour(state: ThreadState) -> Colour {
    match state {
        ThreadState::Running => Colour(0),
        ThreadState::Runnable => Colour(1),
        ThreadState::Lock => Colour(3),
        ThreadState::Sleep => Colour(5),
        ThreadState::Pipe | ThreadState::Socket | ThreadState::Poll | ThreadState::Terminal => {
            Colour(2)
        }
        ThreadState::Disk | ThreadState::PageFault => Colour(6),
        ThreadState::Child => Colour(7),
        ThreadState::Condition
        | ThreadState::Stopped
        | ThreadState::Other
        | ThreadState::Unknown => Colour::NEUTRAL,
    }
}

fn cause_colour(cause: Cause) -> Colour {
    match cause {
        Cause::Busy => Colour(0),
        Cause::Serial => Colour(2),
        Cause::OtherLoad | Cause::Limited => Colour(1),
        Cause::Lock => Colour(3),
        Cause::Sleep => Colour(5),
        Cause::Disk => Colour(6),
        Cause::Child => Colour(7),
        Cause::Idle | Cause::Stopped | Cause::Unknown => Colour::NEUTRAL,
    }
}

//! What the program and its threads did over the time of the observation.

use std::collections::BTreeMap;

use contend_record::doctor::{Cause, ThreadSeries, ThreadState, TimeSeries};

use super::super::chart::lanes::{self, Lane, Layer};
use super::super::chart::{Colour, Format};
use super::super::frame::Figure;
use super::super::number_of;
use super::super::table::{Cell, Table};
use super::{cause_colour, legend_of, state_colour, states_legend};
use crate::render::doctor::{cause_name, state_name};
use crate::render::text::printable;
use crate::render::units::{percent, seconds};

/// Heights of the lane of the causes and of a thread, in pixels.
const CAUSES: f64 = 48.0;
const THREAD: f64 = 18.0;

/// Returns the causes over time.
pub(super) fn causes(series: &TimeSeries) -> Figure {
    let count = series.causes.values().map(Vec::len).max().unwrap_or(0);
    let named: Vec<(Cause, &Vec<f64>)> =
        series.causes.iter().map(|(cause, shares)| (*cause, shares)).collect();
    let mut headings = vec!["#from".to_owned(), "#to".to_owned()];
    headings.extend(named.iter().map(|(cause, _)| format!("#{}", cause_name(*cause))));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for number in 0..count {
        let (from, to) = interval(series, number);
        let mut row = vec![Cell::number(seconds(from), from), Cell::number(seconds(to), to)];
        row.extend(named.iter().map(|(_, shares)| {
            let share = shares.get(number).copied().unwrap_or(0.0);
            Cell::number(percent(share, 1.0), share)
        }));
        table.push(row);
    }
    let lane = Lane {
        label: "all threads".to_owned(),
        height: CAUSES,
        layers: layers(named.iter().map(|(cause, shares)| (cause_colour(*cause), *shares))),
        texts: (0..count)
            .map(|number| {
                text(
                    series,
                    number,
                    named.iter().map(|(cause, shares)| (cause_name(*cause), *shares)),
                )
            })
            .collect(),
    };
    let legend =
        legend_of(named.iter().map(|(cause, _)| (cause_colour(*cause), cause_name(*cause))));
    Figure {
        title: "Why no more CPUs were used, over time".to_owned(),
        legend,
        chart: lanes::draw(
            &[lane],
            series.interval_seconds,
            seconds as Format,
            &[],
            "A lane with the shares of the causes over the time of the observation.",
        ),
        table,
        method: format!("In intervals of {}.", seconds(series.interval_seconds)),
    }
}

/// Returns a lane for each thread.
pub(super) fn threads(series: &TimeSeries) -> Figure {
    let mut table = Table::new(&["thread", "#id", "#from", "#to", "mostly", "#share"]);
    for thread in &series.threads {
        for (from, to, state, share) in main_states(series, thread) {
            table.push(vec![
                printable(&thread.name).into(),
                Cell::number(thread.tid.to_string(), f64::from(thread.tid)),
                Cell::number(seconds(from), from),
                Cell::number(seconds(to), to),
                state_name(state).into(),
                Cell::number(percent(share, 1.0), share),
            ]);
        }
    }
    let lanes: Vec<Lane> =
        series.threads.iter().map(|thread| thread_lane(series, thread)).collect();
    let has =
        |state: ThreadState| series.threads.iter().any(|thread| thread.states.contains_key(&state));
    let alternative = format!(
        "A lane for each of {}, with the shares of its states over the time of the observation.",
        number_of(series.threads.len(), "thread")
    );
    Figure {
        title: "Threads over time".to_owned(),
        legend: states_legend(has),
        chart: lanes::draw(&lanes, series.interval_seconds, seconds as Format, &[], &alternative),
        table,
        method: format!(
            "From the same data as a trace, in intervals of {}. The table joins neighbouring intervals with the \
             same main state.",
            seconds(series.interval_seconds)
        ),
    }
}

fn thread_lane(series: &TimeSeries, thread: &ThreadSeries) -> Lane {
    let count = thread.states.values().map(Vec::len).max().unwrap_or(0);
    let name = printable(&thread.name);
    let texts = (0..count).map(|number| {
        let states = thread.states.iter().map(|(state, shares)| (state_name(*state), shares));
        format!("{name} ({}), {}", thread.tid, text(series, number, states))
    });
    Lane {
        label: format!("{name} ({})", thread.tid),
        height: THREAD,
        layers: layers(thread.states.iter().map(|(state, shares)| (state_colour(*state), shares))),
        texts: texts.collect(),
    }
}

/// Returns the layers of a lane. Parts with the same colour are one layer.
fn layers<'a>(parts: impl Iterator<Item = (Colour, &'a Vec<f64>)>) -> Vec<Layer> {
    let mut layers: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (colour, shares) in parts {
        let sum = layers.entry(colour.0).or_insert_with(|| vec![0.0; shares.len()]);
        for (sum, share) in sum.iter_mut().zip(shares) {
            *sum += share;
        }
    }
    layers.into_iter().map(|(colour, shares)| Layer { colour: Colour(colour), shares }).collect()
}

fn interval(series: &TimeSeries, number: usize) -> (f64, f64) {
    (series.interval_seconds * number as f64, series.interval_seconds * (number + 1) as f64)
}

/// Describes the parts of an interval.
fn text<'a>(
    series: &TimeSeries,
    number: usize,
    parts: impl Iterator<Item = (&'static str, &'a Vec<f64>)>,
) -> String {
    let (from, to) = interval(series, number);
    let shares = parts.filter_map(|(name, shares)| {
        let share = shares.get(number).copied().filter(|share| *share >= 0.001)?;
        Some(format!("{name} {}", percent(share, 1.0)))
    });
    let shares: Vec<String> = shares.collect();
    let shares = if shares.is_empty() { "not observed".to_owned() } else { shares.join(", ") };
    format!("{} to {}: {shares}", seconds(from), seconds(to))
}

/// Returns the main state of a thread over time: begin, end, state and its mean share. Neighbouring
/// intervals with the same one are joined.
fn main_states(series: &TimeSeries, thread: &ThreadSeries) -> Vec<(f64, f64, ThreadState, f64)> {
    let count = thread.states.values().map(Vec::len).max().unwrap_or(0);
    let mut joined: Vec<(usize, usize, ThreadState, f64)> = Vec::new();
    for number in 0..count {
        let share = |shares: &Vec<f64>| shares.get(number).copied().unwrap_or(0.0);
        let most = thread.states.iter().max_by(|a, b| share(a.1).total_cmp(&share(b.1)));
        let Some((state, shares)) = most.filter(|(_, shares)| share(shares) > 0.0) else {
            continue;
        };
        match joined.last_mut() {
            Some((_, end, last, sum)) if *end == number && last == state => {
                *end += 1;
                *sum += share(shares);
            }
            _ => joined.push((number, number + 1, *state, share(shares))),
        }
    }
    let in_seconds = |(begin, end, state, sum): (usize, usize, ThreadState, f64)| {
        (interval(series, begin).0, interval(series, end - 1).1, state, sum / (end - begin) as f64)
    };
    joined.into_iter().map(in_seconds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_intervals_with_the_same_state_are_joined() {
        let states = BTreeMap::from([
            (ThreadState::Running, vec![1.0, 0.5, 0.0, 0.0]),
            (ThreadState::Lock, vec![0.0, 0.25, 1.0, 0.0]),
        ]);
        let thread = ThreadSeries { pid: 1, tid: 2, name: "one".to_owned(), states };
        let series = TimeSeries { interval_seconds: 0.5, ..TimeSeries::default() };
        let joined = main_states(&series, &thread);
        let expected = [(0.0, 1.0, ThreadState::Running, 0.75), (1.0, 1.5, ThreadState::Lock, 1.0)];
        assert_eq!(joined, expected);
    }

    #[test]
    fn parts_with_the_same_colour_are_one_layer() {
        let parts = [vec![0.25, 0.5], vec![0.5, 0.25], vec![0.25, 0.25]];
        let colours = [Colour(1), Colour(1), Colour(0)];
        let layers = layers(colours.into_iter().zip(&parts));
        assert_eq!(layers.len(), 2);
        assert_eq!(layers[1].shares, [0.75, 0.75]);
    }
}

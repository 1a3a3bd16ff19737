//! What the report found, and whether this run's figures bear it out.

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;
use contend_record::stats::Ratio;

use super::super::super::units::seconds;
use super::super::find;
use super::super::verdict::{Conclusion, Verdict, is_disturbed};
use super::{as_it_is, load, with_tick};

pub const FINDINGS: [Conclusion; 3] = [
    Conclusion {
        letter: 'A',
        claim: "sleeping as synchronisation is ruinous on several CPUs, semaphores and events mend it",
        judge: sleeping,
    },
    Conclusion { letter: 'B', claim: "one thread cannot use more than one CPU", judge: one_thread },
    Conclusion {
        letter: 'C',
        claim: "without waiting and with enough work, 100 % is reached",
        judge: all_cpus,
    },
];

/// So many times as long is ruinous.
const RUINOUS: f64 = 3.0;
/// A mean load as near to 100 % as a measurement comes: beginning and end are in it.
const ALL: f64 = 95.0;

fn has_several_cpus(record: &RunRecord) -> bool {
    record.host.usable_cpus() > 1.0
}

const ONE_CPU: &str = "This run could use one CPU.";

fn time(case: &Case) -> String {
    case.median.map_or_else(String::new, |value| seconds(value / 1e9))
}

fn sleeping(record: &RunRecord) -> (Verdict, String) {
    let told: Vec<&Case> = ["2", "4"].iter().filter_map(|no| as_it_is(record, no)).collect();
    let slept: Vec<(&str, &Case)> = [
        ("by sleeping (0)", as_it_is(record, "0")),
        ("by sleeping with the report's tick", with_tick(record, "0")),
    ]
    .into_iter()
    .filter_map(|(how, case)| Some((how, case?)))
    .collect();
    let (Some(best), false) = (told.first(), slept.is_empty()) else {
        return (
            Verdict::Open,
            "0, and 2 or 4, were not measured as the report has them.".to_owned(),
        );
    };
    let longer = |case: &Case| Ratio::of(&case.samples, &best.samples, record.seed);
    let sentence = |&(how, case): &(&str, &Case)| {
        let times = longer(case)
            .map_or_else(String::new, |ratio| format!(", {:.0} times as long", ratio.ratio));
        format!("{} {how}{times}", time(case))
    };
    let words = told.iter().map(|case| {
        let how = if case.name() == "2" { "semaphores (2)" } else { "events (4)" };
        format!("{} by {how}", time(case))
    });
    let words: Vec<_> = words.chain(slept.iter().map(sentence)).collect();
    let text = format!(
        "10,000 turns take {}. The report's two cores: 1 s by semaphores or events, 124 s by sleeping.",
        words.join("; "),
    );
    if !has_several_cpus(record) {
        return (Verdict::Open, format!("{ONE_CPU} {text}"));
    }
    // Surely longer than each of them, also by the samples that are nearest to each other.
    let ruinous = |slept: &Case, told: &Case| {
        let ratio = Ratio::of(&slept.samples, &told.samples, record.seed);
        ratio.is_some_and(|ratio| ratio.range.map_or(ratio.ratio, |range| range[0]) > RUINOUS)
    };
    let all = slept.iter().all(|(_, slept)| told.iter().all(|told| ruinous(slept, told)));
    (Verdict::of(all), text)
}

/// How many CPUs were used on average while so many worked.
fn used(record: &RunRecord, processes: &str, threads: &str) -> Option<f64> {
    let parameters = [(names::PROCESSES, processes), (names::THREADS, threads)];
    let case = find(record, View::Computing, &parameters)?;
    Some(load(case)? * record.host.cpus_allowed as f64 / 100.0)
}

fn one_thread(record: &RunRecord) -> (Verdict, String) {
    let (Some(one), Some(threads), Some(processes)) =
        (used(record, "1", "1"), used(record, "1", "2"), used(record, "2", "1"))
    else {
        return (Verdict::Open, "5, 6 and 7 were not all measured.".to_owned());
    };
    let turns = as_it_is(record, "2+").and_then(load).map_or_else(String::new, |load| {
        format!(" Two that take turns (2+) used {load:.0} % of all CPUs: one after the other.")
    });
    let text = format!(
        "One thread (5) used {one:.2} CPUs, two threads (6) {threads:.2}, two processes (7) \
         {processes:.2}.{turns}"
    );
    let verdict = match () {
        () if one > 1.02 => Verdict::DoesNot,
        () if !has_several_cpus(record) => {
            return (Verdict::Open, format!("{ONE_CPU} {text}"));
        }
        // One has to get its CPU, and two to use more, or it was not the thread that was the limit.
        () if one < 0.9 || threads.min(processes) < 1.2 * one => Verdict::Open,
        () => Verdict::Holds,
    };
    (verdict, text)
}

fn all_cpus(record: &RunRecord) -> (Verdict, String) {
    let Some(case) = as_it_is(record, "1a+") else {
        return (Verdict::Open, "1a+ was not measured.".to_owned());
    };
    let (Some(most), Some(mean)) = (load(case), case.metric("load_mean")) else {
        return (Verdict::Open, "The load of 1a+ is not known.".to_owned());
    };
    let number =
        |no: &str| as_it_is(record, no).and_then(load).map(|load| format!("{load:.0} % in {no}"));
    let others: Vec<_> = ["1a", "2+", "4+"].into_iter().filter_map(number).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(" Less work, or waiting, leaves {}.", others.join(", ")),
    };
    let text = format!(
        "Without waiting and with 100 times the work (1a+): {mean:.1} % on average, {most:.1} % at \
         most.{others}"
    );
    let verdict = match mean {
        ALL.. => Verdict::Holds,
        _ if is_disturbed(record) => Verdict::Open,
        _ => Verdict::DoesNot,
    };
    (verdict, text)
}

//! The conclusions of the test report, and whether the measurements of a run confirm them.

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;
use contend_record::stats::Ratio;

use super::super::super::units::seconds;
use super::super::conclusion::{
    Conclusion, Judgement, Reason, Verdict, compared, is_disturbed, not_measured,
};
use super::super::find;
use super::super::table::ratio_of;
use super::{load, with_tick, without_tick};

pub const CONCLUSIONS: [Conclusion; 3] = [
    Conclusion {
        letter: 'A',
        claim: "with several cores, sleeping as synchronisation makes execution much slower; semaphores \
                or events restore its speed",
        judge: sleeping,
    },
    Conclusion {
        letter: 'B',
        claim: "one thread uses at most one core, so there must be as many threads as cores",
        judge: one_thread,
    },
    Conclusion {
        letter: 'C',
        claim: "without synchronisation and with enough work, the CPUs reach 100 %",
        judge: all_cpus,
    },
];

/// Ratio of the time with sleeping to that with semaphores or events above which sleeping is judged
/// to be much slower.
const MIN_MUCH_SLOWER_RATIO: f64 = 3.0;
/// Minimum mean load that counts as 100 %, in percent. The start and the end of a sample lower the
/// mean.
const MIN_FULL_LOAD_PERCENT: f64 = 95.0;

fn has_several_cpus(record: &RunRecord) -> bool {
    record.host.usable_cpus() > 1.0
}

fn time(case: &Case) -> String {
    case.median.map_or_else(String::new, |value| seconds(value / 1e9))
}

fn sleeping(record: &RunRecord) -> Judgement {
    let signalled: Vec<&Case> =
        ["2", "4"].iter().filter_map(|number| without_tick(record, number)).collect();
    let slept: Vec<(&str, &Case)> = [
        ("sleeping (0)", without_tick(record, "0")),
        ("sleeping with the Windows tick", with_tick(record, "0")),
    ]
    .into_iter()
    .filter_map(|(how, case)| Some((how, case?)))
    .collect();
    let (Some(baseline), false) = (signalled.first(), slept.is_empty()) else {
        return not_measured(
            "Programs 0, and 2 or 4, were not measured with the report's parameters.",
        );
    };
    let sentence = |&(how, case): &(&str, &Case)| {
        let times = ratio_of(&case.samples, &baseline.samples, record.seed)
            .map_or_else(String::new, |ratio| format!(", {ratio} times as long"));
        format!("{} by {how}{times}", time(case))
    };
    let words = signalled.iter().map(|case| {
        let how = if case.name() == "2" { "semaphores (2)" } else { "events (4)" };
        format!("{} by {how}", time(case))
    });
    let words: Vec<_> = words.chain(slept.iter().map(sentence)).collect();
    let text = format!(
        "10,000 turns take {}. The report with two cores: 1 s by semaphores or events, 124 s by sleeping.",
        words.join("; "),
    );
    if !has_several_cpus(record) {
        return (Verdict::Inconclusive(Reason::OneCpu), text);
    }
    // Sleeping must be much slower than semaphores and than events, as far as they were measured,
    // even by the closest pair of samples.
    let is_much_slower = |slept: &Case, signalled: &Case| {
        let ratio = Ratio::of(&slept.samples, &signalled.samples, record.seed);
        ratio.is_some_and(|ratio| {
            ratio.range.map_or(ratio.ratio, |range| range[0]) > MIN_MUCH_SLOWER_RATIO
        })
    };
    let all = slept
        .iter()
        .all(|(_, slept)| signalled.iter().all(|signalled| is_much_slower(slept, signalled)));
    let pairs: Vec<[&Case; 2]> = slept
        .iter()
        .flat_map(|&(_, slept)| signalled.iter().map(move |&signalled| [slept, signalled]))
        .collect();
    compared(Verdict::of(all).with_samples_of(pairs.as_flattened()), text, &pairs)
}

/// Returns the case of the given number of processes with the given number of threads in each, and
/// the number of CPUs that they used, or `None` if that was not measured.
fn used<'a>(record: &'a RunRecord, processes: &str, threads: &str) -> Option<(&'a Case, f64)> {
    let parameters = [(names::PROCESSES, processes), (names::THREADS, threads)];
    let case = find(record, View::Computing, &parameters)?;
    Some((case, load(case)? * record.host.cpus_allowed as f64 / 100.0))
}

fn one_thread(record: &RunRecord) -> Judgement {
    let (Some((alone, one)), Some((with_threads, threads)), Some((with_processes, processes))) =
        (used(record, "1", "1"), used(record, "1", "2"), used(record, "2", "1"))
    else {
        return not_measured("Programs 5, 6 and 7 were not all measured.");
    };
    let turns = without_tick(record, "2+").and_then(load).map_or_else(String::new, |load| {
        format!(" Two processes that take turns (2+) used {load:.0} % of all CPUs.")
    });
    let text = format!(
        "One thread (5) used {one:.2} CPUs, two threads (6) {threads:.2}, two processes (7) \
         {processes:.2}.{turns}"
    );
    let verdict = match () {
        () if one > 1.02 => Verdict::NotConfirmed,
        () if !has_several_cpus(record) => Verdict::Inconclusive(Reason::OneCpu),
        // If one thread did not get a whole CPU, or two workers did not use more than one,
        // something else was the limit.
        () if one < 0.9 || threads.min(processes) < 1.2 * one => {
            Verdict::Inconclusive(Reason::Disturbed)
        }
        () => Verdict::Confirmed,
    };
    (verdict.with_samples_of(&[alone, with_threads, with_processes]), text)
}

fn all_cpus(record: &RunRecord) -> Judgement {
    let Some(case) = without_tick(record, "1a+") else {
        return not_measured("Program 1a+ was not measured.");
    };
    let (Some(most), Some(mean)) = (load(case), case.metric("load_mean")) else {
        return not_measured("The load of program 1a+ was not measured.");
    };
    let number = |no: &str| {
        without_tick(record, no).and_then(load).map(|load| format!("{load:.0} % in {no}"))
    };
    let others: Vec<_> = ["1a", "2+", "4+"].into_iter().filter_map(number).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(" With less work, or with waiting: {}.", others.join(", ")),
    };
    let text = format!(
        "Without waiting and with 100 times the work (1a+), the load is {mean:.1} % on average, {most:.1} % \
         at most.{others}"
    );
    let verdict = match mean {
        MIN_FULL_LOAD_PERCENT.. => Verdict::Confirmed,
        _ if is_disturbed(record) => Verdict::Inconclusive(Reason::Disturbed),
        _ => Verdict::NotConfirmed,
    };
    (verdict.with_samples_of(&[case]), text)
}

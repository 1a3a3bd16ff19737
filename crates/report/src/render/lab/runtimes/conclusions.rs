//! The conclusions of the evaluation, and whether the measurements of a run confirm them.

use contend_record::lab::RunRecord;

use super::super::super::units::{bytes, count};
use super::super::conclusion::{Conclusion, Judgement, Verdict, not_measured};
use super::super::table::ratio_of;
use super::document::largest;

pub const CONCLUSIONS: [Conclusion; 2] = [
    Conclusion {
        letter: 'A',
        claim: "a process of Elixir takes about 2.8 KB",
        judge: process_size,
    },
    Conclusion {
        letter: 'B',
        claim: "a callback thread takes about half the memory of a process (1.3 KB)",
        judge: half_of_a_process,
    },
];

/// Size of a process of Elixir in the document, in bytes.
const DOCUMENT_PROCESS_BYTES: f64 = 2800.0;
/// Ratio of the larger to the smaller of two sizes below which they count as about equal.
const MAX_ABOUT_EQUAL_RATIO: f64 = 1.25;

fn process_size(record: &RunRecord) -> Judgement {
    let Some((n, Some(all))) = largest(record, "process").map(|(n, case)| (n, case.median)) else {
        return not_measured("Processes were not measured.");
    };
    let one = all / n as f64;
    let text = format!("{} processes take {} each.", count(n as f64), bytes(one));
    (
        Verdict::of(
            (1.0 / MAX_ABOUT_EQUAL_RATIO..MAX_ABOUT_EQUAL_RATIO)
                .contains(&(one / DOCUMENT_PROCESS_BYTES)),
        ),
        text,
    )
}

fn half_of_a_process(record: &RunRecord) -> Judgement {
    let figures = || {
        let (n, callbacks) = largest(record, "callback")?;
        let (m, processes) = largest(record, "process")?;
        let process = processes.median? / m as f64;
        let [at_once, at_rest] =
            [callbacks.median?, callbacks.metric("after_6s")?].map(|all| all / n as f64);
        let per_unit = |samples: &[f64], units: u64| -> Vec<f64> {
            samples.iter().map(|all| all / units as f64).collect()
        };
        let processes = per_unit(&processes.samples, m);
        let ratios = [&callbacks.samples, &callbacks.metrics.get("after_6s")?.samples]
            .map(|samples| ratio_of(&per_unit(samples, n), &processes, record.seed));
        let [Some(once), Some(rest)] = ratios else { return None };
        Some((at_once, at_rest, process, [once, rest], callbacks.metric("begun_at_once")?, n))
    };
    let Some((at_once, at_rest, process, [once, rest], begun, n)) = figures() else {
        return not_measured("Callback threads and processes were not both measured.");
    };
    let text = format!(
        "Read at once, as the document did, a callback thread takes {}, {once} times as much as a process, but \
         only {} of {} have started: mostly queued messages are counted. After 6 s it takes {}, {rest} times \
         as much.",
        bytes(at_once),
        count(begun),
        count(n as f64),
        bytes(at_rest),
    );
    let half = 0.5 / MAX_ABOUT_EQUAL_RATIO..0.5 * MAX_ABOUT_EQUAL_RATIO;
    (
        Verdict::all(&[at_once, at_rest].map(|one| Verdict::of(half.contains(&(one / process))))),
        text,
    )
}

//! The conclusions of the workshop, and whether the measurements of a run confirm them.

use std::cmp::Ordering;

use contend_record::lab::{Case, RunRecord, StoppedBy, View};
use contend_record::parameters::{Value, names};
use contend_record::stats::Ratio;

use super::super::super::units::{bytes, nanoseconds};
use super::super::conclusion::{Conclusion, Judgement, Reason, Verdict, compared, not_measured};
use super::super::find;
use super::super::table::ratio_of;
use super::{Memory, hundred, limits, stopped_by};

pub const CONCLUSIONS: [Conclusion; 4] = [
    Conclusion {
        letter: 'A',
        claim: "processes do not share their memory, threads of a process do",
        judge: sharing,
    },
    Conclusion {
        letter: 'B',
        claim: "a program with threads uses memory more efficiently than one with processes",
        judge: memory,
    },
    Conclusion { letter: 'C', claim: "threads are created faster than processes", judge: creation },
    Conclusion {
        letter: 'D',
        claim: "more threads than processes can exist at once",
        judge: limit,
    },
];

fn sharing(record: &RunRecord) -> Judgement {
    let figures = || {
        let processes = find(record, View::ProcessSharing, &[])?;
        let threads = find(record, View::ThreadSharing, &[])?;
        let fact = |case: &Case, name: &str| match case.facts.get(name)? {
            Value::Number(value) => Some(*value),
            _ => None,
        };
        Some([
            fact(processes, "child_wrote")?,
            fact(processes, "parent_still_saw")?,
            fact(threads, "thread_wrote")?,
            fact(threads, "main_then_saw")?,
        ])
    };
    let Some([child, parent, thread, main]) = figures() else {
        return not_measured("The demonstrations were not part of this run.");
    };
    let text = format!(
        "The child wrote {child}, and the parent still read {parent}; the second thread wrote {thread}, \
         and the first one then read {main}."
    );
    (Verdict::of(child != parent && thread == main), text)
}

/// Returns the memory of one more unit of the given kind in bytes: the slope of the line fitted
/// over all numbers of units. Returns `None` without such a line, or if the cases have further
/// parameters.
fn per_unit(record: &RunRecord, kind: &str) -> Option<f64> {
    let mut fits = record.fits_of(View::UnitMemory);
    let fit = fits.find(|fit| {
        fit.metric == "value"
            && fit.parameters.text(names::KIND) == Some(kind)
            && fit.parameters.iter().count() == 1
    });
    Some(fit?.line.slope)
}

/// Relative difference below which the memory of two processes and that of two threads count as
/// equal.
const MAX_EQUAL_MEMORY_DIFFERENCE: f64 = 0.02;

fn memory(record: &RunRecord) -> Judgement {
    let Some(Memory { pss: [processes, threads], .. }) = Memory::of(record) else {
        return not_measured("The demonstrations were not part of this run.");
    };
    let mut text = format!(
        "Two processes use {} (PSS), two threads {}.",
        bytes(processes as f64),
        bytes(threads as f64)
    );
    let difference = processes as f64 / (threads as f64).max(1.0) - 1.0;
    let of_two = match difference {
        difference if difference.abs() < MAX_EQUAL_MEMORY_DIFFERENCE => Ordering::Equal,
        difference => difference.total_cmp(&0.0),
    };
    let mut verdicts = vec![Verdict::expecting(Ordering::Greater, of_two)];
    if let (Some(process), Some(thread)) = (per_unit(record, "process"), per_unit(record, "thread"))
    {
        text.push_str(&format!(
            " Each further process takes {}, each further thread {}, kernel memory included.",
            bytes(process),
            bytes(thread)
        ));
        verdicts = vec![Verdict::of(process > thread)];
    }
    (Verdict::all(&verdicts), text)
}

/// Compares the creation of 100 processes with that of 100 threads. The experiment takes as many
/// samples as it has time for, so a verdict requires an interval.
fn creation(record: &RunRecord) -> Judgement {
    let compare = || {
        let (fork, thread) = (hundred(record, "fork")?, hundred(record, "thread")?);
        let order = Ratio::of(&fork.samples, &thread.samples, record.seed)?.compare_to_one();
        let verdict = order.map_or(Verdict::Inconclusive(Reason::TooFewSamples), |order| {
            Verdict::expecting(Ordering::Greater, order)
        });
        let text = format!(
            "100 processes take {}, 100 threads {}: {} times as long.",
            nanoseconds(100.0 * fork.median?),
            nanoseconds(100.0 * thread.median?),
            ratio_of(&fork.samples, &thread.samples, record.seed)?
        );
        Some(compared(verdict, text, &[[fork, thread]]))
    };
    compare().unwrap_or_else(|| not_measured("Creating 100 of each was not part of this run."))
}

fn limit(record: &RunRecord) -> Judgement {
    let Some([(_, processes), (_, threads)]) = limits(record) else {
        return not_measured("The limits were not part of this run.");
    };
    let is_capped = |report: &&contend_record::lab::LimitReport| {
        matches!(report.stopped_by, StoppedBy::Cap | StoppedBy::MemoryFloor)
    };
    if [processes, threads].iter().any(is_capped) {
        let allowed = |report: &contend_record::lab::LimitReport| {
            report.limits.first().map_or_else(|| "unknown".to_owned(), |l| l.allows.to_string())
        };
        let ended = match [processes, threads].map(stopped_by) {
            [one, other] if one == other => format!("Both attempts ended at {one}."),
            [one, other] => format!(
                "The attempt with processes ended at {one}, the one with threads at {other}."
            ),
        };
        let text = format!(
            "{ended} By the system's settings there is room for {} more processes and {} more threads.",
            allowed(processes),
            allowed(threads)
        );
        return (Verdict::Inconclusive(Reason::LimitNotReached), text);
    }
    let text =
        format!("{} processes and {} threads existed at once.", processes.created, threads.created);
    (Verdict::of(threads.created > processes.created), text)
}

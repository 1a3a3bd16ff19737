//! The trace of a parallel run: what each worker did over time.

use std::time::Duration;

use contend_record::doctor::{Cause, ThreadState};
use contend_record::run::{RunRecord, WorkKind, WorkSpan};
use contend_record::trace::{
    Activity, Clocks, Evidence, Moment, ProcessTrace, Source, Span, ThreadTrace, Trace, Wait, Work,
};

use crate::render::run::{work_name, work_stages};

/// Index of the only wait: a worker has no work.
const NO_WORK: Activity = Activity::Waiting { wait: 0, evidence: Evidence::Recorded };

/// Returns the trace of a run that has ended. `work` has what its workers did. `start` are the clocks at the
/// start of the run, and `pid` is contend's PID.
pub fn of_run(record: &RunRecord, work: &[WorkSpan], start: Clocks, pid: i32) -> Trace {
    let wall = record.outcome.as_ref().map_or(0.0, |outcome| outcome.wall_seconds);
    let at = |seconds: f64| start.monotonic + nanos(seconds);
    let ends = work.iter().map(|span| span.end_seconds);
    let end = at(ends.fold(wall, f64::max));
    let mut kinds = Vec::new();
    let mut threads: Vec<ThreadTrace> = Vec::new();
    for of_worker in work.chunk_by(|one, other| one.worker == other.worker) {
        let mut spans: Vec<Span> = Vec::new();
        let mut free = start.monotonic;
        for span in of_worker {
            let begin = at(span.begin_seconds).max(free);
            if begin > free || spans.is_empty() && begin > start.monotonic {
                spans.push(Span { start: free, activity: NO_WORK });
            }
            free = at(span.end_seconds).max(begin);
            let work = u32::try_from(kinds.len()).unwrap_or(u32::MAX);
            spans.push(Span { start: begin, activity: Activity::Working { work } });
            kinds.push(kind_of(span));
        }
        if free < end {
            spans.push(Span { start: free, activity: NO_WORK });
        }
        let number = of_worker[0].worker;
        threads.push(ThreadTrace {
            pid,
            tid: i32::try_from(number).unwrap_or(i32::MAX),
            name: format!("worker {number}"),
            begun: start.monotonic,
            end,
            has_ended: false,
            spans,
            events: Vec::new(),
        });
    }
    let is_combined = work.iter().any(|span| span.count > 1);
    let mut trace = Trace {
        start,
        end,
        observed_until: end,
        source: Source::Log { is_combined },
        processes: vec![ProcessTrace {
            pid,
            command: record.command.clone(),
            name: Some("contend run".to_owned()),
        }],
        threads,
        waits: vec![Wait { state: ThreadState::Condition, object: None }],
        work: kinds,
        moments: Vec::new(),
    };
    trace.moments = moments(&trace, record.jobs as u64);
    trace
}

fn kind_of(span: &WorkSpan) -> Work {
    let stages = if span.first_stage == span.last_stage { "stage" } else { "stages" };
    Work {
        name: format!("{}, {stages} {}", work_name(span.kind), work_stages(span)),
        state: match span.kind {
            WorkKind::Finish => ThreadState::Child,
            _ => ThreadState::Running,
        },
        count: span.count,
        bytes: (span.bytes > 0).then_some(span.bytes),
    }
}

/// Returns over time whether all of the `jobs` worked, only some, or none.
fn moments(trace: &Trace, jobs: u64) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    for (start, working) in trace.running_threads() {
        let cause = match working {
            0 => Cause::Idle,
            working if working >= jobs => Cause::Busy,
            _ => Cause::Serial,
        };
        if start < trace.end && moments.last().is_none_or(|last| last.cause != cause) {
            moments.push(Moment { start, cause });
        }
    }
    moments
}

fn nanos(seconds: f64) -> u64 {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use contend_record::run::Outcome;

    use super::*;

    fn span(worker: usize, kind: WorkKind, begin_seconds: f64, end_seconds: f64) -> WorkSpan {
        let (first_stage, last_stage, count, bytes) = (1, 2, 1, 1000);
        let busy_seconds = end_seconds - begin_seconds;
        let of_stages = WorkSpan { first_stage, last_stage, ..WorkSpan::default() };
        WorkSpan {
            worker,
            kind,
            begin_seconds,
            end_seconds,
            busy_seconds,
            count,
            bytes,
            ..of_stages
        }
    }

    fn trace(work: &[WorkSpan]) -> Trace {
        let outcome = Outcome { wall_seconds: 4.0, ..Outcome::default() };
        let record = RunRecord {
            command: "a | b".to_owned(),
            jobs: 2,
            outcome: Some(outcome),
            ..RunRecord::default()
        };
        of_run(&record, work, Clocks { monotonic: 1_000_000_000, ..Clocks::default() }, 7)
    }

    #[test]
    fn workers_are_threads_with_gaps_where_they_have_no_work() {
        let trace = trace(&[
            span(1, WorkKind::Chunk, 0.0, 1.0),
            span(1, WorkKind::Merge, 2.0, 3.0),
            span(2, WorkKind::Chunk, 0.5, 2.5),
        ]);
        let seconds = |time: u64| time as f64 / 1e9 - 1.0;
        let spans = |thread: usize| -> Vec<_> {
            let name = |activity| match activity {
                Activity::Working { work } => trace.work[work as usize].name.as_str(),
                _ => "no work",
            };
            let spans = trace.threads[thread].spans();
            spans.map(|(start, end, what)| (seconds(start), seconds(end), name(what))).collect()
        };
        let (chunk, merge) = ("chunk, stages 1–2", "merge, stages 1–2");
        let first =
            [(0.0, 1.0, chunk), (1.0, 2.0, "no work"), (2.0, 3.0, merge), (3.0, 4.0, "no work")];
        assert_eq!(spans(0), first);
        assert_eq!(spans(1), [(0.0, 0.5, "no work"), (0.5, 2.5, chunk), (2.5, 4.0, "no work")]);
        let moments: Vec<_> = trace
            .moments()
            .map(|(start, end, cause)| (seconds(start), seconds(end), cause))
            .collect();
        let expected = [
            (0.0, 0.5, Cause::Serial),
            (0.5, 1.0, Cause::Busy),
            (1.0, 2.0, Cause::Serial),
            (2.0, 2.5, Cause::Busy),
            (2.5, 3.0, Cause::Serial),
            (3.0, 4.0, Cause::Idle),
        ];
        assert_eq!(moments, expected);
    }

    #[test]
    fn work_on_one_stage_is_named_in_the_singular() {
        let one = WorkSpan { last_stage: 1, ..span(1, WorkKind::Whole, 0.0, 1.0) };
        assert_eq!(trace(&[one]).work[0].name, "whole, stage 1");
    }

    #[test]
    fn combined_work_is_marked() {
        let exact = span(1, WorkKind::Chunk, 0.0, 1.0);
        assert_eq!(trace(std::slice::from_ref(&exact)).source, Source::Log { is_combined: false });
        let combined = WorkSpan { count: 2, ..exact };
        assert_eq!(trace(&[combined]).source, Source::Log { is_combined: true });
    }

    #[test]
    fn a_run_without_work_has_a_trace_without_threads() {
        let trace = trace(&[]);
        assert!(trace.threads.is_empty());
        assert_eq!(trace.moments().count(), 1);
    }
}

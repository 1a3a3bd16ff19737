//! The log of a run's work: which worker did what, and when.
//!
//! A worker is a thread. A thread that begins to work after another one has ended its work takes over its
//! number, so that there are as many numbers as threads that worked at the same time.
//!
//! The log has a limited number of entries. If it is full, pairs of neighbouring entries of a worker with the
//! same kind of work are combined. Should that not make room, the shortest ones are left out.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use contend_record::run::{WorkKind, WorkSpan};

use crate::plan::ir::Command;

/// Largest number of entries in a record. A page cannot show more, and each takes room in every saved run.
const MAX_RECORDED: usize = 256;
/// Largest number of entries in a trace.
const MAX_TRACED: usize = 1 << 16;

/// A log of work. It records nothing before [`WorkLog::start`].
#[derive(Debug, Default)]
pub struct WorkLog {
    /// The start of the run, and the largest number of entries.
    begun: OnceLock<(Instant, usize)>,
    spans: Mutex<Vec<Span>>,
}

/// Work of a thread. Times are since the start of the run.
#[derive(Debug, Clone, Copy)]
struct Span {
    thread: ThreadId,
    kind: WorkKind,
    /// Indexes of the first and the last stage, from 0.
    stages: (usize, usize),
    begin: Duration,
    end: Duration,
    busy: Duration,
    count: u64,
    bytes: u64,
}

/// Work in progress. It ends when this value is dropped.
#[derive(Debug)]
#[must_use = "the work ends when this value is dropped"]
pub(super) struct Work<'a> {
    log: Option<(&'a WorkLog, Instant, usize)>,
    kind: WorkKind,
    stages: (usize, usize),
    bytes: u64,
    begun: Instant,
}

impl WorkLog {
    /// Starts to record. `begun` is the start of the run. With `is_traced`, the log holds as many entries as
    /// a trace needs, instead of those of a record. Only the first call counts.
    pub fn start(&self, begun: Instant, is_traced: bool) {
        let limit = if is_traced { MAX_TRACED } else { MAX_RECORDED };
        let _ = self.begun.set((begun, limit)); // the first start stays
    }

    /// Begins work of the calling thread on stages with the given indexes, first and last.
    pub(super) fn begin(&self, kind: WorkKind, stages: (usize, usize), bytes: u64) -> Work<'_> {
        let log = self.begun.get().map(|(begun, limit)| (self, *begun, *limit));
        Work { log, kind, stages, bytes, begun: Instant::now() }
    }

    fn push(&self, span: Span, limit: usize) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push(span);
        if spans.len() > limit {
            *spans = combined(&spans);
        }
    }

    /// Returns the work so far for a record, by worker and time.
    pub fn recorded(&self) -> Vec<WorkSpan> {
        self.at_most(MAX_RECORDED)
    }

    /// Returns the work so far for a trace, by worker and time.
    pub fn traced(&self) -> Vec<WorkSpan> {
        self.at_most(MAX_TRACED)
    }

    fn at_most(&self, limit: usize) -> Vec<WorkSpan> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        while spans.len() > limit {
            spans = combined(&spans);
        }
        let workers = workers(&spans);
        let worker = |thread: ThreadId| {
            let found = workers.iter().find(|(known, _)| *known == thread);
            found.map_or(1, |(_, number)| *number)
        };
        let mut spans: Vec<WorkSpan> = spans
            .into_iter()
            .map(|span| WorkSpan {
                worker: worker(span.thread),
                kind: span.kind,
                first_stage: span.stages.0 + 1,
                last_stage: span.stages.1 + 1,
                begin_seconds: rounded(span.begin),
                end_seconds: rounded(span.end),
                busy_seconds: rounded(span.busy),
                count: span.count,
                bytes: span.bytes,
            })
            .collect();
        spans.sort_by(|a, b| {
            a.worker.cmp(&b.worker).then(a.begin_seconds.total_cmp(&b.begin_seconds))
        });
        spans
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let Some((log, start, limit)) = self.log else { return };
        let busy = self.begun.elapsed();
        let begin = self.begun.saturating_duration_since(start);
        let span = Span {
            thread: thread::current().id(),
            kind: self.kind,
            stages: self.stages,
            begin,
            end: begin + busy,
            busy,
            count: 1,
            bytes: self.bytes,
        };
        log.push(span, limit);
    }
}

/// Returns the indexes of the first and the last stage of commands.
pub(super) fn stages(commands: &[Command]) -> (usize, usize) {
    let first = commands.first().map_or(0, |command| command.stage);
    (first, commands.last().map_or(first, |command| command.stage))
}

/// Combines each span with the next one of its thread, if that is of the same kind and stages. Leaves out
/// the shortest spans if hardly any could be combined.
fn combined(spans: &[Span]) -> Vec<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_by_key(|span| span.begin);
    let mut result: Vec<Span> = Vec::new();
    // Index of the last span of each thread that is not combined yet.
    let mut last_of: HashMap<ThreadId, usize> = HashMap::new();
    for span in sorted {
        let last = last_of.remove(&span.thread).map(|index| &mut result[index]);
        match last {
            Some(last) if (last.kind, last.stages) == (span.kind, span.stages) => {
                last.end = span.end;
                last.busy += span.busy;
                last.count += span.count;
                last.bytes += span.bytes;
            }
            _ => {
                last_of.insert(span.thread, result.len());
                result.push(span);
            }
        }
    }
    if result.len() > spans.len() * 3 / 4 {
        result.sort_by_key(|span| std::cmp::Reverse(span.busy));
        result.truncate(spans.len() / 2);
    }
    result
}

/// Returns the number of each thread as a worker, from 1.
fn workers(spans: &[Span]) -> Vec<(ThreadId, usize)> {
    let mut threads: Vec<(ThreadId, Duration, Duration)> = Vec::new();
    for span in spans {
        match threads.iter_mut().find(|(thread, ..)| *thread == span.thread) {
            Some((_, begin, end)) => {
                (*begin, *end) = ((*begin).min(span.begin), (*end).max(span.end));
            }
            None => threads.push((span.thread, span.begin, span.end)),
        }
    }
    threads.sort_by_key(|(_, begin, _)| *begin);
    // The end of the last thread with each number.
    let mut ends: Vec<Duration> = Vec::new();
    let numbers = threads.into_iter().map(|(thread, begin, end)| {
        let free = ends.iter().position(|before| *before <= begin);
        let place = free.unwrap_or_else(|| {
            ends.push(Duration::ZERO);
            ends.len() - 1
        });
        ends[place] = end;
        (thread, place + 1)
    });
    numbers.collect()
}

/// Returns seconds, rounded to microseconds.
fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> WorkLog {
        let log = WorkLog::default();
        log.start(Instant::now(), false);
        log
    }

    #[test]
    fn nothing_is_recorded_before_the_start() {
        let log = WorkLog::default();
        drop(log.begin(WorkKind::Chunk, (0, 0), 7));
        assert_eq!(log.recorded(), []);
        log.start(Instant::now(), false);
        drop(log.begin(WorkKind::Merge, (1, 2), 7));
        let spans = log.recorded();
        let [span] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!((span.kind, span.first_stage, span.last_stage), (WorkKind::Merge, 2, 3));
        assert_eq!((span.worker, span.count, span.bytes), (1, 1, 7));
        assert!(span.end_seconds >= span.begin_seconds);
    }

    #[test]
    fn threads_at_the_same_time_are_different_workers() {
        let log = started();
        let both = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _work = log.begin(WorkKind::Chunk, (0, 0), 1);
                    both.wait();
                });
            }
        });
        // This thread begins after the others have ended.
        drop(log.begin(WorkKind::Combine, (0, 0), 0));
        let workers: Vec<_> = log.recorded().iter().map(|span| (span.worker, span.kind)).collect();
        let (chunk, combine) = (WorkKind::Chunk, WorkKind::Combine);
        assert_eq!(workers, [(1, chunk), (1, combine), (2, chunk)]);
    }

    #[test]
    fn a_full_log_combines_work_and_loses_none() {
        let log = started();
        for _ in 0..10 * MAX_RECORDED {
            drop(log.begin(WorkKind::Chunk, (0, 0), 3));
        }
        let spans = log.recorded();
        assert!((MAX_RECORDED / 4..=MAX_RECORDED).contains(&spans.len()), "{}", spans.len());
        let total = 10 * MAX_RECORDED as u64;
        assert_eq!(spans.iter().map(|span| span.count).sum::<u64>(), total);
        assert_eq!(spans.iter().map(|span| span.bytes).sum::<u64>(), 3 * total);
        for pair in spans.windows(2) {
            assert!(pair[0].end_seconds <= pair[1].begin_seconds + 1e-6, "{pair:?}");
        }
    }

    #[test]
    fn the_log_is_bounded_for_any_order_of_work() {
        let log = started();
        for _ in 0..2 * MAX_RECORDED {
            drop(log.begin(WorkKind::Chunk, (0, 0), 1));
            drop(log.begin(WorkKind::Merge, (0, 0), 1));
        }
        let spans = log.recorded();
        for kind in [WorkKind::Chunk, WorkKind::Merge] {
            assert!(spans.iter().any(|span| span.kind == kind), "{kind:?}");
        }
        assert!((MAX_RECORDED / 2..=MAX_RECORDED).contains(&spans.len()), "{}", spans.len());
    }

    #[test]
    fn a_trace_has_work_that_the_record_combines() {
        let log = WorkLog::default();
        log.start(Instant::now(), true);
        for number in 0..10 * MAX_RECORDED {
            let kind = if number % 3 == 0 { WorkKind::Merge } else { WorkKind::Chunk };
            drop(log.begin(kind, (0, 0), 1));
        }
        assert_eq!(log.traced().len(), 10 * MAX_RECORDED);
        let recorded = log.recorded().len();
        assert!((MAX_RECORDED / 4..=MAX_RECORDED).contains(&recorded), "{recorded}");
    }
}

//! The spans of one thread.
//!
//! With context switches, a span is complete when the next record of the thread arrives. Without them,
//! each sample adds the time since the last one: first queued, then running, then waiting, or the other
//! way round if the thread is active at the sample.

use contend_record::trace::{Activity, Evidence, Span, ThreadTrace};

use super::waits::UNKNOWN;
use crate::thread::{Sample, Sampled};

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// On this CPU, if it is known.
    OnCpu(Option<u16>),
    /// Queued for a CPU.
    Queued,
    /// Waiting.
    Waiting,
}

/// A sample that found the thread in a wait.
#[derive(Debug, Clone, Copy)]
struct WaitSample {
    before: u64,
    after: u64,
    wait: u32,
}

/// A thread with its spans so far.
#[derive(Debug)]
pub struct Traced {
    /// The complete spans.
    pub trace: ThreadTrace,
    position: Position,
    /// Time since which the thread is in its position or, without context switches, of the last sample.
    since: u64,
    /// Whether the position is from the sample that found the thread, not from a record.
    is_found: bool,
    /// Whether a sample has shown that it has ended.
    has_vanished: bool,
    /// The last sample that found the thread waiting, if no later record has been added.
    sampled: Option<WaitSample>,
    /// The last wait that a sample found.
    last_wait: Option<u32>,
    /// Running time that is known from counters but not yet part of a span, in nanoseconds. Negative
    /// while the counters lag.
    owed_running: i64,
    /// The same for queued time.
    owed_queued: i64,
}

/// Time in which two equal records are of the same switch, in nanoseconds: a thread that was found while
/// it started may be followed twice.
const REPEATED_NANOS: u64 = 10_000;

/// A wait about which nothing is known.
const UNSEEN: Activity = Activity::Waiting { wait: UNKNOWN, evidence: Evidence::None };

impl Traced {
    /// Starts the spans of a thread at `time`.
    pub fn new(pid: i32, tid: i32, time: u64, position: Position) -> Self {
        let trace = ThreadTrace {
            pid,
            tid,
            name: String::new(),
            begun: time,
            end: time,
            has_ended: false,
            spans: Vec::new(),
            events: Vec::new(),
        };
        Self {
            trace,
            position,
            since: time,
            is_found: false,
            has_vanished: false,
            sampled: None,
            last_wait: None,
            owed_running: 0,
            owed_queued: 0,
        }
    }

    /// Returns whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.trace.has_ended
    }

    /// Notes that a sample has shown that the thread has ended.
    pub fn vanish(&mut self) {
        self.has_vanished = true;
    }

    /// Returns whether this is what was left of a thread that had ended: it was found by a sample, but
    /// has no record.
    pub fn is_remnant(&self) -> bool {
        self.is_found && self.has_vanished
    }

    /// Returns the last wait that a sample found.
    pub fn last_wait(&self) -> Option<u32> {
        self.sampled.map(|sample| sample.wait).or(self.last_wait)
    }

    /// Notes that the thread was found by a sample, in a wait or active.
    pub fn set_found(&mut self, before: u64, after: u64, wait: Option<u32>) {
        self.is_found = true;
        self.last_wait = wait;
        self.note_wait(before, after, wait);
    }

    /// Moves the beginning of a thread that was found by a sample to `time`, by the record of its start.
    /// Returns whether the record is about this thread: not if it has ended, or has a record.
    pub fn begin(&mut self, time: u64) -> bool {
        let is_this = self.is_found && !self.has_ended() && time <= self.since;
        if is_this {
            self.trace.begun = time;
            self.since = time;
            self.position = Position::Queued;
            self.is_found = false;
        }
        is_this
    }

    /// Notes that a sample, taken between `before` and `after`, has found the thread in a wait. Does
    /// nothing if it did not wait.
    pub fn note_wait(&mut self, before: u64, after: u64, wait: Option<u32>) {
        if let Some(wait) = wait {
            self.sampled = Some(WaitSample { before, after, wait });
        }
    }

    /// Moves the thread to another position at `time`, by a record of a switch on `cpu`.
    pub fn enter(&mut self, next: Position, cpu: Option<u16>, time: u64) {
        let is_repeated = next == self.position && !self.is_found;
        if self.has_ended() || is_repeated && time < self.since + REPEATED_NANOS {
            return;
        }
        let time = time.max(self.since);
        let wait = self.wait_until(time);
        let runs_next = matches!(next, Position::OnCpu(_));
        let activity = match self.position {
            // The sample cannot distinguish a queued thread from a running one.
            Position::OnCpu(_) if runs_next && self.is_found => Activity::Queued,
            // A record was lost, so that a part of the time was spent otherwise.
            Position::OnCpu(_) if runs_next => UNSEEN,
            Position::Queued | Position::Waiting if !runs_next => UNSEEN,
            Position::OnCpu(known) => Activity::Running { cpu: known.or(cpu) },
            Position::Queued => Activity::Queued,
            Position::Waiting => wait,
        };
        self.push(activity, time);
        self.position = next;
        self.is_found = false;
    }

    /// Adds the time up to a sample at `now`, which found the thread in `wait` or active.
    pub fn sample(&mut self, now: u64, sample: &Sample, wait: Option<u32>) {
        if self.has_ended() {
            return;
        }
        let now = now.max(self.since);
        let time = signed(now - self.since);
        self.owed_running += signed(sample.on_cpu);
        self.owed_queued += signed(sample.run_queue);
        let is_unmoved = sample.slices == 0 && self.position != Position::Waiting;
        let (running, queued) = match sample.state {
            // It has been active all the time: on one CPU, or queued.
            Sampled::Active if is_unmoved && sample.on_cpu > 0 => (time, 0),
            _ => {
                let running = self.owed_running.clamp(0, time);
                (running, self.owed_queued.clamp(0, time - running))
            }
        };
        self.owed_running -= running;
        self.owed_queued -= queued;
        let waiting = time - running - queued;
        let wait_span = match wait.or(self.last_wait) {
            Some(wait) if sample.state == Sampled::Active => {
                Activity::Waiting { wait, evidence: Evidence::Assumed }
            }
            Some(wait) => Activity::Waiting { wait, evidence: Evidence::Sampled },
            None => UNSEEN,
        };
        let active = [(Activity::Queued, queued), (Activity::Running { cpu: None }, running)];
        let waits = [(wait_span, waiting)];
        if sample.state == Sampled::Active {
            self.push_all(waits.into_iter().chain(active));
        } else {
            self.push_all(active.into_iter().chain(waits));
        }
        self.last_wait = wait.or(self.last_wait);
        self.position = if wait.is_some() { Position::Waiting } else { Position::OnCpu(None) };
    }

    /// Ends the thread at `time`.
    pub fn end(&mut self, time: u64) {
        if !self.has_ended() {
            self.close(time);
            self.trace.has_ended = true;
        }
    }

    /// Ends the thread at `time`, without a record of its end: what it has done since the last sample is
    /// unknown.
    pub fn end_unseen(&mut self, time: u64) {
        if !self.has_ended() {
            let time = time.max(self.since);
            self.push(UNSEEN, time);
            (self.trace.end, self.trace.has_ended) = (time, true);
        }
    }

    /// Ends the trace at `time`, if the thread has not ended before.
    pub fn finish(&mut self, time: u64) {
        if !self.has_ended() {
            self.close(time);
        }
    }

    fn close(&mut self, time: u64) {
        let time = time.max(self.since);
        let wait = self.wait_until(time);
        let activity = match self.position {
            Position::OnCpu(cpu) => Activity::Running { cpu },
            Position::Queued => Activity::Queued,
            Position::Waiting => wait,
        };
        self.push(activity, time);
        self.trace.end = time;
    }

    /// Returns the wait of a thread that has waited until `time`: the sampled one, if the sample was
    /// taken in the wait, or else the one that was sampled last.
    fn wait_until(&mut self, time: u64) -> Activity {
        let sample = self.sampled.take_if(|sample| sample.before < time);
        let sample = sample.filter(|sample| sample.before >= self.since && sample.after <= time);
        if let Some(WaitSample { wait, .. }) = sample.filter(|_| self.position == Position::Waiting)
        {
            self.last_wait = Some(wait);
            return Activity::Waiting { wait, evidence: Evidence::Sampled };
        }
        self.last_wait
            .map_or(UNSEEN, |wait| Activity::Waiting { wait, evidence: Evidence::Assumed })
    }

    fn push_all(&mut self, activities: impl Iterator<Item = (Activity, i64)>) {
        for (activity, nanos) in activities {
            self.push(activity, self.since + nanos.unsigned_abs());
        }
    }

    /// Adds what the thread has done up to `until`.
    fn push(&mut self, activity: Activity, until: u64) {
        if until > self.since {
            if self.trace.spans.last().is_none_or(|last| last.activity != activity) {
                self.trace.spans.push(Span { start: self.since, activity });
            }
            self.since = until;
        }
    }
}

/// Converts a length of time; lengths above 292 years become that.
fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

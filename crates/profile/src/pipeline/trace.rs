//! Collects a trace: what each stage did over time, by samples. Only `--trace` needs this.

use std::time::Duration;

use contend_record::doctor::{Cause, ThreadState};
use contend_record::trace::{
    Activity, Clocks, Evidence, Moment, ProcessTrace, Source, Span, ThreadTrace, Trace,
    Wait as TracedWait, WaitObject,
};

use crate::observe::{State, Wait};

/// Largest number of changes of state that are collected. They take 16 bytes each.
const MAX_CHANGES: usize = 1_000_000;

/// The states of the stages over time: each change, with the time of the sample that found it.
#[derive(Debug, Clone)]
pub struct StateLog {
    start: Clocks,
    /// The last known states; `None` for a stage that has ended.
    last: Vec<Option<State>>,
    /// Time since the gate opened, stage, and its state from then on; `None` if it has ended.
    changes: Vec<(Duration, usize, Option<State>)>,
    /// Time of the last sample that was taken into account.
    until: Duration,
}

impl StateLog {
    /// Starts a log of this number of stages, which run. `start` are the clocks when the gate opened.
    pub fn new(stages: usize, start: Clocks) -> Self {
        let changes = (0..stages).map(|stage| (Duration::ZERO, stage, Some(State::Active)));
        Self {
            start,
            last: vec![Some(State::Active); stages],
            changes: changes.collect(),
            until: Duration::ZERO,
        }
    }

    /// Adds the states that a sample has found at `now` since the gate opened. Does nothing once the log
    /// is full.
    pub fn note(&mut self, now: Duration, states: &[Option<State>]) {
        if self.changes.len() + states.len() > MAX_CHANGES {
            return;
        }
        self.until = now;
        for (stage, (last, state)) in self.last.iter_mut().zip(states).enumerate() {
            if last != state {
                *last = *state;
                self.changes.push((now, stage, *state));
            }
        }
    }

    /// Returns the trace of a run of this length. `stages` has the process ID and the command of each stage,
    /// and the time of its end. `cpus` is the number of CPUs that the stages may use.
    pub fn trace(&self, wall: Duration, stages: &[(i32, String, Duration)], cpus: f64) -> Trace {
        let at = |time: Duration| self.start.monotonic + nanos(time);
        // The log ends early if it was full.
        let is_full = self.changes.len() + stages.len() > MAX_CHANGES;
        let end = if is_full { at(self.until) } else { at(wall) };
        let mut waits: Vec<TracedWait> = Vec::new();
        let threads = stages.iter().enumerate().map(|(stage, (pid, command, ended))| {
            let own = self.changes.iter().filter(|(_, of, _)| *of == stage);
            let mut spans = Vec::new();
            for (time, _, state) in own {
                let Some(state) = state else { continue };
                spans.push(Span { start: at(*time), activity: activity(*state, &mut waits) });
            }
            let has_ended = at(*ended) < end;
            ThreadTrace {
                pid: *pid,
                tid: *pid,
                name: command.clone(),
                begun: self.start.monotonic,
                end: if has_ended { at(*ended) } else { end },
                has_ended,
                spans,
                events: Vec::new(),
            }
        });
        let threads: Vec<ThreadTrace> = threads.map(clipped).collect();
        let processes = stages.iter().map(|(pid, command, _)| ProcessTrace {
            pid: *pid,
            command: command.clone(),
            name: None,
        });
        Trace {
            start: self.start,
            end,
            observed_until: at(wall),
            source: Source::Samples {
                reason: "contend pipe samples the states of stages".to_owned(),
            },
            processes: processes.collect(),
            threads,
            waits,
            work: Vec::new(),
            moments: self.moments(cpus, end),
        }
    }

    /// Returns the causes over time, by the numbers of stages in each state.
    fn moments(&self, cpus: f64, end: u64) -> Vec<Moment> {
        let mut states: Vec<Option<State>> = vec![None; self.last.len()];
        let mut moments: Vec<Moment> = Vec::new();
        for same_time in self.changes.chunk_by(|one, other| one.0 == other.0) {
            for (_, stage, state) in same_time {
                states[*stage] = *state;
            }
            let start = self.start.monotonic + nanos(same_time[0].0);
            let cause = cause(&states, cpus);
            if start < end && moments.last().is_none_or(|last| last.cause != cause) {
                moments.push(Moment { start, cause });
            }
        }
        moments
    }
}

/// Returns why no more stages run, by the states of all.
fn cause(states: &[Option<State>], cpus: f64) -> Cause {
    let count = |is_it: &dyn Fn(State) -> bool| {
        states.iter().flatten().filter(|state| is_it(**state)).count()
    };
    let is_in = |wanted: Wait| move |state: State| state == State::Waiting(wanted);
    let active = count(&|state| state == State::Active);
    match active {
        0 if states.iter().all(Option::is_none) => Cause::Unknown,
        0 if count(&is_in(Wait::Stopped)) > 0 => Cause::Stopped,
        0 if count(&is_in(Wait::Lock)) > 0 => Cause::Lock,
        0 if count(&is_in(Wait::Disk)) > 0 => Cause::Disk,
        0 if count(&is_in(Wait::Sleep)) > 0 => Cause::Sleep,
        0 if count(&is_in(Wait::Child)) > 0 => Cause::Child,
        0 => Cause::Idle,
        active if active as f64 >= cpus => Cause::Busy,
        _ => Cause::Serial,
    }
}

/// Returns the thread without spans that begin after its end.
fn clipped(mut thread: ThreadTrace) -> ThreadTrace {
    thread.spans.retain(|span| span.start < thread.end);
    thread
}

/// Returns the activity of a stage in a state. Whether an active stage runs or is queued is not sampled.
fn activity(state: State, waits: &mut Vec<TracedWait>) -> Activity {
    let State::Waiting(wait) = state else { return Activity::Running { cpu: None } };
    let end =
        |fd: i32, name: &str| Some(WaitObject::Descriptor { fd, target: Some(name.to_owned()) });
    let (state, object) = match wait {
        Wait::Starved => (ThreadState::Pipe, end(0, "its input")),
        Wait::Blocked => (ThreadState::Pipe, end(1, "its output")),
        Wait::Sleep => (ThreadState::Sleep, None),
        Wait::Lock => (ThreadState::Lock, None),
        Wait::Disk => (ThreadState::Disk, None),
        Wait::Child => (ThreadState::Child, None),
        Wait::Poll => (ThreadState::Poll, None),
        Wait::Network => (ThreadState::Socket, None),
        Wait::Pipe => (ThreadState::Pipe, None),
        Wait::Terminal => (ThreadState::Terminal, None),
        Wait::Stopped => (ThreadState::Stopped, None),
        Wait::Other => (ThreadState::Other, None),
        Wait::Unknown => (ThreadState::Unknown, None),
    };
    let wait = TracedWait { state, object };
    let place = waits.iter().position(|known| *known == wait).unwrap_or_else(|| {
        waits.push(wait);
        waits.len() - 1
    });
    let wait = u32::try_from(place).unwrap_or(0); // there are at most 13
    Activity::Waiting { wait, evidence: Evidence::Sampled }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_trace_has_a_span_for_each_change() {
        let start = Clocks { monotonic: 1_000_000, ..Clocks::default() };
        let mut log = StateLog::new(2, start);
        let (active, starved) = (Some(State::Active), Some(State::Waiting(Wait::Starved)));
        log.note(MILLISECOND, &[active, starved]);
        log.note(2 * MILLISECOND, &[active, starved]);
        log.note(3 * MILLISECOND, &[None, active]);
        let stages =
            [(7, "cat".to_owned(), 3 * MILLISECOND), (8, "sort".to_owned(), 5 * MILLISECOND)];
        let trace = log.trace(5 * MILLISECOND, &stages, 2.0);
        assert!(trace.is_complete());
        let [cat, sort] = trace.threads.as_slice() else { panic!("{trace:?}") };
        assert_eq!((cat.spans.len(), cat.has_ended, cat.end), (1, true, 4_000_000));
        let spans: Vec<_> = sort.spans().map(|(start, end, _)| (start, end)).collect();
        let expected = [(1_000_000, 2_000_000), (2_000_000, 4_000_000), (4_000_000, 6_000_000)];
        assert_eq!(spans, expected);
        assert_eq!(trace.state(sort.spans[1].activity), ThreadState::Pipe);
        let causes: Vec<_> = trace.moments().map(|(.., cause)| cause).collect();
        assert_eq!(causes, [Cause::Busy, Cause::Serial]);
    }

    #[test]
    fn without_running_stages_the_cause_is_what_they_wait_for() {
        let waits = |waits: &[Wait]| -> Vec<Option<State>> {
            waits.iter().map(|wait| Some(State::Waiting(*wait))).collect()
        };
        assert_eq!(cause(&waits(&[Wait::Starved, Wait::Sleep]), 2.0), Cause::Sleep);
        assert_eq!(cause(&waits(&[Wait::Starved, Wait::Disk]), 2.0), Cause::Disk);
        assert_eq!(cause(&waits(&[Wait::Starved]), 2.0), Cause::Idle);
        assert_eq!(cause(&[None], 2.0), Cause::Unknown);
    }
}

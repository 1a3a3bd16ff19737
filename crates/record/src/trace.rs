//! A trace: what each thread of a program did over time, for viewers of traces.
//!
//! A trace is not a record. It has no schema and is not stored: it is written once, to a file in the
//! format of a viewer, and a record has the sums.
//!
//! ```text
//! Trace ─┬─ processes
//!        ├─ threads ─┬─ spans: running on a CPU, queued or waiting      ─▶ waits: state and object
//!        │           └─ events: a program was executed, a new name
//!        └─ moments: the cause of each moment
//! ```
//!
//! All times are in nanoseconds of `CLOCK_MONOTONIC`.

use std::iter;
use std::time::Duration;

use crate::doctor::{Cause, ThreadState};

/// What the threads of a program did over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Readings of several clocks at the start.
    pub start: Clocks,
    /// Time of the end. If the trace is not complete, this is before `observed_until`.
    pub end: u64,
    /// Time of the end of the observation.
    pub observed_until: u64,
    /// What the spans were made from.
    pub source: Source,
    /// The observed processes, as far as their commands are known.
    pub processes: Vec<ProcessTrace>,
    /// The threads, in the order in which they were found.
    pub threads: Vec<ThreadTrace>,
    /// The waits to which spans refer.
    pub waits: Vec<Wait>,
    /// The work to which spans refer.
    pub work: Vec<Work>,
    /// The cause of each moment, in order of time and without gaps. The first begins at the start, the
    /// last one ends at `end`.
    pub moments: Vec<Moment>,
}

/// Readings of several clocks at the same moment, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: u64,
    /// `CLOCK_BOOTTIME`.
    pub boottime: u64,
    /// `CLOCK_REALTIME`.
    pub realtime: u64,
}

/// What the spans of a trace were made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Context switches, with exact times.
    Switches,
    /// Samples. In the time between two samples of a thread, the sums are exact, but the order is
    /// guessed.
    Samples {
        /// Why there are only samples, in a clause.
        reason: String,
    },
    /// Each thread recorded its own work.
    Log {
        /// Whether there was too much work to record in full, so that neighbouring spans are combined.
        is_combined: bool,
    },
}

/// An observed process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessTrace {
    /// The PID.
    pub pid: i32,
    /// Its command line, with words separated by spaces.
    pub command: String,
    /// Its name; `None` if it is called like its first thread.
    pub name: Option<String>,
}

/// What a thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTrace {
    /// PID of its process.
    pub pid: i32,
    /// ID of the thread.
    pub tid: i32,
    /// Its last name (`comm`); empty if it is unknown.
    pub name: String,
    /// Time at which it started or was found.
    pub begun: u64,
    /// Time of its end, or that of the trace.
    pub end: u64,
    /// Whether it ended before the trace did.
    pub has_ended: bool,
    /// What it did, in order of time and without gaps. The first span begins at `begun`, the last one
    /// ends at `end`. Empty only if it was observed for no time at all.
    pub spans: Vec<Span>,
    /// Events, in order of time.
    pub events: Vec<Event>,
}

/// The beginning of a stretch of time in which a thread does the same; it ends where the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Time of the beginning.
    pub start: u64,
    /// What the thread does.
    pub activity: Activity,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// On a CPU.
    Running {
        /// Number of the CPU; `None` if it is unknown.
        cpu: Option<u16>,
    },
    /// At work that the thread recorded itself.
    Working {
        /// Index of the work in [`Trace::work`].
        work: u32,
    },
    /// Queued for a CPU.
    Queued,
    /// Waiting.
    Waiting {
        /// Index of the wait in [`Trace::waits`].
        wait: u32,
        /// How the wait was determined.
        evidence: Evidence,
    },
}

/// How a wait was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A sample found the thread in this wait.
    Sampled,
    /// No sample was taken during the wait. It is the thread's last sampled wait.
    Assumed,
    /// The thread recorded no work in this time.
    Recorded,
    /// The wait is unknown: no sample has been taken so far, or records were lost.
    None,
}

/// A kind of wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The state of a thread in this wait.
    pub state: ThreadState,
    /// What the thread waits for; `None` if that is unknown.
    pub object: Option<WaitObject>,
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WaitObject {
    /// A word of memory (futex).
    Futex {
        /// Address of the word in the process.
        address: u64,
    },
    /// A descriptor.
    Descriptor {
        /// Number of the descriptor.
        fd: i32,
        /// What it refers to, as `/proc` names it, such as `pipe:[7]` or a path; `None` if that is
        /// unknown.
        target: Option<String>,
    },
    /// A point in time.
    Timer {
        /// Length of the wait; `None` if it is unknown.
        limit: Option<Duration>,
    },
    /// Any of several descriptors.
    Descriptors {
        /// Longest time of the wait; `None` if there is no limit, or it is unknown.
        limit: Option<Duration>,
    },
}

/// Work that a thread recorded itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Name of the kind of work.
    pub name: String,
    /// The state of a thread at this work.
    pub state: ThreadState,
    /// Number of pieces of work that the span combines.
    pub count: u64,
    /// Bytes that were worked on; `None` if they are not counted.
    pub bytes: Option<u64>,
}

/// Something that happened to a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub time: u64,
    /// What happened.
    pub kind: EventKind,
    /// The thread's name from then on.
    pub name: String,
}

/// What happened to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Its process executed a program.
    Executed,
    /// It got a new name.
    Renamed,
}

/// The beginning of a stretch of time with the same cause; it ends where the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Time of the beginning.
    pub start: u64,
    /// Why the program did not use all its CPUs, or that it did.
    pub cause: Cause,
}

impl Trace {
    /// Returns whether the trace ends with the observation. If not, the limit on spans was reached.
    pub fn is_complete(&self) -> bool {
        self.end >= self.observed_until
    }

    /// Returns the moments, each with its beginning and its end.
    pub fn moments(&self) -> impl Iterator<Item = (u64, u64, Cause)> {
        let ends = self.moments.iter().skip(1).map(|next| next.start).chain(iter::once(self.end));
        self.moments.iter().zip(ends).map(|(moment, end)| (moment.start, end, moment.cause))
    }

    /// Returns the number of threads on CPUs over time: each change, with its time and the number from
    /// then on. Begins with the number at the start.
    pub fn running_threads(&self) -> Vec<(u64, u64)> {
        let mut changes: Vec<(u64, bool)> = Vec::new();
        for thread in &self.threads {
            for (start, end, activity) in thread.spans() {
                if self.state(activity) == ThreadState::Running {
                    changes.extend([(start, true), (end, false)]);
                }
            }
        }
        changes.sort_unstable();
        let mut running = 0;
        let mut levels: Vec<(u64, u64)> = vec![(self.start.monotonic, 0)];
        for same in changes.chunk_by(|one, other| one.0 == other.0) {
            let begun = same.iter().filter(|(_, begins)| *begins).count() as u64;
            let before = running;
            running = running + begun - (same.len() as u64 - begun);
            match levels.last_mut() {
                Some(last) if last.0 == same[0].0 => last.1 = running,
                _ if running != before => levels.push((same[0].0, running)),
                _ => {}
            }
        }
        levels
    }

    /// Returns the state of a thread that does `activity`.
    pub fn state(&self, activity: Activity) -> ThreadState {
        match activity {
            Activity::Running { .. } => ThreadState::Running,
            Activity::Working { work } => {
                self.work.get(work as usize).map_or(ThreadState::Unknown, |work| work.state)
            }
            Activity::Queued => ThreadState::Runnable,
            Activity::Waiting { wait, .. } => {
                self.waits.get(wait as usize).map_or(ThreadState::Unknown, |wait| wait.state)
            }
        }
    }

    /// Returns the name of a process: its own, or else that of its first thread or of any other.
    pub fn process_name(&self, pid: i32) -> &str {
        let named = self.processes.iter().find(|process| process.pid == pid);
        if let Some(name) = named.and_then(|process| process.name.as_deref()) {
            return name;
        }
        let own = |thread: &&ThreadTrace| thread.pid == pid && !thread.name.is_empty();
        let mut threads = self.threads.iter().filter(own);
        let first = threads.clone().find(|thread| thread.tid == pid);
        first.or_else(|| threads.next()).map_or("", |thread| &thread.name)
    }

    /// Returns the command line of a process; `None` if it is unknown.
    pub fn command(&self, pid: i32) -> Option<&str> {
        self.processes.iter().find(|process| process.pid == pid).map(|process| &*process.command)
    }
}

impl ThreadTrace {
    /// Returns what the thread did, each with its beginning and its end.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64, Activity)> {
        let ends = self.spans.iter().skip(1).map(|next| next.start).chain(iter::once(self.end));
        self.spans.iter().zip(ends).map(|(span, end)| (span.start, end, span.activity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: i32, end: u64, spans: &[(u64, bool)]) -> ThreadTrace {
        let span = |&(start, is_running): &(u64, bool)| Span {
            start,
            activity: if is_running { Activity::Running { cpu: None } } else { Activity::Queued },
        };
        ThreadTrace {
            pid: 1,
            tid,
            name: format!("thread {tid}"),
            begun: spans[0].0,
            end,
            has_ended: false,
            spans: spans.iter().map(span).collect(),
            events: Vec::new(),
        }
    }

    fn trace(threads: Vec<ThreadTrace>) -> Trace {
        Trace {
            start: Clocks { monotonic: 10, ..Clocks::default() },
            end: 100,
            observed_until: 100,
            source: Source::Switches,
            processes: Vec::new(),
            threads,
            waits: Vec::new(),
            work: Vec::new(),
            moments: vec![
                Moment { start: 10, cause: Cause::Idle },
                Moment { start: 40, cause: Cause::Busy },
            ],
        }
    }

    #[test]
    fn a_span_is_small_because_a_trace_has_millions() {
        assert_eq!(size_of::<Span>(), 16);
    }

    #[test]
    fn a_span_ends_where_the_next_begins() {
        let thread = thread(1, 30, &[(10, true), (15, false)]);
        let running = Activity::Running { cpu: None };
        let spans: Vec<_> = thread.spans().collect();
        assert_eq!(spans, [(10, 15, running), (15, 30, Activity::Queued)]);
        let moments: Vec<_> = trace(vec![thread]).moments().collect();
        assert_eq!(moments, [(10, 40, Cause::Idle), (40, 100, Cause::Busy)]);
    }

    #[test]
    fn running_threads_are_counted_at_each_change() {
        let trace = trace(vec![
            thread(1, 50, &[(10, true), (20, false), (30, true)]),
            thread(2, 40, &[(20, true), (25, false)]),
        ]);
        // One thread follows the other at 20, which is not a change.
        assert_eq!(trace.running_threads(), [(10, 1), (25, 0), (30, 1), (50, 0)]);
    }

    #[test]
    fn a_process_is_named_after_its_first_thread() {
        let mut trace = trace(vec![thread(2, 40, &[(10, true)]), thread(1, 40, &[(10, true)])]);
        assert_eq!(trace.process_name(1), "thread 1");
        trace.threads.pop();
        assert_eq!(trace.process_name(1), "thread 2");
        assert_eq!(trace.process_name(2), "");
    }
}

//! Collects a trace: what each thread did over time. Only `--trace` needs this; without it, nothing is
//! collected.
//!
//! ```text
//! context switches ─▶ spans: running, queued, waiting        exact, if recorded
//! samples ──────────▶ what a thread waits for
//!          └────────▶ spans, where no switches are recorded  sums exact, order guessed
//! timeline ─────────▶ moments: the cause of each
//! ```
//!
//! Records of context switches arrive after the samples of the same time, so that a sample waits until
//! the records up to its time are there. A wait between two samples is assumed to be for the same as
//! the last one, and is marked as such.

mod thread;
mod waits;

use std::collections::BTreeMap;

use contend_record::doctor::Cause;
use contend_record::trace::{Clocks, Event, EventKind, Moment, ProcessTrace, Source, Trace};
use contend_sys::perf::{self, Record};

use crate::thread::{Sample, Sampled};
use crate::timeline::{CAUSES, Timeline};

use thread::{Position, Traced};
use waits::Waits;

/// Largest number of spans, moments, events and threads in a trace. A million spans take 16 MB of
/// memory, and about 60 MB in a file that is not compressed.
pub const MAX_SPANS: usize = 2_000_000;

/// A sample, and when it was taken.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// Time before the files were read, in nanoseconds of `CLOCK_MONOTONIC`.
    pub before: u64,
    /// Time after they were read.
    pub after: u64,
    /// The sample.
    pub sample: &'a Sample,
}

/// A trace in progress.
#[derive(Debug)]
pub struct Collector {
    limit: usize,
    /// Number of spans, moments, events and threads. Waits count, too.
    used: usize,
    has_switches: bool,
    start: Clocks,
    /// Time of the latest record or sample.
    now: u64,
    /// When the limit was reached.
    full_at: Option<u64>,
    threads: Vec<Traced>,
    /// Index of the last thread with these IDs of process and thread.
    by_id: BTreeMap<(i32, i32), usize>,
    waits: Waits,
    moments: Vec<Moment>,
    /// Time by cause, as of the last moment.
    causes: [u64; CAUSES],
    /// End of the last moment.
    moments_end: u64,
}

impl Collector {
    /// Starts a trace of at most `limit` spans, moments, events and threads.
    pub fn new(start: Clocks, has_switches: bool, limit: usize) -> Self {
        Self {
            limit,
            used: 0,
            has_switches,
            start,
            now: start.monotonic,
            full_at: None,
            threads: Vec::new(),
            by_id: BTreeMap::new(),
            waits: Waits::default(),
            moments: Vec::new(),
            causes: [0; CAUSES],
            moments_end: start.monotonic,
        }
    }

    /// Adds a thread that was found in `state` between `before` and `after`, or updates it if it is
    /// known from records.
    pub fn add(
        &mut self,
        (process, id): (i32, i32),
        (before, after): (u64, u64),
        state: Sampled,
        name: &str,
    ) {
        if self.is_full(after) {
            return;
        }
        let wait = self.waits.of_state(process, state);
        let index = match self.by_id.get(&(process, id)) {
            Some(&index) if !self.threads[index].has_ended() => {
                self.threads[index].note_wait(before, after, wait);
                index
            }
            _ => {
                let position =
                    if wait.is_some() { Position::Waiting } else { Position::OnCpu(None) };
                let index = self.create(process, id, before, position);
                self.threads[index].set_found(before, after, wait);
                index
            }
        };
        name.clone_into(&mut self.threads[index].trace.name);
    }

    /// Adds a context switch, or the start, end or new name of a thread.
    pub fn record(&mut self, record: &Record) {
        if self.is_full(record.time) {
            return;
        }
        let time = record.time.max(self.start.monotonic);
        let cpu = u16::try_from(record.cpu).ok();
        match &record.event {
            perf::Event::In => self.enter(record, Position::OnCpu(cpu), time),
            perf::Event::Blocked => self.enter(record, Position::Waiting, time),
            perf::Event::Preempted => self.enter(record, Position::Queued, time),
            perf::Event::Started { parent } => self.start(record, *parent, time),
            perf::Event::Ended => {
                if let Some(index) = self.living(record, time) {
                    self.count_spans(index, |thread| thread.end(time));
                }
            }
            perf::Event::Executed(name) => self.execute(record, time, name),
            perf::Event::Renamed(name) => {
                if let Some(index) = self.living(record, time) {
                    self.note(index, time, EventKind::Renamed, name);
                }
            }
            perf::Event::At(_) | perf::Event::Woke { .. } | perf::Event::Lost(_) => {}
        }
    }

    /// Adds a sample of a thread.
    pub fn sample(&mut self, process: i32, id: i32, taken: &Taken<'_>) {
        if self.is_full(taken.after) {
            return;
        }
        let Some(&index) = self.by_id.get(&(process, id)) else { return };
        let Sampled::Waiting(_) = taken.sample.state else {
            if !self.has_switches {
                self.count_spans(index, |thread| thread.sample(taken.after, taken.sample, None));
            }
            return;
        };
        let is_same = taken.sample.slices == 0;
        let wait = match self.threads[index].last_wait().filter(|_| is_same) {
            Some(wait) => Some(wait),
            None => self.waits.of_state(process, taken.sample.state),
        };
        if self.has_switches {
            self.threads[index].note_wait(taken.before, taken.after, wait);
        } else {
            self.count_spans(index, |thread| thread.sample(taken.after, taken.sample, wait));
        }
    }

    /// Notes that a thread has ended before `now`, as a sample has shown. With context switches, its
    /// record tells when.
    pub fn end_at(&mut self, process: i32, id: i32, now: u64) {
        if self.is_full(now) {
            return;
        }
        let Some(&index) = self.by_id.get(&(process, id)) else { return };
        if self.has_switches {
            self.threads[index].vanish();
        } else {
            self.count_spans(index, |thread| thread.end_unseen(now));
        }
    }

    /// Adds the moments since the last call, in which `timeline` has found causes. To be called after
    /// each change of the timeline: the order of several causes is not known.
    pub fn note_moments(&mut self, timeline: &Timeline) {
        if self.full_at.is_some() {
            return;
        }
        let causes = self.causes.iter_mut().zip(&timeline.causes).zip(Cause::ALL);
        for ((before, &after), cause) in causes {
            let nanos = after.saturating_sub(*before);
            *before = after;
            if nanos == 0 {
                continue;
            }
            if self.moments.last().is_none_or(|last| last.cause != cause) {
                self.moments.push(Moment { start: self.moments_end, cause });
                self.used += 1;
            }
            self.moments_end += nanos;
        }
    }

    /// Ends the trace at `now`. `no_switches` is the reason why context switches were not recorded.
    pub fn finish(
        mut self,
        now: u64,
        no_switches: Option<String>,
        processes: impl Iterator<Item = ProcessTrace>,
    ) -> Trace {
        let end = self.full_at.unwrap_or(now);
        for thread in &mut self.threads {
            thread.finish(end);
        }
        let threads = self.threads.into_iter().filter(|thread| !thread.is_remnant());
        if self.moments.is_empty() {
            self.moments.push(Moment { start: self.start.monotonic, cause: Cause::Unknown });
        }
        Trace {
            start: self.start,
            end,
            observed_until: now,
            source: no_switches.map_or(Source::Switches, |why| Source::Samples {
                reason: format!("context switches were not recorded ({why})"),
            }),
            processes: processes.collect(),
            threads: threads.map(|thread| thread.trace).collect(),
            waits: self.waits.list,
            work: Vec::new(),
            moments: self.moments,
        }
    }

    /// Returns whether the limit is reached at `time`, or was before.
    fn is_full(&mut self, time: u64) -> bool {
        self.now = self.now.max(time);
        if self.full_at.is_none() && self.used + self.waits.list.len() > self.limit {
            self.full_at = Some(self.now);
        }
        self.full_at.is_some()
    }

    fn create(&mut self, process: i32, id: i32, time: u64, position: Position) -> usize {
        let index = self.threads.len();
        self.threads.push(Traced::new(process, id, time, position));
        self.used += 1;
        if let Some(before) = self.by_id.insert((process, id), index) {
            // The record of its end was lost, unless it has ended.
            self.count_spans(before, |thread| thread.end(time));
        }
        index
    }

    /// Returns the index of the thread that a record is about, which is created if it is not known.
    /// Returns `None` if it has ended.
    fn living(&mut self, record: &Record, time: u64) -> Option<usize> {
        match self.by_id.get(&(record.process, record.thread)) {
            Some(&index) => (!self.threads[index].has_ended()).then_some(index),
            None => Some(self.create(record.process, record.thread, time, Position::Waiting)),
        }
    }

    /// Adds a thread that a thread of process `parent` has started.
    fn start(&mut self, record: &Record, parent: i32, time: u64) {
        if let Some(&index) = self.by_id.get(&(record.process, record.thread))
            && self.threads[index].begin(time)
        {
            return;
        }
        let index = self.create(record.process, record.thread, time, Position::Queued);
        // A thread has the name of its creator at first.
        if let Some(&parent) = self.by_id.get(&(parent, parent)) {
            self.threads[index].trace.name = self.threads[parent].trace.name.clone();
        }
    }

    fn enter(&mut self, record: &Record, position: Position, time: u64) {
        if let Some(index) = self.living(record, time) {
            let cpu = u16::try_from(record.cpu).ok();
            self.count_spans(index, |thread| thread.enter(position, cpu, time));
        }
    }

    /// Notes that a process has executed a program. Its other threads have ended, and the one that
    /// continues has the ID of the process, whichever it was.
    fn execute(&mut self, record: &Record, time: u64, name: &str) {
        let process = record.process;
        let others: Vec<usize> = self
            .by_id
            .range((process, i32::MIN)..=(process, i32::MAX))
            .filter(|((_, id), index)| *id != record.thread && !self.threads[**index].has_ended())
            .map(|(_, index)| *index)
            .collect();
        for index in others {
            self.count_spans(index, |thread| thread.end(time));
        }
        let cpu = Position::OnCpu(u16::try_from(record.cpu).ok());
        let index = match self.by_id.get(&(process, record.thread)) {
            Some(&index) if !self.threads[index].has_ended() => index,
            _ => self.create(process, record.thread, time, cpu),
        };
        self.note(index, time, EventKind::Executed, name);
    }

    fn note(&mut self, index: usize, time: u64, kind: EventKind, name: &str) {
        let trace = &mut self.threads[index].trace;
        name.clone_into(&mut trace.name);
        trace.events.push(Event { time: time.max(trace.begun), kind, name: trace.name.clone() });
        self.used += 1;
    }

    /// Changes a thread, and counts the spans that it gets.
    fn count_spans(&mut self, index: usize, change: impl FnOnce(&mut Traced)) {
        let thread = &mut self.threads[index];
        let before = thread.trace.spans.len();
        change(thread);
        self.used += thread.trace.spans.len() - before;
    }
}

#[cfg(test)]
mod tests {
    use contend_record::doctor::ThreadState;
    use contend_record::trace::{Activity, Evidence, ThreadTrace, WaitObject};
    use proptest::prelude::*;

    use super::*;
    use crate::futex::{Futex, Primitive};
    use crate::wait::{Object, Wait};

    const START: Clocks = Clocks { monotonic: 1000, boottime: 2000, realtime: 3000 };
    const RUNNING: Activity = Activity::Running { cpu: Some(0) };

    fn collector(has_switches: bool) -> Collector {
        Collector::new(START, has_switches, MAX_SPANS)
    }

    fn record(time: u64, thread: i32, event: perf::Event) -> Record {
        Record { time, process: 1, thread, cpu: 0, event }
    }

    fn lock(address: u64) -> Sampled {
        let futex = Futex { address, primitive: Primitive::Lock, is_timed: false };
        Sampled::Waiting(Wait { state: ThreadState::Lock, object: Object::Futex(futex) })
    }

    fn sample(state: Sampled, on_cpu: u64, run_queue: u64, slices: u64) -> Sample {
        Sample { on_cpu, run_queue, slices, state }
    }

    fn take(collector: &mut Collector, thread: i32, time: u64, sample: &Sample) {
        let taken = Taken { before: time, after: time + 1, sample };
        collector.sample(1, thread, &taken);
    }

    fn end(collector: Collector, now: u64) -> Trace {
        let reason = (!collector.has_switches).then(|| "not permitted".to_owned());
        collector.finish(now, reason, std::iter::empty())
    }

    fn waiting(wait: u32, evidence: Evidence) -> Activity {
        Activity::Waiting { wait, evidence }
    }

    fn spans(thread: &ThreadTrace) -> Vec<(u64, u64, Activity)> {
        thread.spans().collect()
    }

    #[test]
    fn a_wait_is_the_sampled_one_or_assumed_to_be_like_the_last() {
        use perf::Event::{Blocked, In};
        let mut collector = collector(true);
        collector.add((1, 2), (1000, 1001), Sampled::Active, "worker");
        for (time, event) in [(1100, Blocked), (1200, In), (1300, Blocked)] {
            collector.record(&record(time, 2, event));
        }
        take(&mut collector, 2, 1400, &sample(lock(64), 0, 0, 2));
        for (time, event) in [(1500, In), (1600, Blocked), (1700, In)] {
            collector.record(&record(time, 2, event));
        }
        let trace = end(collector, 2000);
        let expected = [
            (1000, 1100, RUNNING),
            (1100, 1200, waiting(0, Evidence::None)),
            (1200, 1300, RUNNING),
            (1300, 1500, waiting(1, Evidence::Sampled)),
            (1500, 1600, RUNNING),
            (1600, 1700, waiting(1, Evidence::Assumed)),
            (1700, 2000, RUNNING),
        ];
        assert_eq!(spans(&trace.threads[0]), expected);
        assert_eq!(trace.waits[1].state, ThreadState::Lock);
        assert_eq!(trace.waits[1].object, Some(WaitObject::Futex { address: 64 }));
        assert_eq!(trace.threads[0].name, "worker");
    }

    /// The thread has run between the reading of its files and the reading of the clock, so that it is
    /// not known which of two waits was sampled.
    #[test]
    fn a_sample_that_spans_a_switch_says_nothing_about_the_wait() {
        use perf::Event::{Blocked, In};
        let mut collector = collector(true);
        collector.add((1, 2), (1000, 1001), Sampled::Active, "worker");
        collector.record(&record(1100, 2, Blocked));
        let state = sample(lock(64), 0, 0, 1);
        collector.sample(1, 2, &Taken { before: 1190, after: 1210, sample: &state });
        collector.record(&record(1200, 2, In));
        let trace = end(collector, 1300);
        assert_eq!(spans(&trace.threads[0])[1], (1100, 1200, waiting(0, Evidence::None)));
    }

    #[test]
    fn a_lost_record_makes_the_time_unknown() {
        use perf::Event::{Blocked, In};
        let mut collector = collector(true);
        // Records that follow closely are of the same switch.
        for (time, event) in [(11, In), (31, In), (32, In), (51, Blocked), (52, Blocked)] {
            collector.record(&record(1000 * time, 2, event));
        }
        let trace = end(collector, 60_000);
        let unknown = waiting(0, Evidence::None);
        let expected =
            [(11_000, 31_000, unknown), (31_000, 51_000, RUNNING), (51_000, 60_000, unknown)];
        assert_eq!(spans(&trace.threads[0]), expected);
    }

    #[test]
    fn a_found_thread_that_gets_a_cpu_was_queued() {
        let mut collector = collector(true);
        collector.add((1, 2), (1000, 1001), Sampled::Active, "worker");
        collector.record(&record(1100, 2, perf::Event::In));
        let trace = end(collector, 1200);
        let expected = [(1000, 1100, Activity::Queued), (1100, 1200, RUNNING)];
        assert_eq!(spans(&trace.threads[0]), expected);
    }

    #[test]
    fn threads_start_rename_and_end() {
        use perf::Event::{Ended, In, Renamed, Started};
        let mut collector = collector(true);
        collector.add((1, 1), (1000, 1001), Sampled::Active, "main");
        for (time, event) in [
            (1100, Started { parent: 1 }),
            (1110, In),
            (1120, Renamed("worker".into())),
            (1200, Ended),
            (1210, perf::Event::Preempted),
        ] {
            collector.record(&record(time, 2, event));
        }
        // Found while it ended, after its record had been read.
        collector.add((1, 2), (1290, 1291), Sampled::Active, "remnant");
        collector.end_at(1, 2, 1295);
        collector.record(&record(1300, 2, Started { parent: 1 }));
        let trace = end(collector, 1400);
        let threads: Vec<_> = trace
            .threads
            .iter()
            .map(|thread| (thread.tid, &*thread.name, thread.begun, thread.end, thread.has_ended))
            .collect();
        let expected = [
            (1, "main", 1000, 1400, false),
            (2, "worker", 1100, 1200, true),
            (2, "main", 1300, 1400, false),
        ];
        assert_eq!(threads, expected);
        let events = &trace.threads[1].events;
        let renamed = Event { time: 1120, kind: EventKind::Renamed, name: "worker".to_owned() };
        assert_eq!(*events, [renamed]);
        assert_eq!(spans(&trace.threads[1])[0], (1100, 1110, Activity::Queued));
    }

    /// A thread may be found before the record of its start is read.
    #[test]
    fn a_thread_that_was_found_begins_with_its_start() {
        use perf::Event::{Blocked, Ended, In, Started};
        let mut collector = collector(true);
        collector.add((1, 1), (1000, 1001), Sampled::Active, "main");
        collector.add((1, 2), (1200, 1210), lock(64), "worker");
        for (time, event) in
            [(1100, Started { parent: 1 }), (1110, In), (1120, Blocked), (1300, In), (1400, Ended)]
        {
            collector.record(&record(time, 2, event));
        }
        let trace = end(collector, 1500);
        assert_eq!(trace.threads.len(), 2);
        let expected = [
            (1100, 1110, Activity::Queued),
            (1110, 1120, RUNNING),
            (1120, 1300, waiting(1, Evidence::Sampled)),
            (1300, 1400, RUNNING),
        ];
        assert_eq!(spans(&trace.threads[1]), expected);
        assert_eq!(trace.threads[1].name, "worker");
        assert!(trace.threads[1].has_ended);
    }

    /// The thread that executes a program takes the ID of the process.
    #[test]
    fn an_executed_program_ends_the_other_threads() {
        use perf::Event::{Blocked, Ended, Executed, In};
        let mut collector = collector(true);
        collector.add((1, 1), (1000, 1001), lock(64), "old");
        collector.add((1, 2), (1000, 1001), Sampled::Active, "old");
        for (time, thread, event) in
            [(1100, 1, In), (1110, 1, Ended), (1200, 1, Executed("new".into())), (1300, 1, Blocked)]
        {
            collector.record(&record(time, thread, event));
        }
        let trace = end(collector, 1400);
        let ends: Vec<_> =
            trace.threads.iter().map(|thread| (thread.tid, &*thread.name, thread.end)).collect();
        assert_eq!(ends, [(1, "old", 1110), (2, "old", 1200), (1, "new", 1400)]);
        assert_eq!(spans(&trace.threads[2])[0], (1200, 1300, RUNNING));
        assert_eq!(trace.threads[2].events[0].kind, EventKind::Executed);
    }

    #[test]
    fn samples_alone_give_sums() {
        let mut collector = collector(false);
        collector.add((1, 2), (1000, 1000), Sampled::Active, "worker");
        // Queued for 20, then running for 50, then waiting.
        take(&mut collector, 2, 1099, &sample(lock(64), 50, 20, 1));
        // The counters lag behind the time.
        take(&mut collector, 2, 1199, &sample(Sampled::Active, 80, 0, 1));
        take(&mut collector, 2, 1299, &sample(Sampled::Active, 90, 0, 0));
        collector.end_at(1, 2, 1350);
        let trace = end(collector, 1400);
        let running = Activity::Running { cpu: None };
        let expected = [
            (1000, 1020, Activity::Queued),
            (1020, 1070, running),
            (1070, 1100, waiting(1, Evidence::Sampled)),
            (1100, 1120, waiting(1, Evidence::Assumed)),
            (1120, 1300, running),
            (1300, 1350, waiting(0, Evidence::None)),
        ];
        assert_eq!(spans(&trace.threads[0]), expected);
        assert!(trace.threads[0].has_ended);
        assert_eq!(
            trace.source,
            Source::Samples {
                reason: "context switches were not recorded (not permitted)".to_owned()
            }
        );
    }

    #[test]
    fn a_trace_ends_at_its_limit() {
        let mut collector = Collector::new(START, true, 10);
        for step in 0..100 {
            let event = if step % 2 == 0 { perf::Event::In } else { perf::Event::Blocked };
            collector.record(&record(1100 + step, 2, event));
            let now = Timeline::new(1000, true);
            collector.note_moments(&now);
        }
        let trace = end(collector, 2000);
        assert!(!trace.is_complete());
        assert!(trace.end < 1200, "{}", trace.end);
        assert_eq!(trace.threads[0].end, trace.end);
        // The limit counts the thread and the unknown wait, too.
        assert_eq!(trace.threads[0].spans.len(), 10);
    }

    fn events() -> impl Strategy<Value = Vec<(u64, i32, u8)>> {
        proptest::collection::vec((0_u64..50, 1_i32..4, 0_u8..12), 0..200)
    }

    /// Plays records and samples in the order of their times, as the observer does.
    fn play(events: &[(u64, i32, u8)], has_switches: bool) -> (Trace, Timeline) {
        use perf::Event::{Blocked, Ended, Executed, In, Preempted, Renamed, Started};
        let mut collector = collector(has_switches);
        let mut timeline = Timeline::new(START.monotonic, has_switches);
        let mut now = START.monotonic;
        for &(step, thread, choice) in events {
            now += step;
            let event = match choice {
                0 | 1 => In,
                2 | 3 => Blocked,
                4 => Preempted,
                5 => Started { parent: 1 },
                6 => Ended,
                7 => Executed("name".into()),
                8 => Renamed("name".into()),
                _ => {
                    let state = if choice == 9 { Sampled::Active } else { lock(64) };
                    let sample = sample(state, step / 2, step / 4, u64::from(choice == 10));
                    collector.add((1, thread), (now, now), state, "name");
                    timeline.add(1, thread, now, state);
                    take(&mut collector, thread, now, &sample);
                    timeline.sample(thread, now + 1, &sample);
                    timeline.tick(now + 1, step / 2, 0);
                    collector.note_moments(&timeline);
                    now += 1;
                    continue;
                }
            };
            if has_switches {
                timeline.record(&record(now, thread, event.clone()));
                collector.record(&record(now, thread, event));
                collector.note_moments(&timeline);
            } else if event == Ended {
                timeline.end_at(thread, now);
                collector.end_at(1, thread, now);
            }
        }
        timeline.finish(now + 10);
        collector.note_moments(&timeline);
        let end_of_time = timeline.begun + timeline.length();
        (end(collector, end_of_time), timeline)
    }

    fn check(trace: &Trace) {
        for thread in &trace.threads {
            assert!(thread.begun >= START.monotonic && thread.end <= trace.end, "{thread:?}");
            let spans = spans(thread);
            assert_eq!(spans.first().map_or(thread.end, |span| span.0), thread.begun);
            assert!(spans.iter().all(|(start, end, _)| start < end), "{thread:?}");
            let sum: u64 = spans.iter().map(|(start, end, _)| end - start).sum();
            assert_eq!(sum, thread.end - thread.begun);
            assert!(spans.windows(2).all(|pair| pair[0].2 != pair[1].2), "{thread:?}");
        }
        let moments: Vec<_> = trace.moments().collect();
        assert_eq!(moments.first().map(|moment| moment.0), Some(START.monotonic));
        assert!(moments.iter().all(|(start, end, _)| start <= end));
        assert!(moments.windows(2).all(|pair| pair[0].2 != pair[1].2));
    }

    proptest! {
        #[test]
        fn spans_fill_the_observed_time_without_overlap(events in events(), has_switches: bool) {
            let (trace, timeline) = play(&events, has_switches);
            check(&trace);
            for cause in Cause::ALL {
                let moments = trace.moments().filter(|moment| moment.2 == cause);
                let sum: u64 = moments.map(|(start, end, _)| end - start).sum();
                prop_assert_eq!(sum, timeline.causes[cause as usize]);
            }
        }
    }
}

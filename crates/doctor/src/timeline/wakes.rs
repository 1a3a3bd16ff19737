//! Who wakes whom: recorded by the kernel where that is permitted, otherwise inferred.
//!
//! ```text
//! recorded   A wakes B      B begins to run     counted as (A, B)
//!            ───────────────────────────────▶
//! inferred                  B begins to run     counted as (A, B) if A runs, or has just left a CPU
//! ```
//!
//! Either way, a wake-up counts when the woken thread begins to run after a wait, so that counts can
//! be compared with numbers of runs. A thread that is woken before it has left the CPU only goes on.

use contend_record::doctor::Runtime;
use contend_sys::perf::Record;
use contend_sys::waking::WokenBy;

use super::track::Position;
use super::{MAX_LEVEL, Timeline};
use crate::wait::Object;

/// Time within which a thread that starts to run was probably woken by the thread that left the CPU,
/// in nanoseconds.
const WAKE_NANOS: u64 = 100_000;
/// Largest number of pairs of threads whose wake-ups are counted.
const MAX_PAIRS: usize = 4096;

/// Number of wake-ups of one thread by another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Number of times that the one began to run because the other woke it or, where that is
    /// inferred, right after or while the other ran.
    pub count: u64,
    /// Number of these in which no thread of the program ran, or only the waker.
    pub alone: u64,
    /// Number of these on another CPU than that of the waker.
    pub across_cpus: u64,
}

/// Number of a CPU that is not known, but another one.
const UNKNOWN_CPU: u32 = u32::MAX;

/// A wake-up of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waking {
    /// In nanoseconds of `CLOCK_MONOTONIC`.
    time: u64,
    waker: Waker,
}

/// Who has woken a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waker {
    /// A thread of the program, on this CPU.
    Thread { id: i32, cpu: u32 },
    /// A timer, a device, or a thread of another program.
    Other,
}

impl Timeline {
    /// Takes wake-ups from records instead of inferring them, if `is_recorded`.
    #[must_use]
    pub fn with_recorded_wakes(mut self, is_recorded: bool) -> Self {
        self.has_wakes = is_recorded;
        self
    }

    /// Notes that, during the run of the record's thread, `woken` was woken.
    ///
    /// The last one before a thread begins to run counts. Earlier ones are copies, or are from before
    /// the thread left the CPU.
    pub(super) fn note_waking(&mut self, record: &Record, woken: i32, by: WokenBy) {
        let waker = match by {
            // The kernel delivers what a thread sends to this machine in a soft interrupt of the sender.
            WokenBy::Thread | WokenBy::SoftInterrupt
                if self.tracks.contains_key(&record.thread) =>
            {
                Waker::Thread { id: record.thread, cpu: record.cpu }
            }
            _ => Waker::Other,
        };
        if let Some(track) = self.tracks.get_mut(&woken) {
            track.waking = Some(Waking { time: record.time, waker });
        }
    }

    /// Forgets who woke a thread before it begins to wait at `time`, unless it can be the wake-up that
    /// ends this wait: it may come just before the record of the switch.
    pub(super) fn forget_waking(&mut self, thread: i32, time: u64) {
        let Some(track) = self.tracks.get_mut(&thread) else { return };
        track.waking = track.waking.filter(|waking| time.saturating_sub(waking.time) < WAKE_NANOS);
    }

    /// Returns the recorded waker of a thread that begins to run, and forgets it.
    pub(super) fn take_waker(&mut self, thread: i32) -> Option<Waker> {
        self.tracks.get_mut(&thread)?.waking.take().map(|waking| waking.waker)
    }

    /// Returns the thread that runs now, or that has just left the CPU, and its CPU.
    pub(super) fn inferred_waker(&self, record: &Record) -> Option<Waker> {
        let other = self.on_cpu.iter().find(|(_, thread)| **thread != record.thread);
        let left = self.last_left.filter(|(thread, time, _)| {
            *thread != record.thread && record.time.saturating_sub(*time) < WAKE_NANOS
        });
        let before = self.running_before.iter().find(|thread| **thread != record.thread);
        // The thread that has just left is the more probable one. One that runs is on another CPU.
        left.map(|(id, _, cpu)| Waker::Thread { id, cpu })
            .or(other.map(|(&cpu, &id)| Waker::Thread { id, cpu }))
            .or(before.map(|&id| Waker::Thread { id, cpu: UNKNOWN_CPU }))
    }

    /// Returns whether no thread runs, or only this one.
    pub(super) fn runs_at_most(&self, thread: i32) -> bool {
        let runs = self.tracks.get(&thread).is_some_and(|it| it.position == Position::OnCpu);
        self.running <= usize::from(runs)
    }

    /// Counts who woke the thread that begins to run, and the sleeps during which it does.
    pub(super) fn note_wake(&mut self, record: &Record) {
        let recorded = self.take_waker(record.thread);
        let Some(track) = self.tracks.get_mut(&record.thread) else { return };
        let was_waiting = track.position == Position::Waiting;
        let serves_runtime = track.is_helper
            || track.runtime == Some(Runtime::Go) && matches!(track.wait.object, Object::Time(_));
        let has_slept = was_waiting
            && !matches!(recorded, Some(Waker::Thread { .. }))
            && track.has_slept(record.time.saturating_sub(track.since));
        if has_slept {
            track.short_sleeps += 1;
            track.sleeps_with_event += u64::from(track.has_event);
        }
        let waker = if self.has_wakes { recorded } else { self.inferred_waker(record) };
        if was_waiting
            && !has_slept
            && let Some(Waker::Thread { id, cpu }) = waker
            && (self.wakes.len() < MAX_PAIRS || self.wakes.contains_key(&(id, record.thread)))
        {
            let is_alone = self.runs_at_most(id);
            let wakes = self.wakes.entry((id, record.thread)).or_default();
            wakes.count += 1;
            wakes.alone += u64::from(is_alone);
            wakes.across_cpus += u64::from(cpu != record.cpu);
        }
        // The monitor thread of Go and the periodic one of Java wake by the clock, whatever happens.
        if was_waiting && self.running == 0 && self.short_sleepers > 0 && !serves_runtime {
            self.note_event(record.thread);
        }
    }

    /// Counts an event, the run of `thread`, in the sleep of every other thread in a short sleep.
    pub(super) fn note_event(&mut self, thread: i32) {
        // The number of sleepers is small, or the search is skipped.
        if self.tracks.len() > MAX_LEVEL {
            return;
        }
        for (id, track) in &mut self.tracks {
            if *id != thread
                && track.position == Position::Waiting
                && track.is_in_short_sleep()
                && !track.has_event
            {
                track.has_event = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use contend_record::doctor::ThreadState;
    use contend_sys::perf::Event;

    use crate::thread::Sampled;
    use crate::wait::{Object, Wait};

    const US: u64 = 1_000;

    /// A thread that runs all the time has no record. The others are woken by it all the same.
    #[test]
    fn a_thread_that_was_running_before_wakes_others() {
        let mut timeline = Timeline::new(0, true);
        timeline.set_cpus(2.0);
        timeline.add(1, 1, 0, Sampled::Active);
        let wait = Wait { state: ThreadState::Condition, object: Object::Unknown };
        timeline.add(1, 2, 0, Sampled::Waiting(wait));
        let switch =
            |time: u64, event| Record { time: time * US, process: 1, thread: 2, cpu: 1, event };
        let run = |timeline: &mut Timeline, time: u64| {
            timeline.record(&switch(time, Event::In));
            timeline.record(&switch(time + 10, Event::Blocked));
        };
        (1..=5).for_each(|number| run(&mut timeline, 1000 * number));
        assert_eq!(timeline.wakes[&(1, 2)], Wakes { count: 5, alone: 5, across_cpus: 5 });

        timeline.begin_burst();
        timeline.pause(6000 * US);
        timeline.resume(7000 * US);
        (8..=9).for_each(|number| run(&mut timeline, 1000 * number));
        assert_eq!(timeline.wakes[&(1, 2)].count, 7, "it still runs after a gap");

        let left = Record { thread: 1, cpu: 0, ..switch(10_000, Event::Blocked) };
        timeline.record(&left);
        run(&mut timeline, 11_000);
        assert_eq!(timeline.wakes[&(1, 2)].count, 7, "it waits now");
    }

    /// Returns a history of the waiting threads 1, 2 and 3 after these events: time in microseconds,
    /// thread, CPU.
    fn played(is_recorded: bool, events: &[(u64, i32, u32, Event)]) -> Timeline {
        let mut timeline = Timeline::new(0, true).with_recorded_wakes(is_recorded);
        timeline.set_cpus(2.0);
        let wait = Wait { state: ThreadState::Pipe, object: Object::Unknown };
        (1..=3).for_each(|thread| timeline.add(1, thread, 0, Sampled::Waiting(wait)));
        play(&mut timeline, events);
        timeline
    }

    fn play(timeline: &mut Timeline, events: &[(u64, i32, u32, Event)]) {
        for (time, thread, cpu, event) in events {
            let (thread, cpu, event) = (*thread, *cpu, event.clone());
            timeline.record(&Record { time: time * US, process: 1, thread, cpu, event });
        }
    }

    fn woke(thread: i32) -> Event {
        Event::Woke { thread, by: WokenBy::Thread }
    }

    fn counts(timeline: &Timeline) -> Vec<((i32, i32), u64)> {
        let mut counts: Vec<_> =
            timeline.wakes.iter().map(|(pair, wakes)| (*pair, wakes.count)).collect();
        counts.sort_unstable();
        counts
    }

    /// Thread 1 wakes thread 2 on the other CPU, while thread 3 has just left its CPU.
    fn busy_neighbour() -> Vec<(u64, i32, u32, Event)> {
        vec![
            (0, 1, 0, Event::In),
            (0, 3, 1, Event::In),
            (10, 1, 0, woke(2)),
            (10, 1, 0, woke(2)),
            (11, 3, 1, Event::Preempted),
            (11, 2, 1, Event::In),
            (20, 2, 1, Event::Blocked),
            (20, 3, 1, Event::In),
        ]
    }

    #[test]
    fn recorded_wake_ups_replace_inferred_ones() {
        let inferred = played(false, &busy_neighbour());
        assert_eq!(counts(&inferred), [((1, 3), 1), ((3, 2), 1)], "both are wrong");
        let timeline = played(true, &busy_neighbour());
        let expected = Wakes { count: 1, alone: 1, across_cpus: 1 };
        assert_eq!(timeline.wakes[&(1, 2)], expected, "the copy of the record does not count");
        assert_eq!(timeline.wakes.len(), 1);
        assert_eq!(timeline.records, 6);
    }

    #[test]
    fn the_cpu_is_that_on_which_the_woken_thread_runs() {
        let turn = |at: u64, other_runs: bool| {
            let mut events = vec![(at, 1, 0, Event::In), (at + 1, 1, 0, woke(2))];
            events.extend(other_runs.then_some((at + 1, 3, 1, Event::In)));
            events.push((at + 2, 1, 0, Event::Blocked));
            events.extend([(at + 3, 2, 0, Event::In), (at + 4, 2, 0, Event::Blocked)]);
            events
        };
        let timeline = played(true, &[turn(10, false), turn(20, true)].concat());
        let expected = Wakes { count: 2, alone: 1, across_cpus: 0 };
        assert_eq!(timeline.wakes[&(1, 2)], expected);
    }

    #[test]
    fn timers_and_other_programs_are_no_wakers() {
        let interrupt = Event::Woke { thread: 2, by: WokenBy::HardInterrupt };
        let packet = Event::Woke { thread: 2, by: WokenBy::SoftInterrupt };
        let runs = |at: u64| [(at, 2, 1, Event::In), (at + 1, 2, 1, Event::Blocked)];
        let mut timeline = played(true, &[(0, 1, 0, Event::In), (5, 1, 0, interrupt)]);
        play(&mut timeline, &runs(6));
        play(&mut timeline, &[(15, 99, 0, woke(2))]);
        play(&mut timeline, &runs(16));
        // Without a record, nothing is inferred.
        play(&mut timeline, &runs(26));
        assert_eq!(counts(&timeline), []);
        assert!(!timeline.tracks.contains_key(&99), "it is not observed");
        play(&mut timeline, &[(35, 1, 0, packet)]);
        play(&mut timeline, &runs(36));
        assert_eq!(counts(&timeline), [((1, 2), 1)], "it may have sent the packet itself");
    }

    #[test]
    fn a_thread_that_is_woken_before_it_leaves_the_cpu_goes_on() {
        let early = [(0, 1, 0, Event::In), (0, 2, 1, Event::In), (5, 1, 0, woke(2))];
        let mut timeline = played(true, &early);
        play(&mut timeline, &[(500, 2, 1, Event::Blocked), (600, 2, 1, Event::In)]);
        assert_eq!(counts(&timeline), [], "something else has woken it from this wait");
        // Here, the record of the switch comes later than that of the wake-up which follows it.
        let race = [(700, 1, 0, woke(2)), (701, 2, 1, Event::Blocked), (702, 2, 1, Event::In)];
        play(&mut timeline, &race);
        assert_eq!(counts(&timeline), [((1, 2), 1)]);
        let preempted =
            [(800, 2, 1, Event::Preempted), (801, 1, 0, woke(2)), (900, 2, 1, Event::In)];
        play(&mut timeline, &preempted);
        assert_eq!(counts(&timeline), [((1, 2), 1)], "it did not wait");
    }

    #[test]
    fn a_sleep_that_a_thread_ends_is_none() {
        let object = Object::Time(Some(Duration::from_micros(10)));
        let sleep = Wait { state: ThreadState::Sleep, object };
        let turn = |by: WokenBy| {
            let mut timeline = played(true, &[(0, 1, 0, Event::In)]);
            timeline.add(1, 2, 0, Sampled::Waiting(sleep));
            play(
                &mut timeline,
                &[(20, 1, 0, Event::Woke { thread: 2, by }), (21, 2, 1, Event::In)],
            );
            (timeline.tracks[&2].short_sleeps, counts(&timeline))
        };
        assert_eq!(turn(WokenBy::HardInterrupt), (1, vec![]));
        assert_eq!(turn(WokenBy::Thread), (0, vec![((1, 2), 1)]));
    }
}

use super::*;
use crate::wait::{Object, Wait};

const MS: u64 = 1_000_000;

fn record(time: u64, thread: i32, cpu: u32, event: Event) -> Record {
    Record { time, process: 1, thread, cpu, event }
}

fn waiting(state: ThreadState) -> Sampled {
    Sampled::Waiting(Wait { state, object: Object::Unknown })
}

fn asleep(milliseconds: u64) -> Sampled {
    let object = Object::Time(Some(Duration::from_millis(milliseconds)));
    Sampled::Waiting(Wait { state: ThreadState::Sleep, object })
}

fn play(timeline: &mut Timeline, events: &[(u64, i32, u32, Event)]) {
    for (time, thread, cpu, event) in events {
        timeline.record(&record(time * MS, *thread, *cpu, event.clone()));
    }
}

fn milliseconds(timeline: &Timeline, cause: Cause) -> u64 {
    timeline.causes[cause as usize] / MS
}

#[test]
fn every_moment_has_one_level_and_one_cause() {
    let mut timeline = Timeline::new(0, true);
    timeline.set_cpus(2.0);
    timeline.add(1, 1, 0, waiting(ThreadState::Lock));
    timeline.add(1, 2, 0, waiting(ThreadState::Poll));
    play(
        &mut timeline,
        &[
            (10, 1, 0, Event::In),
            (30, 2, 1, Event::In),
            (35, 1, 0, Event::Blocked),
            (40, 2, 1, Event::Preempted),
            (42, 2, 1, Event::In),
            (50, 2, 1, Event::Blocked),
        ],
    );
    timeline.finish(100 * MS);
    assert_eq!(timeline.levels[..3].iter().map(|t| t / MS).collect::<Vec<_>>(), [62, 33, 5]);
    assert_eq!(milliseconds(&timeline, Cause::Lock), 10 + 50);
    assert_eq!(milliseconds(&timeline, Cause::Serial), 20 + 5 + 8);
    assert_eq!(milliseconds(&timeline, Cause::Busy), 5);
    assert_eq!(milliseconds(&timeline, Cause::Limited), 2);
    assert_eq!(timeline.causes.iter().sum::<u64>(), timeline.length());
    assert_eq!(timeline.tracks[&1].run_nanos, 25 * MS);
    assert_eq!(timeline.tracks[&2].preemptions, 1);
}

#[test]
fn the_time_of_threads_is_conserved() {
    let mut timeline = Timeline::new(0, true);
    timeline.add(1, 1, 0, waiting(ThreadState::Sleep));
    let sample = |on_cpu: u64, run_queue: u64, state| Sample {
        on_cpu: on_cpu * MS,
        run_queue: run_queue * MS,
        slices: 1,
        state,
    };
    timeline.sample(1, 40 * MS, &sample(10, 5, waiting(ThreadState::Sleep)));
    timeline.sample(1, 60 * MS, &sample(20, 0, Sampled::Active));
    play(&mut timeline, &[(60, 2, 1, Event::Started { parent: 1 }), (62, 2, 1, Event::In)]);
    play(&mut timeline, &[(65, 2, 1, Event::Ended), (80, 1, 0, Event::Blocked)]);
    timeline.finish(100 * MS);
    let living: u64 = timeline.tracks[&1].states.iter().sum();
    assert_eq!(living, 100 * MS);
    let states = timeline.tracks[&1].states;
    assert_eq!(states[ThreadState::Running as usize], 30 * MS);
    assert_eq!(states[ThreadState::Sleep as usize], 65 * MS);
    assert_eq!(timeline.past_nanos, 5 * MS);
    assert_eq!(timeline.past_states.iter().sum::<u64>(), 5 * MS);
    assert_eq!(timeline.past_states[ThreadState::Running as usize], 3 * MS);
    assert_eq!((timeline.ended.short_lived, timeline.ended.run_nanos), (1, 3 * MS));
    assert!(timeline.finished.is_empty(), "a thread that was not sampled is only counted");
}

#[test]
fn wake_ups_and_events_in_sleeps_are_counted() {
    let mut timeline = Timeline::new(0, true);
    timeline.set_cpus(2.0);
    timeline.add(1, 1, 0, asleep(5));
    timeline.add(1, 2, 0, waiting(ThreadState::Condition));
    for turn in 0..4 {
        let at = 10 * turn;
        play(
            &mut timeline,
            &[
                (at + 5, 1, 0, Event::In),
                (at + 6, 1, 0, Event::Blocked),
                (at + 6, 2, 1, Event::In),
                (at + 8, 2, 1, Event::Blocked),
            ],
        );
    }
    timeline.finish(50 * MS);
    assert_eq!(timeline.wakes.get(&(1, 2)).map(|wakes| wakes.count), Some(4));
    assert_eq!(timeline.wakes.get(&(2, 1)), None, "a sleep ends by itself");
    assert_eq!(timeline.tracks[&1].short_sleeps, 4);
    assert_eq!(timeline.tracks[&1].sleeps_with_event, 3, "the last sleep goes on");
    assert_eq!(milliseconds(&timeline, Cause::Sleep), 50 - 4 * 3);
}

#[test]
fn the_longest_time_alone_is_that_of_the_straggler() {
    let mut timeline = Timeline::new(0, true);
    timeline.add(1, 1, 0, waiting(ThreadState::Condition));
    timeline.add(1, 2, 0, waiting(ThreadState::Condition));
    play(
        &mut timeline,
        &[
            (0, 1, 0, Event::In),
            (0, 2, 1, Event::In),
            (40, 2, 1, Event::Blocked),
            (60, 2, 1, Event::In),
            (61, 2, 1, Event::Blocked),
            (100, 1, 0, Event::Blocked),
        ],
    );
    timeline.finish(110 * MS);
    assert_eq!(timeline.longest_alone, Some((1, 60 * MS)), "the brief run does not count");
}

#[test]
fn without_context_switches_levels_are_estimated() {
    let mut timeline = Timeline::new(0, false);
    timeline.set_cpus(2.0);
    timeline.add(1, 1, 0, waiting(ThreadState::Poll));
    timeline.tick(10 * MS, 4 * MS, 0);
    timeline.tick(20 * MS, 15 * MS, 0);
    timeline.finish(20 * MS);
    assert_eq!(timeline.levels[..3].iter().map(|t| t / MS).collect::<Vec<_>>(), [6, 9, 5]);
    assert_eq!(milliseconds(&timeline, Cause::Idle), 6);
    assert_eq!(milliseconds(&timeline, Cause::Serial), 9);
    assert_eq!(milliseconds(&timeline, Cause::Busy), 5);
}

#[test]
fn an_execution_that_goes_on_counts_as_busy() {
    let mut timeline = Timeline::new(0, true);
    let execute = |timeline: &mut Timeline, begun: u64, id: i32, name: &str| {
        play(
            timeline,
            &[
                (begun, id, 0, Event::Started { parent: 1 }),
                (begun, id, 0, Event::In),
                (begun, id, 0, Event::Executed(name.into())),
            ],
        );
    };
    execute(&mut timeline, 1, 2, "xz");
    play(&mut timeline, &[(41, 2, 0, Event::Ended)]);
    execute(&mut timeline, 50, 3, "xz");
    let mut idle = timeline.clone();
    // No execution of it has ended, so that it may be the only one.
    execute(&mut timeline, 50, 4, "awk");
    timeline.finish(80 * MS);
    let all = timeline.programs["xz"];
    assert_eq!((all.count, all.run_nanos), (1, 40 * MS));
    assert_eq!((all.busy, all.busy_run_nanos), (2, 70 * MS));
    assert_eq!(timeline.programs.len(), 1);

    play(&mut idle, &[(55, 3, 0, Event::Blocked)]);
    idle.finish(80 * MS);
    assert_eq!(idle.programs["xz"].busy, 1, "it has hardly run");
}

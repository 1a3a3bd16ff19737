use std::collections::BTreeSet;

use contend_record::doctor::{Cause, Runtime, ThreadState};

use super::super::sleep_polling::find;
use super::{finds, is_silent};
use crate::facts::testing::{PID, Program, Thread, futex, waiting};
use crate::futex::Primitive;
use crate::goroutines::Goroutines;

/// Two threads that sleep for a millisecond until the other one has filled a mailbox.
pub fn mailboxes() -> Program {
    Program::on(2.0)
        .threads(1..=2, |thread| thread.runs(0.3, 600.0).sleeps(0.65, 600.0, 0.8))
        .levels(&[0.55, 0.02])
        .cause(Cause::Sleep, 0.43)
}

/// A thread that sleeps at the given rate, each time for as many seconds as `period`, and a
/// thread that waits for a condition.
fn sleeper(per_second: f64, period: f64, with_event: f64) -> Program {
    let share = per_second * period;
    Program::on(2.0)
        .thread(Thread::new(1).runs(0.1, per_second).sleeps(share, per_second, with_event))
        .thread(Thread::new(2).runs(0.3, 200.0).waits(futex(Primitive::Condition, 0x1000), 0.7))
        .levels(&[0.4])
        .cause(Cause::Sleep, 0.5)
}

/// A program in Go. A goroutine that sleeps uses this share of the CPU time.
fn goroutines(own: f64, period: f64) -> Program {
    let wait = futex(Primitive::Condition, 0x1000);
    Program::on(2.0)
        .thread(Thread::new(1).runtime(Runtime::Go).runs(0.5, 900.0).waits(wait, 0.4))
        .with(|facts| facts.threads[0].short_sleeps = 8_000)
        .levels(&[0.5])
        .cause(Cause::Sleep, 0.4)
        .process(PID, |process| {
            let mut entries =
                vec![("main.work".to_owned(), 1.0 - own), ("main.wait".to_owned(), own)];
            entries.sort_by(|a, b| b.1.total_cmp(&a.1));
            process.goroutines = Some(Goroutines {
                entries,
                sleepers: BTreeSet::from(["main.wait".to_owned()]),
                timer_seconds: Some(period),
                ..Goroutines::default()
            });
        })
}

/// A script that executes `sleep` 60 times per second. In the given number of tenths of the sleeps,
/// another process begins to run.
fn script(events: u64) -> Program {
    Program::on(2.0)
        .thread(Thread::new(1).runs(0.2, 200.0).waits(waiting(ThreadState::Child), 0.7))
        .levels(&[0.4])
        .cause(Cause::Sleep, 0.5)
        .executes("sleep", 60.0, 0.011, 0.001)
        .with(|facts| {
            let (_, sleeps) = facts.programs.last_mut().expect("just added");
            sleeps.short_sleeps = sleeps.count;
            sleeps.sleeps_with_event = sleeps.count * events / 10;
        })
}

#[test]
fn threads_that_poll_each_other_are_found() {
    let found = finds(find, mailboxes(), 0.42..=0.44);
    assert!(found.message.contains("sleeps 600 times per second, for 1.1 ms"), "{}", found.message);
    assert_eq!(found.threads.len(), 2);
}

#[test]
fn a_thread_that_wakes_others_after_short_sleeps_is_found() {
    finds(find, sleeper(500.0, 0.001, 0.8).wakes(1, 2, 150.0), 0.49..=0.51);
}

#[test]
fn scripts_that_execute_sleep_are_found() {
    let found = finds(find, script(9), 0.49..=0.51);
    assert!(found.message.contains("sleep is executed 60 times per second"), "{}", found.message);
    is_silent(find, script(1), "hardly anything happens in the meantime");
}

#[test]
fn goroutines_that_sleep_are_found() {
    let found = finds(find, goroutines(0.1, 0.001), 0.39..=0.41);
    assert!(found.message.contains("A goroutine of main.wait"), "{}", found.message);
    is_silent(find, goroutines(0.1, 0.02), "a timer of 20 ms");
}

#[test]
fn a_timer_with_work_of_its_own_is_healthy() {
    is_silent(find, sleeper(500.0, 0.001, 0.1).wakes(1, 2, 150.0), "nothing waits for it");
    is_silent(find, sleeper(500.0, 0.001, 0.8), "it wakes no other thread");
    // Another goroutine uses so little CPU time that it cannot be the one that polls.
    let timer = goroutines(0.999, 0.001);
    is_silent(find, timer, "the goroutine that sleeps does the work");
}

#[test]
fn a_timer_that_gives_work_to_others_is_healthy() {
    is_silent(find, sleeper(80.0, 0.008, 0.8).wakes(1, 2, 80.0), "it sleeps for 8 ms");
}

#[test]
fn a_client_that_thinks_between_requests_is_healthy() {
    let client = || sleeper(500.0, 0.001, 0.8).wakes(1, 2, 150.0);
    is_silent(find, client().wakes(2, 1, 250.0), "it waits for an answer to each request");
    // Two clients that sleep at the same time, and send a request after each sleep.
    let clients = |woken: f64| {
        Program::on(2.0)
            .threads(1..=2, |thread| thread.runs(0.1, 80.0).sleeps(0.64, 80.0, 0.8))
            .thread(Thread::new(3).runs(0.1, 200.0).waits(waiting(ThreadState::Socket), 0.9))
            .cause(Cause::Sleep, 0.5)
            .wakes(1, 3, woken)
            .wakes(2, 3, woken)
    };
    is_silent(find, clients(75.0), "each sleep ends with a request");
    finds(find, clients(10.0), 0.49..=0.51);
}

#[test]
fn rare_or_long_sleeps_are_pauses() {
    is_silent(find, sleeper(3.0, 0.1, 0.8), "three sleeps per second");
    let long = mailboxes().with(|facts| {
        for thread in &mut facts.threads {
            thread.waits[0].0 = crate::facts::testing::asleep(0.2);
        }
    });
    is_silent(find, long, "each lasts for 200 ms");
}

#[test]
fn sleeps_that_cost_nothing_are_healthy() {
    is_silent(find, mailboxes().cause(Cause::Sleep, 0.05), "others run in the meantime");
}

/// Who wakes whom is unknown, so that another thread must at least run as often.
#[test]
fn without_context_switches_another_thread_must_run_as_often() {
    let sampled = |runs: f64| {
        sleeper(500.0, 0.001, 0.0).with(move |facts| {
            facts.has_switches = false;
            facts.threads[1].runs_per_second = runs;
        })
    };
    finds(find, sampled(200.0), 0.49..=0.51);
    is_silent(find, sampled(20.0), "the other thread runs 20 times per second");
}

#[test]
fn timers_that_do_hardly_any_work_are_unrelated() {
    let timers = |running: f64| {
        Program::on(2.0)
            .threads(1..=2, |thread| thread.runs(running, 40.0).sleeps(0.95, 40.0, 0.7))
            .levels(&[2.0 * running])
            .cause(Cause::Sleep, 0.9)
    };
    finds(find, timers(0.04), 0.85..=0.95);
    is_silent(find, timers(0.004), "each looks at something every 24 ms");
}

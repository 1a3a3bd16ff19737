use contend_record::doctor::{Cause, Runtime, ThreadState};

use super::super::lock_polling::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread, polling, waiting};

/// Three processes that ask for a file lock every millisecond.
pub fn retrying() -> Program {
    let thread = |id: i32| Thread::new(id).of(id).runs(0.3, 500.0).sleeps(0.6, 500.0, 0.9);
    Program::on(2.0)
        .thread(thread(1))
        .thread(thread(2))
        .thread(thread(3))
        .levels(&[0.5, 0.2])
        .cause(Cause::Sleep, 0.3)
        .with(|facts| facts.file_lock_share = 0.4)
}

/// A script that executes `flock -n` and `sleep`, each at the given rate.
fn script(locks: f64, sleeps: f64) -> Program {
    Program::on(2.0)
        .thread(Thread::new(1).runs(0.2, 500.0).waits(waiting(ThreadState::Child), 0.7))
        .levels(&[0.4])
        .executes("flock", locks, 0.001, 0.0008)
        .executes("sleep", sleeps, 0.011, 0.001)
}

/// A consumer that polls with a time limit, in seconds, and runs at the given rate, and a
/// producer that it answers.
fn poll(limit: Option<f64>, per_second: f64) -> Program {
    let consumer = Thread::new(1).runs(0.1, per_second).waits(polling(limit), 0.85);
    let producer = Thread::new(2).of(2).runs(0.4, 500.0).waits(waiting(ThreadState::Socket), 0.6);
    Program::on(2.0)
        .thread(consumer)
        .thread(producer)
        .levels(&[0.5])
        .cause(Cause::Idle, 0.5)
        .wakes(1, 2, 500.0)
}

#[test]
fn retries_for_a_file_lock_are_found() {
    let found = finds(find, retrying(), 0.4..=0.6);
    assert!(found.message.contains("3 threads sleep 1500 times per second"), "{}", found.message);
    assert!(
        found.message.contains("holds a file lock (40 % of the readings)"),
        "{}",
        found.message
    );
}

#[test]
fn each_of_several_processes_may_sleep_for_little_of_the_time() {
    let asleep = |share: f64| {
        let thread = |id: i32| Thread::new(id).of(id).runs(0.7, 200.0).sleeps(share, 100.0, 0.9);
        Program::on(2.0)
            .thread(thread(1))
            .thread(thread(2))
            .levels(&[0.46, 0.5])
            .with(|facts| facts.file_lock_share = 0.5)
    };
    finds(find, asleep(0.19), 0.13..=0.16);
    is_silent(find, asleep(0.08), "little is lost");
}

#[test]
fn work_under_a_file_lock_that_is_always_held_is_found() {
    let held = |working: f64, share: f64| {
        Program::on(2.0)
            .thread(Thread::new(1).of(1).runs(0.4, 50.0).sleeps(0.5, 7.0, 0.9))
            .thread(Thread::new(2).of(2).runs(working, 50.0))
            .levels(&[0.95])
            .with(|facts| facts.file_lock_share = share)
    };
    let found = finds(find, held(0.6, 0.95), 0.49..=0.51);
    assert!(found.message.contains("thread-1 (1) sleeps 7 times per second"), "{}", found.message);
    assert!(found.remedy.contains("for a shorter time"), "{}", found.remedy);
    is_silent(find, held(0.6, 0.5), "it sleeps for another reason");
    is_silent(find, held(1.5, 0.95), "both CPUs are in use");
    is_silent(find, held(0.1, 0.95), "the holder waits for something else");
}

#[test]
fn sleeps_without_a_file_lock_are_something_else() {
    is_silent(find, retrying().with(|facts| facts.file_lock_share = 0.05), "no lock is held");
}

#[test]
fn one_thread_does_not_wait_for_itself() {
    let one = Program::on(2.0)
        .thread(Thread::new(1).runs(0.3, 500.0).sleeps(0.6, 500.0, 0.9))
        .cause(Cause::Sleep, 0.6)
        .with(|facts| facts.file_lock_share = 0.4);
    is_silent(find, one, "only one thread sleeps");
}

#[test]
fn scripts_that_execute_flock_and_sleep_are_found() {
    let found = finds(find, script(40.0, 80.0), 0.2..=0.45);
    assert!(found.message.contains("flock is executed 40 times per second"), "{}", found.message);
    is_silent(find, script(10.0, 80.0), "few executions of flock for each sleep");
    is_silent(find, script(8.0, 8.0), "few sleeps");
}

#[test]
fn polls_whose_short_limit_expires_are_found() {
    let found = finds(find, poll(Some(0.001), 850.0), 0.49..=0.51);
    assert!(found.message.contains("850 times per second with a time limit of 1.0 ms"));
}

#[test]
fn a_server_without_a_time_limit_is_healthy() {
    is_silent(find, poll(None, 850.0), "it waits until a client asks");
    is_silent(find, poll(Some(0.06), 14.0), "the limit is long");
    let often = poll(Some(0.001), 850.0).with(|facts| facts.threads[0].runs_per_second = 3_000.0);
    is_silent(find, often, "most polls end before their limit");
}

#[test]
fn a_server_whose_limit_rarely_expires_is_healthy() {
    is_silent(find, poll(Some(0.01), 850.0), "it waits for 1 ms of 10");
}

#[test]
fn a_poll_that_nobody_waits_for_is_healthy() {
    let alone = poll(Some(0.001), 850.0).with(|facts| facts.threads.retain(|t| t.name.tid == 1));
    is_silent(find, alone, "no other thread is woken");
}

#[test]
fn runtimes_that_poll_for_their_timers_are_healthy() {
    let node = poll(Some(0.001), 850.0).with(|facts| {
        for thread in &mut facts.threads {
            thread.runtime = Some(Runtime::Node);
        }
    });
    is_silent(find, node, "a timer of Node.js");
}

use contend_record::doctor::{Cause, Runtime, ThreadState};

use super::super::lock_step::find;
use super::{finds, is_silent};
use crate::facts::Facts;
use crate::facts::testing::{PID, Program, Thread, futex, waiting};
use crate::futex::Primitive;
use crate::goroutines::Goroutines;

/// Two threads that hand a token to each other 10,000 times per second.
pub fn turns() -> Program {
    pair([0.45, 0.45], 5_000.0).levels(&[0.88, 0.01]).cause(Cause::Idle, 0.1)
}

/// Two threads with their shares of the time, each of which wakes the other one the given number of
/// times per second.
fn pair([first, second]: [f64; 2], per_second: f64) -> Program {
    let wait = futex(Primitive::Condition, 0x1000);
    let thread = |id: i32, running: f64| {
        Thread::new(id).runs(running, per_second).waits(wait, 1.0 - running)
    };
    Program::on(2.0)
        .thread(thread(1, first))
        .thread(thread(2, second))
        .in_kernel(0.4)
        .wakes(1, 2, per_second)
        .wakes(2, 1, per_second)
}

/// Three threads, each of which wakes the next one.
fn ring() -> Program {
    let wait = futex(Primitive::Condition, 0x1000);
    Program::on(2.0)
        .threads(1..=3, |thread| thread.runs(0.3, 5_000.0).waits(wait, 0.7))
        .levels(&[0.88, 0.01])
        .cause(Cause::Idle, 0.1)
        .in_kernel(0.4)
        .wakes(1, 2, 5_000.0)
        .wakes(2, 3, 5_000.0)
        .wakes(3, 1, 5_000.0)
}

/// A pool of processes that get each item in a message of its own.
pub fn pool() -> Program {
    pool_of(0.4, 4_000.0)
}

/// A pool whose processes run for the given share of the time, in this number of runs per second.
fn pool_of(share: f64, per_second: f64) -> Program {
    let worker = |id: i32| {
        Thread::new(id).of(id).runs(share, per_second).waits(waiting(ThreadState::Pipe), 0.5)
    };
    let wakes = 0.5 * per_second;
    Program::on(2.0)
        .thread(worker(1))
        .thread(worker(2))
        .thread(worker(3))
        .levels(&[0.4, 0.4])
        .cause(Cause::Idle, 0.2)
        .in_kernel(0.5)
        .wakes(1, 2, wakes)
        .wakes(2, 1, wakes)
        .wakes(3, 1, wakes)
}

/// A program in Go, two of whose goroutines use these shares of the CPU time.
fn goroutines(first: f64, second: f64, channels: f64) -> Program {
    Program::on(2.0)
        .threads(1..=3, |thread| thread.runtime(Runtime::Go).runs(0.3, 1_000.0))
        .levels(&[0.85, 0.05])
        .cause(Cause::Idle, 0.1)
        .process(PID, |process| {
            let entries =
                vec![("main.produce".to_owned(), first), ("main.main".to_owned(), second)];
            process.goroutines = Some(Goroutines { channels, entries, ..Goroutines::default() });
        })
}

#[test]
fn two_threads_that_hand_over_are_found() {
    let found = finds(find, turns(), 0.6..=0.8);
    assert!(found.message.contains("hand over 10000 times per second"), "{}", found.message);
    assert_eq!(found.threads.len(), 2);
}

#[test]
fn a_ring_of_threads_is_found() {
    let found = finds(find, ring(), 0.7..=0.8);
    assert!(found.message.contains("3 threads work in turn"), "{}", found.message);
    let producer = ring().thread(Thread::new(4).runs(1.0, 50.0));
    is_silent(find, producer, "another thread may wake each of them in turn");
}

#[test]
fn small_messages_between_processes_are_found() {
    let found = finds(find, pool(), 0.84..=0.86);
    assert!(found.message.contains("exchange small messages"), "{}", found.message);
    is_silent(find, pool().in_kernel(0.1), "the messages cost little");
    let thinks = pool_of(0.051, 600.0).levels(&[0.02, 0.06]).cause(Cause::Idle, 0.92);
    is_silent(find, thinks, "the sender thinks between its messages");
    let server = pool().without_wakes();
    is_silent(find, server, "clients wake them, but not each other");
}

#[test]
fn goroutines_that_pass_each_value_are_found() {
    finds(find, goroutines(0.5, 0.4, 0.3), 0.6..=0.75);
    is_silent(find, goroutines(0.9, 0.1, 0.3), "one of them does the work");
    is_silent(find, goroutines(0.5, 0.4, 0.01), "hardly any time in channels");
    let thinks = |facts: &mut Facts| facts.threads.iter_mut().for_each(|it| it.running = 0.05);
    is_silent(
        find,
        goroutines(0.5, 0.4, 0.3).with(thinks),
        "the client thinks between its requests",
    );
}

#[test]
fn time_to_think_between_requests_is_no_hand_over() {
    let client = || pair([0.02, 0.03], 200.0).levels(&[0.05]).cause(Cause::Idle, 0.95);
    is_silent(find, client(), "the hand-over is a small part of the time");
    // The same threads without a pause.
    finds(find, pair([0.02, 0.03], 20_000.0).levels(&[0.05]).cause(Cause::Idle, 0.95), 0.9..=1.0);
}

#[test]
fn threads_that_run_at_the_same_time_do_not_work_in_turn() {
    is_silent(find, turns().levels(&[0.5, 0.4]), "both run for 40 % of the time");
}

#[test]
fn long_pieces_of_work_are_no_hand_overs() {
    is_silent(find, pair([0.45, 0.45], 100.0).levels(&[0.9]), "4.5 ms of work each");
}

#[test]
fn a_thread_that_only_serves_the_other_one_is_healthy() {
    is_silent(find, pair([0.8, 0.1], 5_000.0).levels(&[0.9]), "one does nearly all of the work");
}

#[test]
fn a_pair_among_busy_threads_is_not_what_limits_the_program() {
    let busy = turns().thread(Thread::new(3).runs(0.5, 10.0));
    is_silent(find, busy, "a third thread does a large part of the work");
}

#[test]
fn threads_that_are_woken_by_others_do_not_work_in_turn() {
    let woken = Program::on(2.0)
        .threads(1..=2, |thread| {
            thread.runs(0.45, 5_000.0).waits(futex(Primitive::Condition, 0x1000), 0.5)
        })
        .levels(&[0.88, 0.01])
        .wakes(1, 2, 2_000.0)
        .wakes(2, 1, 2_000.0);
    is_silent(find, woken, "they end 40 % of each other's waits");
}

/// Other programs split runs into more, none of which begins with a wake-up.
#[test]
fn threads_that_work_in_turn_may_be_preempted() {
    let preempt = |facts: &mut Facts| {
        for thread in &mut facts.threads {
            thread.waits_per_second = thread.runs_per_second;
            thread.runs_per_second *= 3.0;
        }
    };
    finds(find, turns().with(preempt), 0.6..=0.8);
}

#[test]
fn without_context_switches_nobody_knows_who_wakes_whom() {
    is_silent(find, turns().with(|facts| facts.has_switches = false), "no wake-ups");
}

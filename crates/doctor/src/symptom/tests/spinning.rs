use contend_record::doctor::Runtime;

use super::super::spinning::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread};

/// Two threads that always run, and wait for each other in a loop for half of the time.
pub fn flag() -> Program {
    computing(0.5)
}

/// Two threads that always run, and spend a share of the time in spin loops.
fn computing(spinning: f64) -> Program {
    Program::on(2.0)
        .threads(1..=2, |thread| thread.runs(1.0, 50.0).spins(spinning))
        .levels(&[0.0, 1.0])
}

/// A thread that yields the CPU at the given rate.
fn yielding(per_second: f64) -> Thread {
    let thread = Thread::new(1).runs(0.9, per_second);
    thread.with(|thread| thread.preemptions_per_second = per_second)
}

#[test]
fn loops_that_wait_are_found() {
    let found = finds(find, flag(), 0.49..=0.51);
    assert!(found.message.contains("2 threads wait in loops"), "{}", found.message);
}

#[test]
fn yields_are_found_without_a_gain() {
    let found = find(&Program::on(2.0).thread(yielding(20_000.0)).facts()).expect("a finding");
    assert_eq!(found.gain, None);
    assert!(found.message.contains("20000 times per second"), "{}", found.message);
}

#[test]
fn honest_computing_is_healthy() {
    is_silent(find, computing(0.1), "a tenth of the time is in such loops");
    is_silent(find, Program::on(2.0).thread(yielding(300.0)), "preemptions by the scheduler");
    is_silent(find, Program::on(2.0).thread(yielding(3_000.0)), "it computes in between");
    let server = yielding(20_000.0).with(|thread| thread.waits_per_second = 15_000.0);
    is_silent(find, Program::on(2.0).thread(server), "its clients preempt it");
    let producer = Program::on(2.0).thread(yielding(20_000.0)).thread(Thread::new(2));
    is_silent(find, producer.wakes(1, 2, 18_000.0), "the thread that it wakes preempts it");
    let short = yielding(20_000.0).with(|thread| thread.running = 0.1);
    is_silent(find, Program::on(2.0).thread(short), "a tenth of a CPU");
}

#[test]
fn the_runtime_of_go_yields_on_its_own() {
    let go = yielding(20_000.0).runtime(Runtime::Go);
    is_silent(find, Program::on(2.0).thread(go), "a program in Go");
}

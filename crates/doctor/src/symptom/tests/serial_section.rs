use contend_record::doctor::{Runtime, ThreadState};

use super::super::serial_section::find;
use super::{finds, is_silent};
use crate::facts::testing::{PID, Program, Thread, waiting};
use crate::goroutines::Goroutines;

/// A thread that makes work for three others, which wait for it most of the time.
pub fn producer() -> Program {
    with_workers(0.05, 300.0, 300.0)
}

/// A busy thread and three others, which run for a share of the time. Each begins to run and is woken
/// by the busy one at the given rate.
fn with_workers(running: f64, runs: f64, wakes: f64) -> Program {
    let worker = |thread: Thread| {
        thread.runs(running, runs).waits(waiting(ThreadState::Condition), 1.0 - running)
    };
    let program = Program::on(2.0)
        .thread(Thread::new(1).runs(0.9, 900.0))
        .threads(2..=4, worker)
        .levels(&[0.8, 0.12]);
    (2..=4).fold(program, |program, id| program.wakes(1, id, wakes))
}

/// A program in Go, two of whose goroutines use these shares of the CPU time.
fn goroutines(first: f64, second: f64) -> Program {
    Program::on(2.0)
        .threads(1..=3, |thread| thread.runtime(Runtime::Go).runs(0.33, 1_000.0))
        .levels(&[0.9, 0.04])
        .process(PID, |process| {
            let entries =
                vec![("main.produce".to_owned(), first), ("main.work".to_owned(), second)];
            process.goroutines = Some(Goroutines { entries, ..Goroutines::default() });
        })
}

#[test]
fn a_thread_for_which_others_wait_is_found() {
    let found = finds(find, producer(), 0.45..=0.5);
    assert!(found.message.contains("thread-1 (1) runs for 90 %"), "{}", found.message);
    assert!(found.message.contains("3 other threads wait for it"), "{}", found.message);
}

#[test]
fn a_goroutine_for_which_others_wait_is_found() {
    let found = finds(find, goroutines(0.85, 0.1), 0.45..=0.55);
    assert!(found.message.contains("A goroutine of main.produce"), "{}", found.message);
    is_silent(find, goroutines(0.5, 0.4), "two goroutines share the work");
    is_silent(find, goroutines(0.99, 0.0), "there is only one goroutine");
}

#[test]
fn a_single_working_thread_has_nothing_to_share() {
    let single = Program::on(2.0).thread(Thread::new(1).runs(0.98, 50.0)).levels(&[0.98]);
    is_silent(find, single, "no other thread");
    is_silent(find, with_workers(0.05, 300.0, 0.0), "others are woken by something else");
    is_silent(find, with_workers(0.05, 1.0, 1.0), "others run once per second");
    is_silent(find, with_workers(0.001, 300.0, 300.0), "others do 0.3 % of the work");
}

#[test]
fn idle_threads_have_no_work() {
    let idle = producer().with(|facts| {
        for thread in &mut facts.threads {
            thread.running *= 0.3;
        }
    });
    is_silent(find, idle, "the busiest thread runs for 27 % of the time");
}

#[test]
fn threads_that_run_at_the_same_time_share_the_work() {
    is_silent(find, producer().levels(&[0.3, 0.6]), "two run for 60 % of the time");
    is_silent(find, with_workers(0.35, 300.0, 300.0), "the others do more than the one");
}

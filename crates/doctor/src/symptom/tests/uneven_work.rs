use contend_record::doctor::{Runtime, ThreadState};

use super::super::uneven_work::find;
use super::{finds, is_silent};
use crate::facts::testing::{PID, Program, Thread, waiting};

/// Two threads, one of which works for six of ten seconds after the other one has ended.
pub fn straggler() -> Program {
    ending(6.0, 0.4)
}

/// Two threads that run together for a share of the time, and one of them alone for the given
/// number of seconds.
fn ending(alone: f64, together: f64) -> Program {
    Program::on(2.0)
        .thread(Thread::new(1).runs(0.98, 50.0))
        .thread(Thread::new(2).runs(0.4, 50.0))
        .levels(&[0.59, together])
        .with(|facts| {
            facts.longest_alone = Some((1, alone));
            facts.together_before = together;
        })
}

/// A script that executes a program that computes, at the given rate.
fn tasks(per_second: f64, cpu: f64) -> Program {
    Program::on(2.0)
        .thread(Thread::new(1).runs(0.01, 10.0).waits(waiting(ThreadState::Child), 0.98))
        .with(|facts| facts.threads[0].running = 0.97)
        .levels(&[0.95, 0.02])
        .executes("awk", per_second, cpu, cpu)
}

/// A program in Node.js on four CPUs. The pool has threads that are always busy.
fn pool(threads: i32) -> Program {
    let node = |id: i32| Thread::new(id).runtime(Runtime::Node);
    let main = node(PID).runs(0.05, 100.0).waits(waiting(ThreadState::Poll), 0.9);
    let program = Program::on(4.0).thread(main).levels(&[0.1, 0.85]);
    (2..2 + threads).fold(program, |program, id| program.thread(node(id).runs(0.95, 50.0)))
}

#[test]
fn a_straggler_is_found() {
    let found = finds(find, straggler(), 0.29..=0.31);
    assert!(found.message.contains("thread-1 (1) worked alone for 6.0 s"), "{}", found.message);
}

#[test]
fn tasks_that_run_one_after_the_other_are_found() {
    let found = finds(find, tasks(2.0, 0.48), 0.45..=0.55);
    assert!(found.message.contains("awk is executed 20 times"), "{}", found.message);
    assert!(found.remedy.contains("xargs -P 2"), "{}", found.remedy);
}

#[test]
fn a_pool_with_fewer_threads_than_cpus_is_found() {
    let found = finds(find, pool(2), 0.45..=0.55);
    assert!(found.remedy.contains("UV_THREADPOOL_SIZE=4"), "{}", found.remedy);
    is_silent(find, pool(4), "as many threads as CPUs");
}

#[test]
fn a_thread_that_works_alone_first_is_no_straggler() {
    let serial = straggler().with(|facts| facts.together_before = 0.0);
    is_silent(find, serial, "the others worked afterwards");
}

#[test]
fn even_work_is_healthy() {
    is_silent(find, ending(0.5, 0.9), "half a second alone");
    is_silent(find, tasks(2.0, 0.48).levels(&[0.5, 0.45]), "two tasks at a time");
}

#[test]
fn a_thread_that_always_works_alone_leaves_nobody_behind() {
    is_silent(find, ending(9.0, 0.02), "no other thread has worked");
}

#[test]
fn a_pool_whose_work_is_over_is_healthy() {
    let over = straggler().with(|facts| facts.longest_alone = None);
    is_silent(find, over, "no thread works");
}

#[test]
fn few_tasks_or_short_ones_are_not_a_list() {
    is_silent(find, tasks(0.3, 3.0), "three executions");
    is_silent(find, tasks(200.0, 0.004), "4 ms each");
    is_silent(find, tasks(1.0, 0.4), "the script itself does the work");
}

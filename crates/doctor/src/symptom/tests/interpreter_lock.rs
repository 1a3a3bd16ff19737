use contend_record::doctor::{Runtime, ThreadState};

use super::super::interpreter_lock::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread, futex, waiting};
use crate::futex::Primitive;
use crate::wait::Wait;

const LOCK: u64 = 0x1000;

/// Four threads that compute in Python, one at a time.
pub fn computing() -> Program {
    program(2.0, 0.25, futex(Primitive::InterpreterLock, LOCK))
}

/// Four threads of Python that run for a share of the time, and wait for the rest.
fn program(cpus: f64, running: f64, wait: Wait) -> Program {
    let thread = |thread: Thread| {
        thread.runtime(Runtime::Python).runs(running, 50.0).waits(wait, 1.0 - running)
    };
    Program::on(cpus).threads(1..=4, thread).levels(&[0.95, 0.03])
}

#[test]
fn threads_that_compute_in_turn_are_found() {
    let found = finds(find, computing(), 0.49..=0.51);
    assert!(found.message.contains("4 threads of process 1"), "{}", found.message);
    assert!(found.message.contains("3.0 wait for it while 1.0 run"), "{}", found.message);
}

/// Where system calls may not be read, all waits on words of memory count.
#[test]
fn without_system_calls_waits_on_memory_count() {
    finds(find, program(2.0, 0.25, waiting(ThreadState::Condition)), 0.49..=0.51);
}

#[test]
fn a_light_thread_gains_the_time_for_which_it_waits() {
    let lock = futex(Primitive::InterpreterLock, LOCK);
    let thread = |id: i32| Thread::new(id).runtime(Runtime::Python);
    let program = Program::on(2.0)
        .thread(thread(1).runs(0.05, 100.0).waits(lock, 0.8))
        .thread(thread(2).runs(0.45, 100.0).waits(lock, 0.5))
        .thread(thread(3).runs(0.45, 100.0).waits(lock, 0.5))
        .levels(&[0.9]);
    let found = finds(find, program, 0.79..=0.81);
    assert!(found.argument.contains("computes little"), "{}", found.argument);
}

#[test]
fn threads_that_wait_for_input_do_not_wait_for_the_lock() {
    is_silent(find, program(2.0, 0.25, waiting(ThreadState::Socket)), "they wait for input");
}

#[test]
fn threads_that_release_the_lock_use_several_cpus() {
    let lock = futex(Primitive::InterpreterLock, LOCK);
    is_silent(find, program(4.0, 0.5, lock), "two run at the same time");
}

#[test]
fn one_thread_needs_no_other_one_to_release_the_lock() {
    let lock = futex(Primitive::InterpreterLock, LOCK);
    let thread = |id: i32| Thread::new(id).runtime(Runtime::Python);
    let idle = |id: i32| thread(id).runs(0.01, 10.0).waits(lock, 0.3);
    let program =
        Program::on(2.0).thread(thread(1).runs(0.9, 10.0)).thread(idle(2)).thread(idle(3));
    is_silent(find, program, "the others have nothing to do");
}

#[test]
fn other_runtimes_have_no_such_lock() {
    let java = computing().process(1, |process| process.runtime = Some(Runtime::Java));
    is_silent(find, java, "a program in Java");
}

#[test]
fn threads_that_serve_a_pool_of_processes_wait_for_messages() {
    let lock = futex(Primitive::InterpreterLock, LOCK);
    let served = (11..=14).fold(super::lock_step::pool(), |program, id| {
        let thread = Thread::new(id).of(10).runtime(Runtime::Python);
        program.thread(thread.runs(0.2, 2_000.0).waits(lock, 0.5))
    });
    is_silent(find, served, "small messages cost the time");
}

use contend_record::doctor::ThreadState;

use super::super::oversubscription::find;
use super::{finds, is_silent};
use crate::facts::Facts;
use crate::facts::testing::{Program, Thread, waiting};

/// Eight threads on two CPUs that spend much time in the kernel.
pub fn switching() -> Program {
    crowd(8).in_kernel(0.4)
}

/// Threads that share two CPUs evenly, and are always ready.
fn crowd(threads: i32) -> Program {
    let share = 2.0 / f64::from(threads);
    Program::on(2.0)
        .threads(1..=threads, |thread| thread.runs(share, 8_000.0).queued(1.0 - share))
        .levels(&[0.0, 1.0])
}

/// Threads that meet at a barrier, each with the given number of runs per second.
fn barrier(threads: i32, per_second: f64) -> Program {
    let share = 1.6 / f64::from(threads);
    let wait = waiting(ThreadState::Condition);
    let thread = |thread: Thread| thread.runs(share, per_second).waits(wait, 1.0 - share);
    Program::on(2.0).threads(1..=threads, thread).levels(&[0.2, 0.7]).in_kernel(0.3)
}

#[test]
fn switches_that_cost_time_in_the_kernel_are_found() {
    let found = finds(find, switching(), 0.39..=0.41);
    assert!(found.message.contains("8 threads share 2 CPUs"), "{}", found.message);
    assert!(found.remedy.contains("about 2 threads"), "{}", found.remedy);
}

#[test]
fn threads_that_spin_while_others_are_queued_are_found() {
    let spinning = Program::on(2.0)
        .threads(1..=8, |thread| thread.runs(0.25, 2_000.0).queued(0.75).spins(0.6))
        .levels(&[0.0, 1.0]);
    let found = finds(find, spinning, 0.59..=0.61);
    assert!(found.message.contains("60 % of the CPU time is spent in loops that wait"));
}

#[test]
fn many_threads_with_little_work_each_are_found() {
    let found = finds(find, barrier(48, 1_500.0), 0.4..=0.5);
    assert!(found.message.contains("48 threads share 2 CPUs and wait for each other"));
}

#[test]
fn time_in_the_kernel_for_another_reason_is_not_that_of_switches() {
    let copying = Program::on(2.0)
        .threads(1..=4, |thread| thread.runs(0.5, 150.0).queued(0.5))
        .levels(&[0.0, 1.0])
        .in_kernel(0.9);
    is_silent(find, copying, "600 switches per second");
}

#[test]
fn other_programs_are_named_as_such() {
    is_silent(find, switching().with(|facts| facts.others_share = 0.3), "others use the CPUs");
}

#[test]
fn threads_that_compute_in_long_slices_lose_little() {
    is_silent(find, crowd(8).in_kernel(0.03), "switches cost 3 % of the time");
    is_silent(find, barrier(48, 100.0), "each works for 0.3 ms before it waits");
}

/// The caches suffer from a long queue, but how much is unknown.
#[test]
fn a_long_queue_has_an_unknown_gain() {
    let found = find(&crowd(16).facts()).expect("a finding");
    assert_eq!(found.gain, None);
    let slow = Program::on(2.0)
        .threads(1..=16, |thread| thread.runs(0.125, 50.0).queued(0.875))
        .levels(&[0.0, 1.0]);
    is_silent(find, slow, "each runs for 2.5 ms");
}

#[test]
fn as_many_threads_as_cpus_are_no_crowd() {
    is_silent(find, barrier(5, 5_000.0), "five threads on two CPUs");
    let three = Program::on(2.0)
        .threads(1..=3, |thread| thread.runs(0.6, 2_000.0).queued(0.4))
        .in_kernel(0.4);
    is_silent(find, three, "three threads on two CPUs");
}

/// Threads on two CPUs that yield at this rate each, without visible loops.
fn yielding(threads: i32, per_second: f64) -> Program {
    let yields = |facts: &mut Facts| {
        facts.threads.iter_mut().for_each(|thread| thread.preemptions_per_second = per_second);
    };
    crowd(threads).with(yields)
}

#[test]
fn threads_that_yield_to_queued_ones_are_found_without_a_gain() {
    let found = find(&yielding(9, 4_000.0).facts()).expect("a finding");
    assert_eq!(found.gain, None);
    assert!(found.message.contains("give up the CPU 36000 times per second"), "{}", found.message);
    is_silent(find, yielding(9, 300.0), "the scheduler preempts them");
    is_silent(find, yielding(2, 20_000.0), "no thread is queued");
}

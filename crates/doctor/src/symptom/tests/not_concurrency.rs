use contend_record::doctor::{Cause, ThreadState};

use super::super::not_concurrency::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread, waiting};

/// A thread that maps new memory all the time.
pub fn faults() -> Program {
    Program::on(2.0)
        .thread(Thread::new(1).runs(0.98, 50.0))
        .levels(&[0.98])
        .in_kernel(0.7)
        .with(|facts| facts.faults_per_second = 300_000.0)
}

/// Two threads that wait for a disk, and run for a share of the time each.
fn disk(running: f64) -> Program {
    Program::on(2.0)
        .threads(1..=2, |thread| thread.runs(running, 500.0).waits(waiting(ThreadState::Disk), 0.6))
}

#[test]
fn page_faults_are_found() {
    let found = finds(find, faults(), 0.65..=0.75);
    assert!(found.message.contains("300000 page faults per second"), "{}", found.message);
}

#[test]
fn few_page_faults_or_cheap_ones_do_not_matter() {
    let few = faults().with(|facts| facts.faults_per_second = 20_000.0);
    is_silent(find, few, "the time in the kernel has another reason");
    is_silent(find, faults().in_kernel(0.1), "the kernel takes 10 % of the CPU time");
}

#[test]
fn waits_for_a_disk_are_found_without_a_gain() {
    let found = find(&disk(0.05).facts()).expect("a finding");
    assert_eq!(found.gain, None);
    assert!(found.message.contains("1.2 threads wait for a disk"), "{}", found.message);
}

#[test]
fn a_disk_for_which_all_wait_is_found_though_few_wait_at_it() {
    let writer = |id: i32, share: f64| {
        Thread::new(id).runs(0.1, 500.0).waits(waiting(ThreadState::Disk), share)
    };
    let writers = |none_ran: f64| {
        Program::on(2.0).thread(writer(1, 0.25)).thread(writer(2, 0.2)).cause(Cause::Disk, none_ran)
    };
    let found = finds(find, writers(0.4), 0.39..=0.41);
    assert!(found.message.contains("For 40 % of the time, none ran"), "{}", found.message);
    is_silent(find, writers(0.2), "others ran in the meantime");
}

#[test]
fn a_program_that_computes_is_not_limited_by_a_disk() {
    is_silent(find, disk(0.35), "0.7 of a CPU is in use");
}

#[test]
fn short_waits_for_a_disk_are_healthy() {
    let short = Program::on(2.0)
        .thread(Thread::new(1).runs(0.05, 500.0).waits(waiting(ThreadState::Disk), 0.4));
    is_silent(find, short, "0.4 threads wait");
}

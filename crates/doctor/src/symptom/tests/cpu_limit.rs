use super::super::cpu_limit::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread};

/// Two threads that are always ready, on one of two CPUs.
pub fn pinned() -> Program {
    Program::on(2.0)
        .threads(1..=2, |thread| thread.runs(0.5, 100.0).queued(0.5))
        .levels(&[1.0])
        .with(|facts| facts.cpus = 1.0)
}

/// A thread that a quota of half a CPU stops for half of the time.
fn throttled() -> Program {
    Program::on(2.0).thread(Thread::new(1).runs(0.5, 10.0).queued(0.5)).levels(&[0.5]).with(
        |facts| {
            facts.cpus = 0.5;
            facts.throttled = 0.5;
        },
    )
}

#[test]
fn an_affinity_mask_and_a_quota_are_found() {
    let found = finds(find, pinned(), 0.49..=0.51);
    assert!(found.message.contains("may use 1 of 2 CPUs"), "{}", found.message);
    let found = finds(find, throttled(), 0.49..=0.51);
    assert!(
        found.message.contains("a quota of 0.5 CPUs stopped the program in 50 % of its periods"),
        "{}",
        found.message
    );
}

#[test]
fn without_a_limit_a_queue_is_not_one() {
    let crowd = pinned().with(|facts| facts.cpus = 2.0);
    is_silent(find, crowd, "it may use all CPUs");
}

#[test]
fn one_thread_on_one_cpu_loses_nothing() {
    let one = Program::on(2.0)
        .thread(Thread::new(1).runs(0.6, 100.0).queued(0.4))
        .with(|facts| facts.cpus = 1.0);
    is_silent(find, one, "a second CPU would not be used");
}

#[test]
fn a_quota_that_stops_nothing_loses_nothing() {
    let rarely = Program::on(2.0)
        .thread(Thread::new(1).runs(0.5, 10.0).queued(0.2))
        .with(|facts| facts.throttled = 0.2);
    is_silent(find, rarely, "hardly anything was ready");
    let seldom = throttled().with(|facts| facts.throttled = 0.05);
    is_silent(find, seldom.with(|facts| facts.cpus = 2.0), "it hardly stopped anything");
}

#[test]
fn other_programs_are_not_a_limit() {
    let others = pinned().with(|facts| facts.others_share = 0.5);
    is_silent(find, others, "others would use the other CPU");
    let same_cpu = Program::on(2.0)
        .threads(1..=2, |thread| thread.runs(0.35, 100.0).queued(0.65))
        .levels(&[0.7])
        .with(|facts| (facts.cpus, facts.others_share) = (1.0, 0.3));
    is_silent(find, same_cpu, "others used the program's CPU");
    let other_cpu = pinned().with(|facts| facts.others_share = 0.3);
    finds(find, other_cpu, 0.28..=0.29);
    let stopped = throttled().with(|facts| facts.others_share = 0.5);
    finds(find, stopped, 0.49..=0.51);
}

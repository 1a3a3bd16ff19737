use super::super::Found;
use super::super::fork_storm::find;
use super::{finds, is_silent};
use crate::facts::testing::{Program, Thread};

/// A shell that starts 500 commands per second, in turn.
pub fn loop_of_commands() -> Program {
    shell().executes("cut", 500.0, 0.0016, 0.001)
}

fn shell() -> Program {
    Program::on(2.0).thread(Thread::new(1).runs(0.2, 1_000.0)).levels(&[0.7, 0.1])
}

#[test]
fn short_lived_processes_and_threads_are_found() {
    let found = finds(find, loop_of_commands(), 0.79..=0.81);
    assert!(found.message.contains("500 processes per second"), "{}", found.message);
    assert!(found.message.contains("(cut: 5000)"), "{}", found.message);
    let threads = loop_of_commands().with(|facts| facts.ended.processes = 0);
    let found = finds(find, threads, 0.59..=0.61);
    assert!(found.message.contains("500 threads per second"), "{}", found.message);
    assert!(found.remedy.contains("pool"), "{}", found.remedy);
}

#[test]
fn lives_that_overlap_count_once_for_each_cpu() {
    finds(find, shell().ends(500.0, 0.002, 0.001), 0.99..=1.0);
    finds(find, shell().ends(800.0, 0.002, 0.001), 0.99..=1.0);
    finds(find, shell().ends(100.0, 0.002, 0.001), 0.19..=0.21);
}

#[test]
fn children_that_mostly_wait_cost_their_start_only() {
    let threads =
        |life: f64, cpu: f64| shell().ends(60.0, life, cpu).with(|facts| facts.ended.processes = 0);
    is_silent(find, threads(0.03, 0.0002), "a thread for each request, which waits");
    finds(find, threads(0.008, 0.007), 0.4..=0.5);
}

#[test]
fn children_that_compute_for_long_are_work() {
    is_silent(find, shell().ends(40.0, 0.025, 0.02), "each computes for 20 ms");
    is_silent(find, shell().ends(40.0, 0.08, 0.001), "each lives for 80 ms");
}

#[test]
fn a_few_children_are_no_storm() {
    is_silent(find, shell().ends(10.0, 0.02, 0.005), "ten per second");
    is_silent(find, shell().ends(40.0, 0.002, 0.001), "8 % of the time");
}

#[test]
fn programs_that_only_sleep_take_no_time() {
    is_silent(find, shell().executes("sleep", 50.0, 0.02, 0.001), "all of them are sleep");
    let both = loop_of_commands().executes("sleep", 50.0, 0.02, 0.005);
    let cpu =
        |found: &Found| found.evidence.iter().find(|(name, _)| *name == "cpu_seconds").copied();
    let (alone, both) = (find(&loop_of_commands().facts()), find(&both.facts()));
    assert_eq!(alone.as_ref().and_then(cpu), both.as_ref().and_then(cpu));
}

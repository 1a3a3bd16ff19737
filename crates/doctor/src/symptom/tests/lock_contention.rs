use contend_record::doctor::{Runtime, ThreadState};
use contend_record::remedy::Library;

use super::super::lock_contention::find;
use super::{finds, is_silent};
use crate::facts::testing::{PID, Program, Thread, futex, waiting};
use crate::futex::Primitive;
use crate::goroutines::Goroutines;
use crate::stacks::Code;

const ADDRESS: u64 = 0x1000;

/// Four threads, one of which runs while the others wait for its lock.
pub fn one_mutex() -> Program {
    locking(0.72)
}

/// Four threads that run for a quarter of the time each, and wait for a lock for `share` of it.
fn locking(share: f64) -> Program {
    let lock = futex(Primitive::Lock, ADDRESS);
    Program::on(2.0)
        .threads(1..=4, |thread| thread.runs(0.25, 5_000.0).waits(lock, share))
        .levels(&[0.9, 0.05])
}

/// Threads of a program in Java, each with its share of a CPU and its number of runs per second. The
/// waits for a monitor look like those for a condition variable.
fn monitor(threads: &[(f64, f64)]) -> Program {
    let wait = futex(Primitive::Condition, ADDRESS);
    let program = Program::on(2.0).levels(&[0.85, 0.05]);
    threads.iter().zip(1..).fold(program, |program, (&(running, per_second), id)| {
        let thread = Thread::new(id).runtime(Runtime::Java).runs(running, per_second);
        program.thread(thread.waits(wait, 1.0 - running))
    })
}

/// A program in Go that spends this share of its CPU time in locks, and in channels.
fn goroutines(locking: f64, channels: f64) -> Program {
    Program::on(2.0)
        .threads(1..=3, |thread| thread.runtime(Runtime::Go).runs(0.3, 1_000.0))
        .levels(&[0.85, 0.05])
        .process(PID, |process| {
            let goroutines = Goroutines { locking, channels, ..Goroutines::default() };
            process.goroutines = Some(goroutines);
        })
}

#[test]
fn threads_at_one_lock_are_found_with_its_owner() {
    let found = finds(find, one_mutex(), 0.49..=0.51);
    assert!(found.message.contains("4 threads wait for a lock (at 0x1000)"), "{}", found.message);
    let owned = one_mutex().with(|facts| {
        facts.lock_owners.entry(ADDRESS).or_default().extend([(3, 80), (4, 20)]);
    });
    let message = finds(find, owned, 0.49..=0.51).message;
    assert!(message.ends_with("thread-3 (3) held it in 80 % of the samples."), "{message}");
    let shared = one_mutex().with(|facts| {
        facts.lock_owners.entry(ADDRESS).or_default().extend([(2, 40), (3, 40), (4, 20)]);
    });
    let message = finds(find, shared, 0.49..=0.51).message;
    assert!(!message.contains("held it"), "{message}");
}

#[test]
fn the_kernel_s_part_of_the_cpu_time_is_saved_as_well() {
    finds(find, one_mutex().in_kernel(0.4), 0.69..=0.71);
}

#[test]
fn locks_of_java_and_of_go_are_found() {
    finds(find, monitor(&[(0.3, 100.0); 3]), 0.54..=0.56);
    finds(find, goroutines(0.1, 0.0), 0.54..=0.56);
}

/// Threads that hand over a lock overlap: the kernel wakes one while the other goes to sleep.
#[test]
fn a_lock_of_java_that_is_handed_over_very_often_is_found() {
    let handed_over = |per_second: f64| monitor(&[(0.39, per_second); 4]).levels(&[0.6, 0.2]);
    finds(find, handed_over(15_000.0).in_kernel(0.3), 0.4..=0.7);
    is_silent(find, handed_over(15_000.0).in_kernel(0.02), "they run most of the time");
    is_silent(find, handed_over(50.0).in_kernel(0.3), "the kernel has other work than hand-overs");
}

/// Two threads that take a lock so often that its brief waits and its wake-ups cost time in the kernel.
fn brief(per_second: f64) -> Program {
    let lock = futex(Primitive::Lock, ADDRESS);
    Program::on(2.0)
        .threads(1..=2, |thread| thread.runs(0.85, per_second).waits(lock, 0.07))
        .levels(&[0.2, 0.75])
        .in_kernel(0.3)
}

#[test]
fn many_brief_waits_are_found() {
    finds(find, brief(4_000.0), 0.35..=0.45);
    is_silent(find, brief(900.0), "each wait is 0.08 ms long, but they are rare");
    is_silent(find, brief(4_000.0).in_kernel(0.08), "they cost little");
    is_silent(find, brief(4_000.0).levels(&[0.8, 0.1]), "they work in turn");
}

/// Few samples find a thread in waits that are so brief. One is enough to show the lock.
#[test]
fn brief_waits_that_few_samples_find_are_those_for_the_known_lock() {
    let waits = |second: ThreadState, per_second: f64| {
        let thread = |id: i32| Thread::new(id).runs(0.9, per_second);
        Program::on(2.0)
            .thread(thread(1).waits(futex(Primitive::Lock, ADDRESS), 0.07))
            .thread(thread(2).waits(waiting(second), 0.07))
            .levels(&[0.2, 0.75])
            .in_kernel(0.3)
    };
    let found = finds(find, waits(ThreadState::Unknown, 4_000.0), 0.3..=0.45);
    assert!(found.message.contains("2 threads wait for a lock (at 0x1000"), "{}", found.message);
    is_silent(find, waits(ThreadState::Condition, 4_000.0), "the other one waits for work");
    is_silent(find, waits(ThreadState::Unknown, 900.0), "the waits are rare");
    let turns = waits(ThreadState::Unknown, 4_000.0).levels(&[0.8, 0.1]);
    is_silent(find, turns, "they work in turn");
}

#[test]
fn a_lock_in_the_c_library_has_its_own_remedy() {
    for (file, is_c_library) in
        [("libc.so.6", true), ("ld-musl-x86_64.so.1", true), ("libcairo.so.2", false)]
    {
        let program = one_mutex().with(|facts| {
            facts.lock_files.insert(ADDRESS, file.to_owned());
        });
        let found = finds(find, program, 0.49..=0.51);
        assert!(found.message.contains(&format!("(at 0x1000, in {file})")), "{}", found.message);
        assert_eq!(found.remedy.contains("jemalloc"), is_c_library, "{file}");
    }
}

#[test]
fn a_lock_of_the_interpreter_is_not_one_of_the_program() {
    for file in ["libpython3.11.so.1.0", "python3.12"] {
        let program = |base: Program| {
            base.with(|facts| {
                facts.lock_files.insert(ADDRESS, file.to_owned());
            })
        };
        is_silent(find, program(one_mutex()), "it guards the interpreter's own lock");
        is_silent(find, program(brief(4_000.0)), "however often it is taken");
    }
}

#[test]
fn threads_of_java_that_spin_at_a_monitor_are_found() {
    let spinning = |share: f64| {
        let code = Code { samples: 100, locking: share, ..Code::default() };
        Program::on(2.0)
            .threads(1..=4, |thread| {
                let thread = thread.runtime(Runtime::Java).runs(0.45, 100.0).queued(0.45);
                thread.with(|thread| thread.code = Some(Box::new(code.clone())))
            })
            .levels(&[0.1, 0.9])
    };
    let found = finds(find, spinning(0.4), 0.42..=0.5);
    assert!(found.message.ends_with("40 % of the CPU time is spent in code of locks."));
    is_silent(find, spinning(0.1), "hardly any time in locks");
}

#[test]
fn a_lock_does_not_matter_while_all_cpus_are_in_use() {
    let lock = futex(Primitive::Lock, ADDRESS);
    let pool = |queued: f64| {
        Program::on(2.0)
            .threads(1..=16, |thread| thread.runs(0.1, 50.0).queued(queued).waits(lock, 0.1))
            .levels(&[0.3, 0.6])
    };
    finds(find, pool(0.05), 0.15..=0.25);
    is_silent(find, pool(0.75), "twelve threads are queued");
}

#[test]
fn the_end_of_a_thread_is_not_a_lock() {
    let lock = futex(Primitive::Lock, ADDRESS);
    let join = futex(Primitive::Lock, 0x2000);
    let program = Program::on(2.0)
        .thread(Thread::new(1).runs(0.01, 1.0).waits(join, 0.99))
        .thread(Thread::new(2).runs(0.9, 100.0).waits(lock, 0.05))
        .levels(&[0.9]);
    is_silent(find, program, "each address has one waiting thread");
}

#[test]
fn threads_of_openmp_wait_at_barriers() {
    let wait = futex(Primitive::Condition, ADDRESS);
    let team = || {
        Program::on(2.0)
            .threads(1..=4, |thread| thread.runs(0.25, 100.0).waits(wait, 0.7))
            .levels(&[0.9, 0.05])
    };
    finds(find, team(), 0.45..=0.55);
    let openmp = team().process(PID, |process| process.libraries = vec![Library::Openmp]);
    is_silent(find, openmp, "they wait for the slowest one");
}

#[test]
fn a_lock_that_is_held_for_a_small_part_of_the_time_is_healthy() {
    is_silent(find, locking(0.09), "0.4 threads wait");
}

#[test]
fn an_idle_pool_is_healthy() {
    is_silent(find, monitor(&[(0.07, 100.0); 8]), "0.6 of a CPU suffices for all work");
}

#[test]
fn several_running_threads_do_not_block_each_other() {
    is_silent(find, monitor(&[(0.48, 100.0); 3]), "1.4 threads run");
}

#[test]
fn long_waits_are_not_for_a_lock() {
    is_silent(find, monitor(&[(0.3, 10.0); 3]), "each waits for 70 ms");
}

#[test]
fn two_busy_threads_among_idle_ones_work_in_turn() {
    let shares = [(0.42, 100.0), (0.4, 100.0), (0.06, 100.0)];
    is_silent(find, monitor(&shares), "the third one hardly takes part");
}

#[test]
fn threads_that_wake_each_other_in_a_ring_work_in_turn() {
    let ring =
        |program: Program| program.wakes(1, 2, 5_000.0).wakes(2, 3, 5_000.0).wakes(3, 1, 5_000.0);
    finds(find, monitor(&[(0.3, 5_000.0); 3]), 0.54..=0.56);
    is_silent(find, ring(monitor(&[(0.3, 5_000.0); 3])), "each wakes the next one");
}

#[test]
fn goroutines_that_mostly_use_channels_do_not_contend() {
    is_silent(find, goroutines(0.1, 0.2), "more time in channels than in locks");
    is_silent(find, goroutines(0.003, 0.0), "hardly any time in locks");
}

use contend_sys::procfs::Io;

use super::super::tiny_io::find;
use super::{finds, is_silent};
use crate::facts::testing::{PID, Program, Thread, WALL};

/// A program that writes single bytes.
pub fn byte_writes() -> Program {
    writes(1.0, 500_000, 1)
}

/// A program that runs for a share of the time, and writes at the given rate.
fn writes(running: f64, per_second: u64, bytes: u64) -> Program {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole seconds")]
    let writes = per_second * (WALL as u64);
    let io = Io { writes, write_bytes: writes * bytes, ..Io::default() };
    Program::on(2.0)
        .thread(Thread::new(1).runs(running, 100.0))
        .levels(&[running])
        .in_kernel(0.8)
        .process(PID, |process| process.io = Some(io))
}

#[test]
fn single_bytes_are_found() {
    let found = finds(find, byte_writes(), 0.85..=0.95);
    let expected = "500000 read and write calls per second that move 1 bytes each";
    assert!(found.message.contains(expected), "{}", found.message);
}

#[test]
fn small_messages_between_which_the_program_waits_are_healthy() {
    is_silent(find, writes(1.0, 5_000, 1), "5,000 calls per second");
    is_silent(find, writes(0.25, 500_000, 1), "it runs for a quarter of the time");
}

#[test]
fn large_calls_and_cheap_calls_are_healthy() {
    is_silent(find, writes(1.0, 500_000, 4_096), "a page for each call");
    is_silent(find, byte_writes().in_kernel(0.1), "the kernel takes 10 % of the CPU time");
}

#[test]
fn messages_between_processes_are_a_matter_of_turns() {
    let pool = super::lock_step::pool().process(PID, |process| {
        process.io = Some(Io { writes: 1_000_000, write_bytes: 1_000_000, ..Io::default() });
    });
    is_silent(find, pool, "larger messages are the remedy");
}

#[test]
fn counts_that_may_not_be_read_are_not_zero() {
    is_silent(find, byte_writes().process(PID, |process| process.io = None), "unknown");
}

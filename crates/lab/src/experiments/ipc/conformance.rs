//! Conformance tests of all mechanisms: every message arrives once, in order and intact; the death
//! of a partner is an error and never blocks the other one; no file or queue remains.

use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contend_sys::process::fork;
use contend_sys::shared::{Line, Shared};
use contend_sys::{Signal, child};

use super::channels::{Endpoint, Mechanism, TABLE, WaitStrategy};
use super::exchange::{EXTRA_VALUES, Exchange};
use crate::support::partners::{Pair, PartnerKind, Placement, Sub};

fn exchange(mechanism: &'static Mechanism, kind: PartnerKind, bytes: usize) -> Exchange {
    let pair = Pair { kind, placement: Placement::Free, slack: Some(Duration::from_nanos(1)) };
    Exchange { pair, mechanism, bytes, warm_up: 3 }
}

/// Returns the message lengths to test, in bytes: seven with `CONTEND_TEST_EFFORT=full`, otherwise
/// three.
fn message_lengths() -> &'static [usize] {
    let is_full = std::env::var_os("CONTEND_TEST_EFFORT").is_some_and(|effort| effort == "full");
    if is_full { &[1, 7, 64, 1000, 4096, 65_536, 1 << 20] } else { &[1, 1000, 65_536] }
}

/// Returns the exchanges to test: every mechanism with every message length that it can carry on
/// this machine, between processes and, where supported, between threads.
fn all() -> impl Iterator<Item = Exchange> {
    TABLE.iter().flat_map(move |mechanism| {
        let able = message_lengths().iter().copied().filter(|&bytes| {
            bytes <= mechanism.max_message_bytes && (mechanism.unavailable)(bytes).is_none()
        });
        able.flat_map(move |bytes| {
            let kinds = [PartnerKind::Processes, PartnerKind::Threads];
            let kinds = kinds
                .into_iter()
                .filter(|&kind| kind == PartnerKind::Processes || mechanism.between_threads);
            kinds.map(move |kind| exchange(mechanism, kind, bytes))
        })
    })
}

/// Returns the number of messages to send: `default`, but at most 50 if messages are longer than
/// 10,000 bytes, or if partners only spin, because each message may then take a time slice.
fn messages(exchange: &Exchange, default: u64) -> u64 {
    let spins = exchange.mechanism.waiting == WaitStrategy::Spin;
    let max = if exchange.bytes > 10_000 || spins { 50 } else { default };
    default.min(max)
}

/// Names of the mechanisms that can send or receive a message without a system call.
const WITHOUT_SYSTEM_CALLS: [&str; 7] = [
    "mapped-file",
    "ring-futex",
    "ring-spin-futex",
    "ring-spin",
    "ring-batches",
    "cell",
    "process-vm-writev",
];

fn name(exchange: &Exchange) -> String {
    let Exchange { pair, mechanism, bytes, .. } = exchange;
    format!("{} {:?} {bytes} B", mechanism.name, pair.kind)
}

#[test]
fn messages_arrive_once_in_order_and_intact() {
    for exchange in all() {
        let name = name(&exchange);
        let messages = messages(&exchange, 1000);
        let result = exchange.one_way(messages).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(result.elapsed > Duration::ZERO, "{name}");
        let mut trips = 0;
        let result = exchange.round_trips(messages, Some(&mut |_| trips += 1));
        let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(trips, messages, "{name}");
        let may_skip_calls = WITHOUT_SYSTEM_CALLS.contains(&exchange.mechanism.name);
        for done in result.stats {
            assert!(may_skip_calls || done.calls.total() >= 2 * messages, "{name}: {done:?}");
        }
    }
}

/// Sends messages from main to sub, with pseudo-random delays on both sides. Panics if one is lost
/// or damaged.
fn with_delays(exchange: &Exchange, messages: u64) {
    fn pause(number: u64) {
        let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let spins = if random >> 56 == 0 { random >> 48 & 0xFFF } else { random >> 59 };
        (0..spins).for_each(|_| std::hint::spin_loop());
    }
    let mut main = |end: &mut dyn Endpoint, numbers: Range<u64>| {
        for number in numbers {
            pause(number);
            end.send_all(number..number + 1)?;
        }
        Ok(())
    };
    let mut sub = |end: &mut dyn Endpoint, numbers: Range<u64>| {
        for number in numbers {
            pause(!number);
            end.receive_all(number..number + 1)?;
        }
        Ok([0; EXTRA_VALUES])
    };
    let ran = exchange.run(messages, &mut main, &mut sub, &|_| ());
    ran.unwrap_or_else(|error| panic!("{}: {error}", name(exchange)));
}

/// Sends messages of up to 64 bytes with random delays on both sides. The environment variable
/// `IPC_MESSAGES` sets the number of messages, and `IPC_MECHANISM` restricts the test to one
/// mechanism.
#[test]
fn no_message_is_lost_under_random_delays() {
    let from_environment = std::env::var("IPC_MESSAGES").ok().and_then(|text| text.parse().ok());
    let only = std::env::var("IPC_MECHANISM").ok();
    for exchange in all().filter(|exchange| exchange.bytes <= 64) {
        if only.as_ref().is_none_or(|only| only == exchange.mechanism.name) {
            with_delays(&exchange, from_environment.unwrap_or(messages(&exchange, 3000)));
        }
    }
}

/// Checks that main gets an error if sub kills itself before it receives a given message, while
/// main sends or waits for a reply.
#[test]
fn a_partner_killed_at_any_message_is_an_error() {
    for exchange in all().filter(|exchange| exchange.pair.kind == PartnerKind::Processes) {
        if ![1, 64, 65_536].contains(&exchange.bytes) {
            continue;
        }
        for step in [0, 1, 3, 4, 20, 41] {
            for answers in [false, true] {
                killed_at(&exchange, step, answers);
            }
        }
    }
}

fn killed_at(exchange: &Exchange, step: u64, answers: bool) {
    let itself = || rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    let mut main = |end: &mut dyn Endpoint, numbers: Range<u64>| {
        if answers { end.request_all(numbers) } else { end.send_all(numbers) }
    };
    let mut sub = |end: &mut dyn Endpoint, numbers: Range<u64>| {
        for number in numbers {
            if number == step {
                let _ = itself();
            }
            if answers {
                end.reply_all(number..number + 1)?;
            } else {
                end.receive_all(number..number + 1)?;
            }
        }
        Ok([0; EXTRA_VALUES])
    };
    let ran = exchange.run(u64::MAX / 2, &mut main, &mut sub, &|_| ());
    let error = ran.expect_err("it was killed").to_string();
    let name = name(exchange);
    assert!(error.contains("has ended before it was done"), "{name} at {step}: {error}");
}

#[test]
fn a_partner_killed_at_any_time_is_an_error() {
    for exchange in all().filter(|exchange| exchange.pair.kind == PartnerKind::Processes) {
        for delay in [0, 300, 3000] {
            let kill = |sub: Sub| {
                let Sub::Process(sub) = sub else { panic!("it is a process") };
                std::thread::sleep(Duration::from_micros(delay));
                rustix::process::kill_process(sub, Signal::KILL).expect("it lives");
            };
            let mut main = |end: &mut dyn Endpoint, numbers| end.request_all(numbers);
            let mut sub = |end: &mut dyn Endpoint, numbers| {
                end.reply_all(numbers).map(|()| [0; EXTRA_VALUES])
            };
            let ran = exchange.run(u64::MAX / 2, &mut main, &mut sub, &kill);
            let error = ran.expect_err("it was killed").to_string();
            let name = name(&exchange);
            assert!(error.contains("has ended before it was done"), "{name}: {error}");
        }
    }
}

#[test]
fn a_partner_that_cannot_start_ends_the_exchange() {
    for mut exchange in all().filter(|exchange| exchange.bytes == 1) {
        for cpus in [[0, 999], [999, 0]] {
            exchange.pair.placement = Placement::On(cpus);
            assert!(exchange.one_way(10).is_err(), "{} {cpus:?}", name(&exchange));
        }
    }
}

#[test]
fn a_skipped_message_is_detected() {
    for exchange in all().filter(|exchange| exchange.bytes == 1) {
        let mut sub = |end: &mut dyn Endpoint, numbers: Range<u64>| {
            end.receive_all(numbers.start + 1..numbers.end)?; // expects numbers one too high
            Ok([0; EXTRA_VALUES])
        };
        let mut main = |end: &mut dyn Endpoint, numbers| end.send_all(numbers);
        let ran = exchange.run(u64::MAX / 2, &mut main, &mut sub, &|_| ());
        let error = ran.expect_err("it is not what was sent").to_string();
        let name = name(&exchange);
        assert!(error.contains("message 1 is damaged"), "{name}: {error}");
    }
}

/// Returns the paths of files and POSIX queues that the given process left behind, and the lines of
/// its System V queues in `/proc/sysvipc/msg`.
fn leftovers(process: u32) -> Vec<String> {
    let mut left = Vec::new();
    for folder in [std::env::temp_dir(), "/dev/shm".into(), "/dev/mqueue".into()] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.path().display().to_string());
        left.extend(names.filter(|name| name.contains(&format!("contend-{process}-"))));
    }
    // Fields 5 and 6 of a queue's line, counted from 0, are the process ids of the last sender and
    // receiver.
    let queues = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    let involves =
        |line: &&str| line.split_whitespace().skip(5).take(2).any(|of| of == process.to_string());
    left.extend(queues.lines().filter(involves).map(str::to_owned));
    left
}

#[test]
fn nothing_is_left_behind_when_main_is_killed() {
    for exchange in all().filter(|exchange| exchange.bytes == 1) {
        if exchange.pair.kind != PartnerKind::Processes {
            continue;
        }
        let begun = Shared::new(Line(AtomicU64::new(0))).expect("memory");
        let main = fork(|| {
            let mut main = |end: &mut dyn Endpoint, numbers: Range<u64>| {
                for number in numbers {
                    end.request_all(number..number + 1)?;
                    begun.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            };
            let mut sub = |end: &mut dyn Endpoint, numbers| {
                end.reply_all(numbers).map(|()| [0; EXTRA_VALUES])
            };
            i32::from(exchange.run(u64::MAX / 2, &mut main, &mut sub, &|_| ()).is_err())
        });
        let main = main.expect("a process");
        while begun.load(Ordering::SeqCst) < 10 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let process = main.as_raw_nonzero().get().unsigned_abs();
        rustix::process::kill_process(main, Signal::KILL).expect("it lives");
        child::reap(main).expect("it ends");
        let name = name(&exchange);
        // Cleanup by other processes may still be running.
        let mut polls = 0;
        while !leftovers(process).is_empty() {
            polls += 1;
            assert!(polls < 10_000, "{name} leaves {:?}", leftovers(process));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

//! Fault: two threads hand each item to and fro through channels without a buffer. Each does a few
//! microseconds of work and then waits for the other, so never more than one of them runs.
//! `fixed` exchanges batches and prepares the next batch while the partner works on the last one.
//! `twin` is a client that sends a request, gets the reply and then thinks for some milliseconds.
//! It is healthy: the think time fills the run, and a faster hand-over would not shorten it.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

/// What `sick` takes in total, about.
const TOTAL_US: u64 = 4_200_000;
/// The computing of each of the two threads for one item.
const WORK_US: u64 = 4;
/// What one exchange costs, there and back.
const EXCHANGE_US: u64 = 20;
/// Items per batch in `fixed`.
const BATCH: u64 = 1_000;
/// The mean think time of the client in `twin`.
const THINK_US: u64 = 2_500;
/// The computing for one reply in `twin`.
const REPLY_US: u64 = 30;
const ROUNDS_PER_US: u64 = 500;
const LIMIT_S: u32 = 30;

struct Plan {
    seed: u64,
    items: u64,
    rounds: u64,
}

fn plan(seed: u64) -> Plan {
    let mut state = seed;
    // In tenths of a microsecond, because the work is that short.
    let work_tenths = vary(&mut state, WORK_US * 10);
    let item_us = 2 * work_tenths / 10 + EXCHANGE_US;
    Plan {
        seed,
        items: TOTAL_US / item_us,
        rounds: work_tenths * ROUNDS_PER_US / 10,
    }
}

/// The first half of the work on an item.
fn prepare(plan: &Plan, item: u64) -> u64 {
    mix(plan.seed ^ (item << 8), plan.rounds)
}

/// The second half of the work on an item.
fn finish(plan: &Plan, value: u64) -> u64 {
    mix(!value, plan.rounds)
}

fn run_sick(plan: &Plan) -> u64 {
    let (to_partner, from_main) = mpsc::sync_channel(0);
    let (to_main, from_partner) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            for value in from_main {
                to_main.send(finish(plan, value)).expect("the main thread waits");
            }
        });
        let mut sum = 0u64;
        for item in 0..plan.items {
            to_partner.send(prepare(plan, item)).expect("the partner waits");
            sum = sum.wrapping_add(from_partner.recv().expect("the partner replies"));
        }
        drop(to_partner);
        sum
    })
}

/// Finishes the items of each batch and sends the sum of the batch back.
fn finish_batches(plan: &Plan, batches: Receiver<Vec<u64>>, sums: SyncSender<u64>) {
    for batch in batches {
        let add = |sum: u64, value| sum.wrapping_add(finish(plan, value));
        sums.send(batch.into_iter().fold(0, add)).expect("the main thread waits");
    }
}

fn run_fixed(plan: &Plan) -> u64 {
    let (to_partner, from_main) = mpsc::sync_channel(1);
    let (to_main, from_partner) = mpsc::sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(move || finish_batches(plan, from_main, to_main));
        let mut sum = 0u64;
        for start in (0..plan.items).step_by(BATCH as usize) {
            let end = plan.items.min(start + BATCH);
            let batch = (start..end).map(|item| prepare(plan, item)).collect();
            to_partner.send(batch).expect("the partner waits");
            // One batch stays with the partner while this thread prepares the next.
            if start > 0 {
                sum = sum.wrapping_add(from_partner.recv().expect("the partner replies"));
            }
        }
        drop(to_partner);
        sum.wrapping_add(from_partner.recv().expect("the partner replies"))
    })
}

fn run_twin(plan: &Plan) -> u64 {
    let (to_server, requests) = mpsc::sync_channel::<u64>(0);
    let (to_client, replies) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            for request in requests {
                let reply = mix(request, REPLY_US * ROUNDS_PER_US);
                to_client.send(reply).expect("the client waits");
            }
        });
        let mut state = plan.seed;
        let mut value = plan.seed;
        for _ in 0..TOTAL_US / THINK_US {
            to_server.send(value).expect("the server lives");
            value = replies.recv().expect("the server replies");
            thread::sleep(Duration::from_micros(vary(&mut state, THINK_US)));
        }
        drop(to_server);
        value
    })
}

fn main() {
    let (variant, seed) = arguments();
    let plan = plan(seed);
    let result = match variant.as_str() {
        "sick" => run_sick(&plan),
        "fixed" => run_fixed(&plan),
        _ => run_twin(&plan),
    };
    println!("{result:016x}");
}

/// Returns 60 % to 140 % of `base`; `state` decides.
fn vary(state: &mut u64, base: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    base * (60 + (*state >> 33) % 81) / 100
}

/// Does `rounds` steps of integer mixing, each of which needs the one before it.
fn mix(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    }
    x
}

unsafe extern "C" {
    fn alarm(seconds: u32) -> u32;
}

/// Reads the variant and the seed, and sets the alarm that ends a run that hangs.
fn arguments() -> (String, u64) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [variant, seed] = args.as_slice()
        && ["sick", "fixed", "twin"].contains(&variant.as_str())
        && let Ok(seed) = seed.parse()
    {
        // SAFETY: `alarm` takes a number and touches no memory of ours.
        unsafe { alarm(LIMIT_S) };
        return (variant.clone(), seed);
    }
    eprintln!("usage: channel_ping_pong sick|fixed|twin SEED");
    std::process::exit(2);
}

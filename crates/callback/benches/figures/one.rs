//! Time per operation on one Worker.

use std::time::{Duration, Instant};

use contend_callback::{Address, Context};

use super::{ns_per_operation, on_worker, print_row, runtime};

const OPERATION_COUNT: u64 = 1_000_000;

/// Measures the time to spawn a unit that waits for a timer, as the mean over a million units.
pub fn spawn(rounds: usize) {
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let receptor = runtime(1, Duration::ZERO);
        let took = on_worker(&receptor, 0, |context, sender| {
            let begun = Instant::now();
            for unit in 0..OPERATION_COUNT {
                let callback = move |context: &mut Context<'_>| {
                    std::hint::black_box(unit);
                    context.end()
                };
                context.spawn_after(Duration::from_hours(1), callback).unwrap();
            }
            sender.send(begun.elapsed()).unwrap();
            context.end()
        });
        samples.push(ns_per_operation(took, OPERATION_COUNT));
    }
    print_row("spawn, of 1,000,000 that wait for a time", "ns", &mut samples);
}

type Ping = (Address<u64>, u64);

/// Measures the round-trip time of a message between two units of one Worker.
pub fn round_trip(rounds: usize) {
    let trips = 2 * OPERATION_COUNT;
    let receptor = runtime(1, Duration::ZERO);
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let took = on_worker(&receptor, 0, move |context, sender| {
            let pong = context
                .spawn_handler(|context, (from, left): Ping| {
                    context.send(from, left).unwrap();
                    context.keep_receiving()
                })
                .unwrap();
            let begun = Instant::now();
            let ping = context
                .spawn_handler(move |context: &mut Context<'_, u64>, left| {
                    if left == 0 {
                        sender.send(begun.elapsed()).unwrap();
                        context.cancel(pong.id());
                        return context.end();
                    }
                    let back = context.address();
                    context.send(pong, (back, left - 1)).unwrap();
                    context.keep_receiving()
                })
                .unwrap();
            context.send(ping, trips).unwrap();
            context.end()
        });
        samples.push(ns_per_operation(took, trips));
    }
    print_row("round trip on one Worker", "ns", &mut samples);
}

/// Measures the time to send and deliver a message, as the mean over one message to each of a
/// million units in random order.
pub fn one_way(rounds: usize) {
    let receptor = runtime(1, Duration::ZERO);
    let mut samples = Vec::new();
    let all = on_worker(&receptor, 0, |context, sender| {
        let unit = |_| {
            let mut sum = 0_u64;
            let callback = move |context: &mut Context<'_, u64>, more| {
                sum = std::hint::black_box(sum + more);
                context.keep_receiving()
            };
            context.spawn_handler(callback).unwrap()
        };
        let all: Vec<Address<u64>> = (0..OPERATION_COUNT).map(unit).collect();
        sender.send(all).unwrap();
        context.end()
    });
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..rounds {
        let all = all.clone();
        let mut order: Vec<u32> = (0..1_000_000).collect();
        random.shuffle(&mut order);
        let took = on_worker(&receptor, 0, move |context, sender| {
            let begun = Instant::now();
            let mut next = order.into_iter();
            // Send 200 messages per turn, as if read from a socket; all are handled before the next
            // turn.
            let feeder = context
                .spawn_handler(move |context: &mut Context<'_, ()>, ()| {
                    for unit in next.by_ref().take(200) {
                        context.send(all[unit as usize], 1).unwrap();
                    }
                    if next.len() == 0 {
                        sender.send(begun.elapsed()).unwrap();
                        return context.end();
                    }
                    let me = context.address();
                    context.send(me, ()).unwrap();
                    context.keep_receiving()
                })
                .unwrap();
            context.send(feeder, ()).unwrap();
            context.end()
        });
        samples.push(ns_per_operation(took, OPERATION_COUNT));
    }
    print_row("one way to a random one of 1,000,000", "ns", &mut samples);
}

//! Tests of runtimes with real threads as Workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Down, Id, Reason, Receptor, SendError, SpawnError};

use crate::support::{Guard, on_worker, quiet_panics, runtime, wait_until};

const SHORT_DELAY: Duration = Duration::from_millis(1);

#[test]
fn ten_thousand_delays_run_concurrently_and_none_ends_early() {
    let receptor = runtime(2);
    let early = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    for n in 0..10_000_u64 {
        let (early, done) = (Arc::clone(&early), Arc::clone(&done));
        let delay = Duration::from_millis(200 + n % 50);
        receptor
            .spawn(move |context| {
                let asked = Instant::now();
                context.after(delay, move |context| {
                    early.fetch_add(u64::from(asked.elapsed() < delay), Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                    context.end()
                })
            })
            .expect("it runs");
    }
    receptor.wait();
    assert_eq!((done.load(Ordering::Relaxed), early.load(Ordering::Relaxed)), (10_000, 0));
    // In sequence, the waits would take half an hour.
    assert!(begun.elapsed() < Duration::from_mins(1));
}

#[test]
fn timers_with_equal_delays_fire_in_request_order() {
    let receptor = runtime(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    on_worker(&receptor, 0, move |context| {
        for n in 0..5000 {
            let log = Arc::clone(&log);
            // Some units end early, so that later ones take their slots.
            let id = context.spawn_after(Duration::from_millis(20), |c| c.end()).expect("room");
            if n % 3 == 0 {
                context.cancel(id);
            }
            let callback = move |context: &mut Context<'_>| {
                log.lock().expect("whole").push(n);
                context.end()
            };
            context.spawn_after(Duration::from_millis(20), callback).expect("room");
        }
    });
    receptor.wait();
    assert_eq!(*order.lock().expect("whole"), (0..5000).collect::<Vec<_>>());
}

#[test]
fn messages_of_one_sender_arrive_in_order() {
    const MESSAGES_PER_SENDER: u64 = 20_000;
    let receptor = Receptor::builder().workers(2).inbox(64).start().expect("threads");
    let (sender, receiver) = mpsc::channel();
    let callback = move |context: &mut Context<'_, (usize, u64)>| {
        let mut next = [0; 3];
        context.receive(move |context, (from, n): (usize, u64)| {
            assert_eq!(n, next[from], "from {from}");
            next[from] += 1;
            if next == [MESSAGES_PER_SENDER; 3] {
                sender.send(()).expect("somebody waits");
                return context.end();
            }
            context.keep_receiving()
        })
    };
    let to = receptor.spawn_on(0, callback).expect("it runs");
    // The senders: one on the receiver's Worker, one on the other Worker, one on no Worker.
    for from in 0..2 {
        let callback = move |context: &mut Context<'_, u64>| {
            let me = context.address();
            context.send(me, 0).expect("it lives");
            context.receive(move |context, n| {
                if n == MESSAGES_PER_SENDER {
                    return context.end();
                }
                match context.send(to, (from, n)) {
                    Ok(()) => {
                        let me = context.address();
                        context.send(me, n + 1).expect("it lives");
                        context.keep_receiving()
                    }
                    Err(error) => {
                        assert!(matches!(error, SendError::Full(_)), "{error:?}");
                        let me = context.address();
                        context.send(me, n).expect("it lives");
                        context.keep_receiving()
                    }
                }
            })
        };
        receptor.spawn_on(from, callback).expect("it runs");
    }
    for n in 0..MESSAGES_PER_SENDER {
        receptor.send(to, (2, n)).expect("it lives");
    }
    receiver.recv_timeout(Duration::from_mins(1)).expect("all have arrived");
    receptor.wait();
    wait_until(|| receptor.counts().callbacks >= 3 * MESSAGES_PER_SENDER);
    assert_eq!(receptor.counts().undeliverable, 0);
}

#[test]
fn a_crash_storm_does_not_delay_other_units() {
    const UNIT_COUNT: u64 = 20_000;
    quiet_panics();
    let receptor = runtime(2);
    let done = Arc::new(AtomicU64::new(0));
    let (sender, downs) = mpsc::channel();
    let watcher = move |context: &mut Context<'_, Down>| {
        let mut left = UNIT_COUNT;
        for n in 0..UNIT_COUNT {
            let done = Arc::clone(&done);
            let callback = move |context: &mut Context<'_>| {
                context.after(SHORT_DELAY, move |context| {
                    assert!(n % 10 != 0, "number {n}");
                    done.fetch_add(1, Ordering::Relaxed);
                    context.end()
                })
            };
            let id = context.spawn(callback).expect("room");
            context.monitor(id, |down| down);
        }
        context.receive(move |context, down| {
            sender.send(down).expect("somebody waits");
            left -= 1;
            if left == 0 { context.end() } else { context.keep_receiving() }
        })
    };
    receptor.spawn_receiving(watcher).expect("it runs");
    let downs: Vec<Down> = downs.iter().collect();
    receptor.wait();
    let panicked = |down: &&Down| matches!(&down.reason, Reason::Panicked(words) if words.starts_with("number"));
    assert_eq!(downs.len() as u64, UNIT_COUNT);
    assert_eq!(downs.iter().filter(panicked).count() as u64, UNIT_COUNT / 10);
    assert_eq!(
        downs.iter().filter(|down| down.reason.is_done()).count() as u64,
        UNIT_COUNT / 10 * 9
    );
    // Workers publish counts when they are idle.
    while receptor.counts().panics < UNIT_COUNT / 10 {
        std::thread::sleep(SHORT_DELAY);
    }
    assert_eq!(receptor.counts().panics, UNIT_COUNT / 10);
    assert_eq!(on_worker(&receptor, 0, |_| 1) + on_worker(&receptor, 1, |_| 1), 2);
}

#[test]
fn a_message_to_an_ended_unit_is_an_error_and_reaches_no_other() {
    let receptor = runtime(2);
    let heard = Arc::new(AtomicU64::new(0));
    let ears = Arc::clone(&heard);
    let late = on_worker(&receptor, 0, move |context| {
        let ended: Vec<Address<u64>> = (0..1000)
            .map(|_| {
                let id = context.spawn_handler(|c, _: u64| c.keep_receiving()).expect("room");
                context.cancel(id.id());
                id
            })
            .collect();
        for _ in 0..1000 {
            let ears = Arc::clone(&ears);
            let callback = move |context: &mut Context<'_, u64>, _| {
                ears.fetch_add(1, Ordering::Relaxed);
                context.keep_receiving()
            };
            context.spawn_handler(callback).expect("room");
        }
        let mut late = 0;
        for &id in &ended {
            assert_eq!(context.send(id, 7), Err(SendError::Ended(7)));
            late += u64::from(context.handle().try_send(id, 7).is_ok());
            context.cancel(id.id());
        }
        late
    });
    assert!(late > 500, "{late} were let in");
    wait_until(|| receptor.counts().undeliverable == late);
    assert_eq!(heard.load(Ordering::Relaxed), 0);
    assert_eq!(receptor.alive(), 1000);
}

#[test]
fn try_send_reports_a_full_inbox_and_a_blocking_send_succeeds() {
    let receptor = Receptor::builder().workers(1).inbox(16).start().expect("threads");
    let (release, held) = mpsc::channel::<()>();
    let address = on_worker(&receptor, 0, |context| {
        let mut sum = 0;
        let callback = move |context: &mut Context<'_, u64>, n| {
            sum += n;
            if sum == 100 { context.end() } else { context.keep_receiving() }
        };
        context.spawn_handler(callback).expect("room")
    });
    let hold = move |context: &mut Context<'_>| {
        held.recv().expect("it is released"); // the Worker does nothing meanwhile
        context.end()
    };
    receptor.spawn(hold).expect("it runs");
    let mut sent = 0;
    let refused = loop {
        match receptor.try_send(address, 1) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, SendError::Full(1));
    assert!((1..=17).contains(&sent), "{sent}");
    let mut spawned = 0;
    let full = loop {
        match receptor.try_spawn(|context| context.end()) {
            Ok(_) => spawned += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, SpawnError::Full);
    assert!((1..=16).contains(&spawned), "{spawned}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in sent..100 {
                receptor.send(address, 1).expect("it runs");
            }
            for _ in 0..100 {
                receptor.spawn(|context| context.end()).expect("it runs");
            }
        });
        std::thread::sleep(10 * SHORT_DELAY);
        release.send(()).expect("it waits");
    });
    receptor.wait();
}

#[test]
fn repeated_spawning_does_not_increase_memory() {
    let receptor = runtime(2);
    let mut most = 0;
    for cycle in 0..100 {
        for worker in 0..2 {
            on_worker(&receptor, worker, |context| {
                for n in 0..2000_u64 {
                    let callback = move |context: &mut Context<'_>| {
                        std::hint::black_box([n; 3]);
                        context.end()
                    };
                    context.spawn_after(SHORT_DELAY, callback).expect("room");
                }
            });
        }
        receptor.wait();
        if cycle == 10 {
            most = receptor.bytes();
        }
    }
    let rested = Instant::now();
    while receptor.bytes() > most && rested.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(10 * SHORT_DELAY);
    }
    assert!(receptor.bytes() <= most, "{} bytes, {most} before", receptor.bytes());
}

#[test]
fn shutdown_drops_each_of_a_million_units_once() {
    const UNIT_COUNT: u64 = 1_000_000;
    let receptor = runtime(2);
    let dropped = Arc::new(AtomicU64::new(0));
    for worker in 0..2 {
        let dropped = Arc::clone(&dropped);
        on_worker(&receptor, worker, move |context| {
            for n in 0..UNIT_COUNT / 2 {
                let guard = Guard(Arc::clone(&dropped));
                if n % 2 == 0 {
                    let callback = move |context: &mut Context<'_>| {
                        drop(guard);
                        context.end()
                    };
                    context.spawn_after(Duration::from_hours(1), callback).expect("room");
                } else {
                    let callback = move |context: &mut Context<'_, u64>, _| {
                        let _ = &guard;
                        context.keep_receiving()
                    };
                    context.spawn_handler(callback).expect("room");
                }
            }
        });
    }
    while receptor.alive() < UNIT_COUNT {
        std::thread::sleep(SHORT_DELAY);
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    let handle = receptor.handle();
    receptor.shut_down();
    assert_eq!(dropped.load(Ordering::Relaxed), UNIT_COUNT);
    assert_eq!(handle.spawn(|context| context.end()), Err(SpawnError::ShutDown));
}

#[test]
fn links_and_monitors_work_across_workers() {
    quiet_panics();
    let receptor = runtime(2);
    let (sender, downs) = mpsc::channel();
    let victim = on_worker(&receptor, 1, |context| {
        let callback = |_: &mut Context<'_, u64>, n| panic!("got {n}");
        context.spawn_handler(callback).expect("room")
    });
    let friend = on_worker(&receptor, 0, move |context| {
        let callback = move |context: &mut Context<'_, u64>| {
            context.link(victim.id());
            context.receive(|context, _| context.keep_receiving())
        };
        context.spawn_receiving(callback).expect("room")
    });
    let (ready, is_ready) = mpsc::channel();
    let watcher = move |context: &mut Context<'_, (u8, Down)>| {
        context.monitor(victim.id(), |down| (0, down));
        context.monitor(friend.id(), |down| (1, down));
        let forgotten = context.monitor(victim.id(), |down| (2, down));
        context.demonitor(forgotten);
        ready.send(()).expect("somebody waits");
        context.receive(move |context, down| {
            sender.send(down).expect("somebody waits");
            context.keep_receiving()
        })
    };
    let watcher = receptor.spawn_on(0, watcher).expect("it runs");
    is_ready.recv().expect("it runs");
    // The watcher's request is in the other Worker's inbox; this message follows it.
    on_worker(&receptor, 0, move |context| context.send(victim, 3).expect("it lives"));
    let mut found = [downs.recv().expect("told"), downs.recv().expect("told")];
    found.sort_by_key(|(which, _)| *which);
    assert_eq!(found[0].1.id, victim.id());
    assert_eq!(found[0].1.reason, Reason::Panicked("got 3".into()));
    assert_eq!(found[1].1, Down { id: friend.id(), reason: Reason::Linked(victim.id()) });
    // A monitor of a unit that has already ended reports at once.
    on_worker(&receptor, 0, move |context| context.cancel(watcher.id()));
    let late = on_worker(&receptor, 1, move |context| {
        let (sender, receiver) = mpsc::channel();
        let callback = move |context: &mut Context<'_, Down>| {
            context.monitor(victim.id(), |down| down);
            context.receive(move |context, down| {
                sender.send(down.reason).expect("somebody waits");
                context.end()
            })
        };
        context.spawn_receiving(callback).expect("room");
        receiver
    });
    assert_eq!(late.recv().expect("told"), Reason::Panicked("got 3".into()));
    receptor.wait();
}

#[test]
fn a_receptor_can_be_dropped_in_its_own_callback() {
    let receptor = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let handle = receptor.handle();
    let dropped = Arc::new(AtomicU64::new(0));
    let guard = Guard(Arc::clone(&dropped));
    let waits = handle.spawn(move |context| {
        context.receive(move |context, _| {
            let _ = &guard;
            context.keep_receiving()
        })
    });
    waits.expect("it runs");
    let callback = move |context: &mut Context<'_>| {
        drop(receptor);
        sender.send(()).expect("somebody waits");
        context.end()
    };
    handle.spawn(callback).expect("it runs");
    receiver.recv().expect("it was dropped");
    wait_until(|| dropped.load(Ordering::SeqCst) == 1);
    assert_eq!(handle.spawn(|context| context.end()), Err(SpawnError::ShutDown));
}

#[test]
fn the_text_of_an_id_begins_with_the_worker_index() {
    let receptor = runtime(1);
    let id: Id = on_worker(&receptor, 0, |context| context.id());
    assert!(id.to_string().starts_with("0."), "{id}");
}

//! Tests of corner cases, such as units that end while messages are queued, panics in unusual
//! places, several runtimes, and exhausted memory.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use contend_callback::{
    Address, Context, Down, Handle, Id, Interest, Next, NoReply, Reason, Receptor, Restart,
    SendError, Source, SpawnError, Strategy, Supervisor,
};

use crate::support::{Guard, TIMEOUT, on_worker, quiet_panics, runtime, wait_until};

/// A value whose destructor panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("it was dropped");
    }
}

/// Spawns a unit on Worker 0 that receives numbers.
fn spawn_number_receiver(receptor: &Receptor) -> Address<u64> {
    on_worker(receptor, 0, |context| {
        context.spawn_handler(|context, _: u64| context.keep_receiving()).expect("room")
    })
}

/// Returns the text of the address's id, which does not contain the runtime, and the id's
/// generation.
fn location(address: Address<u64>) -> (String, u32) {
    let text = address.id().to_string();
    let generation = text.split_once('#').expect("a generation").1.parse().expect("a number");
    (text, generation)
}

#[test]
fn an_address_of_another_runtime_is_stale() {
    let (one, other) = (runtime(2), runtime(1));
    let far: Address<u64> = on_worker(&one, 1, |context| {
        context.spawn_handler(|context, _: u64| context.keep_receiving()).expect("room")
    });
    // Find units of both runtimes with the same slot and generation.
    let (mut address, mut theirs) = (spawn_number_receiver(&one), spawn_number_receiver(&other));
    while location(address).0 != location(theirs).0 {
        let (behind, runtime) = if location(address).1 < location(theirs).1 {
            (&mut address, &one)
        } else {
            (&mut theirs, &other)
        };
        let id = behind.id();
        on_worker(runtime, 0, move |context| context.cancel(id));
        *behind = spawn_number_receiver(runtime);
    }
    assert_ne!(address.id(), theirs.id());
    for foreign in [address, far] {
        assert_eq!(other.send(foreign, 1), Err(SendError::Ended(1)));
        assert_eq!(other.try_send(foreign, 1), Err(SendError::Ended(1)));
        other.cancel(foreign.id());
        let sent = on_worker(&other, 0, move |context| {
            context.cancel(foreign.id());
            context.send(foreign, 1)
        });
        assert_eq!(sent, Err(SendError::Ended(1)));
        let down = other.spawn_reply(move |context, reply| {
            let watch = context.spawn_receiving(move |context: &mut Context<'_, Down>| {
                context.monitor(foreign.id(), |down| down);
                context.receive_once(|context, down| {
                    reply.send(down.reason);
                    context.end()
                })
            });
            assert!(watch.is_ok());
            context.end()
        });
        assert_eq!(down.expect("it runs").wait_for(TIMEOUT), Ok(Reason::Unknown));
    }
    wait_until(|| (one.alive(), other.alive()) == (2, 1));
}

#[test]
fn a_message_before_the_timeout_cancels_the_timer() {
    let receptor = runtime(1);
    let answer = receptor.spawn_reply(|context, reply| {
        let callback = |context: &mut Context<'_, u32>| {
            let me = context.address();
            context.send(me, 1).expect("it lives");
            context.receive_within(Duration::from_millis(1), move |context, first| {
                context.blocking(
                    || std::thread::sleep(Duration::from_millis(50)),
                    move |context, done| {
                        context.receive_once(move |context, second| {
                            reply.send((first, done, second));
                            context.end()
                        })
                    },
                )
            })
        };
        let address = context.spawn_receiving(callback).expect("room");
        context.after(Duration::from_millis(100), move |context| {
            context.send(address, 2).expect("it lives");
            context.end()
        })
    });
    assert_eq!(answer.expect("it runs").wait_for(TIMEOUT), Ok((Some(1), Ok(()), 2)));
}

#[test]
fn a_unit_cancelled_before_it_arrives_never_runs() {
    let receptor = runtime(1);
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    on_worker(&receptor, 0, move |context| {
        let id = context.handle().try_spawn(move |context| {
            runs.store(true, Ordering::SeqCst);
            context.end()
        });
        context.cancel(id.expect("room"));
    });
    receptor.wait();
    assert!(!ran.load(Ordering::SeqCst));
    // All slots can be reused, including that of the ended unit.
    let sum: u64 = (0..3000_u64)
        .map(|n| {
            let reply = receptor.spawn_reply(move |context, reply| {
                reply.send(n);
                context.end()
            });
            reply.expect("it runs").wait_for(TIMEOUT).expect("answered")
        })
        .sum();
    assert_eq!(sum, 2999 * 1500);
}

/// Spawns another unit that runs this function, and panics.
fn spawn_and_panic(context: &mut Context<'_>) -> Next {
    context.spawn(spawn_and_panic).expect("room");
    panic!("as asked");
}

#[test]
fn repeated_panics_do_not_delay_timers() {
    quiet_panics();
    let receptor = runtime(1);
    let (sender, fired) = mpsc::channel();
    on_worker(&receptor, 0, move |context| {
        let callback = move |context: &mut Context<'_>| {
            sender.send(()).unwrap_or(());
            context.end()
        };
        context.spawn_after(Duration::from_millis(10), callback).expect("room");
    });
    receptor.spawn(spawn_and_panic).expect("it runs");
    fired.recv_timeout(TIMEOUT).expect("its time comes");
    receptor.shut_down();
}

#[test]
fn panics_of_message_destructors_are_contained() {
    quiet_panics();
    let receptor = runtime(1);
    let deaf = |context: &mut Context<'_, Bomb>| context.after(TIMEOUT, |context| context.end());
    // Messages are stashed for a unit that is then cancelled.
    let cancelled = receptor.spawn_receiving(deaf).expect("it runs");
    // Messages are stashed for a unit that panics.
    let panicking = receptor
        .spawn_receiving(|context: &mut Context<'_, Bomb>| {
            context.after(Duration::from_millis(20), |_| panic!("as asked"))
        })
        .expect("it runs");
    for to in [cancelled, panicking] {
        for _ in 0..2 {
            receptor.send(to, Bomb).expect("room");
        }
    }
    let canceller = receptor.spawn_reply(move |context, reply| {
        context.cancel(cancelled.id());
        reply.send(7);
        context.end()
    });
    assert_eq!(canceller.expect("it runs").wait_for(TIMEOUT), Ok(7));
    wait_until(|| receptor.counts().panics == 5);
    // Messages are stashed, queued and in the inbox at shutdown.
    let last = receptor.spawn_receiving(deaf).expect("it runs");
    for _ in 0..3 {
        receptor.send(last, Bomb).expect("room");
    }
    let (begins, begun) = mpsc::channel();
    receptor
        .spawn(move |context| {
            for _ in 0..1000 {
                context.send(last, Bomb).unwrap_or(());
            }
            begins.send(()).unwrap_or(());
            std::thread::sleep(Duration::from_millis(100));
            context.end()
        })
        .expect("it runs");
    begun.recv_timeout(TIMEOUT).expect("it runs");
    for _ in 0..3 {
        receptor.send(last, Bomb).expect("room");
    }
    receptor.shut_down();
}

#[test]
fn units_in_the_inbox_at_shutdown_are_dropped() {
    for with_handle in [false, true] {
        let receptor = Receptor::builder().workers(1).inbox(2048).start().expect("threads");
        let dropped = Arc::new(AtomicU64::new(0));
        let (begins, begun) = mpsc::channel();
        let busy = receptor.spawn(move |context| {
            begins.send(()).unwrap_or(());
            std::thread::sleep(Duration::from_millis(100));
            context.end()
        });
        busy.expect("it runs");
        begun.recv_timeout(TIMEOUT).expect("it runs");
        let promises: Vec<_> = (0..1000)
            .map(|_| {
                let kept = (Guard(Arc::clone(&dropped)), with_handle.then(|| receptor.handle()));
                let reply = receptor.spawn_reply(move |context, reply| {
                    context.after(TIMEOUT, move |context| {
                        let _ = &kept;
                        reply.send(());
                        context.end()
                    })
                });
                reply.expect("it comes in, or not")
            })
            .collect();
        let handle = receptor.handle();
        receptor.shut_down();
        assert_eq!(dropped.load(Ordering::SeqCst), 1000);
        assert!(promises.into_iter().all(|promise| promise.wait() == Err(NoReply::Ended)));
        assert_eq!(handle.spawn(|context| context.end()), Err(SpawnError::ShutDown));
    }
}

#[test]
fn unstarted_work_is_dropped_with_its_unit() {
    quiet_panics();
    let receptor = runtime(1);
    let dropped = Arc::new(AtomicU64::new(0));
    let guard = Guard(Arc::clone(&dropped));
    let bomb = Bomb;
    let callback = move |context: &mut Context<'_>| {
        let work = move || drop((guard, bomb));
        let _ = context.blocking(work, |context, _| context.end());
        context.end()
    };
    receptor.spawn(callback).expect("it runs");
    receptor.wait();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let innocent = receptor.spawn_reply(|context, reply| {
        context.after(Duration::from_millis(1), |context| {
            reply.send(1);
            context.end()
        })
    });
    assert_eq!(innocent.expect("it runs").wait_for(TIMEOUT), Ok(1));
}

#[test]
fn a_panic_payload_that_panics_when_dropped_ends_no_thread() {
    quiet_panics();
    let receptor = Receptor::builder().workers(1).blocking_threads(1).start().expect("threads");
    let first = receptor.spawn_blocking(|| panic_any(Bomb)).expect("it runs");
    assert_eq!(first.wait_for(TIMEOUT), Err::<(), _>(NoReply::Ended));
    assert_eq!(receptor.spawn_blocking(|| 1).expect("it runs").wait_for(TIMEOUT), Ok(1));
    let unit = receptor.spawn_reply(|context, reply| {
        context.blocking(
            || panic_any(Bomb),
            |context, result: Result<(), Reason>| {
                reply.send(result.is_err());
                context.end()
            },
        )
    });
    assert_eq!(unit.expect("it runs").wait_for(TIMEOUT), Ok(true));
    receptor.spawn(|_| panic_any(Bomb)).expect("it runs");
    receptor.wait();
}

#[test]
fn exhausted_memory_is_reported_and_reused_for_other_sizes() {
    let receptor =
        Receptor::builder().workers(1).inbox(16).memory(1 << 20).start().expect("threads");
    let small: Vec<Id> = on_worker(&receptor, 0, |context| {
        let spawn = |_| {
            let word = 1_u64;
            let callback = move |context: &mut Context<'_>| {
                std::hint::black_box(word);
                context.end()
            };
            context.spawn_after(TIMEOUT, callback).ok()
        };
        (0..).map_while(spawn).collect()
    });
    assert!(small.len() > 40_000, "{}", small.len());
    // The reserved slots are left; after those the slab is full.
    let mut spawned =
        (0..1000).map(|_| receptor.spawn(|context| context.after(TIMEOUT, |c| c.end())));
    let first_error = spawned.find_map(Result::err);
    assert_eq!(first_error, Some(SpawnError::NoRoom));
    assert_eq!(receptor.try_spawn(|context| context.end()), Err(SpawnError::NoRoom));
    cancel_all_and_wait(&receptor, small);
    let large = on_worker(&receptor, 0, |context| {
        let words = [1_u64; 5];
        let callback = move |context: &mut Context<'_>| {
            std::hint::black_box(words);
            context.end()
        };
        (0..5000).map_while(|_| context.spawn_after(TIMEOUT, callback).ok()).count()
    });
    assert_eq!(large, 5000);
}

/// Cancels all given units, which needs no reserved slot, and waits until spawning succeeds again.
fn cancel_all_and_wait(receptor: &Handle, small: Vec<Id>) {
    for id in small {
        receptor.cancel(id);
    }
    wait_until(|| receptor.try_spawn(|context| context.end()).is_ok());
}

#[test]
fn a_duplicate_of_a_registered_descriptor_can_be_registered() {
    let receptor = runtime(1);
    let registered = on_worker(&receptor, 0, |context| {
        let (one, _other) = UnixStream::pair().expect("sockets");
        for _ in 0..3 {
            let same = one.try_clone().expect("a descriptor");
            drop(context.register(same)?);
        }
        let first = context.register(one.try_clone()?)?;
        drop(first);
        context.register(one).map(drop)
    });
    registered.expect("each was forgotten");
}

/// Echoes single bytes from a socket until it ends.
fn echo(context: &mut Context<'_>, source: Source<UnixStream>) -> Next {
    let mut byte = [0];
    match context.attempt(&source, Interest::Read, |mut socket| socket.read(&mut byte)) {
        Ok(1..) => {
            source.get().write_all(&byte).expect("room");
            context.when_ready(source, Interest::Read, echo)
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            context.when_ready(source, Interest::Read, echo)
        }
        _ => context.end(),
    }
}

/// Sends the numbers from `from` to 1,999, and waits for room if there is none.
fn feed(context: &mut Context<'_>, to: Address<u32>, from: u32) -> Next {
    for n in from..2000 {
        match context.send(to, n) {
            Ok(()) => {}
            Err(SendError::Full(n)) => {
                return context.when_room(move |context| feed(context, to, n));
            }
            Err(error) => return context.fail(&error.to_string()),
        }
    }
    context.end()
}

#[test]
fn a_spinning_worker_handles_descriptors_and_pending_envelopes() {
    let receptor =
        Receptor::builder().workers(2).inbox(16).spin(10 * TIMEOUT).start().expect("threads");
    let (mut mine, theirs) = UnixStream::pair().expect("sockets");
    mine.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    let begins = move |context: &mut Context<'_>| {
        let source = context.register(theirs).expect("a socket");
        echo(context, source)
    };
    receptor.spawn_on(0, begins).expect("it runs");
    for n in 0..3 {
        mine.write_all(&[n]).expect("room");
        let mut back = [9];
        mine.read_exact(&mut back).expect("it comes back");
        assert_eq!(back, [n]);
    }
    drop(mine);
    // The sender sends more messages than the inbox holds, and waits for room.
    let (sender, done) = mpsc::channel();
    let to: Address<u32> = on_worker(&receptor, 0, move |context| {
        let mut next = 0;
        let callback = move |context: &mut Context<'_, u32>, n: u32| {
            assert_eq!(n, next);
            next += 1;
            if next < 2000 {
                return context.keep_receiving();
            }
            sender.send(()).unwrap_or(());
            context.end()
        };
        context.spawn_handler(callback).expect("room")
    });
    receptor.spawn_on(1, move |context: &mut Context<'_>| feed(context, to, 0)).expect("it runs");
    done.recv_timeout(TIMEOUT).expect("all have come, in order");
}

#[test]
fn a_child_that_was_done_on_another_worker_before_monitoring_is_not_restarted() {
    let receptor = runtime(2);
    let starts = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&starts);
    let (sender, ended) = mpsc::channel();
    on_worker(&receptor, 0, move |context| {
        let start = move |fails: bool| {
            let (counts, sender) = (Arc::clone(&counts), sender.clone());
            move |context: &mut Context<'_, Down>| {
                counts.fetch_add(1, Ordering::SeqCst);
                let handle = context.handle();
                let (sender, ended) = (sender.clone(), Arc::new(AtomicBool::new(false)));
                let ends = Arc::clone(&ended);
                let child = move |context: &mut Context<'_>| {
                    ends.store(true, Ordering::SeqCst);
                    sender.send(fails).unwrap_or(());
                    if fails { context.fail("as asked") } else { context.end() }
                };
                let id = handle.spawn_on(1, child)?.id();
                // The child has run, and is likely to have ended, before this callback returns and
                // the supervisor monitors it.
                while !ended.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                std::thread::sleep(Duration::from_millis(5));
                Ok(id)
            }
        };
        Supervisor::new(Strategy::OneForOne)
            .limit(3, TIMEOUT)
            .child(Restart::Transient, start(false))
            .child(Restart::Transient, start(true))
            .spawn(context)
            .expect("room");
    });
    // One child ends normally; the other fails four times, which exceeds the limit.
    let all: Vec<bool> = (0..5).map(|_| ended.recv_timeout(TIMEOUT).expect("started")).collect();
    assert_eq!(all, [false, true, true, true, true]);
    receptor.wait();
    assert_eq!(starts.load(Ordering::SeqCst), 5);
}

#[test]
fn a_removed_monitor_sends_nothing_on_either_worker() {
    let receptor = runtime(1);
    let told = receptor.spawn_reply(|context, reply| {
        let victim = context.spawn(|context| context.after(TIMEOUT, |c| c.end())).expect("room");
        let watcher = context.spawn_receiving(move |context: &mut Context<'_, Option<Down>>| {
            let mine = context.monitor(victim, Some);
            let other = context.monitor(victim, Some);
            context.demonitor(mine);
            // Another unit removes the second monitor.
            let me = context.address();
            let helper = context.spawn(move |context| {
                context.demonitor(other);
                context.cancel(victim);
                context.send(me, None).expect("it lives");
                context.end()
            });
            assert!(helper.is_ok());
            context.receive_once(move |context, message| {
                reply.send(message.is_none());
                context.end()
            })
        });
        assert!(watcher.is_ok());
        context.end()
    });
    assert_eq!(told.expect("it runs").wait_for(TIMEOUT), Ok(true));
    receptor.wait();
}

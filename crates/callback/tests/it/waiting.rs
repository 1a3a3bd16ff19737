//! Tests that calls in a callback never block its Worker: those that would have to wait return an
//! error or panic. Also tests calls that never block anywhere.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::time::Duration;

use contend_callback::{
    Address, Context, Down, Handle, Id, Next, NoReply, Notify, Reason, Receptor, SendError,
    SpawnError,
};

use crate::support::{Guard, TIMEOUT, on_worker, quiet_panics, runtime, wait_until};

/// Starts a runtime whose inboxes hold two messages, with one thread for blocking work.
fn small_runtime(workers: usize) -> Receptor {
    Receptor::builder().workers(workers).inbox(2).blocking_threads(1).start().expect("threads")
}

/// Spawns a unit on the given Worker that receives numbers. Returns its address and a channel with
/// the numbers received.
fn spawn_receiver(handle: &Handle, worker: usize) -> (Address<u64>, mpsc::Receiver<u64>) {
    let (sender, got) = mpsc::channel();
    let begin = move |context: &mut Context<'_, u64>| {
        context.receive(move |context, number| {
            sender.send(number).expect("the test waits");
            context.keep_receiving()
        })
    };
    (handle.spawn_on(worker, begin).expect("room"), got)
}

/// Fills the inbox of the Worker of `to`, which must not read it during the call. Returns the
/// number of messages sent.
fn fill_inbox(handle: &Handle, to: Address<u64>) -> u64 {
    let is_refused = |&number: &u64| handle.try_send(to, number).is_err();
    (0..1_000).find(is_refused).expect("it is full after two")
}

/// Spawns units until the next Worker has no reserved slot left, and returns their ids.
fn use_up_reserved_slots(handle: &Handle) -> Vec<Id> {
    let mut ids = Vec::new();
    while ids.len() < 1_000 {
        match handle.try_spawn(|context| context.end()) {
            Ok(id) => ids.push(id),
            Err(error) => {
                assert_eq!(error, SpawnError::Full);
                return ids;
            }
        }
    }
    panic!("there are always places")
}

#[test]
fn calls_in_a_callback_do_not_wait_for_their_own_worker() {
    let receptor = small_runtime(1);
    let (to, got) = spawn_receiver(&receptor, 0);
    let (victim, victims) = spawn_receiver(&receptor, 0);
    let handle = receptor.handle();
    let filled = on_worker(&receptor, 0, move |_| {
        use_up_reserved_slots(&handle);
        let end = |context: &mut Context<'_>| context.end();
        assert_eq!(handle.spawn(end), Err(SpawnError::Full));
        assert_eq!(handle.spawn_on(0, end), Err(SpawnError::Full));
        assert_eq!(
            handle.spawn_receiving::<u64, _>(|context| context.end()),
            Err(SpawnError::Full)
        );
        let reply = handle.spawn_reply::<(), _>(|context, _| context.end());
        assert_eq!(reply.err(), Some(SpawnError::Full));
        let filled = fill_inbox(&handle, to);
        assert!(matches!(handle.send(to, 77), Err(SendError::Full(77))));
        handle.cancel(victim.id()); // neither refused nor blocking
        filled
    });
    // No accepted message was lost, and the Worker continues.
    let numbers: Vec<u64> =
        (0..filled).map(|_| got.recv_timeout(TIMEOUT).expect("a number")).collect();
    assert!(numbers.into_iter().eq(0..filled));
    // The victim was cancelled, which dropped its sender.
    assert_eq!(victims.recv_timeout(TIMEOUT), Err(mpsc::RecvTimeoutError::Disconnected));
    receptor.send(to, 5).expect("room comes");
    assert_eq!(got.recv_timeout(TIMEOUT), Ok(5));
}

#[test]
fn two_workers_with_full_inboxes_do_not_deadlock() {
    let receptor = small_runtime(2);
    let both = [0, 1].map(|worker| spawn_receiver(&receptor, worker));
    let addresses = [both[0].0, both[1].0];
    // The two callbacks run at the same time, and each fills the other's inbox.
    let (meet, met) = (Arc::new(std::sync::Barrier::new(2)), mpsc::channel());
    for worker in 0..2 {
        let (handle, meet, met) = (receptor.handle(), Arc::clone(&meet), met.0.clone());
        let body = move |context: &mut Context<'_>| {
            meet.wait();
            let mut sent = 0;
            while handle.send(addresses[1 - worker], sent).is_ok() {
                sent += 1;
            }
            meet.wait(); // no inbox is drained until both are full
            met.send(sent).expect("the test waits");
            context.end()
        };
        receptor.spawn_on(worker, body).expect("room");
    }
    let sent: u64 = (0..2).map(|_| met.1.recv_timeout(TIMEOUT).expect("neither waits")).sum();
    let got = || both.iter().map(|(_, got)| got.try_iter().count() as u64).sum::<u64>();
    let mut all = 0;
    wait_until(|| {
        all += got();
        all == sent
    });
}

#[test]
fn spawn_blocking_in_a_callback_fails_when_the_queue_is_full() {
    let receptor = small_runtime(1);
    let handle = receptor.handle();
    let go = Arc::new(AtomicBool::new(false));
    let begun = on_worker(&receptor, 0, {
        let go = Arc::clone(&go);
        move |_| {
            let mut begun = 0;
            loop {
                let go = Arc::clone(&go);
                let work = move || wait_until(|| go.load(Ordering::SeqCst));
                match handle.spawn_blocking(work) {
                    Ok(_) => begun += 1,
                    Err(error) => {
                        assert_eq!(error, SpawnError::Full);
                        return begun;
                    }
                }
            }
        }
    });
    assert!((2..=3).contains(&begun), "one thread, and two that wait for it: {begun}");
    go.store(true, Ordering::SeqCst);
}

/// Runs `body` in a unit, and returns the reason for which the unit ends.
fn reason_of(receptor: &Receptor, body: impl FnOnce(&mut Context<'_>) + Send + 'static) -> Reason {
    quiet_panics();
    let (sender, reason) = mpsc::channel();
    let watch = move |context: &mut Context<'_, Down>| {
        let unit = context.spawn(move |context| {
            body(context);
            context.end()
        });
        context.monitor(unit.expect("room"), |down| down);
        context.receive_once(move |context, down| {
            sender.send(down.reason).expect("the test waits");
            context.end()
        })
    };
    receptor.spawn_on(0, watch).expect("room");
    reason.recv_timeout(TIMEOUT).expect("its Worker does not hang")
}

#[test]
fn waiting_in_a_callback_panics_and_names_the_call() {
    let receptor = runtime(1);
    let other = runtime(1);
    let never = |handle: &Handle| {
        let wait = |context: &mut Context<'_>, reply: contend_callback::Reply<u8>| {
            context.after(Duration::from_hours(1), move |context| {
                reply.send(1);
                context.end()
            })
        };
        handle.spawn_reply(wait).expect("room")
    };
    for handle in [receptor.handle(), other.handle()] {
        let promise = never(&handle);
        let reason = reason_of(&receptor, move |_| {
            let _ = promise.wait();
        });
        assert!(reason.to_string().contains("Promise::wait was called on a Worker's"), "{reason}");
        let promise = never(&handle);
        let reason = reason_of(&receptor, move |_| {
            let _ = promise.wait_for(TIMEOUT);
        });
        assert!(reason.to_string().contains("Promise::wait_for was called"), "{reason}");
        let reason = reason_of(&receptor, move |_| handle.wait());
        assert!(reason.to_string().contains("Handle::wait was called"), "{reason}");
    }
}

#[test]
fn an_available_answer_can_be_taken_in_a_callback() {
    let receptor = runtime(2);
    let (hold, held) = mpsc::channel::<()>();
    let late = receptor.spawn_blocking(move || {
        let _ = held.recv();
    });
    let late = late.expect("room");
    let (one, two) = (receptor.spawn_blocking(|| 5), receptor.spawn_blocking(|| 6));
    let (one, two) = (one.expect("room"), two.expect("room"));
    let reason = reason_of(&receptor, move |_| {
        assert_eq!(late.wait_for(Duration::ZERO), Err(NoReply::Late));
        wait_until(|| one.wait_for(Duration::ZERO) != Err(NoReply::Late));
        assert_eq!(one.wait(), Err(NoReply::Ended), "it was taken, and there is no other");
        wait_until(|| two.wait_for(Duration::ZERO) == Ok(6));
    });
    drop(hold);
    assert_eq!(reason, Reason::Done);
}

/// Keeps a Worker busy until the returned sender is dropped.
fn occupy_worker(receptor: &Receptor, worker: usize) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (sender, held) = mpsc::channel();
    let body = move |context: &mut Context<'_>| {
        sender.send(()).expect("the test waits");
        let _ = released.recv(); // until the other side is dropped
        context.end()
    };
    receptor.spawn_on(worker, body).expect("room");
    held.recv_timeout(TIMEOUT).expect("it runs");
    release
}

/// Spawns a unit that waits for a notification and then increments `woken`.
fn spawn_waiter(receptor: &Receptor, notify: &Notify, woken: &Arc<AtomicU64>) -> Id {
    let (notify, woken) = (notify.clone(), Arc::clone(woken));
    let begin = move |context: &mut Context<'_>| {
        context.when_notified(&notify, move |context| {
            woken.fetch_add(1, Ordering::SeqCst);
            context.end()
        })
    };
    receptor.spawn(begin).expect("room")
}

#[test]
fn notifications_are_delivered_beyond_the_inbox_capacity() {
    let receptor = small_runtime(1);
    let woken = Arc::new(AtomicU64::new(0));
    let all: Vec<Notify> = (0..50).map(|_| Notify::new()).collect();
    for notify in &all {
        spawn_waiter(&receptor, notify, &woken);
    }
    on_worker(&receptor, 0, |_| ()); // all of them wait now
    let held = occupy_worker(&receptor, 0);
    // The Worker does not read its inbox, which is full after two messages.
    all.iter().for_each(Notify::notify_one);
    drop(held);
    receptor.wait();
    assert_eq!(woken.load(Ordering::SeqCst), 50);
}

#[test]
fn send_unbounded_delivers_beyond_the_inbox_capacity() {
    let receptor = small_runtime(1);
    let (to, got) = spawn_receiver(&receptor, 0);
    on_worker(&receptor, 0, |_| ());
    let held = occupy_worker(&receptor, 0);
    for number in 0..50 {
        receptor.send_unbounded(to, number).expect("never full");
    }
    assert!(matches!(receptor.try_send(to, 50), Err(SendError::Full(50))), "it is handed back");
    drop(held);
    let numbers: Vec<u64> = (0..50).map(|_| got.recv_timeout(TIMEOUT).expect("a number")).collect();
    assert!(numbers.into_iter().eq(0..50));
    let handle = receptor.handle();
    drop(receptor);
    assert!(matches!(handle.send_unbounded(to, 1), Err(SendError::ShutDown(1))));
}

#[test]
fn at_most_one_notification_is_stored_for_the_next_waiter() {
    let receptor = runtime(1);
    let (notify, woken) = (Notify::new(), Arc::new(AtomicU64::new(0)));
    (0..1_000).for_each(|_| notify.notify_one());
    for _ in 0..2 {
        spawn_waiter(&receptor, &notify, &woken);
    }
    wait_until(|| woken.load(Ordering::SeqCst) == 1 && receptor.alive() == 1);
    on_worker(&receptor, 0, |_| ());
    assert_eq!(woken.load(Ordering::SeqCst), 1, "the other one waits");
    notify.notify_one();
    receptor.wait();
    assert_eq!(woken.load(Ordering::SeqCst), 2);
}

#[test]
fn a_notification_passes_on_if_the_woken_unit_ends_before_it_runs() {
    let receptor = runtime(1);
    let (notify, woken) = (Notify::new(), Arc::new(AtomicU64::new(0)));
    let waiters: Vec<Id> = (0..4).map(|_| spawn_waiter(&receptor, &notify, &woken)).collect();
    let body = move |context: &mut Context<'_>| {
        context.cancel(waiters[0]); // this one no longer waits
        notify.notify_one();
        context.cancel(waiters[1]); // this one was woken but has not run yet
        notify
    };
    let notify = on_worker(&receptor, 0, body);
    wait_until(|| receptor.alive() == 1);
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    notify.notify_one();
    receptor.wait();
    assert_eq!(woken.load(Ordering::SeqCst), 2);
}

#[test]
fn a_replaced_wait_does_not_consume_a_notification() {
    let receptor = runtime(1);
    let notify = Notify::new();
    notify.notify_one();
    let (sender, early) = mpsc::channel();
    let begun = std::time::Instant::now();
    let own = notify.clone();
    let changed = move |context: &mut Context<'_>| {
        let _ = context.when_notified(&own, |context| context.fail("it does not wait for that"));
        own.notify_one();
        context.after(Duration::from_millis(30), move |context| {
            sender.send(begun.elapsed()).expect("the test waits");
            context.end()
        })
    };
    receptor.spawn(changed).expect("room");
    assert!(early.recv_timeout(TIMEOUT).expect("its time comes") >= Duration::from_millis(30));
    // The notification is still stored.
    let woken = Arc::new(AtomicU64::new(0));
    spawn_waiter(&receptor, &notify, &woken);
    receptor.wait();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
}

/// Number of notifications that each of three threads sends.
const NOTIFICATIONS_PER_THREAD: u64 = 20_000;

/// The state of a unit that waits for notifications. `noted` is incremented before each
/// notification; the unit reads it after each one that it receives.
struct Counter {
    notify: Notify,
    noted: Arc<AtomicU64>,
    done: mpsc::Sender<u64>,
}

/// Waits for notifications until the unit has seen all increments.
fn count(context: &mut Context<'_>, counter: Counter) -> contend_callback::Next {
    let notify = counter.notify.clone();
    context.when_notified(&notify, move |context| {
        let noted = counter.noted.load(Ordering::SeqCst);
        if noted == 3 * NOTIFICATIONS_PER_THREAD {
            counter.done.send(noted).expect("the test waits");
            return context.end();
        }
        count(context, counter)
    })
}

#[test]
fn no_notification_from_concurrent_threads_is_lost() {
    let receptor = Receptor::builder().workers(2).inbox(2).start().expect("threads");
    let (sender, done) = mpsc::channel();
    let (notify, noted) = (Notify::new(), Arc::new(AtomicU64::new(0)));
    let counter = Counter { notify: notify.clone(), noted: Arc::clone(&noted), done: sender };
    receptor.spawn(move |context| count(context, counter)).expect("room");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..NOTIFICATIONS_PER_THREAD {
                    noted.fetch_add(1, Ordering::SeqCst);
                    notify.notify_one();
                }
            });
        }
    });
    assert_eq!(done.recv_timeout(TIMEOUT), Ok(3 * NOTIFICATIONS_PER_THREAD));
}

#[test]
fn a_waker_can_be_made_of_a_notify() {
    struct Wakes(Notify);
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.notify_one();
        }
    }
    let receptor = small_runtime(1);
    let (notify, woken) = (Notify::new(), Arc::new(AtomicU64::new(0)));
    spawn_waiter(&receptor, &notify, &woken);
    Waker::from(Arc::new(Wakes(notify))).wake();
    receptor.wait();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
}

#[test]
fn a_waiter_for_a_notification_is_dropped_with_its_runtime() {
    let (notify, dropped) = (Notify::new(), Arc::new(AtomicU64::new(0)));
    let first = runtime(1);
    let (own, guard) = (notify.clone(), Guard(Arc::clone(&dropped)));
    let begin = move |context: &mut Context<'_>| {
        context.when_notified(&own, move |context| {
            drop(guard);
            context.end()
        })
    };
    first.spawn(begin).expect("room");
    on_worker(&first, 0, |_| ());
    drop(first);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    // The dropped waiter does not block waiters of another runtime.
    notify.notify_one();
    let (second, woken) = (runtime(1), Arc::new(AtomicU64::new(0)));
    spawn_waiter(&second, &notify, &woken);
    second.wait();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
}

#[test]
fn two_cancellations_before_arrival_do_not_delay_the_end() {
    let receptor = runtime(1);
    let handle = receptor.handle();
    on_worker(&receptor, 0, move |context| {
        let sleep = |context: &mut Context<'_>| {
            context.after(Duration::from_hours(1), |context| context.end())
        };
        // The units arrive after they are cancelled, in more than one turn of the Worker.
        let mut ids: Vec<Id> = Vec::new();
        while let Ok(id) = handle.try_spawn(sleep) {
            ids.push(id);
        }
        assert!(ids.len() > 256, "{} places", ids.len());
        for _ in 0..2 {
            for &id in &ids {
                context.cancel(id);
            }
        }
    });
    receptor.wait();
    assert_eq!(receptor.alive(), 0);
}

#[test]
fn a_new_runtime_has_its_full_capacity() {
    for _ in 0..50 {
        let receptor = Receptor::builder().workers(4).inbox(2).start().expect("threads");
        for _ in 0..8 {
            receptor.try_spawn(|context| context.end()).expect("two places on each Worker");
        }
    }
}

#[test]
fn settings_out_of_range_are_rejected() {
    let refused = |builder: contend_callback::Builder, text: &str| {
        let error = builder.start().expect_err("out of range");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(Receptor::builder().workers(4_000), "workers: 4000 is not from 1 to 255");
    refused(Receptor::builder().workers(256), "workers: 256 is not from 1 to 255");
    refused(Receptor::builder().workers(0), "workers: 0 is not from 1 to 255");
    refused(Receptor::builder().inbox(0), "inbox: 0 is not from 1 to 16777216");
    refused(Receptor::builder().inbox((1 << 24) + 1), "inbox: 16777217 is not");
    refused(Receptor::builder().blocking_threads(0), "blocking threads: 0 is not from 1");
    let receptor = Receptor::builder().workers(255).inbox(1).memory(255 << 20).start();
    assert_eq!(receptor.expect("threads").workers(), 255);
}

/// Requests `left` delays of a millisecond, one after the other, and sends the duration of each to
/// `sender`.
fn tick(context: &mut Context<'_>, left: u32, sender: mpsc::Sender<Duration>) -> Next {
    if left == 0 {
        return context.end();
    }
    let begun = std::time::Instant::now();
    context.after(Duration::from_millis(1), move |context| {
        sender.send(begun.elapsed()).expect("the test waits");
        tick(context, left - 1, sender)
    })
}

#[test]
fn a_delay_requested_by_a_timer_s_callback_starts_at_once_on_a_quiet_worker() {
    let receptor = runtime(1);
    let (sender, took) = mpsc::channel();
    receptor.spawn(move |context| tick(context, 50, sender)).expect("room");
    receptor.wait();
    let took: Vec<Duration> = took.iter().collect();
    assert_eq!(took.len(), 50);
    assert!(took.iter().all(|&time| time >= Duration::from_millis(1)), "{took:?}");
    // A Worker that starts the delay only after its next sleep takes 11 ms each time.
    let shortest = took[1..].iter().min().expect("there are 49");
    assert!(*shortest < Duration::from_millis(9), "{took:?}");
}

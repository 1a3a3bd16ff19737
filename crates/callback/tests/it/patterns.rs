//! Tests of features built on callback threads: replies, supervisors, blocking work, and the hook
//! for slow callbacks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use contend_callback::{
    Context, Down, Id, NoReply, Reason, Receptor, Restart, SpawnError, Strategy, Supervisor,
};

use crate::support::{runtime, wait_until};

#[test]
fn answers_reach_threads_and_callback_threads() {
    let receptor = runtime(2);
    let answer = receptor.spawn_reply(|context, reply| {
        context.after(Duration::from_millis(1), move |context| {
            reply.send(42);
            context.end()
        })
    });
    assert_eq!(answer.expect("it runs").wait(), Ok(42));
    let none = receptor.spawn_reply::<u8, _>(|context, _| context.end()).expect("it runs");
    assert_eq!(none.wait(), Err(NoReply::Ended));
    let (sender, receiver) = mpsc::channel();
    let asks = move |context: &mut Context<'_, (u8, Option<u8>)>| {
        for n in 0..3 {
            let answers = move |context: &mut Context<'_>, reply: contend_callback::Reply<u8>| {
                assert_ne!(n, 2, "two does not answer");
                reply.send(n * 10);
                context.end()
            };
            context.spawn_reply(answers, move |value| (n, value)).expect("room");
        }
        context.receive(move |context, answer| {
            sender.send(answer).expect("somebody waits");
            context.keep_receiving()
        })
    };
    receptor.spawn_receiving(asks).expect("it runs");
    let mut answers: Vec<_> = (0..3).map(|_| receiver.recv().expect("answered")).collect();
    answers.sort_unstable();
    assert_eq!(answers, [(0, Some(0)), (1, Some(10)), (2, None)]);
}

#[test]
fn blocking_work_does_not_delay_other_units() {
    let receptor = Receptor::builder().workers(1).blocking_threads(4).start().expect("threads");
    let (hold, held) = mpsc::channel::<()>();
    let waits = receptor.spawn_reply(move |context, reply| {
        context.blocking(
            move || held.recv().map(|()| 7),
            move |context, result| {
                reply.send(result);
                context.end()
            },
        )
    });
    let waits = waits.expect("it runs");
    // The only Worker runs other units while the job blocks.
    let other = receptor.spawn_reply(|context, reply| {
        reply.send(1);
        context.end()
    });
    assert_eq!(other.expect("it runs").wait(), Ok(1));
    assert_eq!(waits.wait_for(Duration::from_millis(1)), Err(NoReply::Late));
    hold.send(()).expect("it waits");
    assert_eq!(waits.wait(), Ok(Ok(Ok(7))));
    let panics = receptor.spawn_reply(|context, reply| {
        context.blocking(
            || panic!("as asked"),
            move |context, result: Result<(), _>| {
                reply.send(result);
                context.end()
            },
        )
    });
    assert_eq!(panics.expect("it runs").wait(), Ok(Err(Reason::Panicked("as asked".into()))));
    // There are more jobs at a time than threads.
    let give = |n| receptor.spawn_blocking(move || n).expect("it runs");
    let all: Vec<_> = (0..100_u64).map(give).collect();
    let sum: u64 = all.into_iter().map(|one| one.wait().expect("done")).sum();
    assert_eq!(sum, 99 * 50);
    let panics = receptor.spawn_blocking(|| panic!("as asked")).expect("it runs");
    assert_eq!(panics.wait(), Err::<(), _>(NoReply::Ended));
}

#[test]
fn the_queue_of_blocking_work_is_bounded() {
    let receptor =
        Receptor::builder().workers(1).inbox(4).blocking_threads(1).start().expect("threads");
    let (hold, held) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let first = receptor.spawn_blocking(move || {
        begins.send(()).unwrap_or(());
        held.recv().is_ok()
    });
    begun.recv().expect("it begins");
    let waiting: Vec<_> = (0..4).map(|n| receptor.try_spawn_blocking(move || n)).collect();
    assert_eq!(receptor.try_spawn_blocking(|| ()).err(), Some(SpawnError::Full));
    let handle = receptor.handle();
    let patient = std::thread::spawn(move || {
        handle.spawn_blocking(|| 4)?.wait().map_err(|_| SpawnError::Full)
    });
    hold.send(()).expect("it waits");
    assert_eq!(first.expect("it ran").wait(), Ok(true));
    let all = waiting.into_iter().map(|one| one.expect("there was room").wait());
    assert_eq!(all.collect::<Result<Vec<_>, _>>(), Ok(vec![0, 1, 2, 3]));
    assert_eq!(patient.join().expect("it ends"), Ok(4));
    let handle = receptor.handle();
    receptor.shut_down();
    assert_eq!(handle.spawn_blocking(|| ()).err(), Some(SpawnError::ShutDown));
}

#[test]
fn the_hook_for_slow_callbacks_can_end_the_runtime() {
    let place: Arc<Mutex<Option<Receptor>>> = Arc::default();
    let (ended, end) = mpsc::channel();
    let ended = Mutex::new(ended);
    let theirs = Arc::clone(&place);
    let builder = Receptor::builder().workers(1).on_slow(Duration::from_millis(1), move |_| {
        let receptor = theirs.lock().expect("whole").take();
        drop(receptor);
        ended.lock().expect("whole").send(()).unwrap_or(());
    });
    let receptor = builder.start().expect("threads");
    let handle = receptor.handle();
    *place.lock().expect("whole") = Some(receptor);
    let still_there = Arc::clone(&place);
    handle
        .spawn(move |context| {
            while still_there.lock().expect("whole").is_some() {
                std::thread::sleep(Duration::from_millis(1));
            }
            context.end()
        })
        .expect("it runs");
    end.recv_timeout(Duration::from_mins(1)).expect("the runtime has ended");
    assert_eq!(handle.spawn(|context| context.end()).err(), Some(SpawnError::ShutDown));
}

#[test]
fn a_callback_that_occupies_a_worker_is_reported() {
    let (sender, told) = mpsc::channel();
    let sender = Mutex::new(sender);
    let receptor = Receptor::builder()
        .workers(1)
        .on_slow(Duration::from_millis(20), move |slow| {
            sender.lock().expect("whole").send(slow).unwrap_or(());
        })
        .start()
        .expect("threads");
    for _ in 0..1000 {
        receptor.spawn(|context| context.end()).expect("it runs");
    }
    let (go_on, waits) = mpsc::channel::<()>();
    let holds = move |context: &mut Context<'_>| {
        waits.recv().expect("it is released");
        context.end()
    };
    let id = receptor.spawn(holds).expect("it runs");
    // An earlier callback is reported, too, if the Worker was preempted for long in it.
    let mut reports = std::iter::repeat_with(|| told.recv_timeout(Duration::from_mins(1)));
    let slow = reports.find_map(|slow| Some(slow.expect("told")).filter(|slow| slow.id == id));
    let slow = slow.expect("it is reported");
    assert!(slow.time >= Duration::from_millis(20));
    assert!(slow.to_string().contains("has held Worker 0"), "{slow}");
    // The hook is called once.
    assert!(told.recv_timeout(Duration::from_millis(100)).is_err());
    go_on.send(()).expect("it waits");
    receptor.wait();
}

/// A supervisor whose children report their start, and end as requested.
struct Family {
    begun: mpsc::Receiver<(usize, contend_callback::Address<&'static str>)>,
    supervisor: Id,
}

/// Starts a supervisor with a child for each element of `restarts`.
fn family(receptor: &Receptor, mut supervisor: Supervisor, restarts: &[Restart]) -> Family {
    let (sender, begun) = mpsc::channel();
    for (n, &restart) in restarts.iter().enumerate() {
        let sender = sender.clone();
        supervisor = supervisor.child(restart, move |context| {
            let sender = sender.clone();
            let child = context.spawn_receiving(move |context: &mut Context<'_, &'static str>| {
                sender.send((n, context.address())).expect("somebody waits");
                context.receive(|context, order| match order {
                    "fail" => context.fail("as asked"),
                    "panic" => panic!("as asked"),
                    _ => context.end(),
                })
            });
            child.map(contend_callback::Address::id)
        });
    }
    let supervisor = supervisor.start(receptor).expect("it runs");
    Family { begun, supervisor }
}

impl Family {
    fn next(&self) -> (usize, contend_callback::Address<&'static str>) {
        self.begun.recv_timeout(Duration::from_mins(1)).expect("a child begins")
    }

    fn assert_no_start(&self) {
        assert!(self.begun.recv_timeout(Duration::from_millis(50)).is_err());
    }
}

#[test]
fn a_failed_child_is_restarted() {
    let receptor = runtime(2);
    let supervisor = Supervisor::new(Strategy::OneForOne).limit(10, Duration::from_hours(1));
    let all = [Restart::Permanent, Restart::Transient, Restart::Temporary];
    let family = family(&receptor, supervisor, &all);
    let mut children = [family.next().1, family.next().1, family.next().1];
    for order in ["fail", "panic", "end"] {
        receptor.send(children[0], order).expect("it runs");
        let (n, child) = family.next();
        assert_eq!(n, 0);
        children[0] = child;
    }
    receptor.send(children[1], "panic").expect("it runs");
    let (n, child) = family.next();
    assert_eq!(n, 1);
    receptor.send(child, "end").expect("it runs");
    receptor.send(children[2], "panic").expect("it runs");
    family.assert_no_start();
    // Only the supervisor and the permanent child are left.
    wait_until(|| receptor.alive() == 2);
    receptor.cancel(family.supervisor);
    receptor.wait();
}

#[test]
fn the_strategy_decides_which_children_are_restarted() {
    let receptor = runtime(1);
    let others = [(Strategy::OneForAll, vec![0, 1, 2]), (Strategy::RestForOne, vec![1, 2])];
    for (strategy, expected) in others {
        let supervisor = Supervisor::new(strategy).limit(3, Duration::from_hours(1));
        let family = family(&receptor, supervisor, &[Restart::Permanent; 3]);
        let children = [family.next().1, family.next().1, family.next().1];
        receptor.send(children[1], "panic").expect("it runs");
        let again: Vec<usize> = expected.iter().map(|_| family.next().0).collect();
        assert_eq!(again, expected);
        family.assert_no_start();
        wait_until(|| receptor.alive() == 4);
        receptor.cancel(family.supervisor);
        receptor.wait();
    }
}

#[test]
fn a_child_that_exceeds_the_restart_limit_fails_its_supervisor() {
    let receptor = runtime(1);
    let (sender, ended) = mpsc::channel();
    let supervisor = Supervisor::new(Strategy::OneForOne).limit(2, Duration::from_hours(1));
    let family = family(&receptor, supervisor, &[Restart::Permanent, Restart::Permanent]);
    let id = family.supervisor;
    let watcher = move |context: &mut Context<'_, Down>| {
        context.monitor(id, |down| down);
        context.receive(move |context, down| {
            sender.send(down.reason).expect("somebody waits");
            context.end()
        })
    };
    receptor.spawn_receiving(watcher).expect("it runs");
    let mut child = family.next().1;
    family.next();
    for _ in 0..2 {
        receptor.send(child, "fail").expect("it runs");
        child = family.next().1;
    }
    receptor.send(child, "fail").expect("it runs");
    match ended.recv().expect("told") {
        Reason::Failed(words) => assert!(words.starts_with("too many restarts"), "{words}"),
        other => panic!("{other}"),
    }
    family.assert_no_start();
    receptor.wait(); // returns because the other child has been ended, too
}

#[test]
fn a_supervisor_may_be_a_child_of_another() {
    let receptor = runtime(1);
    let begun = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&begun);
    let outer = Supervisor::new(Strategy::OneForOne).limit(2, Duration::from_hours(1)).child(
        Restart::Permanent,
        move |context| {
            let counted = Arc::clone(&counted);
            let inner = Supervisor::new(Strategy::OneForOne).limit(1, Duration::from_hours(1));
            let inner = inner.child(Restart::Permanent, move |context| {
                counted.fetch_add(1, Ordering::Relaxed);
                context.spawn(|context| context.fail("always"))
            });
            inner.spawn(context)
        },
    );
    outer.start(&receptor).expect("it runs");
    receptor.wait();
    // Each inner supervisor starts its child twice, and there are three of them in succession.
    assert_eq!(begun.load(Ordering::Relaxed), 6);
}

#[test]
fn a_child_that_cannot_be_started_ends_the_supervisor() {
    let receptor = runtime(1);
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(Restart::Permanent, |context| {
            context.spawn(|context| {
                context.receive_within(Duration::from_hours(1), |context, _| context.end())
            })
        })
        .child(Restart::Permanent, |_| Err(SpawnError::NoRoom));
    supervisor.start(&receptor).expect("it runs");
    receptor.wait();
}

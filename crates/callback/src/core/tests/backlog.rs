//! Tests stashed messages: each is moved at most twice, is delivered in order, and is dropped once
//! if its unit ends. Messages beyond the capacity are refused.

use super::*;

/// The messages received by a unit.
type Got = Arc<Mutex<Vec<u64>>>;

/// Sends `messages` messages to a unit before it receives the first one; the unit then receives
/// them with `body`. Returns the number of moves into or out of the stash, and the messages
/// received.
fn moved(messages: u64, body: fn(&mut Context<'_, u64>, Got) -> Next) -> (u64, Vec<u64>) {
    let mut machine = Machine::with_stash(1 << 20);
    let got = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&got);
    let mut context = Context::<Never>::new(&mut machine.core);
    let begin = move |context: &mut Context<'_, u64>| {
        context.after(Duration::from_nanos(1), move |context| body(context, to))
    };
    let unit = context.spawn_receiving(begin).expect("room");
    for message in 0..messages {
        context.send(unit, message).expect("it lives");
    }
    for _ in 0..4 * messages {
        machine.turn();
        machine.now.fetch_add(20_000, Ordering::Relaxed);
    }
    assert!(machine.core.stash.is_empty() && machine.core.queue.is_empty());
    let got = std::mem::take(&mut *crate::sync::lock(&got));
    (machine.core.stash.moved, got)
}

fn receive_and_wait(context: &mut Context<'_, u64>, got: Got) -> Next {
    context.receive_once(move |context, message| {
        crate::sync::lock(&got).push(message);
        context.after(Duration::from_nanos(1), move |context| receive_and_wait(context, got))
    })
}

fn receive_all(context: &mut Context<'_, u64>, got: Got) -> Next {
    context.receive(move |context, message| {
        crate::sync::lock(&got).push(message);
        context.keep_receiving()
    })
}

fn receive_or_time_out(context: &mut Context<'_, u64>, got: Got) -> Next {
    context.receive_within(Duration::from_nanos(1), move |context, message| {
        crate::sync::lock(&got).extend(message);
        receive_or_time_out(context, got)
    })
}

#[test]
fn each_stashed_message_is_moved_at_most_twice() {
    for body in [receive_and_wait, receive_all, receive_or_time_out] {
        for messages in [1, 10, 100, 1_000] {
            let (moved, got) = moved(messages, body);
            assert!(got.iter().copied().eq(0..messages), "{messages} messages in order: {got:?}");
            assert!(moved <= 2 * messages, "{moved} moves of {messages} messages");
        }
    }
}

#[test]
fn messages_that_arrive_during_a_backlog_are_delivered_after_it() {
    let mut machine = Machine::with_stash(1 << 20);
    let got = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&got);
    let mut context = Context::<Never>::new(&mut machine.core);
    let begin = move |context: &mut Context<'_, u64>| {
        context.after(Duration::from_nanos(1), move |context| receive_all(context, to))
    };
    let unit = context.spawn_receiving(begin).expect("room");
    (0..10).for_each(|message| context.send(unit, message).expect("it lives"));
    machine.turn();
    machine.now.fetch_add(20_000, Ordering::Relaxed);
    // The unit is receiving now, and is scheduled for the first stashed message; these are queued
    // after that.
    assert!(machine.core.fire(1));
    let mut context = Context::<Never>::new(&mut machine.core);
    (10..20).for_each(|message| context.send(unit, message).expect("it lives"));
    // A message from another Worker is delivered at once if the queue is empty.
    assert!(machine.core.work(1) && !machine.core.stash.is_empty());
    let late = Envelope::message(unit.key, 20_u64, &mut machine.core.pool);
    machine.core.accept(late);
    machine.turn();
    assert!(crate::sync::lock(&got).iter().copied().eq(0..21), "{got:?}");
}

#[test]
fn a_unit_that_times_out_before_a_stashed_message_gets_it_later() {
    let mut machine = Machine::new();
    let got = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&got);
    let mut context = Context::<Never>::new(&mut machine.core);
    let begin = move |context: &mut Context<'_, u64>| {
        context.after(Duration::from_nanos(1), move |context| {
            context.receive_within(Duration::ZERO, move |context, early| {
                crate::sync::lock(&to).extend(early.map(|message| message + 100));
                context.after(Duration::from_nanos(1), move |context| receive_all(context, to))
            })
        })
    };
    let unit = context.spawn_receiving(begin).expect("room");
    (0..2).for_each(|message| context.send(unit, message).expect("it lives"));
    machine.turn();
    // The unit receives and is scheduled, but times out before the delivery.
    for _ in 0..2 {
        machine.now.fetch_add(20_000, Ordering::Relaxed);
        assert!(machine.core.fire(1));
        machine.core.start_delays();
    }
    machine.turn();
    machine.now.fetch_add(20_000, Ordering::Relaxed);
    machine.turn();
    assert_eq!(*crate::sync::lock(&got), [0, 1]);
    assert!(machine.core.stash.is_empty());
}

#[test]
fn a_unit_that_ends_with_a_backlog_drops_each_message_once() {
    let mut machine = Machine::with_stash(1 << 20);
    let dropped = Arc::new(AtomicU64::new(0));
    for taken in 0..4_u64 {
        let mut context = Context::<Never>::new(&mut machine.core);
        let begin = move |context: &mut Context<'_, Guard>| {
            context.after(Duration::from_nanos(1), move |context| {
                let mut left = taken;
                context.receive(move |context, _guard| {
                    if left == 0 {
                        return context.end();
                    }
                    left -= 1;
                    context.keep_receiving()
                })
            })
        };
        let unit = context.spawn_receiving(begin).expect("room");
        for _ in 0..4 {
            context.send(unit, Guard(Arc::clone(&dropped))).unwrap_or_else(|_| panic!("it lives"));
        }
        machine.turn();
        machine.now.fetch_add(20_000, Ordering::Relaxed);
        machine.turn();
        assert_eq!(dropped.load(Ordering::Relaxed), 4 * (taken + 1));
    }
    assert!(machine.core.stash.is_empty());
    assert_eq!(machine.core.units(), 0);
}

#[test]
fn messages_beyond_the_stash_capacity_are_refused_and_counted() {
    let mut machine = Machine::with_stash(3);
    let got = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&got);
    let mut context = Context::<Never>::new(&mut machine.core);
    let begin = move |context: &mut Context<'_, u64>| {
        context.after(Duration::from_nanos(1), move |context| receive_and_wait(context, to))
    };
    let unit = context.spawn_receiving(begin).expect("room");
    (0..5).for_each(|message| context.send(unit, message).expect("it lives"));
    for _ in 0..8 {
        machine.turn();
        machine.now.fetch_add(20_000, Ordering::Relaxed);
    }
    assert_eq!((&*crate::sync::lock(&got), machine.core.counts.refused), (&vec![0, 1, 2], 2));
}

//! Tests programs with more kinds of closures than a Worker supports: this is an error, and no
//! closure is lost, dropped twice or run as another type.

use super::*;

#[test]
fn planning_one_kind_too_many_ends_the_unit_and_drops_each_closure_once() {
    let mut machine = Machine::new();
    let (_, first, _) = machine.unit();
    let (_, next, log) = machine.unit();
    let callback = move |context: &mut Context<'_, u64>, _| {
        let _ = &first;
        let (next, log) = (Guard(Arc::clone(&next.0)), Arc::clone(&log));
        context.receive_once(move |context, message| {
            let _ = &next;
            crate::sync::lock(&log).push(Event::Got(7, message));
            context.end()
        })
    };
    let next_dropped = Arc::clone(&machine.dropped[1]);
    let unit = Context::<Never>::new(&mut machine.core).spawn_handler(callback).expect("room");
    machine.add(unit.key);
    machine.core.slab.limit_kinds(0);
    for message in 0..2 {
        let mut context = Context::<Never>::new(&mut machine.core);
        assert_eq!(context.send(unit, message).is_ok(), message == 0);
        machine.turn();
    }
    let seen = crate::sync::lock(&machine.log).clone();
    assert_eq!(seen, [Event::Ended(0, Reason::Failed(TOO_MANY_KINDS.into()))]);
    // Two guards are dropped: the one moved into the second closure, and the one left in the first.
    assert_eq!((machine.dropped[0].load(Ordering::Relaxed), machine.core.units()), (1, 0));
    assert_eq!(next_dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn spawning_with_one_kind_too_many_is_refused() {
    let mut machine = Machine::new();
    let (_, guard, _) = machine.unit();
    machine.core.slab.limit_kinds(0);
    let mut context = Context::<Never>::new(&mut machine.core);
    let spawned = context.spawn(move |context| {
        let _ = &guard;
        context.end()
    });
    assert_eq!(spawned, Err(crate::error::SpawnError::NoRoom));
    assert_eq!((machine.dropped(), machine.core.units()), (vec![1], 0));
}

#[test]
fn a_unit_that_arrives_with_one_kind_too_many_ends() {
    for large in [false, true] {
        let mut machine = Machine::new();
        let (_, guard, log) = machine.unit();
        let key = machine.core.reserve().expect("room");
        machine.add(key);
        machine.core.slab.limit_kinds(0);
        let run = move |context: &mut Context<'_>| {
            crate::sync::lock(&log).push(Event::Fired(0));
            drop(guard);
            context.end()
        };
        if large {
            let payload = [1_u64; 30];
            machine.core.fill_reserved(
                key,
                crate::handler::once::<Never, _>(move |context| {
                    std::hint::black_box(payload);
                    run(context)
                }),
            );
        } else {
            machine.core.fill_reserved(key, crate::handler::once::<Never, _>(run));
        }
        machine.turn();
        let seen = crate::sync::lock(&machine.log).clone();
        assert_eq!(seen, [Event::Ended(0, Reason::Failed(TOO_MANY_KINDS.into()))]);
        assert_eq!((machine.dropped(), machine.core.units()), (vec![1], 0));
        assert_eq!(machine.core.slab.find(key), None);
    }
}

//! Tests units that are cancelled before they arrive in their reserved slots.

use super::*;

#[test]
fn two_cancellations_before_arrival_are_counted_once() {
    for times in 0..4_usize {
        let mut machine = Machine::new();
        let (_, guard, log) = machine.unit();
        let key = machine.core.reserve().expect("room");
        machine.add(key);
        for time in 0..times {
            assert_eq!(machine.core.cancel(key, &Reason::Cancelled), time == 0);
            assert_eq!((machine.core.units(), machine.core.reserved), (0, 1));
        }
        let handler = crate::handler::once::<Never, _>(move |context| {
            crate::sync::lock(&log).push(Event::Fired(0));
            drop(guard);
            context.end()
        });
        machine.core.fill_reserved(key, handler);
        machine.turn();
        let seen = crate::sync::lock(&machine.log).clone();
        if times == 0 {
            assert_eq!(seen, [Event::Fired(0), Event::Ended(0, Reason::Done)]);
        } else {
            assert_eq!(seen, [Event::Ended(0, Reason::Cancelled)]);
        }
        assert_eq!((machine.dropped(), machine.core.units()), (vec![1], 0));
        assert_eq!((machine.core.reserved, machine.core.filled_reserved), (0, 1));
        assert!(!machine.core.cancel(key, &Reason::Cancelled), "it has ended");
    }
}

#[test]
fn a_withdrawn_slot_is_not_reused_until_its_unit_has_arrived() {
    let mut machine = Machine::new();
    let key = machine.core.reserve().expect("room");
    assert!(machine.core.cancel(key, &Reason::Cancelled));
    let others: Vec<Key> = (0..300).map(|_| machine.core.reserve().expect("room")).collect();
    assert!(others.iter().all(|other| (other.page(), other.slot()) != (key.page(), key.slot())));
    machine.core.fill_reserved(key, crate::handler::once::<Never, _>(|context| context.end()));
    assert_eq!((machine.core.slab.find(key), machine.core.units()), (None, 0));
}

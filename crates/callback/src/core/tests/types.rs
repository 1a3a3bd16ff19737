//! Tests messages of a type that their receiver does not take. They are dropped and counted, and
//! never read as the receiver's type. Safe code cannot create an address that sends such messages.

use super::*;

#[test]
fn a_message_of_another_type_is_not_delivered() {
    for is_stashed in [false, true] {
        let mut machine = Machine::new();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        let mut context = Context::<Never>::new(&mut machine.core);
        let begin = move |context: &mut Context<'_, String>| {
            // A message that arrives before the unit receives is stashed.
            context.after(Duration::from_nanos(1), move |context| {
                context.receive(move |context, text| {
                    crate::sync::lock(&hears).push(text);
                    context.keep_receiving()
                })
            })
        };
        let text = context.spawn_receiving::<String, _>(begin).expect("room");
        let numbers = Address::<[usize; 3]>::new(text.key);
        if !is_stashed {
            machine.turn();
            machine.now.fetch_add(20_000, Ordering::Relaxed);
            machine.turn();
        }
        let mut context = Context::<Never>::new(&mut machine.core);
        context.send(numbers, [0x1000, 0x2000, 0x3000]).expect("it lives");
        context.send(text, "a text".into()).expect("it lives");
        context.send(numbers, [1, 2, 3]).expect("it lives");
        machine.turn();
        machine.now.fetch_add(20_000, Ordering::Relaxed);
        machine.turn();
        assert_eq!(*crate::sync::lock(&heard), ["a text"]);
        assert_eq!((machine.core.counts.undeliverable, machine.core.units()), (2, 1));
        assert!(machine.core.stash.is_empty());
    }
}

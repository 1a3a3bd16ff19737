mod identity;

use std::collections::{HashMap, HashSet};

use super::*;
use crate::context::Context;
use crate::handler::{Handler, HandlerVTable, handler_vtable, once};
use crate::next::Never;

/// A slab of closures, as Workers use it.
type Slab = super::Slab<HandlerVTable>;

/// Returns a vtable for each payload class.
fn vtables() -> [&'static HandlerVTable; 4] {
    fn of<const WORDS: usize>() -> &'static HandlerVTable {
        fn vtable<H: Handler>(_: H) -> &'static HandlerVTable {
            handler_vtable::<H>()
        }
        let words = [0_u64; WORDS];
        vtable(once(move |context: &mut Context<'_, Never>| {
            std::hint::black_box(words);
            context.end()
        }))
    }
    [of::<1>(), of::<2>(), of::<4>(), of::<8>()]
}

fn lease() -> Lease {
    Lease::take(3).expect("a number")
}

fn slab() -> Slab {
    Slab::new(lease(), 64 << 20, 0).expect("address space")
}

#[test]
fn memory_per_unit_is_within_its_limit() {
    for (vtable, (max_bytes, slots)) in
        vtables().into_iter().zip([(18.4, 224), (26.6, 155), (42.7, 96), (76.0, 54)])
    {
        let mut slab = slab();
        for _ in 0..100_000 {
            slab.insert(vtable).expect("room");
        }
        assert_eq!(slab.bytes(), 100_000_usize.div_ceil(slots) * PAGE);
        assert!(slab.bytes() as f64 / 1e5 <= max_bytes, "{} bytes", slab.bytes());
    }
}

#[test]
fn only_keys_of_live_units_resolve() {
    let vtables = vtables();
    let mut slab = slab();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut living, mut all) = (Vec::new(), HashSet::new());
    let mut ended = Vec::new();
    for round in 0..200_000 {
        // The slab alternately grows and shrinks.
        if living.is_empty() || random.u32(0..100) < if round / 20_000 % 2 == 0 { 70 } else { 35 } {
            let (place, key) = slab.insert(vtables[random.usize(0..4)]).expect("room");
            assert!(all.insert(key), "{key:?} had lived before");
            assert_eq!(slab.find(key), Some(place));
            living.push(key);
        } else {
            let key = living.swap_remove(random.usize(0..living.len()));
            let place = slab.find(key).expect("it lives");
            slab.remove(place);
            ended.push(key);
        }
        if let Some(&key) = ended.get(random.usize(0..ended.len().max(1))) {
            assert_eq!(slab.find(key), None, "{key:?} has ended");
        }
        assert_eq!(slab.units(), living.len() as u64);
    }
    let live_units: usize =
        slab.pages().map(|number| slab.page(number).taken_slots().count()).sum();
    assert_eq!(live_units, living.len());
    for key in living {
        slab.remove(slab.find(key).expect("it lives"));
    }
    slab.trim();
    assert_eq!((slab.bytes(), slab.units()), (0, 0));
    assert!(ended.iter().all(|&key| slab.find(key).is_none()));
}

#[test]
fn empty_pages_are_freed_when_units_end_in_random_order() {
    let mut slab = slab();
    let vtable = vtables()[1];
    let mut keys: Vec<Key> = (0..200_000).map(|_| slab.insert(vtable).expect("room").1).collect();
    let full = slab.bytes();
    fastrand::Rng::with_seed(1).shuffle(&mut keys);
    let left = keys.split_off(198_000);
    for key in keys {
        slab.remove(slab.find(key).expect("it lives"));
    }
    slab.trim();
    // A page stays in use if one of its 155 units is in the remaining hundredth, which is so for
    // four out of five pages.
    assert!(slab.bytes() < full * 85 / 100, "{} of {full}", slab.bytes());
    // New units go to the fullest pages, not to fresh ones.
    let now = slab.bytes();
    for _ in 0..100_000 {
        slab.insert(vtable).expect("room");
    }
    assert_eq!(slab.bytes(), now);
    assert!(left.iter().all(|&key| slab.find(key).is_some()));
}

#[test]
fn keys_are_not_reused_when_generations_are_used_up() {
    let mut slab = slab();
    let vtable = vtables()[3];
    let mut all = HashSet::new();
    for _ in 0..54 * 70_000 / 10 {
        let keys: Vec<Key> = (0..10).map(|_| slab.insert(vtable).expect("room").1).collect();
        for key in keys {
            assert!(all.insert((key.page(), key.slot(), key.generation())), "{key:?} came again");
            slab.remove(slab.find(key).expect("it lives"));
        }
    }
    assert!(all.iter().any(|&(page, ..)| page > 1), "the first page is used up");
}

#[test]
fn insert_fails_when_memory_is_used_up() {
    let mut slab = Slab::new(lease(), 16 * PAGE, 0).expect("address space");
    let vtable = vtables()[3];
    let mut inserted = 0;
    while slab.insert(vtable).is_ok() {
        inserted += 1;
    }
    assert_eq!(inserted, 15 * 54);
}

/// Checks that due timers fire in order and on time, and that cancelled ones do not fire.
#[test]
fn due_units_are_returned_in_order() {
    let vtable = vtables()[0];
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut now = random.u32(..);
        let mut slab = Slab::new(lease(), 64 << 20, now).expect("address space");
        let mut waiting: HashMap<Key, (u32, u64)> = HashMap::new();
        let mut order = 0;
        for _ in 0..3000 {
            for _ in 0..random.u32(0..20) {
                let bits = random.u32(0..30);
                let ahead = random.u32(0..1 << bits);
                let (place, key) = slab.insert(vtable).expect("room");
                let tick = now.wrapping_add(ahead);
                slab.set_due(place, tick);
                waiting.insert(key, (if tick == 0 { 1 } else { tick }, order));
                order += 1;
            }
            if let Some(&key) = waiting.keys().next().filter(|_| random.bool()) {
                let place = slab.find(key).expect("it lives");
                match random.u32(0..3) {
                    0 => place.clear_timer(),
                    1 => drop(slab.remove(place)),
                    _ => {
                        let tick = now.wrapping_add(random.u32(1..100));
                        slab.set_due(place, tick);
                        waiting.insert(key, (if tick == 0 { 1 } else { tick }, order));
                        order += 1;
                        continue;
                    }
                }
                waiting.remove(&key);
            }
            let bits = random.u32(0..24);
            now = now.wrapping_add(random.u32(0..1 << bits));
            let mut expected: Vec<(i32, u64, Key)> = Vec::new();
            for (&key, &(tick, order)) in &waiting {
                if !is_before(now, tick) {
                    expected.push((tick.wrapping_sub(now).cast_signed(), order, key));
                }
            }
            expected.sort_unstable();
            let mut due = Vec::new();
            slab.add_due(now, &mut due, usize::MAX);
            due.retain(|due| {
                slab.find(due.key).is_some_and(|place| place.is_due(due.tick, due.turn))
            });
            let found: Vec<Key> = due.iter().map(|due| due.key).collect();
            let expected: Vec<Key> = expected.iter().map(|&(.., key)| key).collect();
            assert_eq!(found, expected);
            for key in found {
                waiting.remove(&key);
                slab.remove(slab.find(key).expect("it lives"));
            }
            // No timer is due before the tick returned by `next_tick`.
            if let Some(next) = slab.next_tick() {
                let earliest = waiting.values().map(|&(tick, _)| tick.wrapping_sub(now)).min();
                assert!(earliest.is_none_or(
                    |ahead| next.wrapping_sub(now).cast_signed() <= ahead.cast_signed()
                ));
            } else {
                assert!(waiting.is_empty());
            }
        }
    }
}

//! Tests that a key, forged or not, resolves only to the live unit that it was issued for: not to
//! an earlier or later unit in its slot, nor to a unit of another slab, live or dropped.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::{Slab, lease, vtables};
use crate::key::{Key, LAST_GENERATION, WorkerNumber};
use crate::lease::Lease;
use crate::slab::PAGE;

/// Number of slabs that exist at the same time.
const SLABS: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    /// Drop a slab, as when its runtime ends, and start another one.
    Restart(usize),
    Insert(usize, usize),
    /// End the live unit with this index, modulo the number of live units.
    Remove(usize),
    Trim(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0..SLABS).prop_map(Step::Restart),
        6 => (0..SLABS, 0..4_usize).prop_map(|(slab, vtable)| Step::Insert(slab, vtable)),
        4 => (0..1_000_usize).prop_map(Step::Remove),
        1 => (0..SLABS).prop_map(Step::Trim),
    ]
}

/// Returns the given key and keys that differ from it in one field, such as those of earlier, later
/// and neighbouring units.
fn forged(key: Key) -> Vec<Key> {
    let (worker_number, page, slot, generation) =
        (key.worker_number(), key.page(), key.slot(), key.generation());
    let mut all = vec![key];
    for other in [generation.wrapping_add(1), generation.wrapping_sub(1), 0, LAST_GENERATION] {
        all.push(Key::new(worker_number, page, slot, other));
    }
    for other in [slot.wrapping_add(1), slot.wrapping_sub(1), 255] {
        all.push(Key::new(worker_number, page, other, generation));
    }
    for other in [page + 1, page - 1, 0, (1 << 24) - 1] {
        all.push(Key::new(worker_number, other, slot, generation));
    }
    for bit in 0..16 {
        all.push(Key::new(
            WorkerNumber::new(worker_number.get() ^ 1 << bit),
            page,
            slot,
            generation,
        ));
    }
    all
}

fn check(steps: &[Step]) {
    let start = || Slab::new(lease(), 1 << 20, 0).expect("address space");
    let mut slabs: Vec<Slab> = (0..SLABS).map(|_| start()).collect();
    let mut living: Vec<(usize, Key)> = Vec::new();
    let mut issued: HashSet<Key> = HashSet::new();
    for step in steps {
        match *step {
            Step::Restart(at) => {
                // Drop the slab first, so that its number is free again before the next one is
                // taken.
                let before = slabs.remove(at);
                drop(before);
                slabs.insert(at, start());
                living.retain(|&(slab, _)| slab != at);
            }
            Step::Insert(at, vtable) => {
                let (_, key) = slabs[at].insert(vtables()[vtable]).expect("room");
                assert!(issued.insert(key), "{key:?} was issued before");
                living.push((at, key));
            }
            Step::Remove(_) if living.is_empty() => {}
            Step::Remove(nth) => {
                let (at, key) = living.swap_remove(nth % living.len());
                let place = slabs[at].find(key).expect("it lives");
                slabs[at].remove(place);
            }
            Step::Trim(at) => slabs[at].trim(),
        }
    }
    let owners: HashMap<Key, usize> = living.iter().map(|&(at, key)| (key, at)).collect();
    for key in issued.into_iter().flat_map(forged) {
        for (at, slab) in slabs.iter().enumerate() {
            let lives = owners.get(&key) == Some(&at);
            assert_eq!(slab.find(key).is_some(), lives, "{key:?} in slab {at}");
        }
    }
}

proptest! {
    #[test]
    fn a_key_resolves_only_to_its_own_unit(steps in prop::collection::vec(step(), 1..150)) {
        check(&steps);
    }

    #[test]
    fn arbitrary_bits_resolve_only_if_they_are_a_live_key(bits in any::<u64>(), units in 0..400_usize) {
        let mut slab = Slab::new(lease(), 1 << 20, 0).expect("address space");
        let keys: HashSet<Key> =
            (0..units).map(|_| slab.insert(vtables()[0]).expect("room").1).collect();
        // Use the original bits, and likely values in each field.
        let key = Key::from_bits(bits);
        let near = Key::new(slab.worker_number, key.page() % 4, key.slot(), key.generation() % 4);
        for key in [key, near] {
            prop_assert_eq!(slab.find(key).is_some(), keys.contains(&key));
        }
    }
}

#[test]
fn a_free_slot_s_generation_matches_no_key() {
    let mut slab = super::slab();
    let (place, key) = slab.insert(vtables()[0]).expect("room");
    let later = |by| Key::new(key.worker_number(), key.page(), key.slot(), key.generation() + by);
    slab.remove(place);
    // The page stays current; its slot has a generation that no unit has.
    assert_eq!((slab.find(key), slab.find(later(1)), slab.find(later(2))), (None, None, None));
    let (place, again) = slab.insert(vtables()[0]).expect("room");
    assert_eq!((again, slab.find(again), slab.find(later(1))), (later(2), Some(place), None));
}

/// Creates a slab of `pages` pages that have reached the generations in `floors`, which is indexed
/// by page number.
fn slab_after(floors: &[u16], pages: usize) -> Slab {
    let mut lease: Lease = lease();
    lease.record(floors.to_vec());
    Slab::new(lease, pages * PAGE, 0).expect("address space")
}

#[test]
fn generations_continue_in_the_next_runtime_until_used_up() {
    let mut slab = slab_after(&[0, LAST_GENERATION, LAST_GENERATION - 2, 5], 16);
    let (place, key) = slab.insert(vtables()[3]).expect("room");
    assert_eq!((key.page(), key.generation()), (2, LAST_GENERATION - 1), "page 1 is used up");
    slab.remove(place);
    assert_eq!(slab.find(key), None);
    let forged = Key::new(key.worker_number(), 2, key.slot(), LAST_GENERATION);
    assert_eq!(slab.find(forged), None, "nobody has the last generation");
    let keys: Vec<Key> = (0..54).map(|_| slab.insert(vtables()[3]).expect("room").1).collect();
    let (last, others) = keys.split_last().expect("54 of them");
    assert!(others.iter().all(|key| (key.page(), key.generation()) == (2, LAST_GENERATION - 1)));
    assert_eq!((last.page(), last.generation()), (3, 7), "the slot that was used up is no more");
    assert_eq!(slab.bytes(), 2 * PAGE, "a page that is used up takes no memory");
}

#[test]
fn insert_fails_if_all_pages_are_worn_out() {
    let mut slab = slab_after(&[LAST_GENERATION; 16], 16);
    assert!(slab.insert(vtables()[0]).is_err());
    assert_eq!((slab.bytes(), slab.units()), (0, 0));
}

#[test]
fn a_dropped_slab_records_the_generations_of_its_pages() {
    let mut slab = slab_after(&[0, 9, 20, 30], 16);
    let (place, _) = slab.insert(vtables()[0]).expect("room");
    slab.remove(place);
    slab.insert(vtables()[0]).expect("room"); // never ends
    let number = slab.worker_number.get();
    drop(slab);
    // Another test may have leased the number in the meantime, and advanced its generations.
    let held: Vec<Lease> = std::iter::from_fn(|| Some(lease()))
        .take(100)
        .scan(false, |found, lease| {
            let before = *found;
            *found |= lease.worker_number().get() == number;
            (!before).then_some(lease)
        })
        .collect();
    let Some(lease) = held.iter().find(|lease| lease.worker_number().get() == number) else {
        return;
    };
    assert!(lease.floor(1) > 10, "page 1 had a unit of generation 10: {}", lease.floor(1));
    assert!(lease.floor(2) >= 20 && lease.floor(3) >= 30, "those that it did not use");
}

//! Compares a core with a simple model: which units ran, in which order, and whether each closure
//! was dropped exactly once.

mod backlog;
mod kinds;
mod reserved;
mod supervising;
mod types;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::{short, tick_after, tick_at};
use crate::context::Context;
use crate::key::{Address, Id};
use crate::next::Never;
use crate::watch::Relation;

/// An observed event of a unit, with the unit's number.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Fired(usize),
    Got(usize, u64),
    TimedOut(usize),
    Ended(usize, Reason),
}

type Log = Arc<Mutex<Vec<Event>>>;

/// A value captured by a closure, which counts its drops.
struct Guard(Arc<AtomicU64>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The message that ends its receiver.
const END: u64 = 0;
/// The message that makes its receiver panic.
const PANIC: u64 = 1;

/// A delay in nanoseconds that exceeds the range of ticks and outlasts every test.
const UNREACHABLE_DELAY_NS: u64 = 1 << 62;

/// A step of a test. Delays are in nanoseconds.
#[derive(Debug, Clone)]
enum Step {
    /// Spawn a unit that ends after the given delay. If the flag is set, it ends by a panic.
    After(u64, bool),
    /// Spawn a unit that receives messages until one ends it.
    Receive,
    /// Spawn a unit that ends if no message arrives within the given delay. After a message, it
    /// continues as `Once` does, with that delay but at most 1 ms.
    ReceiveWithin(u64),
    /// Spawn a unit that receives only after the given delay.
    ReceiveLater(u64),
    /// Spawn a unit that receives one message, and further ones only after the given delay.
    Once(u64),
    /// Send a message to the unit with this index, modulo the number of units.
    Send(usize, u64),
    /// Cancel the unit with this index, modulo the number of units.
    Cancel(usize),
    /// Advance the clock by this time in nanoseconds.
    Advance(u64),
}

/// Generates delays from zero to 8,000 s, in nanoseconds. Longer ones are excluded because late
/// timers beyond the range of ticks may fire out of order.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..100_000_u64,
        0..20_000_000_u64,
        0..3_000_000_000_u64,
        0..8_000_000_000_000_u64,
        prop::sample::select(vec![16_384, 1 << 20, 1 << 26, 1 << 40]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let unit = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    prop_oneof![
        3 => (time(), prop::bool::weighted(0.1)).prop_map(|(after, panic)| Step::After(after, panic)),
        2 => Just(Step::Receive),
        2 => time().prop_map(Step::ReceiveWithin),
        1 => Just(Step::ReceiveWithin(UNREACHABLE_DELAY_NS)),
        2 => time().prop_map(Step::ReceiveLater),
        2 => time().prop_map(Step::Once),
        6 => (unit(), 0..12_u64).prop_map(|(unit, message)| Step::Send(unit, message)),
        1 => unit().prop_map(Step::Cancel),
        4 => time().prop_map(Step::Advance),
    ]
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Asleep { panics: bool },
    Listening,
    Waiting { within: u64 },
    Delayed { stashed: VecDeque<u64> },
    Once { after: u64 },
    Ended,
}

/// The model that a core is compared with.
#[derive(Default)]
struct Model {
    now: u64,
    units: Vec<State>,
    /// The due tick, the position in the order of requests, and the unit number of each timer.
    timers: Vec<(u64, usize, usize)>,
    turns: usize,
    events: Vec<Event>,
}

impl Model {
    fn add(&mut self, state: State, after: Option<u64>) {
        self.units.push(state);
        if let Some(after) = after {
            self.wait(self.units.len() - 1, after);
        }
    }

    fn wait(&mut self, unit: usize, after: u64) {
        let tick = tick_after(self.now + after);
        // The tick value 0 means that there is no timer, so the next value replaces it.
        let tick = if short(tick) == 0 { tick + 1 } else { tick };
        self.timers.push((tick, self.turns, unit));
        self.turns += 1;
    }

    fn end(&mut self, unit: usize, reason: Reason) {
        self.timers.retain(|timer| timer.2 != unit);
        self.units[unit] = State::Ended;
        self.events.push(Event::Ended(unit, reason));
    }

    fn message(&mut self, unit: usize, message: u64) {
        match &mut self.units[unit] {
            State::Ended | State::Asleep { .. } => {}
            State::Delayed { stashed } => stashed.push_back(message),
            State::Listening => {
                self.events.push(Event::Got(unit, message));
                match message {
                    END => self.end(unit, Reason::Done),
                    PANIC => self.end(unit, Reason::panicked("as asked")),
                    _ => {}
                }
            }
            State::Waiting { within } => {
                let after = (*within).min(1_000_000);
                self.events.push(Event::Got(unit, message));
                self.timers.retain(|timer| timer.2 != unit);
                self.units[unit] = State::Once { after };
            }
            State::Once { after } => {
                let after = *after;
                self.events.push(Event::Got(unit, message));
                self.units[unit] = State::Delayed { stashed: VecDeque::new() };
                self.wait(unit, after);
            }
        }
    }

    fn advance(&mut self, time: u64) {
        self.now += time;
        self.timers.sort_unstable();
        let due = self.timers.iter().take_while(|timer| timer.0 <= tick_at(self.now)).count();
        for (_, _, unit) in self.timers.drain(..due).collect::<Vec<_>>() {
            match std::mem::replace(&mut self.units[unit], State::Listening) {
                State::Asleep { panics } => {
                    self.events.push(Event::Fired(unit));
                    let panicked = Reason::panicked("as asked");
                    self.end(unit, if panics { panicked } else { Reason::Done });
                }
                State::Waiting { .. } => {
                    self.events.push(Event::TimedOut(unit));
                    self.end(unit, Reason::Done);
                }
                State::Delayed { stashed } => {
                    self.events.push(Event::Fired(unit));
                    for message in stashed {
                        self.message(unit, message);
                    }
                }
                state => panic!("{state:?} has no timer"),
            }
        }
    }
}

/// The core under test with its manual clock, the log of its units' events, their keys, and the
/// drop counters of their closures.
struct Machine {
    core: Core,
    now: Arc<AtomicU64>,
    log: Log,
    units: Vec<Key>,
    dropped: Vec<Arc<AtomicU64>>,
}

impl Machine {
    fn new() -> Self {
        Self::with_stash(100)
    }

    /// Creates a core that stashes at most `stash_capacity` messages per unit.
    fn with_stash(stash_capacity: usize) -> Self {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Clock::Manual(Arc::clone(&now));
        let lease = Lease::take(0).expect("a number");
        let core = Core::new(lease, 16 << 20, stash_capacity, clock, None).expect("address space");
        let log = Log::default();
        Self { core, now, log, units: Vec::new(), dropped: Vec::new() }
    }

    /// Returns the number of the next unit, a guard for its closure, and the log.
    fn unit(&mut self) -> (usize, Guard, Log) {
        let dropped = Arc::new(AtomicU64::new(0));
        self.dropped.push(Arc::clone(&dropped));
        (self.units.len(), Guard(dropped), Arc::clone(&self.log))
    }

    fn add(&mut self, key: Key) {
        let (unit, log) = (self.units.len(), Arc::clone(&self.log));
        self.units.push(key);
        // The monitor logs the end at once; its envelope does nothing.
        let worker_number = self.core.worker_number;
        let token = self.core.watchers.token(worker_number);
        let to_envelope = Box::new(move |down: crate::reason::Down| {
            crate::sync::lock(&log).push(Event::Ended(unit, down.reason));
            control::control(worker_number, |_| ())
        });
        self.core.relate(
            key,
            token,
            Relation::Monitored { by: Key::new(worker_number, 0, 0, 0), to_envelope },
        );
    }

    fn spawn(&mut self, step: &Step) {
        let (unit, guard, log) = self.unit();
        let mut context = Context::<Never>::new(&mut self.core);
        let note = move |log: &Log, event| crate::sync::lock(log).push(event);
        let receive = move |guard: Guard, log: Log| {
            move |context: &mut Context<'_, u64>, message: u64| {
                let _ = &guard;
                note(&log, Event::Got(unit, message));
                assert!(message != PANIC, "as asked");
                if message == END { context.end() } else { context.keep_receiving() }
            }
        };
        let once = move |after: u64, guard: Guard, log: Log| {
            move |context: &mut Context<'_, u64>, message: u64| {
                note(&log, Event::Got(unit, message));
                context.after(Duration::from_nanos(after), move |context| {
                    note(&log, Event::Fired(unit));
                    context.receive(receive(guard, log))
                })
            }
        };
        let key = match *step {
            Step::After(after, panics) => {
                let callback = move |context: &mut Context<'_>| {
                    let _ = &guard;
                    note(&log, Event::Fired(unit));
                    assert!(!panics, "as asked");
                    context.end()
                };
                context.spawn_after(Duration::from_nanos(after), callback).expect("room").0
            }
            Step::Receive => context.spawn_handler(receive(guard, log)).expect("room").key,
            Step::ReceiveWithin(within) => {
                let callback = move |context: &mut Context<'_, u64>| {
                    context.receive_within(Duration::from_nanos(within), move |context, got| {
                        let timed_out = Event::TimedOut(unit);
                        note(&log, got.map_or(timed_out, |message| Event::Got(unit, message)));
                        if got.is_none() {
                            drop(guard);
                            return context.end();
                        }
                        context.receive_once(once(within.min(1_000_000), guard, log))
                    })
                };
                context.spawn_receiving::<u64, _>(callback).expect("room").key
            }
            Step::ReceiveLater(after) => {
                let callback = move |context: &mut Context<'_, u64>| {
                    context.after(Duration::from_nanos(after), move |context| {
                        note(&log, Event::Fired(unit));
                        context.receive(receive(guard, log))
                    })
                };
                context.spawn_receiving::<u64, _>(callback).expect("room").key
            }
            Step::Once(after) => {
                let callback = move |context: &mut Context<'_, u64>| {
                    context.receive_once(once(after, guard, log))
                };
                context.spawn_receiving::<u64, _>(callback).expect("room").key
            }
            _ => unreachable!("these are spawned"),
        };
        self.add(key);
    }

    /// Runs the core until it has no work, and ends units that panic.
    fn turn(&mut self) {
        loop {
            let core = AssertUnwindSafe(&mut self.core);
            let busy = catch_unwind(|| {
                let core = core;
                let mut busy = core.0.work(1000);
                core.0.start_delays();
                // Messages of one unit are delivered before the next timer.
                busy |= core.0.fire(1);
                busy
            });
            match busy {
                Ok(false) => break,
                Ok(true) => {}
                Err(panic) => self.core.after_panic(panic),
            }
        }
    }

    fn dropped(&self) -> Vec<u64> {
        self.dropped.iter().map(|dropped| dropped.load(Ordering::Relaxed)).collect()
    }
}

fn compare(steps: &[Step]) {
    let (mut model, mut machine) = (Model::default(), Machine::new());
    for (n, step) in steps.iter().enumerate() {
        match *step {
            Step::After(after, panics) => model.add(State::Asleep { panics }, Some(after)),
            Step::Receive => model.add(State::Listening, None),
            Step::ReceiveWithin(within) => model.add(State::Waiting { within }, Some(within)),
            Step::ReceiveLater(after) => {
                model.add(State::Delayed { stashed: VecDeque::new() }, Some(after));
            }
            Step::Once(after) => model.add(State::Once { after }, None),
            Step::Send(..) | Step::Cancel(_) if model.units.is_empty() => continue,
            Step::Send(unit, message) => {
                let unit = unit % model.units.len();
                // Some units never receive messages.
                if !matches!(model.units[unit], State::Asleep { .. }) {
                    let ended = model.units[unit] == State::Ended;
                    let mut context = Context::<Never>::new(&mut machine.core);
                    let sent = context.send(Address::<u64>::new(machine.units[unit]), message);
                    assert_eq!(sent.is_err(), ended, "unit {unit}");
                    model.message(unit, message);
                }
            }
            Step::Cancel(unit) => {
                let unit = unit % model.units.len();
                Context::<Never>::new(&mut machine.core).cancel(Id(machine.units[unit]));
                if model.units[unit] != State::Ended {
                    model.end(unit, Reason::Cancelled);
                }
            }
            Step::Advance(time) => {
                machine.now.fetch_add(time, Ordering::Relaxed);
                model.advance(time);
            }
        }
        if !matches!(step, Step::Send(..) | Step::Cancel(_) | Step::Advance(_)) {
            machine.spawn(step);
            if let Some(Step::Send(..)) = steps.get(n + 1) {
                continue; // the message arrives before the unit runs or its delay starts
            }
        }
        machine.turn();
        model.advance(0);
        assert_eq!(*crate::sync::lock(&machine.log), model.events, "after {step:?}");
        let living = model.units.iter().filter(|state| **state != State::Ended).count();
        assert_eq!(machine.core.units(), living as u64);
        let ended = model.units.iter().map(|state| u64::from(*state == State::Ended));
        assert_eq!(machine.dropped(), ended.collect::<Vec<_>>(), "closures dropped");
    }
    machine.core.clear();
    assert_eq!(machine.dropped(), vec![1; model.units.len()], "closures dropped in the end");
    assert_eq!(machine.core.units(), 0);
}

proptest! {
    #[test]
    fn the_core_matches_a_simple_model(steps in prop::collection::vec(step(), 1..120)) {
        compare(&steps);
    }
}

#[test]
fn timers_beyond_the_tick_range_fire_on_time() {
    let days = 60 * 60 * 24 * 1_000_000_000;
    compare(&[
        Step::After(3 * days, false),
        Step::ReceiveWithin(days),
        Step::Advance(days - 1),
        Step::Advance(16_384),
        Step::Advance(2 * days - 40_000),
        Step::Advance(60_000),
    ]);
}

/// Runs a chain of closures of different sizes in one slot; the last two do not fit and are boxed.
#[test]
fn a_closure_may_be_followed_by_one_of_any_size() {
    let mut machine = Machine::new();
    let (_, guard, log) = machine.unit();
    let key = Context::<Never>::new(&mut machine.core)
        .spawn(move |context| {
            context.after(Duration::ZERO, move |context| {
                let large = [7_u64; 40];
                context.after(Duration::ZERO, move |context| {
                    let (guard, sum) = (guard, large.iter().sum::<u64>());
                    context.after(Duration::ZERO, move |context| {
                        crate::sync::lock(&log).push(Event::Got(0, sum));
                        drop(guard);
                        context.end()
                    })
                })
            })
        })
        .expect("room");
    machine.add(key.0);
    for _ in 0..8 {
        machine.turn();
        machine.now.fetch_add(20_000, Ordering::Relaxed);
    }
    let events = crate::sync::lock(&machine.log).clone();
    assert_eq!(events, [Event::Got(0, 280), Event::Ended(0, Reason::Done)]);
    assert_eq!(machine.dropped(), [1]);
}

/// A value whose destructor counts the drop and panics.
struct Bomb(Arc<AtomicU64>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("dropped");
    }
}

#[test]
fn a_unit_whose_destructor_panics_has_ended() {
    let mut machine = Machine::new();
    let dropped = Arc::new(AtomicU64::new(0));
    // The bomb's closure is replaced, ends, is cancelled, or is dropped with the core.
    for way in 0..4_u64 {
        let bomb = Bomb(Arc::clone(&dropped));
        let (_, guard, _) = machine.unit();
        let mut context = Context::<Never>::new(&mut machine.core);
        let callback = move |context: &mut Context<'_, u64>, message| {
            let _ = (&bomb, &guard);
            if message == 0 { context.receive(|context, _| context.end()) } else { context.end() }
        };
        let unit = context.spawn_handler(callback).expect("room");
        match way {
            0 | 1 => context.send(unit, way).expect("it lives"),
            2 => context.cancel(unit.id()),
            _ => {}
        }
        machine.units.push(unit.key);
        machine.turn();
    }
    assert_eq!((dropped.load(Ordering::Relaxed), machine.core.counts.panics), (3, 3));
    assert_eq!((machine.dropped(), machine.core.units()), (vec![1, 1, 1, 0], 2));
    machine.core.clear();
    assert_eq!((dropped.load(Ordering::Relaxed), machine.dropped()), (4, vec![1; 4]));
}

//! Runs sessions of two partners, main and sub, that alternate turns. Main takes the first turn.

use std::io;
use std::time::{Duration, Instant};

use super::primitives::{self, Mechanism, SleepTiming, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::support::partners::{Link, Observer, Pair, Release, ResourceUsage};

/// A function that does the work of one partner in a turn.
pub type TurnWork<'a> = &'a (dyn Fn() + Sync);

/// The configuration of a session: two partners and the mechanisms between them.
#[derive(Debug, Clone, Copy)]
pub struct Partners {
    /// Kind of the partners (processes or threads), their placement and their timer slack.
    pub pair: Pair,
    /// Mechanisms for `start` (sub has started), `to_sub` (sub's turn), `to_main` (main's turn) and
    /// `end` (sub has finished), in this order.
    pub mechanisms: [&'static Mechanism; 4],
    /// Sleep times of primitives that sleep.
    pub timing: SleepTiming,
    /// Number of unmeasured turns at the start of a session.
    pub warm_up: u64,
}

/// The primitives of one session.
struct SessionPrimitives {
    start: Box<dyn SyncPrimitive>,
    to_sub: Box<dyn SyncPrimitive>,
    to_main: Box<dyn SyncPrimitive>,
    end: Box<dyn SyncPrimitive>,
}

/// The measurements of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionStats {
    /// Wall time from main's first measured turn until main has received `end`, or until sub has
    /// exited if `end` does not wait.
    pub elapsed: Duration,
    /// Resource usage of main and of sub, in this order, in the measured turns.
    pub used: [ResourceUsage; 2],
    /// Number of measured turns in which main's wait had at least one failed poll.
    pub not_ready_turns: u64,
    /// Start of main's first measured turn; `None` until main has finished all turns.
    begun: Option<Instant>,
}

impl Partners {
    /// Runs a session of `turns` measured turns after the warm-up. `work` holds the functions that
    /// do the work of main and of sub in a turn, in this order. Calls `on_turn_time`, if given,
    /// with the time of every measured turn, from main's post until its wait returns.
    ///
    /// # Errors
    /// Returns an error if the mechanisms cannot be combined, a system call fails, or sub exits
    /// before its last turn.
    pub fn run(
        &self,
        turns: u64,
        work: [TurnWork<'_>; 2],
        on_turn_time: Option<&mut dyn FnMut(Duration)>,
    ) -> Result<SessionStats, SubjectError> {
        self.run_observed(turns, work, on_turn_time, &|_| ())
    }

    /// Runs a session as [`Partners::run`] does, and calls `observer` once sub has started.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Partners::run`]: if the mechanisms cannot be
    /// combined, a system call fails, or sub exits before its last turn.
    pub fn run_observed(
        &self,
        turns: u64,
        work: [TurnWork<'_>; 2],
        on_turn_time: Option<&mut dyn FnMut(Duration)>,
        observer: Observer<'_>,
    ) -> Result<SessionStats, SubjectError> {
        if let Some(reason) = conflict(self.mechanisms) {
            return Err(SubjectError::Unexpected(reason));
        }
        let make = |index: usize| (self.mechanisms[index].make)(self.timing);
        let primitives = SessionPrimitives {
            start: make(0)?,
            to_sub: make(1)?,
            to_main: make(2)?,
            end: make(3)?,
        };
        let link = Link::new().context("map shared memory")?;
        // Main registers before sub can post. Sub registers for `to_sub` itself.
        for primitive in [&primitives.start, &primitives.to_main, &primitives.end] {
            primitive.register_waiter().context("register a waiter")?;
        }
        let release = Release {
            main: &|_| primitives.release_main(),
            sub: &|_| {
                let _ = primitives.to_sub.post();
            },
        };
        let turns = [self.warm_up, turns];
        let mut session = self.pair.run(
            &link,
            || run_main(&primitives, turns, work[0], on_turn_time, &link),
            || run_sub(&primitives, turns, work[1], &link),
            release,
            observer,
        )?;
        if let Some(begun) = session.begun.filter(|_| !self.mechanisms[3].waits) {
            session.elapsed = begun.elapsed(); // main has not waited for sub's last turn
        }
        let values = link.values()?;
        session.used[1] = ResourceUsage::from_values(std::array::from_fn(|index| values[index]));
        Ok(session)
    }
}

/// Returns why the given mechanisms cannot be combined, with the names of possible replacements, or
/// `None` if they can. A side that does not wait may post many times before the other side checks,
/// so every post must be counted. If sub waits for signals, main has to wait at `start`, until sub
/// has registered.
pub fn conflict(mechanisms: [&Mechanism; 4]) -> Option<String> {
    let [start, to_sub, to_main, _] = mechanisms;
    if !start.waits && to_sub.name == "signal" {
        return Some(format!(
            "to_sub=signal needs a start that waits, since sub has to register first; start can be {}",
            primitives::waiting_names().join(", ")
        ));
    }
    let directions =
        [("to_sub", to_sub, "to_main", to_main), ("to_main", to_main, "to_sub", to_sub)];
    directions.into_iter().find_map(|(first, waiter, second, poster)| {
        (!waiter.waits && !poster.counts).then(|| {
            let (waiter, poster) = (waiter.name, poster.name);
            format!(
                "{first}={waiter} and {second}={poster} cannot be combined: '{waiter}' does not wait, and \
                 '{poster}' does not count posts; {second} can be {}",
                primitives::counting_names().join(", ")
            )
        })
    })
}

impl SessionPrimitives {
    /// Wakes main from any wait, because sub has exited and will not post again. Main then finds
    /// out whether sub has finished its turns.
    fn release_main(&self) {
        for primitive in [&self.start, &self.to_main, &self.end] {
            primitive.release();
        }
    }
}

const TAKE_TURNS_CONTEXT: &str = "take turns";

fn run_main(
    primitives: &SessionPrimitives,
    [warm_up, turns]: [u64; 2],
    work: TurnWork<'_>,
    on_turn_time: Option<&mut dyn FnMut(Duration)>,
    link: &Link,
) -> Result<SessionStats, SubjectError> {
    primitives.start.wait().context(TAKE_TURNS_CONTEXT)?;
    if link.is_broken() {
        return Err(link.broken());
    }
    let mut session = SessionStats::default();
    let turn = || {
        primitives.to_sub.post().context(TAKE_TURNS_CONTEXT)?;
        let waited = primitives.to_main.wait().context(TAKE_TURNS_CONTEXT)?;
        if link.is_broken() {
            return Err(link.broken());
        }
        Ok(waited)
    };
    for _ in 0..warm_up {
        work();
        turn()?;
    }
    let before = ResourceUsage::so_far();
    let begun = Instant::now();
    let mut ignore = |_| ();
    let timed = on_turn_time.is_some();
    let on_turn_time = on_turn_time.unwrap_or(&mut ignore);
    for _ in 0..turns {
        work();
        let begun = timed.then(Instant::now);
        let WaitOutcome { failed_polls } = turn()?;
        if let Some(begun) = begun {
            on_turn_time(begun.elapsed());
        }
        session.not_ready_turns += u64::from(failed_polls > 0);
    }
    primitives.end.wait().context(TAKE_TURNS_CONTEXT)?;
    session.elapsed = begun.elapsed();
    session.begun = Some(begun);
    session.used[0] = before.since();
    Ok(session)
}

fn run_sub(
    primitives: &SessionPrimitives,
    [warm_up, turns]: [u64; 2],
    work: TurnWork<'_>,
    link: &Link,
) -> io::Result<()> {
    primitives.to_sub.register_waiter()?;
    primitives.start.post()?;
    let mut before = ResourceUsage::so_far();
    for turn in 0..warm_up.saturating_add(turns) {
        if turn == warm_up {
            before = ResourceUsage::so_far();
        }
        primitives.to_sub.wait()?;
        if link.is_broken() {
            return Ok(()); // main reports the error
        }
        work();
        primitives.to_main.post()?;
    }
    link.finish(&before.since().to_values()); // before main is woken
    primitives.end.post()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use contend_sys::Signal;
    use contend_sys::shared::{Line, Shared};

    use super::super::primitives::{TABLE, find};
    use super::*;
    use crate::support::partners::{PartnerKind, Placement, Sub};

    /// Returns the number of turns in a session: `HANDOFF_TURNS` from the environment (a tenth of
    /// it for threads), or `default` if that is not set.
    fn turn_count(kind: PartnerKind, default: u64) -> u64 {
        let from_environment =
            std::env::var("HANDOFF_TURNS").ok().and_then(|text| text.parse().ok());
        from_environment.map_or(default, |turns: u64| {
            if kind == PartnerKind::Threads { turns / 10 } else { turns }
        })
    }

    fn partners(kind: PartnerKind, mechanism: &'static Mechanism) -> Partners {
        let timing = SleepTiming { period: Duration::from_micros(20), tick: Duration::ZERO };
        let semaphore = find("semaphore").expect("it is in the table");
        Partners {
            pair: Pair { kind, placement: Placement::Free, slack: Some(Duration::from_nanos(1)) },
            mechanisms: [semaphore, mechanism, mechanism, semaphore],
            timing,
            warm_up: 0,
        }
    }

    /// Returns the mechanisms whose waits block until there is a post.
    fn waiting() -> impl Iterator<Item = &'static Mechanism> {
        TABLE.iter().filter(|mechanism| mechanism.waits)
    }

    #[test]
    fn turns_alternate_and_none_is_lost() {
        for mechanism in waiting() {
            for kind in [PartnerKind::Processes, PartnerKind::Threads] {
                // A spinning partner loses whole time slices if other programs use the CPU.
                let turns = turn_count(kind, if mechanism.name == "spin" { 100 } else { 2000 });
                let count = Shared::new([const { Line(AtomicU64::new(0)) }; 2]).expect("memory");
                let random = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
                let delay = |n: u64| (0..random(n)).for_each(|_| std::hint::spin_loop());
                let main = || {
                    let turn = count[0].fetch_add(1, Ordering::Relaxed);
                    assert_eq!(count[1].load(Ordering::Relaxed), turn, "sub is behind main");
                    delay(turn);
                };
                let sub = || {
                    let turn = count[1].fetch_add(1, Ordering::Relaxed);
                    if count[0].load(Ordering::Relaxed) != turn + 1 {
                        count[1].store(u64::MAX / 2, Ordering::Relaxed); // main's assertion fails then
                    }
                    delay(!turn);
                };
                let session = partners(kind, mechanism).run(turns, [&main, &sub], None);
                let session = session.unwrap_or_else(|e| panic!("{}: {e}", mechanism.name));
                assert_eq!(count.each_ref().map(|n| n.load(Ordering::Relaxed)), [turns; 2]);
                assert!(session.elapsed > Duration::ZERO);
            }
        }
    }

    #[test]
    fn a_partner_that_is_killed_is_an_error() {
        for mechanism in waiting() {
            let kill = |sub: Sub| {
                let Sub::Process(sub) = sub else { panic!("it is a process") };
                std::thread::sleep(Duration::from_millis(5));
                rustix::process::kill_process(sub, Signal::KILL).expect("it lives");
            };
            let pause = || std::thread::sleep(Duration::from_micros(10));
            let ran = partners(PartnerKind::Processes, mechanism).run_observed(
                u64::MAX,
                [&pause, &pause],
                None,
                &kill,
            );
            let error = ran.expect_err("it was killed").to_string();
            assert!(error.contains("before it was done"), "{}: {error}", mechanism.name);
        }
    }

    #[test]
    fn a_partner_that_cannot_start_ends_the_session() {
        let [signal, pipe] = ["signal", "pipe"].map(|name| find(name).expect("in the table"));
        for kind in [PartnerKind::Processes, PartnerKind::Threads] {
            for cpus in [[0, 999], [999, 0]] {
                for mechanism in [signal, pipe] {
                    let mut partners = partners(kind, mechanism);
                    partners.pair.placement = Placement::On(cpus);
                    partners.mechanisms = [mechanism; 4];
                    let ran = partners.run(10, [&|| (), &|| ()], None);
                    assert!(ran.is_err(), "{kind:?} {cpus:?} {}", mechanism.name);
                }
            }
        }
    }

    #[test]
    fn a_partner_killed_with_a_full_pipe_ends_the_session() {
        let [pipe, none] = ["pipe", "none"].map(|name| find(name).expect("in the table"));
        let kill = |sub: Sub| {
            let Sub::Process(sub) = sub else { panic!("it is a process") };
            std::thread::sleep(Duration::from_millis(100));
            rustix::process::kill_process(sub, Signal::KILL).expect("it lives");
        };
        let mut partners = partners(PartnerKind::Processes, pipe);
        partners.mechanisms[1] = none;
        let slowly = || std::thread::sleep(Duration::from_micros(30));
        let ran = partners.run_observed(u64::MAX, [&slowly, &|| ()], None, &kill);
        assert!(ran.expect_err("it was killed").to_string().contains("before it was done"));
    }

    #[test]
    fn sub_finishes_its_turns_without_being_waited_for() {
        let none = find("none").expect("it is in the table");
        for kind in [PartnerKind::Processes, PartnerKind::Threads] {
            let mut partners = partners(kind, none);
            partners.mechanisms[3] = none;
            let work = || std::thread::sleep(Duration::from_millis(1));
            let session = partners.run(20, [&|| (), &work], None).expect("they end");
            assert!(session.used[1].voluntary_switches >= 20, "{kind:?}: {session:?}");
        }
    }

    #[test]
    fn mechanisms_that_do_not_wait_never_block() {
        let none = find("none").expect("it is in the table");
        let session = partners(PartnerKind::Processes, none).run(100, [&|| (), &|| ()], None);
        assert_eq!(session.expect("they end").not_ready_turns, 0);
        let pause = find("pause").expect("it is in the table");
        let mut partners = partners(PartnerKind::Threads, none);
        partners.mechanisms[2] = pause;
        let session = partners.run(10, [&|| (), &|| ()], None).expect("they end");
        assert!(session.elapsed >= 10 * partners.timing.period);
    }
}

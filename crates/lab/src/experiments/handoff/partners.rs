//! Two partners that hand the turn to each other: main, who begins, and sub.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contend_sys::child;
use contend_sys::process::fork;
use contend_sys::shared::{Line, Shared};
use contend_sys::{Pid, Signal, cpu};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use super::placement::Placement;
use super::ways::{Mechanism, Terms, Waited, Way};
use crate::experiment::{Attempt, SubjectError};

/// What the partners are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Two processes.
    Processes,
    /// Two threads of one process.
    Threads,
}

/// What happens in a turn: main's part, then sub's. Each may take a while, and count something.
pub type Part<'a> = &'a (dyn Fn() + Sync);

/// Two partners, and what they tell each other by.
#[derive(Debug, Clone, Copy)]
pub struct Partners {
    /// What they are.
    pub kind: Kind,
    /// Where they run.
    pub placement: Placement,
    /// By what sub says that it has begun, main that it is sub's turn, sub that it is main's, and sub
    /// that it has ended.
    pub mechanisms: [&'static Mechanism; 4],
    /// What some of them need to be told.
    pub terms: Terms,
    /// How late the kernel may end their sleeps; as late as usual, if nothing is said.
    pub slack: Option<Duration>,
    /// Turns before those that are measured.
    pub warm_up: u64,
}

/// What they are told by, made for one session.
struct Ways {
    start: Box<dyn Way>,
    to_sub: Box<dyn Way>,
    to_main: Box<dyn Way>,
    end: Box<dyn Way>,
}

/// What one of the partners has used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// CPU time.
    pub cpu: Duration,
    /// How often it has waited.
    pub voluntary_switches: u64,
    /// How often it was made to wait.
    pub involuntary_switches: u64,
}

impl Used {
    /// What the calling thread has used so far.
    fn so_far() -> Self {
        let usage = child::thread_usage();
        Self {
            cpu: cpu::own_thread_time(),
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
        }
    }

    /// What it has used since it had used this.
    fn since(self) -> Self {
        let now = Self::so_far();
        Self {
            cpu: now.cpu.saturating_sub(self.cpu),
            voluntary_switches: now.voluntary_switches - self.voluntary_switches,
            involuntary_switches: now.involuntary_switches - self.involuntary_switches,
        }
    }

    /// How often it was switched from.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }
}

/// What a session has taken.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// From main's first turn to sub's end.
    pub elapsed: Duration,
    /// What main and sub have used meanwhile.
    pub used: [Used; 2],
    /// Turns in which main looked in vain.
    pub turns_in_vain: u64,
    /// When main's first turn began.
    begun: Option<Instant>,
}

/// What sub tells at its end, in shared memory: whether it has done all turns, its CPU time in
/// nanoseconds, and its switches, voluntary and not.
type Told = Shared<[Line<AtomicU64>; 4]>;

/// Sub, as others see it.
#[derive(Debug, Clone, Copy)]
pub enum Sub {
    /// A process.
    Process(Pid),
    /// A thread, by the clock of its CPU time.
    Thread(Option<cpu::Clock>),
}

impl Sub {
    /// The clock of its CPU time, if the kernel gives it.
    pub fn clock(self) -> Option<cpu::Clock> {
        match self {
            Self::Process(pid) => cpu::Clock::of_process(pid),
            Self::Thread(clock) => clock,
        }
    }
}

/// Who is told of sub when it has just begun.
pub type Observer<'a> = &'a (dyn Fn(Sub) + Sync);

/// Where and how the two of them run.
#[derive(Debug, Clone, Copy)]
struct Seats {
    cpus: Option<[usize; 2]>,
    slack: Option<NonZeroU64>,
    /// Turns to warm up, and those that count.
    turns: [u64; 2],
}

impl Seats {
    /// Has the calling thread run so, as main (0) or sub (1).
    fn take(&self, who: usize) -> io::Result<()> {
        set_current_timer_slack(self.slack)?;
        self.cpus.map_or(Ok(()), |cpus| cpu::pin(cpus[who]))
    }
}

impl Partners {
    /// Has them take so many turns. `each` is told what each turn took, if it is to be measured.
    ///
    /// # Errors
    /// When the kernel refuses something, or sub ends before its last turn.
    pub fn run(
        &self,
        turns: u64,
        parts: [Part<'_>; 2],
        each: Option<&mut dyn FnMut(Duration)>,
    ) -> Result<Session, SubjectError> {
        self.run_observed(turns, parts, each, &|_| ())
    }

    /// The same; `observer` is told of sub when it has just been created.
    ///
    /// # Errors
    /// As [`Partners::run`].
    pub fn run_observed(
        &self,
        turns: u64,
        parts: [Part<'_>; 2],
        each: Option<&mut dyn FnMut(Duration)>,
        observer: Observer<'_>,
    ) -> Result<Session, SubjectError> {
        self.check()?;
        let make = |of: usize| (self.mechanisms[of].make)(self.terms);
        let ways = Ways { start: make(0)?, to_sub: make(1)?, to_main: make(2)?, end: make(3)? };
        let told = Shared::new([const { Line(AtomicU64::new(0)) }; 4]);
        let told: Told = told.attempt("map shared memory")?;
        let nanoseconds = |slack: Duration| NonZeroU64::new(slack.as_nanos().try_into().ok()?);
        let seats = Seats {
            cpus: self.placement.cpus(),
            slack: self.slack.and_then(nanoseconds),
            turns: [self.warm_up, turns],
        };
        let before = sched_getaffinity(None).attempt("ask for the CPUs")?;
        // Before there is anybody who posts.
        for way in [&ways.start, &ways.to_main, &ways.end] {
            way.attend().attempt("wait for a signal")?;
        }
        let session = match self.kind {
            Kind::Processes => {
                let sub = fork(|| {
                    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                    i32::from(sub(&ways, seats, parts[1], &told).is_err())
                });
                let sub = sub.attempt("create a process")?;
                observer(Sub::Process(sub));
                let session =
                    self.guarded(&ways, sub, &told, || main(&ways, seats, parts[0], each, &told));
                child::reap(sub).attempt("reap a process")?;
                session
            }
            Kind::Threads => std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    observer(Sub::Thread(cpu::Clock::of_this_thread()));
                    let _ended = Release(|| release_main(&ways, &told));
                    sub(&ways, seats, parts[1], &told)
                });
                let release = Release(|| {
                    if becomes(&told, GONE) {
                        let _ = ways.to_sub.post();
                    }
                });
                let session = self.kept_awake(|| main(&ways, seats, parts[0], each, &told));
                if session.is_ok() {
                    std::mem::forget(release); // it has, or will have, all of its turns
                } else {
                    drop(release);
                }
                let other = other.join();
                other.map_err(|_| wrong("the partner has panicked"))?.attempt(TAKE_TURNS)?;
                session
            }),
        };
        restore(&before);
        let mut session = session?;
        if let Some(begun) = session.begun.filter(|_| !self.mechanisms[3].waits) {
            session.elapsed = begun.elapsed(); // sub has ended, which main has not waited for
        }
        session.used[1] = used_by_sub(&told)?;
        Ok(session)
    }

    /// Whether these mechanisms go together: where one side does not wait, it posts many times
    /// before the other side looks, and each time counts.
    fn check(&self) -> Result<(), SubjectError> {
        let [start, to_sub, to_main, _] = self.mechanisms;
        if !start.waits && to_sub.name == "signal" {
            let message =
                "start has to wait where to_sub is a signal: sub has to say first who it is";
            return Err(wrong(message));
        }
        for (one, other) in [(to_sub, to_main), (to_main, to_sub)] {
            if !one.waits && !other.counts {
                let message = format!(
                    "{} and {} do not go together: the one does not wait, and the other does not \
                     count",
                    one.name, other.name
                );
                return Err(SubjectError::Wrong(message));
            }
        }
        Ok(())
    }

    /// Does main's part while somebody looks whether sub lives. If sub ends, main is told whatever
    /// it waits for, and finds out.
    fn guarded(
        &self,
        ways: &Ways,
        sub: Pid,
        told: &Told,
        main: impl FnOnce() -> Result<Session, SubjectError>,
    ) -> Result<Session, SubjectError> {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = child::wait_for_end(sub);
                release_main(ways, told);
            });
            let release = Release(|| {
                let _ = rustix::process::kill_process(sub, Signal::KILL);
            });
            let session = self.kept_awake(main);
            if session.is_ok() {
                std::mem::forget(release); // it ends by itself
            }
            session
        })
    }

    /// Does something while both CPUs are kept awake, if they are to be.
    fn kept_awake(
        &self,
        body: impl FnOnce() -> Result<Session, SubjectError>,
    ) -> Result<Session, SubjectError> {
        let cpus = self.placement.cpus().filter(|_| self.placement == Placement::Awake);
        let cpus = cpus.map_or(Vec::new(), Vec::from);
        let done = AtomicBool::new(false);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _rest = Release(|| done.store(true, Ordering::Relaxed));
            for &cpu in &cpus {
                let (done, tell) = (&done, tell.clone());
                scope.spawn(move || {
                    let bound = cpu::pin(cpu).and_then(|()| cpu::yield_to_all_others());
                    let is_bound = bound.is_ok();
                    let _ = tell.send(bound);
                    while is_bound && !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            for bound in told.iter().take(cpus.len()) {
                bound.attempt("keep a CPU awake")?;
            }
            body()
        })
    }
}

/// Does something when it is dropped, also by a panic: the partner is not to wait for ever.
struct Release<F: Fn()>(F);

impl<F: Fn()> Drop for Release<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

const TAKE_TURNS: &str = "take turns";
const ENDED_EARLY: &str = "the partner has ended before its last turn";

fn wrong(message: &str) -> SubjectError {
    SubjectError::Wrong(message.to_owned())
}

/// Sub has not done all of its turns, …
const BEGUN: u64 = 0;
/// … has done them, …
const DONE: u64 = 1;
/// … or has ended without.
const GONE: u64 = 2;

/// Whether sub was on its way until now.
fn becomes(told: &Told, state: u64) -> bool {
    told[0].compare_exchange(BEGUN, state, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Sub has ended: main is told whatever it waits for, since nobody else does that any more, and finds
/// out if sub has not had all of its turns.
fn release_main(ways: &Ways, told: &Told) {
    becomes(told, GONE);
    for way in [&ways.start, &ways.to_main, &ways.end] {
        way.release();
    }
}

/// The calling thread may run where it might before.
fn restore(cpus: &CpuSet) {
    let _ = sched_setaffinity(None, cpus);
}

fn main(
    ways: &Ways,
    seats: Seats,
    part: Part<'_>,
    each: Option<&mut dyn FnMut(Duration)>,
    told: &Told,
) -> Result<Session, SubjectError> {
    seats.take(0).attempt("bind a process to a CPU")?;
    let [warm_up, turns] = seats.turns;
    ways.start.wait().attempt(TAKE_TURNS)?;
    if told[0].load(Ordering::Acquire) == GONE {
        return Err(wrong(ENDED_EARLY));
    }
    let mut session = Session::default();
    let turn = || {
        ways.to_sub.post().attempt(TAKE_TURNS)?;
        let waited = ways.to_main.wait().attempt(TAKE_TURNS)?;
        if told[0].load(Ordering::Relaxed) == GONE {
            return Err(wrong(ENDED_EARLY));
        }
        Ok(waited)
    };
    for _ in 0..warm_up {
        part();
        turn()?;
    }
    let before = Used::so_far();
    let begun = Instant::now();
    let mut nobody = |_| ();
    let timed = each.is_some();
    let each = each.unwrap_or(&mut nobody);
    for _ in 0..turns {
        part();
        let begun = timed.then(Instant::now);
        let Waited { in_vain } = turn()?;
        if let Some(begun) = begun {
            each(begun.elapsed());
        }
        session.turns_in_vain += u64::from(in_vain > 0);
    }
    ways.end.wait().attempt(TAKE_TURNS)?;
    session.elapsed = begun.elapsed();
    session.begun = Some(begun);
    session.used[0] = before.since();
    Ok(session)
}

/// What sub has told when it has ended.
fn used_by_sub(told: &Told) -> Result<Used, SubjectError> {
    if told[0].load(Ordering::Acquire) != DONE {
        return Err(wrong(ENDED_EARLY));
    }
    let [cpu, voluntary_switches, involuntary_switches] =
        [1, 2, 3].map(|place| told[place].load(Ordering::Relaxed));
    Ok(Used { cpu: Duration::from_nanos(cpu), voluntary_switches, involuntary_switches })
}

fn sub(ways: &Ways, seats: Seats, part: Part<'_>, told: &Told) -> io::Result<()> {
    seats.take(1)?;
    let [warm_up, turns] = seats.turns;
    ways.to_sub.attend()?;
    ways.start.post()?;
    let mut before = Used::so_far();
    for turn in 0..warm_up.saturating_add(turns) {
        if turn == warm_up {
            before = Used::so_far();
        }
        ways.to_sub.wait()?;
        if told[0].load(Ordering::Relaxed) == GONE {
            return Ok(()); // main says why
        }
        part();
        ways.to_main.post()?;
    }
    let used = before.since();
    let cpu = u64::try_from(used.cpu.as_nanos()).unwrap_or(u64::MAX);
    let figures = [cpu, used.voluntary_switches, used.involuntary_switches];
    for (to, figure) in told[1..].iter().zip(figures) {
        to.store(figure, Ordering::Relaxed);
    }
    becomes(told, DONE); // before main goes on
    ways.end.post()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::ways::{TABLE, find};
    use super::*;

    /// Turns in each session here; many more by `HANDOFF_TURNS`, a tenth of them by threads.
    fn turns(kind: Kind, usual: u64) -> u64 {
        let wanted = std::env::var("HANDOFF_TURNS").ok().and_then(|text| text.parse().ok());
        wanted.map_or(usual, |turns: u64| if kind == Kind::Threads { turns / 10 } else { turns })
    }

    fn partners(kind: Kind, mechanism: &'static Mechanism) -> Partners {
        let terms = Terms { period: Duration::from_micros(20), tick: Duration::ZERO };
        let semaphore = find("semaphore").expect("it is in the table");
        Partners {
            kind,
            placement: Placement::Free,
            mechanisms: [semaphore, mechanism, mechanism, semaphore],
            terms,
            slack: Some(Duration::from_nanos(1)),
            warm_up: 0,
        }
    }

    /// Those by which partners wait for each other.
    fn waiting() -> impl Iterator<Item = &'static Mechanism> {
        TABLE.iter().filter(|mechanism| mechanism.waits)
    }

    #[test]
    fn turns_are_taken_in_order_and_none_is_lost() {
        for mechanism in waiting() {
            for kind in [Kind::Processes, Kind::Threads] {
                // One that spins where others want the CPU, too, loses whole time slices.
                let turns = turns(kind, if mechanism.name == "spin" { 100 } else { 2000 });
                let count = Shared::new([const { Line(AtomicU64::new(0)) }; 2]).expect("memory");
                let random = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
                let delay = |n: u64| (0..random(n)).for_each(|_| std::hint::spin_loop());
                let main = || {
                    let turn = count[0].fetch_add(1, Ordering::Relaxed);
                    assert_eq!(count[1].load(Ordering::Relaxed), turn, "sub has had its turns");
                    delay(turn);
                };
                let sub = || {
                    let turn = count[1].fetch_add(1, Ordering::Relaxed);
                    if count[0].load(Ordering::Relaxed) != turn + 1 {
                        count[1].store(u64::MAX / 2, Ordering::Relaxed); // main will notice
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
            let ran = partners(Kind::Processes, mechanism).run_observed(
                u64::MAX,
                [&pause, &pause],
                None,
                &kill,
            );
            let error = ran.expect_err("it was killed").to_string();
            assert!(error.contains("before its last turn"), "{}: {error}", mechanism.name);
        }
    }

    #[test]
    fn one_that_cannot_begin_ends_the_other() {
        let [signal, pipe] = ["signal", "pipe"].map(|name| find(name).expect("in the table"));
        for kind in [Kind::Processes, Kind::Threads] {
            for cpus in [[0, 999], [999, 0]] {
                for mechanism in [signal, pipe] {
                    let ran = Partners {
                        placement: Placement::On(cpus),
                        mechanisms: [mechanism; 4],
                        ..partners(kind, mechanism)
                    }
                    .run(10, [&|| (), &|| ()], None);
                    assert!(ran.is_err(), "{kind:?} {cpus:?} {}", mechanism.name);
                }
            }
        }
    }

    #[test]
    fn one_that_is_killed_in_front_of_a_full_pipe_ends_the_other() {
        let [pipe, none] = ["pipe", "none"].map(|name| find(name).expect("in the table"));
        let kill = |sub: Sub| {
            let Sub::Process(sub) = sub else { panic!("it is a process") };
            std::thread::sleep(Duration::from_millis(100));
            rustix::process::kill_process(sub, Signal::KILL).expect("it lives");
        };
        let mut partners = partners(Kind::Processes, pipe);
        partners.mechanisms[1] = none;
        let slowly = || std::thread::sleep(Duration::from_micros(30));
        let ran = partners.run_observed(u64::MAX, [&slowly, &|| ()], None, &kill);
        assert!(ran.expect_err("it was killed").to_string().contains("before its last turn"));
    }

    #[test]
    fn one_that_is_not_waited_for_has_its_turns_all_the_same() {
        let none = find("none").expect("it is in the table");
        for kind in [Kind::Processes, Kind::Threads] {
            let mut partners = partners(kind, none);
            partners.mechanisms[3] = none;
            let work = || std::thread::sleep(Duration::from_millis(1));
            let session = partners.run(20, [&|| (), &work], None).expect("they end");
            assert!(session.used[1].voluntary_switches >= 20, "{kind:?}: {session:?}");
        }
    }

    #[test]
    fn those_that_do_not_wait_go_on() {
        let none = find("none").expect("it is in the table");
        let session = partners(Kind::Processes, none).run(100, [&|| (), &|| ()], None);
        assert_eq!(session.expect("they end").turns_in_vain, 0);
        let pause = find("pause").expect("it is in the table");
        let mut partners = partners(Kind::Threads, none);
        partners.mechanisms[2] = pause;
        let session = partners.run(10, [&|| (), &|| ()], None).expect("they end");
        assert!(session.elapsed >= 10 * partners.terms.period);
    }
}

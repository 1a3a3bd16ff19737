//! Two partners that exchange messages: main sends, sub receives or answers.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use contend_sys::procfs::Status;
use contend_sys::shared::{Line, Shared};
use contend_sys::signal::Nudge;
use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::gettid;

use super::channels::{ChannelConfig, Endpoint, Mechanism};
use crate::engine::experiment::{Attempt, SubjectError};
use crate::engine::timing::now;
use crate::support::calls::{KINDS, Tally};
use crate::support::pair::link::FIGURES;
use crate::support::pair::used::USED;
use crate::support::pair::{IsThrough, Link, Observer, Pair, Release, Used};

/// Two partners, and what carries their messages.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// What they are, and where.
    pub pair: Pair,
    /// By what they exchange messages.
    pub mechanism: &'static Mechanism,
    /// How long each message is.
    pub bytes: usize,
    /// Messages before those that are measured.
    pub warm_up: u64,
}

/// What one of the partners has done.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartnerStats {
    /// When it was done, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// What it has used for the messages that are measured.
    pub used: Used,
    /// Its system calls for them.
    pub calls: Tally,
    /// The largest resident set of its process so far, in bytes.
    pub peak_rss: u64,
}

/// What an exchange has result.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExchangeResult {
    /// When main began with its first message, in nanoseconds of `CLOCK_MONOTONIC`.
    begun: u64,
    /// From then to the last message received: sub's, or, with answers, main's.
    pub elapsed: Duration,
    /// What main has done, and sub.
    pub stats: [PartnerStats; 2],
    /// What else sub has extra.
    pub extra: [u64; EXTRA_FIGURES],
}

/// Numbers that sub can tell besides what it has done.
pub const EXTRA_FIGURES: usize = 8;
/// What it has done, as numbers.
const STATS_FIGURES: usize = 2 + USED + KINDS;
const _: () = assert!(STATS_FIGURES + EXTRA_FIGURES <= FIGURES, "the link has to hold all of it");

impl PartnerStats {
    /// With what was used since it was this, and these calls.
    pub fn now(before: Used, calls: Tally) -> Self {
        let (at, used) = (now(), before.since());
        // Only then: it takes a while.
        let peak_rss = Status::of(getpid()).map_or(0, |status| status.peak_rss);
        Self { at, used, calls, peak_rss }
    }

    /// As numbers, for the link.
    pub fn to_figures(self) -> [u64; STATS_FIGURES] {
        let mut figures = [0; STATS_FIGURES];
        figures[0] = self.at;
        figures[1] = self.peak_rss;
        figures[2..][..USED].copy_from_slice(&self.used.to_figures());
        figures[2 + USED..].copy_from_slice(&self.calls.figures());
        figures
    }

    /// From what the link brings: what sub has done, and what it has told behind it.
    pub fn split(figures: &[u64; FIGURES]) -> (Self, [u64; EXTRA_FIGURES]) {
        let figure = |from: usize| move |index: usize| figures[from + index];
        let stats = Self {
            at: figures[0],
            peak_rss: figures[1],
            used: Used::from_figures(std::array::from_fn(figure(2))),
            calls: Tally::from_figures(std::array::from_fn(figure(2 + USED))),
        };
        (stats, std::array::from_fn(figure(STATS_FIGURES)))
    }
}

/// How far the partners are with getting ready.
type Gate = Shared<Line<AtomicU64>>;
/// Sub can be sent to, …
const SUB_READY: u64 = 1;
/// … main can be answered, …
const MAIN_READY: u64 = 2;
/// … and sub has had what comes before.
const SUB_WARMED_UP: u64 = 3;

/// What main does with the messages of these numbers: first with those of the warm-up, then with those
/// that are measured.
pub type MainPart<'a> = &'a mut dyn FnMut(&mut dyn Endpoint, Range<u64>) -> io::Result<()>;
/// What sub does with them. What it tells in the end is kept.
pub type SubPart<'a> =
    &'a mut (dyn FnMut(&mut dyn Endpoint, Range<u64>) -> io::Result<[u64; EXTRA_FIGURES]> + Send);

impl Exchange {
    /// Main sends so many messages, sub receives and reads them.
    ///
    /// # Errors
    /// As [`Exchange::run`].
    pub fn one_way(&self, messages: u64) -> Result<ExchangeResult, SubjectError> {
        self.run(
            messages,
            &mut |end, numbers| end.send_all(numbers),
            &mut |end, numbers| end.receive_all(numbers).map(|()| [0; EXTRA_FIGURES]),
            &|_| (),
        )
    }

    /// Main sends so many messages, and waits for the answer to each. `each` is told what each of them
    /// took, if it is to be measured.
    ///
    /// # Errors
    /// As [`Exchange::run`].
    pub fn round_trips(
        &self,
        messages: u64,
        mut each: Option<&mut dyn FnMut(Duration)>,
    ) -> Result<ExchangeResult, SubjectError> {
        let warm_up = self.warm_up;
        let result = self.run(
            messages,
            &mut |end, numbers| match &mut each {
                Some(each) if numbers.start >= warm_up => end.request_each(numbers, each),
                _ => end.request_all(numbers),
            },
            &mut |end, numbers| end.reply_all(numbers).map(|()| [0; EXTRA_FIGURES]),
            &|_| (),
        )?;
        let elapsed = Duration::from_nanos(result.stats[0].at.saturating_sub(result.begun));
        Ok(ExchangeResult { elapsed, ..result })
    }

    /// Has both do their parts. `observer` is told of sub when it has just been created.
    ///
    /// # Errors
    /// When the kernel refuses something, a message does not arrive as it was sent, or one partner ends
    /// before the last one.
    pub fn run(
        &self,
        messages: u64,
        main: MainPart<'_>,
        sub: SubPart<'_>,
        observer: Observer<'_>,
    ) -> Result<ExchangeResult, SubjectError> {
        let link = Arc::new(Link::new().attempt("map shared memory")?);
        let config = ChannelConfig { bytes: self.bytes, link: Arc::clone(&link) };
        let ends = (self.mechanism.make)(config);
        let [main_end, sub_end] = ends.attempt(&format!("make a {}", self.mechanism.name))?;
        let gate = Shared::new(Line(AtomicU64::new(0))).attempt("map shared memory")?;
        let threads = BlockedThreads::new().attempt("prepare a signal")?;
        let phases = [0..self.warm_up, self.warm_up..self.warm_up + messages];
        let ran = self.pair.run(
            &link,
            || {
                threads.register(0);
                let part = Participant { end: main_end, gate: &gate, link: &link, phases: &phases };
                part.main(main).attempt("exchange messages")
            },
            || {
                threads.register(1);
                let part = Participant { end: sub_end, gate: &gate, link: &link, phases: &phases };
                part.sub(sub)
            },
            Release {
                main: &|is_through| threads.interrupt_wait(0, &link, is_through),
                sub: &|is_through| threads.interrupt_wait(1, &link, is_through),
            },
            observer,
        );
        let (begun, main_stats, _end) = match ran {
            Ok(main) => main,
            Err(error) if link.is_broken() && is_disconnect(&error) => return Err(link.broken()),
            Err(error) => return Err(error),
        };
        let (sub_stats, extra) = PartnerStats::split(&link.figures()?);
        let stats = [main_stats, sub_stats];
        let elapsed = Duration::from_nanos(stats[1].at.saturating_sub(begun));
        Ok(ExchangeResult { begun, elapsed, stats, extra })
    }
}

/// Whether it only says that the other one has gone.
fn is_disconnect(error: &SubjectError) -> bool {
    let SubjectError::Refused { source, .. } = error else { return false };
    let kinds = [
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionRefused,
    ];
    kinds.contains(&source.kind()) || source.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// What a partner has when it begins.
struct Participant<'a> {
    end: Box<dyn Endpoint>,
    gate: &'a Gate,
    link: &'a Link,
    /// The numbers of the warm-up, and of what is measured.
    phases: &'a [Range<u64>; 2],
}

impl Participant<'_> {
    /// When it began with what is measured, and what it has done; and its end, which others may still need.
    fn main(mut self, part: MainPart<'_>) -> io::Result<(u64, PartnerStats, Box<dyn Endpoint>)> {
        self.wait(SUB_READY)?;
        self.end.bind_to_thread()?;
        self.gate.store(MAIN_READY, Ordering::Release);
        let [warm_up, measured] = self.phases.clone();
        part(&mut *self.end, warm_up)?;
        self.wait(SUB_WARMED_UP)?;
        let before = (Used::so_far(), self.end.calls());
        let begun = now();
        part(&mut *self.end, measured)?;
        Ok((begun, self.stats_since(&before), self.end))
    }

    fn sub(mut self, part: SubPart<'_>) -> io::Result<()> {
        self.end.bind_to_thread()?;
        self.gate.store(SUB_READY, Ordering::Release);
        self.wait(MAIN_READY)?;
        let [warm_up, measured] = self.phases.clone();
        part(&mut *self.end, warm_up)?;
        let before = (Used::so_far(), self.end.calls());
        self.gate.store(SUB_WARMED_UP, Ordering::Release);
        let extra = part(&mut *self.end, measured)?;
        let stats = self.stats_since(&before);
        self.link.finish(&[stats.to_figures().as_slice(), &extra].concat());
        Ok(())
    }

    fn stats_since(&self, before: &(Used, Tally)) -> PartnerStats {
        PartnerStats::now(before.0, self.end.calls().since(&before.1))
    }

    /// BlockedThreads until both are so far.
    fn wait(&self, state: u64) -> io::Result<()> {
        const YIELDS_BEFORE_SLEEP: u32 = 1000;
        let mut yields = 0;
        while self.gate.load(Ordering::Acquire) < state {
            if self.link.is_broken() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            yields += 1;
            if yields < YIELDS_BEFORE_SLEEP {
                rustix::thread::sched_yield();
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        Ok(())
    }
}

/// The threads of both, as far as they are in this process, and how what they wait for in the kernel is
/// ended: by signals, until they have noticed.
struct BlockedThreads {
    nudge: Nudge,
    threads: [AtomicU32; 2],
}

impl BlockedThreads {
    fn new() -> io::Result<Self> {
        Ok(Self { nudge: Nudge::prepare()?, threads: Default::default() })
    }

    /// The calling thread is main (0) or sub (1).
    fn register(&self, who: usize) {
        let thread = gettid().as_raw_nonzero().get().unsigned_abs();
        self.threads[who].store(thread, Ordering::Release);
    }

    /// Endpoints what it waits for, if the other one has gone too early.
    fn interrupt_wait(&self, who: usize, link: &Link, is_through: IsThrough<'_>) {
        while link.is_broken() && !is_through() {
            match self.threads[who].load(Ordering::Acquire) {
                0 => {} // it has not begun
                thread => self.nudge.end_wait(thread),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

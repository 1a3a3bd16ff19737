//! An exchange of messages between two partners: main sends messages, and sub receives them or
//! replies to them.

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
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::engine::timing::now;
use crate::support::partners::link::MAX_VALUES;
use crate::support::partners::usage::USAGE_VALUES;
use crate::support::partners::{HasFinished, Link, Observer, Pair, Release, ResourceUsage};
use crate::support::syscalls::{CALL_COUNT, Tally};

/// Two partners and the mechanism that carries their messages. If the partners are processes, the
/// process that runs the exchange must have a single thread.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    /// Kind, placement and timer slack of the partners.
    pub pair: Pair,
    /// Mechanism that creates the channel between the partners.
    pub mechanism: &'static Mechanism,
    /// Length of each message in bytes, from 1 to the maximum of the mechanism.
    pub bytes: usize,
    /// Number of warm-up messages before the measured ones.
    pub warm_up: u64,
}

/// End time of a partner, and the resources that it used for the measured messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartnerStats {
    /// Time at which the partner finished its last message, in nanoseconds of `CLOCK_MONOTONIC`.
    pub end_ns: u64,
    /// CPU time, context switches and page faults of the partner's thread.
    pub used: ResourceUsage,
    /// System calls that the partner's endpoint made for the measured messages, by name.
    pub calls: Tally,
    /// Peak resident set size of the partner's process after the measured messages, in bytes; 0 if
    /// unknown.
    pub peak_rss: u64,
}

/// The measurements of an exchange, without its warm-up messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExchangeResult {
    /// Time at which main started its first measured message, in nanoseconds of `CLOCK_MONOTONIC`.
    start_ns: u64,
    /// Time from `start_ns` until sub finished its last message or, if the exchange was run by
    /// [`Exchange::round_trips`], until main received the last reply.
    pub elapsed: Duration,
    /// End time and resource usage of main, then of sub.
    pub stats: [PartnerStats; 2],
    /// Values that sub's role returned for the measured messages.
    pub extra: [u64; EXTRA_VALUES],
}

/// Number of values that sub's role returns, which sub reports in addition to its [`PartnerStats`].
pub const EXTRA_VALUES: usize = 8;
/// Number of values that encode a [`PartnerStats`] on the link.
const STATS_VALUES: usize = 2 + USAGE_VALUES + CALL_COUNT;
const _: () = assert!(STATS_VALUES + EXTRA_VALUES <= MAX_VALUES, "the link must hold all values");

impl PartnerStats {
    /// Returns the statistics of the calling thread since it read `before`, with the given system
    /// calls.
    pub fn now(before: ResourceUsage, calls: Tally) -> Self {
        let (end_ns, used) = (now(), before.since());
        // Read last, because reading the status takes several microseconds.
        let peak_rss = Status::of(getpid()).map_or(0, |status| status.peak_rss);
        Self { end_ns, used, calls, peak_rss }
    }

    /// Encodes the statistics as values for the link.
    pub fn to_values(self) -> [u64; STATS_VALUES] {
        let mut values = [0; STATS_VALUES];
        values[0] = self.end_ns;
        values[1] = self.peak_rss;
        values[2..][..USAGE_VALUES].copy_from_slice(&self.used.to_values());
        values[2 + USAGE_VALUES..].copy_from_slice(&self.calls.counts());
        values
    }

    /// Decodes the values that sub sent over the link: its statistics, as encoded by
    /// [`Self::to_values`], then the values that its role returned.
    pub fn decode(values: &[u64; MAX_VALUES]) -> (Self, [u64; EXTRA_VALUES]) {
        let value_after = |from: usize| move |index: usize| values[from + index];
        let stats = Self {
            end_ns: values[0],
            peak_rss: values[1],
            used: ResourceUsage::from_values(std::array::from_fn(value_after(2))),
            calls: Tally::from_counts(std::array::from_fn(value_after(2 + USAGE_VALUES))),
        };
        (stats, std::array::from_fn(value_after(STATS_VALUES)))
    }
}

/// Progress of both partners towards the measured messages: 0, then [`SUB_READY`], [`MAIN_READY`]
/// and [`SUB_WARMED_UP`].
type Gate = Shared<Line<AtomicU64>>;
/// State of the gate: sub has bound its endpoint to its thread.
const SUB_READY: u64 = 1;
/// State of the gate: main has bound its endpoint to its thread as well.
const MAIN_READY: u64 = 2;
/// State of the gate: sub has finished the warm-up messages and read its usage counters.
const SUB_WARMED_UP: u64 = 3;

/// Main's side of an exchange: a function that is called twice, first with the numbers of the
/// warm-up messages (perhaps none), then with those of the measured messages.
pub type MainRole<'a> = &'a mut dyn FnMut(&mut dyn Endpoint, Range<u64>) -> io::Result<()>;
/// Sub's side of an exchange: a function that is called with the same numbers as [`MainRole`]. The
/// values that it returns for the measured messages are reported to main.
pub type SubRole<'a> =
    &'a mut (dyn FnMut(&mut dyn Endpoint, Range<u64>) -> io::Result<[u64; EXTRA_VALUES]> + Send);

impl Exchange {
    /// Runs an exchange in which main sends messages, and sub receives and checks them.
    ///
    /// # Errors
    /// See [`Exchange::run`].
    pub fn one_way(&self, messages: u64) -> Result<ExchangeResult, SubjectError> {
        self.run(
            messages,
            &mut |end, numbers| end.send_all(numbers),
            &mut |end, numbers| end.receive_all(numbers).map(|()| [0; EXTRA_VALUES]),
            &|_| (),
        )
    }

    /// Runs an exchange in which main sends messages, waits for the reply to each, and checks it.
    /// If `on_round_trip` is given, it receives the time of each measured round trip.
    ///
    /// # Errors
    /// See [`Exchange::run`].
    pub fn round_trips(
        &self,
        messages: u64,
        mut on_round_trip: Option<&mut dyn FnMut(Duration)>,
    ) -> Result<ExchangeResult, SubjectError> {
        let warm_up = self.warm_up;
        let result = self.run(
            messages,
            &mut |end, numbers| match &mut on_round_trip {
                Some(on_round_trip) if numbers.start >= warm_up => {
                    end.request_each(numbers, on_round_trip)
                }
                _ => end.request_all(numbers),
            },
            &mut |end, numbers| end.reply_all(numbers).map(|()| [0; EXTRA_VALUES]),
            &|_| (),
        )?;
        let elapsed = Duration::from_nanos(result.stats[0].end_ns.saturating_sub(result.start_ns));
        Ok(ExchangeResult { elapsed, ..result })
    }

    /// Runs both sides with the warm-up messages and `messages` measured ones, and calls `observer`
    /// once sub has been created.
    ///
    /// # Errors
    /// Returns an error in these cases:
    /// - A system call fails.
    /// - A side fails, for example because a message arrives damaged or out of order.
    /// - A partner exits early.
    pub fn run(
        &self,
        messages: u64,
        main: MainRole<'_>,
        sub: SubRole<'_>,
        observer: Observer<'_>,
    ) -> Result<ExchangeResult, SubjectError> {
        let link = Arc::new(Link::new().context("map shared memory")?);
        let config = ChannelConfig { bytes: self.bytes, link: Arc::clone(&link) };
        let ends = (self.mechanism.make)(config);
        let [main_end, sub_end] = ends.context(&format!("make a {}", self.mechanism.name))?;
        let gate = Shared::new(Line(AtomicU64::new(0))).context("map shared memory")?;
        let threads = BlockedThreads::new().context("prepare a signal")?;
        let phases = [0..self.warm_up, self.warm_up..self.warm_up + messages];
        let ran = self.pair.run(
            &link,
            || {
                threads.register(0);
                let participant =
                    Participant { end: main_end, gate: &gate, link: &link, phases: &phases };
                participant.run_main(main).context("exchange messages")
            },
            || {
                threads.register(1);
                let participant =
                    Participant { end: sub_end, gate: &gate, link: &link, phases: &phases };
                participant.run_sub(sub)
            },
            Release {
                main: &|has_finished| threads.interrupt_wait(0, &link, has_finished),
                sub: &|has_finished| threads.interrupt_wait(1, &link, has_finished),
            },
            observer,
        );
        let (start_ns, main_stats, _end) = match ran {
            Ok(main) => main,
            Err(error) if link.is_broken() && is_disconnect(&error) => return Err(link.broken()),
            Err(error) => return Err(error),
        };
        let (sub_stats, extra) = PartnerStats::decode(&link.values()?);
        let stats = [main_stats, sub_stats];
        let elapsed = Duration::from_nanos(stats[1].end_ns.saturating_sub(start_ns));
        Ok(ExchangeResult { start_ns, elapsed, stats, extra })
    }
}

/// Returns whether the error is one that a partner gets when the other partner exits.
fn is_disconnect(error: &SubjectError) -> bool {
    let SubjectError::Syscall { source, .. } = error else { return false };
    let kinds = [
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionRefused,
    ];
    kinds.contains(&source.kind()) || source.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// One partner's state during an exchange.
struct Participant<'a> {
    end: Box<dyn Endpoint>,
    gate: &'a Gate,
    link: &'a Link,
    /// Ranges of message numbers: those of the warm-up, then the measured ones.
    phases: &'a [Range<u64>; 2],
}

impl Participant<'_> {
    /// Runs main's side. Returns the start time of the measured messages in nanoseconds of
    /// `CLOCK_MONOTONIC`, main's statistics, and main's endpoint, which the caller must keep until
    /// sub's side has ended.
    fn run_main(
        mut self,
        role: MainRole<'_>,
    ) -> io::Result<(u64, PartnerStats, Box<dyn Endpoint>)> {
        self.wait(SUB_READY)?;
        self.end.bind_to_thread()?;
        self.gate.store(MAIN_READY, Ordering::Release);
        let [warm_up, measured] = self.phases.clone();
        role(&mut *self.end, warm_up)?;
        self.wait(SUB_WARMED_UP)?;
        let before = (ResourceUsage::so_far(), self.end.calls());
        let start_ns = now();
        role(&mut *self.end, measured)?;
        Ok((start_ns, self.stats_since(&before), self.end))
    }

    fn run_sub(mut self, role: SubRole<'_>) -> io::Result<()> {
        self.end.bind_to_thread()?;
        self.gate.store(SUB_READY, Ordering::Release);
        self.wait(MAIN_READY)?;
        let [warm_up, measured] = self.phases.clone();
        role(&mut *self.end, warm_up)?;
        let before = (ResourceUsage::so_far(), self.end.calls());
        self.gate.store(SUB_WARMED_UP, Ordering::Release);
        let extra = role(&mut *self.end, measured)?;
        let stats = self.stats_since(&before);
        self.link.finish(&[stats.to_values().as_slice(), &extra].concat());
        Ok(())
    }

    fn stats_since(&self, before: &(ResourceUsage, Tally)) -> PartnerStats {
        PartnerStats::now(before.0, self.end.calls().since(&before.1))
    }

    /// Waits until the gate has reached `state`, or fails with `BrokenPipe` if the other partner
    /// has exited.
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

/// Threads of main and sub in this process, with the means to interrupt their blocking system calls
/// when the link is broken.
struct BlockedThreads {
    nudge: Nudge,
    /// Thread ids of main and of sub; 0 for a thread that has not started, or that belongs to
    /// another process.
    threads: [AtomicU32; 2],
}

impl BlockedThreads {
    fn new() -> io::Result<Self> {
        Ok(Self { nudge: Nudge::prepare()?, threads: Default::default() })
    }

    /// Registers the calling thread as that of main (if `who` is 0) or of sub (1).
    fn register(&self, who: usize) {
        let thread = gettid().as_raw_nonzero().get().unsigned_abs();
        self.threads[who].store(thread, Ordering::Release);
    }

    /// Sends signals that interrupt the system calls of main (if `who` is 0) or of sub (1) while
    /// the link is broken, until `has_finished` returns `true`.
    fn interrupt_wait(&self, who: usize, link: &Link, has_finished: HasFinished<'_>) {
        while link.is_broken() && !has_finished() {
            match self.threads[who].load(Ordering::Acquire) {
                0 => {} // not started yet
                thread => self.nudge.interrupt(thread),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

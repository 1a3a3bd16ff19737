//! Supervisors: callback threads that restart other callback threads when these end, like those of
//! Erlang's OTP.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::clock::nanoseconds;
use crate::context::Context;
use crate::error::SpawnError;
use crate::handle::Handle;
use crate::key::{Address, Id};
use crate::next::Next;
use crate::reason::{Down, Reason};

/// Default delay before the second restart of a child that fails repeatedly.
const FIRST_DELAY: Duration = Duration::from_millis(1);
/// Default maximum delay before a restart.
const MAX_DELAY: Duration = Duration::from_millis(100);

/// The condition for restarting a child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restart {
    /// The child is always restarted.
    Permanent,
    /// The child is restarted unless it has ended with [`Reason::Done`], or with
    /// [`Reason::Unknown`] because it ended on another Worker before it was monitored. In any case,
    /// it is restarted together with other children if the [`Strategy`] demands that.
    Transient,
    /// The child is never restarted, not even together with other children.
    Temporary,
}

/// The set of children that are restarted when a child has to be. Those still alive are cancelled
/// first; [temporary](Restart::Temporary) ones are then not restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// The child that has ended.
    OneForOne,
    /// All children.
    OneForAll,
    /// The child that has ended and all children added after it.
    RestForOne,
}

type Start = Box<dyn FnMut(&mut Context<'_, Down>) -> Result<Id, SpawnError> + Send>;

struct Child {
    start: Start,
    restart: Restart,
    /// The callback thread of the child; `None` while it does not run.
    id: Option<Id>,
    /// Time of the last start, in nanoseconds of the runtime's clock.
    started: u64,
    /// Number of successive ends that led to a restart, all but perhaps the first within
    /// [`Backoff::longest`] of the start.
    failures: u32,
    /// Time of the next start, in nanoseconds of the runtime's clock; `None` if none is planned.
    due: Option<u64>,
}

/// Delays of the exponential back-off, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Backoff {
    first: u64,
    longest: u64,
}

impl Backoff {
    /// Returns the delay in nanoseconds before a restart, after `failures` earlier failures in a
    /// row.
    fn delay(self, failures: u32) -> u64 {
        let doubled = |times: u32| self.first.saturating_mul(1 << times.min(63));
        failures.checked_sub(1).map_or(0, |times| doubled(times).min(self.longest))
    }
}

/// A supervisor, which starts children and restarts them when they end, up to a limit. If the limit
/// is exceeded or a child cannot be started, the supervisor ends all children and fails. If the
/// supervisor is cancelled, its children end, too. A supervisor can itself be a child. It does not
/// end when its children have ended.
///
/// Restarts are delayed by an exponential back-off ([`backoff`](Self::backoff)), so that a child
/// failing on every start does not use up a CPU. While one child waits for its restart, the others
/// are supervised as usual.
///
/// Children on other Workers are cancelled asynchronously: a replacement may start before its
/// predecessor has ended.
///
/// ```
/// use std::time::Duration;
/// use contend_callback::{Receptor, Restart, Strategy, Supervisor};
///
/// let receptor = Receptor::start()?;
/// Supervisor::new(Strategy::OneForOne)
///     .limit(3, Duration::from_secs(5))
///     .child(Restart::Transient, |context| context.spawn(|context| context.end()))
///     .start(&receptor)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing happens before `start` or `spawn`"]
pub struct Supervisor {
    strategy: Strategy,
    children: Vec<Child>,
    max_restarts: usize,
    /// The time span over which restarts are counted, in nanoseconds.
    within: u64,
    /// Times of recent restarts, in nanoseconds of the runtime's clock.
    restarts: VecDeque<u64>,
    backoff: Backoff,
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("strategy", &self.strategy)
            .field("children", &self.children.len())
            .finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Creates a supervisor without children. By default it allows one restart in 5 seconds, as OTP
    /// does, with a back-off of 1 ms to 100 ms.
    pub fn new(strategy: Strategy) -> Self {
        let none = Self {
            strategy,
            children: Vec::new(),
            max_restarts: 0,
            within: 0,
            restarts: VecDeque::new(),
            backoff: Backoff { first: 0, longest: 0 },
        };
        none.limit(1, Duration::from_secs(5)).backoff(FIRST_DELAY, MAX_DELAY)
    }

    /// Allows at most `restarts` restarts within a time span of `within`. The supervisor fails when
    /// it would exceed this limit. Children restarted together count as one restart.
    pub fn limit(mut self, restarts: usize, within: Duration) -> Self {
        (self.max_restarts, self.within) = (restarts, nanoseconds(within));
        self
    }

    /// Sets the exponential back-off for children that fail repeatedly. The first restart is
    /// immediate, the second one is delayed by `first`, and the delay doubles with each further
    /// failure, up to `longest`. The back-off is reset once a child has lived for longer than
    /// `longest`. If the strategy restarts other children, too, they are restarted together with
    /// the failed one.
    ///
    /// The default is 1 ms to 100 ms. The back-off limits the rate of restarts: with the default, a
    /// child that always fails at once is restarted 16 times in the first second and ten times in
    /// each further one, so it never reaches a [`limit`](Self::limit) that allows more.
    /// [`Duration::ZERO`] for both disables the back-off.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Backoff { first: nanoseconds(first), longest: nanoseconds(longest) };
        self
    }

    /// Adds a child. The supervisor calls `start` for each start of the child; `start` must spawn
    /// it, usually with the given context, and return its id. If `start` fails, so does the
    /// supervisor.
    pub fn child<F>(mut self, restart: Restart, start: F) -> Self
    where
        F: FnMut(&mut Context<'_, Down>) -> Result<Id, SpawnError> + Send + 'static,
    {
        let start = Box::new(start);
        self.children.push(Child { start, restart, id: None, started: 0, failures: 0, due: None });
        self
    }

    /// Starts the supervisor on the next Worker, in round-robin order, as [`Handle::spawn`] does.
    /// The children run where their closures spawn them.
    ///
    /// # Errors
    /// See [`Handle::spawn`].
    pub fn start(self, on: &Handle) -> Result<Id, SpawnError> {
        let supervisor = Box::new(self);
        on.spawn_receiving(move |context| supervisor.begin(context)).map(Address::id)
    }

    /// Starts the supervisor on the Worker of `context`.
    ///
    /// # Errors
    /// See [`Context::spawn`].
    pub fn spawn<M: Send + 'static>(self, context: &mut Context<'_, M>) -> Result<Id, SpawnError> {
        let supervisor = Box::new(self);
        context.spawn_receiving(move |context| supervisor.begin(context)).map(Address::id)
    }

    fn begin(mut self: Box<Self>, context: &mut Context<'_, Down>) -> Next {
        let now = context.now();
        self.children.iter_mut().for_each(|child| child.due = Some(now));
        self.start_and_wait(context)
    }

    /// Starts the children that are due, then waits for a child to end or for the next start.
    fn start_and_wait(mut self: Box<Self>, context: &mut Context<'_, Down>) -> Next {
        if let Err(error) = self.start_due(context) {
            return self.give_up(context, &error.to_string());
        }
        let next = self.children.iter().filter_map(|child| child.due).min();
        match next {
            Some(due) => {
                let delay = Duration::from_nanos(due.saturating_sub(context.now()));
                context.receive_within(delay, move |context, down| match down {
                    Some(down) => self.child_ended(context, &down),
                    None => self.start_and_wait(context),
                })
            }
            None => context.receive_once(move |context, down| self.child_ended(context, &down)),
        }
    }

    /// Starts the children that are due, in the order in which they were added, up to the first
    /// that cannot be started, whose error it returns. Monitors each child, and links it so that it
    /// ends when the supervisor fails or is cancelled.
    fn start_due(&mut self, context: &mut Context<'_, Down>) -> Result<(), SpawnError> {
        let now = context.now();
        for child in &mut self.children {
            if child.due.is_some_and(|due| due <= now) {
                let id = (child.start)(context)?;
                (child.id, child.started, child.due) = (Some(id), now, None);
                context.link_one_way(id);
                context.monitor(id, |down| down);
            }
        }
        Ok(())
    }

    fn child_ended(mut self: Box<Self>, context: &mut Context<'_, Down>, down: &Down) -> Next {
        // A child cancelled for a restart is no longer in the list.
        let Some(ended) = self.children.iter().position(|child| child.id == Some(down.id)) else {
            return self.start_and_wait(context);
        };
        self.children[ended].id = None;
        let again = match self.children[ended].restart {
            Restart::Permanent => true,
            // A child on another Worker may have ended before it was monitored.
            Restart::Transient => !matches!(down.reason, Reason::Done | Reason::Unknown),
            Restart::Temporary => false,
        };
        if again {
            let now = context.now();
            if self.record_restart(now) {
                let why = format!("too many restarts; {}: {}", down.id, down.reason);
                return self.give_up(context, &why);
            }
            self.schedule_restart(context, ended, now);
        }
        self.start_and_wait(context)
    }

    /// Schedules the restart of the child with index `ended` after its delay. Cancels the other
    /// children that the strategy restarts, and schedules their restart, too, unless they are
    /// temporary.
    fn schedule_restart(&mut self, context: &mut Context<'_, Down>, ended: usize, now: u64) {
        let restarted = match self.strategy {
            Strategy::OneForOne => ended..ended + 1,
            Strategy::OneForAll => 0..self.children.len(),
            Strategy::RestForOne => ended..self.children.len(),
        };
        let backoff = self.backoff;
        let failed = &mut self.children[ended];
        if now.saturating_sub(failed.started) > backoff.longest {
            failed.failures = 0;
        }
        let mut due = now.saturating_add(backoff.delay(failed.failures));
        failed.failures += 1;
        // All children restart together, when the one with the longest delay is due.
        if self.strategy == Strategy::OneForAll {
            due = self.children.iter().filter_map(|child| child.due).fold(due, u64::max);
        }
        for child in self.children[restarted].iter_mut().rev() {
            if let Some(id) = child.id.take() {
                context.cancel(id);
            }
            let is_temporary = child.restart == Restart::Temporary;
            child.due = (!is_temporary).then(|| child.due.map_or(due, |before| before.max(due)));
        }
    }

    /// Records a restart at the time `now`, in nanoseconds. Returns whether recent restarts now
    /// exceed the limit.
    fn record_restart(&mut self, now: u64) -> bool {
        let within = self.within;
        while self.restarts.front().is_some_and(|then| now.saturating_sub(*then) > within) {
            self.restarts.pop_front();
        }
        self.restarts.push_back(now);
        self.restarts.len() > self.max_restarts
    }

    fn give_up(mut self, context: &mut Context<'_, Down>, why: &str) -> Next {
        for child in self.children.iter_mut().rev() {
            if let Some(id) = child.id.take() {
                context.cancel(id);
            }
        }
        context.fail(why)
    }
}

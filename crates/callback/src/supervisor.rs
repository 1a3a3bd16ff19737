//! Callback threads that start others again when they fail, as OTP's supervisors do.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use crate::context::{Context, Next, SpawnError};
use crate::key::{Address, Id};
use crate::reason::{Down, Reason};
use crate::receptor::Handle;

/// When a child is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// However it has ended.
    Permanent,
    /// Unless it was done.
    Transient,
    /// Never.
    Temporary,
}

/// Who is started again when a child has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// That child alone.
    OneForOne,
    /// All children; those that live are cancelled first.
    OneForAll,
    /// That child and those that were added after it.
    RestForOne,
}

type Start = Box<dyn FnMut(&mut Context<'_, Down>) -> Result<Id, SpawnError> + Send>;

struct Child {
    start: Start,
    restart: Restart,
    /// The one that lives.
    id: Option<Id>,
}

/// Starts children, and starts them again when they have ended, up to a limit. When it is reached,
/// or the supervisor is cancelled, all children are ended, and the supervisor has failed: it can be
/// a child itself. It does not end by itself when its children are done.
///
/// Children on other Workers are cancelled without waiting for it: the next one may begin there
/// before the one before has ended.
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
    most: usize,
    within: Duration,
    restarts: VecDeque<Instant>,
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
    /// One without children, that starts them again once in 5 seconds at most, as in OTP.
    pub fn new(strategy: Strategy) -> Self {
        let within = Duration::from_secs(5);
        Self { strategy, children: Vec::new(), most: 1, within, restarts: VecDeque::new() }
    }

    /// Starts children again so many times within such a time at most.
    pub fn limit(mut self, restarts: usize, within: Duration) -> Self {
        (self.most, self.within) = (restarts, within);
        self
    }

    /// Adds a child, which `start` starts by the context that it gets.
    pub fn child<F>(mut self, restart: Restart, start: F) -> Self
    where
        F: FnMut(&mut Context<'_, Down>) -> Result<Id, SpawnError> + Send + 'static,
    {
        self.children.push(Child { start: Box::new(start), restart, id: None });
        self
    }

    /// Starts it on the next Worker; the children are where they are started.
    ///
    /// # Errors
    /// See [`Handle::spawn`].
    pub fn start(self, on: &Handle) -> Result<Id, SpawnError> {
        on.spawn_receiving(move |context| self.begin(context)).map(Address::id)
    }

    /// Starts it on this Worker.
    ///
    /// # Errors
    /// See [`Context::spawn`].
    pub fn spawn<M: Send + 'static>(self, context: &mut Context<'_, M>) -> Result<Id, SpawnError> {
        context.spawn_receiving(move |context| self.begin(context)).map(Address::id)
    }

    fn begin(mut self, context: &mut Context<'_, Down>) -> Next {
        for child in 0..self.children.len() {
            if let Err(error) = self.start_child(child, context) {
                return self.give_up(context, &error.to_string());
            }
        }
        context.receive(move |context, down| self.heard(context, &down))
    }

    fn start_child(
        &mut self,
        child: usize,
        context: &mut Context<'_, Down>,
    ) -> Result<(), SpawnError> {
        let child = &mut self.children[child];
        let id = (child.start)(context)?;
        child.id = Some(id);
        context.ends_with_this(id);
        context.monitor(id, |down| down);
        Ok(())
    }

    fn heard(&mut self, context: &mut Context<'_, Down>, down: &Down) -> Next {
        // One that was cancelled to be started again has no place here any more.
        let Some(ended) = self.children.iter().position(|child| child.id == Some(down.id)) else {
            return context.again();
        };
        self.children[ended].id = None;
        let again = match self.children[ended].restart {
            Restart::Permanent => true,
            // One on another Worker may have ended before it was monitored.
            Restart::Transient => !matches!(down.reason, Reason::Done | Reason::Unknown),
            Restart::Temporary => false,
        };
        if !again {
            return context.again();
        }
        if self.is_too_often() {
            return self
                .give_up(context, &format!("too many restarts; {}: {}", down.id, down.reason));
        }
        let restarted = match self.strategy {
            Strategy::OneForOne => ended..ended + 1,
            Strategy::OneForAll => 0..self.children.len(),
            Strategy::RestForOne => ended..self.children.len(),
        };
        for child in restarted.clone().rev() {
            if let Some(id) = self.children[child].id.take() {
                context.cancel(id);
            }
        }
        for child in restarted {
            let is_temporary = self.children[child].restart == Restart::Temporary;
            if !is_temporary && let Err(error) = self.start_child(child, context) {
                return self.give_up(context, &error.to_string());
            }
        }
        context.again()
    }

    /// Notes a restart.
    fn is_too_often(&mut self) -> bool {
        let now = Instant::now();
        while self.restarts.front().is_some_and(|then| now.duration_since(*then) > self.within) {
            self.restarts.pop_front();
        }
        self.restarts.push_back(now);
        self.restarts.len() > self.most
    }

    fn give_up(&mut self, context: &mut Context<'_, Down>, why: &str) -> Next {
        for child in self.children.iter_mut().rev() {
            if let Some(id) = child.id.take() {
                context.cancel(id);
            }
        }
        context.fail(why)
    }
}

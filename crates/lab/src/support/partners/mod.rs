//! Two that work together: main, which is the thread that calls, and sub, a process forked from it
//! or another thread beside it.
//!
//! Neither waits for one that has gone. Where sub ends before it has said that it is done, the link
//! between them says so, and main is released from whatever it waits for; where main fails, sub is
//! killed or, as a thread, released as well. A sub whose main is killed is killed by the kernel.

pub mod link;
pub mod placement;
pub mod settings;
pub mod usage;

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contend_sys::process::fork;
use contend_sys::{Pid, Signal, child, cpu};
use rustix::thread::{sched_getaffinity, sched_setaffinity, set_current_timer_slack};

pub use link::Link;
pub use placement::Placement;
pub use usage as used;
pub use usage::Used; // a name that experiments still import

use crate::engine::experiment::{Attempt, SubjectError};

/// What the two of them are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Two processes.
    Processes,
    /// Two threads of one process.
    Threads,
}

/// Two that work together, and where.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// What they are.
    pub kind: Kind,
    /// Where they run.
    pub placement: Placement,
    /// How late the kernel may end their sleeps; as late as usual, if nothing is said.
    pub slack: Option<Duration>,
}

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

/// What is done when one of them has gone. Each is told whether the one who is released is through with its
/// part, also where that could not begin.
#[derive(Clone, Copy)]
pub struct Release<'a> {
    /// Sub has ended: main is not to wait for it any more. Called by another thread than main's.
    pub main: &'a (dyn Fn(IsThrough<'_>) + Sync),
    /// Main has failed, and sub, which is a thread, has not ended.
    pub sub: &'a (dyn Fn(IsThrough<'_>) + Sync),
}

/// Whether one of them is through with its part.
pub type IsThrough<'a> = &'a (dyn Fn() -> bool + Sync);

impl Pair {
    /// Has both do their part. Each has what its part owns for itself: what the other one's owns is
    /// dropped first, where they are processes. Before it ends, sub calls [`Link::finish`].
    ///
    /// There must be no other thread in this process, where they are processes.
    ///
    /// # Errors
    /// That of main; where it has none, that of a sub that is a thread; or when one of them cannot
    /// begin.
    pub fn run<T>(
        &self,
        link: &Link,
        main: impl FnOnce() -> Result<T, SubjectError>,
        sub: impl FnOnce() -> io::Result<()> + Send,
        release: Release<'_>,
        observer: Observer<'_>,
    ) -> Result<T, SubjectError> {
        let before = sched_getaffinity(None).attempt("ask for the CPUs")?;
        let done = match self.kind {
            Kind::Processes => self.as_processes(link, main, sub, release, observer),
            Kind::Threads => self.as_threads(link, main, sub, release, observer),
        };
        let _ = sched_setaffinity(None, &before);
        done
    }

    fn as_processes<T>(
        &self,
        link: &Link,
        main: impl FnOnce() -> Result<T, SubjectError>,
        sub: impl FnOnce() -> io::Result<()>,
        release: Release<'_>,
        observer: Observer<'_>,
    ) -> Result<T, SubjectError> {
        let creator = rustix::process::getpid();
        let mut parts = (Some(main), Some(sub));
        let pid = fork(|| {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            if rustix::process::getppid() != Some(creator) {
                return 1; // it has died before it was to be told of that
            }
            parts.0 = None;
            let done = self.seat(1).and_then(|()| parts.1.take().map_or(Ok(()), |sub| sub()));
            if let Err(error) = &done {
                link.explain(error);
            }
            i32::from(done.is_err())
        });
        let pid = pid.attempt("create a process")?;
        parts.1 = None;
        let main = parts.0.take().ok_or_else(|| SubjectError::Wrong("it has begun".to_owned()))?;
        observer(Sub::Process(pid));
        let through = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = child::wait_for_end(pid);
                link.gone();
                (release.main)(&|| through.load(Ordering::Acquire));
            });
            let _through = AtDrop(|| through.store(true, Ordering::Release));
            let end = AtDrop(|| {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            });
            let done = self.as_main(main);
            if done.is_ok() {
                std::mem::forget(end); // it ends by itself
            }
            done
        });
        child::reap(pid).attempt("reap a process")?;
        done
    }

    fn as_threads<T>(
        &self,
        link: &Link,
        main: impl FnOnce() -> Result<T, SubjectError>,
        sub: impl FnOnce() -> io::Result<()> + Send,
        release: Release<'_>,
        observer: Observer<'_>,
    ) -> Result<T, SubjectError> {
        let through = [AtomicBool::new(false), AtomicBool::new(false)];
        let is_through = |who: usize| through[who].load(Ordering::Acquire);
        let [main_through, sub_through] = [0, 1].map(|who| {
            let through = &through[who];
            AtDrop(move || through.store(true, Ordering::Release))
        });
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                observer(Sub::Thread(cpu::Clock::of_this_thread()));
                let _ended = AtDrop(|| {
                    link.gone();
                    (release.main)(&|| is_through(0));
                });
                let _through = sub_through;
                let done = self.seat(1).and_then(|()| sub());
                done.inspect_err(|error| link.explain(error))
            });
            let end = AtDrop(|| {
                if link.gone() {
                    (release.sub)(&|| is_through(1));
                }
            });
            let done = {
                let _through = main_through;
                self.as_main(main)
            };
            if done.is_ok() {
                std::mem::forget(end); // sub has done, or will have done, all that it has to
            } else {
                drop(end);
            }
            let other = other.join();
            let other = other.map_err(|_| SubjectError::Wrong("the partner has panicked".into()));
            let other = other.and_then(|done| done.attempt("do the partner's part"));
            done.and_then(|done| other.map(|()| done))
        })
    }

    /// Has the calling thread run as main (0) or sub (1).
    fn seat(&self, who: usize) -> io::Result<()> {
        let slack = self.slack.and_then(|slack| NonZeroU64::new(slack.as_nanos().try_into().ok()?));
        set_current_timer_slack(slack)?;
        self.placement.cpus().map_or(Ok(()), |cpus| cpu::pin(cpus[who]))
    }

    /// Does main's part while both CPUs are kept awake, if they are to be.
    fn as_main<T>(
        &self,
        main: impl FnOnce() -> Result<T, SubjectError>,
    ) -> Result<T, SubjectError> {
        let cpus = self.placement.cpus().filter(|_| self.placement == Placement::Awake);
        let cpus = cpus.map_or(Vec::new(), Vec::from);
        let done = AtomicBool::new(false);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _rest = AtDrop(|| done.store(true, Ordering::Relaxed));
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
            self.seat(0).attempt("bind a process to a CPU")?;
            main()
        })
    }
}

/// Does something when it is dropped, also by a panic: the partner is not to wait for ever.
pub struct AtDrop<F: Fn()>(pub F);

impl<F: Fn()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

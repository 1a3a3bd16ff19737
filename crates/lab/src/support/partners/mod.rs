//! Pairs of partners that exchange data: main, the calling thread, and sub, a forked process or a
//! second thread.
//!
//! No partner waits for one that has ended or failed:
//!
//! | event | consequence |
//! |---|---|
//! | sub ends before [`Link::finish`] | the link is broken, and [`Release::main`] wakes main |
//! | main fails, and sub is a process | sub is killed |
//! | main fails, and sub is a thread | the link is broken, and [`Release::sub`] wakes sub |
//! | main is killed | the kernel kills sub |

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
pub use usage::ResourceUsage;

use crate::engine::experiment::{ErrorContext, SubjectError};

/// The kind of two partners: processes or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartnerKind {
    /// Two processes: main creates sub.
    Processes,
    /// Two threads of one process.
    Threads,
}

/// The configuration of two partners.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// Kind of the partners: processes or threads.
    pub kind: PartnerKind,
    /// CPUs on which the partners run.
    pub placement: Placement,
    /// Timer slack of both partners; `None` or zero for the default.
    pub slack: Option<Duration>,
}

/// Handle to sub, for an observer.
#[derive(Debug, Clone, Copy)]
pub enum Sub {
    /// A process with the given id.
    Process(Pid),
    /// A thread with the clock of its CPU time, or `None` if the kernel has no such clock.
    Thread(Option<cpu::Clock>),
}

impl Sub {
    /// Returns the clock of sub's CPU time, or `None` if the process has ended or the thread has no
    /// such clock.
    pub fn clock(self) -> Option<cpu::Clock> {
        match self {
            Self::Process(pid) => cpu::Clock::of_process(pid),
            Self::Thread(clock) => clock,
        }
    }
}

/// A function that receives the handle to sub once sub has started. Runs on main's thread if sub is
/// a process, and on sub's thread otherwise.
pub type Observer<'a> = &'a (dyn Fn(Sub) + Sync);

/// Functions that wake a partner after the other one has ended. Each receives a predicate that
/// returns whether the partner to wake has finished its part or has failed to start it.
#[derive(Clone, Copy)]
pub struct Release<'a> {
    /// Wakes main after sub has ended. Runs on a thread other than main's.
    pub main: &'a (dyn Fn(HasFinished<'_>) + Sync),
    /// Wakes a sub thread that is still running after main has failed.
    pub sub: &'a (dyn Fn(HasFinished<'_>) + Sync),
}

/// A predicate that returns whether a partner has finished its part or has failed to start it.
pub type HasFinished<'a> = &'a (dyn Fn() -> bool + Sync);

impl Pair {
    /// Runs `main` on the calling thread and `sub` in a new process or thread, and returns the
    /// result of `main`. `sub` has to call [`Link::finish`] before it returns. Restores the CPU
    /// affinity of the calling thread, but not its timer slack.
    ///
    /// If the partners are processes, the calling process must have a single thread, and each
    /// partner drops the other's closure before it calls its own.
    ///
    /// # Errors
    /// Returns an error if:
    /// - `main` fails, or main cannot be bound to its CPU;
    /// - sub is a thread, and `sub` fails or panics, or sub cannot be bound to its CPU (a process
    ///   breaks the link instead);
    /// - the process of sub cannot be created or reaped;
    /// - the CPU affinity of the calling thread cannot be read;
    /// - a CPU cannot be kept awake.
    ///
    /// # Panics
    /// Panics if a thread cannot be created.
    pub fn run<T>(
        &self,
        link: &Link,
        main: impl FnOnce() -> Result<T, SubjectError>,
        sub: impl FnOnce() -> io::Result<()> + Send,
        release: Release<'_>,
        observer: Observer<'_>,
    ) -> Result<T, SubjectError> {
        let before = sched_getaffinity(None).context("ask for the CPUs")?;
        let done = match self.kind {
            PartnerKind::Processes => self.as_processes(link, main, sub, release, observer),
            PartnerKind::Threads => self.as_threads(link, main, sub, release, observer),
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
                return 1; // main died before the death signal was set
            }
            parts.0 = None;
            let done =
                self.bind_to_cpu(1).and_then(|()| parts.1.take().map_or(Ok(()), |sub| sub()));
            if let Err(error) = &done {
                link.explain(error);
            }
            i32::from(done.is_err())
        });
        let pid = pid.context("create a process")?;
        parts.1 = None;
        let main = parts.0.take().ok_or_else(|| {
            SubjectError::Unexpected("main's part has already started".to_owned())
        })?;
        observer(Sub::Process(pid));
        let finished = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = child::wait_for_end(pid);
                link.mark_broken();
                (release.main)(&|| finished.load(Ordering::Acquire));
            });
            let _finished = AtDrop(|| finished.store(true, Ordering::Release));
            let end = AtDrop(|| {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            });
            let done = self.run_main(main);
            if done.is_ok() {
                std::mem::forget(end); // sub exits on its own
            }
            done
        });
        child::reap(pid).context("reap a process")?;
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
        let finished = [AtomicBool::new(false), AtomicBool::new(false)];
        let has_finished = |who: usize| finished[who].load(Ordering::Acquire);
        let [main_finished, sub_finished] = [0, 1].map(|who| {
            let finished = &finished[who];
            AtDrop(move || finished.store(true, Ordering::Release))
        });
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                observer(Sub::Thread(cpu::Clock::of_this_thread()));
                let _ended = AtDrop(|| {
                    link.mark_broken();
                    (release.main)(&|| has_finished(0));
                });
                let _finished = sub_finished;
                let done = self.bind_to_cpu(1).and_then(|()| sub());
                done.inspect_err(|error| link.explain(error))
            });
            let end = AtDrop(|| {
                if link.mark_broken() {
                    (release.sub)(&|| has_finished(1));
                }
            });
            let done = {
                let _finished = main_finished;
                self.run_main(main)
            };
            if done.is_ok() {
                std::mem::forget(end); // sub finishes its part on its own
            } else {
                drop(end);
            }
            let other = other.join();
            let other =
                other.map_err(|_| SubjectError::Unexpected("the partner has panicked".into()));
            let other = other.and_then(|done| done.context("run the partner's part"));
            done.and_then(|done| other.map(|()| done))
        })
    }

    /// Sets the timer slack of the calling thread and, if the placement names CPUs, binds the
    /// thread to the CPU of main (`who` is 0) or of sub (1).
    fn bind_to_cpu(&self, who: usize) -> io::Result<()> {
        let slack = self.slack.and_then(|slack| NonZeroU64::new(slack.as_nanos().try_into().ok()?));
        set_current_timer_slack(slack)?;
        self.placement.cpus().map_or(Ok(()), |cpus| cpu::pin(cpus[who]))
    }

    /// Binds the calling thread to main's CPU and runs `main`. With `Placement::TwoAwakeCpus`,
    /// spinning threads keep both CPUs awake until `main` returns.
    fn run_main<T>(
        &self,
        main: impl FnOnce() -> Result<T, SubjectError>,
    ) -> Result<T, SubjectError> {
        let cpus = self.placement.cpus().filter(|_| self.placement == Placement::TwoAwakeCpus);
        let cpus = cpus.map_or(Vec::new(), Vec::from);
        let done = AtomicBool::new(false);
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _rest = AtDrop(|| done.store(true, Ordering::Relaxed));
            for &cpu in &cpus {
                let (done, tell) = (&done, tell.clone());
                scope.spawn(move || {
                    let bound = cpu::pin(cpu).and_then(|()| cpu::set_idle_policy());
                    let is_bound = bound.is_ok();
                    let _ = tell.send(bound);
                    while is_bound && !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            for bound in told.iter().take(cpus.len()) {
                bound.context("keep a CPU awake")?;
            }
            self.bind_to_cpu(0).context("bind a process to a CPU")?;
            main()
        })
    }
}

/// A guard that calls a function on drop, even during a panic, so that the partner does not wait
/// forever.
pub struct AtDrop<F: Fn()>(pub F);

impl<F: Fn()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

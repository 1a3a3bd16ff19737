//! Processes of cases, and this machine as a [`World`].
//!
//! The process of a case is this program, started again with [`CASE_VERB`]. Other cases affect
//! neither its memory, nor its allocator, nor the kernel's accounting of it. It starts with a
//! single thread, so that subjects may fork.
//!
//! No process outlives a run:
//!
//! - The process leads a process group, which is killed as a whole when the engine ends the
//!   process.
//! - If the engine dies, the kernel sends the process a signal. The process finishes its sample,
//!   reaps its children and exits; after 20 s, it is killed.
//! - If the process dies, the kernel kills its children, except for those that end on their own,
//!   such as `cp` or the supervisor of a server.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use contend_record::lab::{Calibration, Step};
use contend_record::parameters::Parameters;
use contend_sys::child::Which;
use contend_sys::interrupt::Signals;
use contend_sys::load::Load;
use contend_sys::{Pid, Signal, child, cpu, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use tempfile::TempDir;

use crate::engine::experiment::{Experiment, Facts, Sampling};
use crate::engine::noise::Reading;
use crate::engine::protocol::{Measurement, Reply, Request};
use crate::engine::registry::Registry;
use crate::engine::runner::{MeasuringConditions, Session, SessionError, World};

/// Hidden subcommand that makes this program the process of a case.
pub const CASE_VERB: &str = "lab-case";

/// Environment variable with the path of the scratch directory that cases share
/// ([`Demands::scratch`](super::experiment::Demands::scratch)).
pub const SCRATCH_VARIABLE: &str = "CONTEND_SCRATCH";

/// Environment variable with the PID of the process that runs the experiments and owns the scratch
/// directory.
pub const RUN_VARIABLE: &str = "CONTEND_RUN";

/// The [`World`] of real runs, in which processes on this machine measure the cases.
#[derive(Debug)]
pub struct Machine {
    registry: &'static Registry,
    signals: Rc<Signals>,
    started: Instant,
    cpus: Vec<usize>,
    living: Living,
    /// Scratch directory, created for the first case that needs one and removed on drop; `None`
    /// until that case, or if it cannot be created.
    scratch: Option<TempDir>,
}

/// The living processes of cases, each with the CPU time that it last reported: zero before its
/// first sample.
type Living = Rc<RefCell<Vec<(Pid, Duration)>>>;

impl Machine {
    /// Creates a world that runs the experiments of `registry`, and ends a sample when one of
    /// `signals` asks the run to stop. Makes this process a child subreaper, so that it can reap
    /// the orphans of cases.
    ///
    /// # Errors
    /// Returns an error if this process cannot become a child subreaper.
    pub fn new(registry: &'static Registry, signals: Rc<Signals>) -> std::io::Result<Self> {
        child::become_subreaper()?;
        Ok(Self {
            registry,
            signals,
            started: Instant::now(),
            cpus: cpu::allowed_list(),
            living: Rc::default(),
            scratch: None,
        })
    }
}

impl World for Machine {
    /// Returns the time since the creation of this world, less the time for which this process was
    /// stopped (Ctrl-Z).
    fn now(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.signals.stopped())
    }

    fn interrupted(&self) -> bool {
        self.signals.interrupted().is_some()
    }

    fn reading(&mut self) -> Reading {
        let load = Load::read_on(&self.cpus);
        let living: Duration = self.living.borrow().iter().map(|&(_, cpu)| cpu).sum();
        Reading {
            busy: load.busy,
            own: cpu::own_time() + child::children_usage().cpu() + living,
            steal: load.steal,
            throttled: load.throttled,
            thermal_throttle_count: self.cpus.iter().map(|&cpu| thermal_throttle_count(cpu)).sum(),
        }
    }

    fn cpus(&self) -> usize {
        self.cpus.len()
    }

    fn calibrate(&mut self) -> Result<Calibration, SessionError> {
        let calibrators = self.registry.calibration;
        let mut measure = |experiment| {
            let mut session =
                self.open(experiment, &Parameters::new(), MeasuringConditions::default())?;
            let facts = session.facts();
            session.sample(100_000, &mut |_| {})?; // warms up
            let value = session.sample(100_000, &mut |_| {})?.sample.value;
            Ok((value, facts))
        };
        let (_, facts) = measure(calibrators.empty)?;
        let number = |name: &str| facts.get(name).and_then(|value| value.to_string().parse().ok());
        let cache_line =
            if cpu::allowed() > 1 { Some(measure(calibrators.distance)?.0) } else { None };
        Ok(Calibration {
            clock_nanoseconds: number("clock_ns").unwrap_or(0.0),
            clock_resolution_nanoseconds: number("clock_resolution_ns").unwrap_or(0.0),
            empty_loop_nanoseconds: number("empty_loop_ns").unwrap_or(0.0),
            cache_line_nanoseconds: cache_line,
        })
    }

    fn open_sentinel(&mut self) -> Result<Box<dyn Session>, SessionError> {
        self.open(
            self.registry.calibration.distance,
            &Parameters::new(),
            MeasuringConditions::default(),
        )
    }

    fn open(
        &mut self,
        experiment: &'static Experiment,
        parameters: &Parameters,
        conditions: MeasuringConditions,
    ) -> Result<Box<dyn Session>, SessionError> {
        if self.scratch.is_none() && (experiment.demands.scratch)() {
            self.scratch = tempfile::tempdir().ok(); // if this fails, each case creates its own
        }
        let scratch = self.scratch.as_ref().map(TempDir::path);
        let mut process =
            CaseProcess::start(Rc::clone(&self.signals), Rc::clone(&self.living), scratch)?;
        process.deadline = conditions.deadline.map(|deadline| self.started + deadline);
        process.send(&Request::Open {
            experiment: experiment.name.to_owned(),
            parameters: parameters.clone(),
            skip_slow_metrics: conditions.skip_slow_metrics,
        })?;
        if experiment.sampling != Sampling::Adaptive {
            process.answer_timeout = FIXED_ANSWER_TIMEOUT;
        }
        match process.receive(&mut |_| {})? {
            Reply::Ready(facts) => process.facts = facts,
            other => return Err(unexpected(&other)),
        }
        Ok(Box::new(process))
    }
}

/// Returns the number of times since boot that the CPU with the number `cpu` was throttled because
/// of heat, or 0 if the kernel does not report it.
fn thermal_throttle_count(cpu: usize) -> u64 {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn unexpected(reply: &Reply) -> SessionError {
    SessionError::Failed(format!("unexpected reply of its process: {reply:?}"))
}

/// A process of a case, with its pipes.
struct CaseProcess {
    child: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    signals: Rc<Signals>,
    living: Living,
    facts: Facts,
    /// Whether the process has been reaped. Its id may then belong to another process.
    reaped: bool,
    /// Maximum time to wait for a reply.
    answer_timeout: Duration,
    /// Time by which the last sample of the run has to end, or `None` without a time limit. It
    /// moves by the time for which the engine is stopped (Ctrl-Z), which is not included here.
    deadline: Option<Instant>,
}

/// Maximum time to wait for a reply from an adaptive case. After this time, its process is killed,
/// since a command may hang.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time to wait for a reply from a case with a fixed number of samples, which may take
/// long.
const FIXED_ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

impl CaseProcess {
    fn start(
        signals: Rc<Signals>,
        living: Living,
        scratch: Option<&Path>,
    ) -> Result<Self, SessionError> {
        let failed = |error: std::io::Error| {
            SessionError::Failed(format!("cannot start its process: {error}"))
        };
        let mut command = Command::new("/proc/self/exe");
        command.arg0("contend").arg(CASE_VERB).process_group(0);
        command.envs(scratch.map(|path| (SCRATCH_VARIABLE, path)));
        command.env(RUN_VARIABLE, std::process::id().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn::spawn(&mut command, &[0, 1], signals.mask_before(), spawn::ORPHANED)
            .map_err(failed)?;
        let (requests, replies) = (child.stdin.take(), child.stdout.take());
        let replies = replies.ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        living.borrow_mut().push((Pid::from_child(&child), Duration::ZERO));
        let replies = BufReader::new(replies);
        let facts = Facts::new();
        Ok(Self {
            child,
            requests,
            replies,
            signals,
            living,
            facts,
            reaped: false,
            answer_timeout: ANSWER_TIMEOUT,
            deadline: None,
        })
    }

    fn send(&mut self, request: &Request) -> Result<(), SessionError> {
        let gone = || SessionError::Failed("its process has ended".to_owned());
        let line = serde_json::to_string(request).map_err(|_| gone())? + "\n";
        let requests = self.requests.as_mut().ok_or_else(gone)?;
        requests.write_all(line.as_bytes()).map_err(|_| gone())
    }

    /// Blocks until a reply other than a step arrives, and returns it. Passes steps to `on_step`.
    /// At the timeout, at the deadline of the run, or on a signal to stop, kills the process and
    /// returns an error. Also returns an error if the request failed, the reply cannot be parsed,
    /// or the process has ended.
    fn receive(&mut self, on_step: &mut dyn FnMut(Step)) -> Result<Reply, SessionError> {
        let deadline = Instant::now() + self.answer_timeout;
        loop {
            if self.replies.buffer().is_empty()
                && let Err(error) = self.wait(deadline)
            {
                let _ = self.kill_and_reap();
                return Err(error);
            }
            let mut line = String::new();
            let read = self.replies.read_line(&mut line).unwrap_or(0);
            if read == 0 {
                return Err(SessionError::Failed(self.exit_reason()));
            }
            let reply = serde_json::from_str(&line).map_err(|error| {
                SessionError::Failed(format!("unreadable reply of its process: {error}"))
            })?;
            match reply {
                Reply::Step(step) => on_step(step),
                Reply::Failed(message) => return Err(SessionError::Failed(message)),
                reply => return Ok(reply),
            }
        }
    }

    fn wait(&self, deadline: Instant) -> Result<(), SessionError> {
        loop {
            let end_of_run = self.deadline.map(|deadline| deadline + self.signals.stopped());
            let now = Instant::now();
            if end_of_run.is_some_and(|end| end <= now) {
                return Err(SessionError::OutOfTime);
            }
            let left = end_of_run.map_or(deadline, |end| end.min(deadline));
            let left = left.saturating_duration_since(now);
            if left.is_zero() {
                let seconds = self.answer_timeout.as_secs();
                let message = format!("no result within {seconds} s");
                return Err(SessionError::Failed(message));
            }
            let left = rustix::time::Timespec::try_from(left).ok();
            let stdout = self.replies.get_ref();
            let mut fds =
                [PollFd::new(stdout, PollFlags::IN), PollFd::new(&*self.signals, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(SessionError::Failed(error.to_string())),
                Ok(_) => {}
            }
            let answered = !fds[0].revents().is_empty();
            if self.signals.interrupted().is_some() {
                return Err(SessionError::Interrupted);
            }
            if answered {
                return Ok(());
            }
        }
    }

    fn exit_reason(&mut self) -> String {
        self.wait_for_exit();
        match self.kill_and_reap().map(|reaped| reaped.status) {
            Ok(child::ExitStatus::Signaled(signal)) => {
                let name = contend_record::signal::name(signal).unwrap_or("?");
                format!("its process was killed by SIG{name}")
            }
            Ok(child::ExitStatus::Exited(status)) => {
                format!("its process exited with status {status}")
            }
            Err(_) => "its process has ended".to_owned(),
        }
    }
}

impl CaseProcess {
    /// Kills the process group of the case, reaps its processes, and returns how the case's own
    /// process ended. Returns an error if the case's own process has already been reaped or cannot
    /// be reaped.
    fn kill_and_reap(&mut self) -> std::io::Result<child::Reaped> {
        let pid = Pid::from_child(&self.child);
        if std::mem::replace(&mut self.reaped, true) {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let ended = child::peek(Which::One(pid));
        // The process id cannot be reused before the process is reaped.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        self.living.borrow_mut().retain(|entry| entry.0 != pid);
        let reaped = ended.and_then(|_| child::reap(pid));
        reap_group(pid);
        reaped
    }
}

impl Session for CaseProcess {
    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn sample(
        &mut self,
        iterations: u64,
        on_step: &mut dyn FnMut(Step),
    ) -> Result<Measurement, SessionError> {
        self.send(&Request::Sample { iterations })?;
        match self.receive(on_step)? {
            Reply::Sampled(taken) => {
                let pid = Pid::from_child(&self.child);
                let mut living = self.living.borrow_mut();
                if let Some(entry) = living.iter_mut().find(|entry| entry.0 == pid) {
                    entry.1 = taken.cpu;
                }
                Ok(*taken)
            }
            other => Err(unexpected(&other)),
        }
    }
}

/// Maximum time to wait for a process to exit on its own.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

impl Drop for CaseProcess {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.requests = None; // EOF makes the process exit
        self.wait_for_exit();
        let _ = self.kill_and_reap();
    }
}

impl CaseProcess {
    /// Blocks until the process has exited, [`EXIT_TIMEOUT`] has passed, or a signal asks to stop.
    fn wait_for_exit(&self) {
        let pid = Pid::from_child(&self.child);
        let asked = Instant::now();
        while matches!(child::peek(Which::One(pid)), Ok(None)) && asked.elapsed() < EXIT_TIMEOUT {
            if self.signals.interrupted().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Reaps the killed processes in the group of a case. Blocks until the group is empty, or until
/// none of its processes is a child of this process.
fn reap_group(group: Pid) {
    while rustix::process::test_kill_process_group(group).is_ok() {
        match child::peek(Which::Group(group)) {
            Ok(Some((pid, _))) => drop(child::reap(pid)),
            Ok(None) => std::thread::sleep(Duration::from_micros(200)),
            Err(_) => break, // the remaining processes are not children of this one
        }
    }
}

//! Runs a launched pipeline and observes it to its end.
//!
//! One thread does all of this, and never touches the pipeline's data:
//!
//! ```text
//! open the gate
//! until every stage has ended:
//!     poll                 until a child or a signal has news, or a sample is due
//!     take signals         pass on requests to end; stop on Ctrl-Z
//!     collect children     stops and ends of stages, orphans
//!     sample_all, if due   sample stages; every 50 ms also pipes, new children and threads
//!     report               every 100 ms
//! collect last orphans, let the shell finish ──▶ RawRun
//! ```
//!
//! Samples are taken every millisecond at first, then less and less often, down to every 25 ms.
//! They use at most 1 % of one CPU, unless that would require intervals of more than 25 ms.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use contend_record::trace::Clocks;
use contend_shell::parse::Parsed;
use contend_sys::child::{self, Change, Usage, Which};
use contend_sys::clock::{ClockId, nanoseconds};
use contend_sys::cpu;
use contend_sys::interrupt::Signals;
use contend_sys::procfs::{self, Stat};
use contend_sys::signal::ReceivedSignal;
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::kill_process;

use super::attach::FoundStage;
use super::critical::{CriticalTime, RecentWork};
use super::gate::OpenGate;
use super::launch::{
    LaunchError, LaunchSpec, Launched, WaitingShell, children_of, kill_all, launch,
};
use super::progress::{Progress, ProgressStage};
use super::raw::{FillSamples, MAX_SAMPLING_INTERVAL, RawRun};
use super::script::format_exit_codes;
use super::stage::RunningStage;
use super::timeline::{Counters, FillSum, Timeline};
use super::trace::StateLog;
use super::tracing;
use crate::observe::{State, Wait};

/// Minimum time between two samples of the stages.
const MIN_SAMPLING_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum ratio of the run's time so far to the sampling interval, unless the interval would
/// exceed its maximum. Until then, the number of samples thus grows only with the logarithm of the
/// time. Each wake-up disturbs the run: stages that pass single lines to each other lose the rhythm
/// in which the scheduler runs them, and may then make 50 % more context switches.
const ELAPSED_PER_INTERVAL: u32 = 64;
/// Minimum ratio of the sampling interval to the CPU time of a sample, which limits sampling to 1 %
/// of one CPU unless the interval would exceed its maximum.
const INTERVAL_PER_SAMPLE_COST: u32 = 100;
/// Minimum time between two searches for new children and threads. The pipes' fill is read at the
/// same times. A stage that waits for a child is searched at every sample.
const SEARCH_INTERVAL: Duration = Duration::from_millis(50);
/// Time from the opening of the gate to the first search for new children and threads.
const FIRST_SEARCH_DELAY: Duration = Duration::from_millis(10);
/// Time after the opening of the gate during which every sample checks whether a stage that is
/// still the shell has executed a program; afterwards, only searches do.
const EXEC_CHECK_TIME: Duration = Duration::from_millis(50);
/// Time within which repeated signals count as one request to end.
const REPEATED_SIGNAL_TIME: Duration = Duration::from_millis(50);
/// Maximum time to wait for exiting orphans: the kernel needs milliseconds to tear down a large
/// process.
const MAX_EXIT_TIME: Duration = Duration::from_millis(50);
/// Time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the pipeline until all stages and the shell have ended. Returns the observations.
///
/// # Errors
/// Returns an error if the pipeline cannot be started; see [`LaunchError`].
pub fn run(
    spec: LaunchSpec<'_>,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<RawRun, LaunchError> {
    let (parsed, setup) = (spec.parsed, spec.setup);
    let traced = spec.trace;
    let launched = launch(spec, signals)?;
    let own_before = child::own_usage();
    let (mut watch, shell) = Watch::begin(launched, (parsed, setup), traced, signals)?;
    watch.follow(progress);
    watch.collect_last_orphans();
    watch.discard_keyboard_interrupt();
    let mut run = watch.into_raw(own_before);
    let exit_codes = format_exit_codes(run.exit_code(parsed.inverted), &run.statuses());
    run.shell_status = shell.finish(&exit_codes, signals);
    Ok(run)
}

/// The state of a run under observation.
struct Watch<'a> {
    signals: &'a Signals,
    shell_program: PathBuf,
    /// ID of the shell; `None` if contend has not started the pipeline.
    shell_pid: Option<Pid>,
    stages: Vec<RunningStage>,
    fills: Vec<FillSamples>,
    input_fill: FillSamples,
    pipefail: bool,
    interrupts: u32,
    last_interrupt: Option<Instant>,
    begun: Instant,
    last_sample: Instant,
    ticks: u64,
    runnable: f64,
    work: RecentWork,
    critical: CriticalTime,
    timeline: Timeline,
    /// The states of the stages over time, if a trace was requested.
    states: Option<StateLog>,
    /// For a pipeline to which contend is attached: when to stop observing it.
    detach: Option<Detach>,
    /// Moving average of contend's CPU time for one sample.
    sample_cost: Duration,
    /// CPU time of contend at the end of the last sample.
    cpu_time: Duration,
    next_refresh: Instant,
    last_progress: Instant,
    was_stopped: bool,
    orphans_cpu: Duration,
    buffer: Box<[u8; 8192]>,
    _gate: Option<OpenGate>,
}

/// When to stop observing a pipeline to which contend is attached: at a signal or after a time.
#[derive(Debug, Clone, Copy)]
struct Detach {
    /// Time since the beginning of the observation; `None` for no limit.
    limit: Option<Duration>,
    is_due: bool,
}

/// Observes running stages until all have ended, a signal arrives, or `limit` has passed. Returns
/// the observations, with the states over time if `traced` is true. No signal is passed on to the stages.
///
/// # Errors
/// Returns an error if a stage cannot be observed, for example because it has ended.
pub fn observe(
    found: &[FoundStage],
    limit: Option<Duration>,
    traced: bool,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> io::Result<RawRun> {
    let own_before = child::own_usage();
    let mut buffer = Box::new([0; 8192]);
    let attach = |stage: &FoundStage| {
        let others = found.iter().map(|other| other.pid).filter(|other| *other != stage.pid);
        RunningStage::attach(stage, &others.collect::<Vec<_>>(), &mut *buffer)
    };
    let stages: io::Result<Vec<_>> = found.iter().map(attach).collect();
    let mut stages = stages?;
    for stage in &mut stages {
        stage.begin_attached(&mut *buffer);
    }
    let start = clocks();
    let mut watch = Watch::new(stages, None, signals, buffer, Instant::now());
    watch.states = traced.then(|| StateLog::new(watch.stages.len(), start));
    watch.detach = Some(Detach { limit, is_due: false });
    watch.follow(progress);
    watch.detach_all();
    Ok(watch.into_raw(own_before))
}

impl<'a> Watch<'a> {
    /// Records the state of the waiting stages and opens the gate. On failure, the shell and the
    /// stages have ended.
    fn begin(
        launched: Launched,
        (parsed, setup): (&Parsed, Option<&str>),
        traced: bool,
        signals: &'a Signals,
    ) -> Result<(Self, WaitingShell), LaunchError> {
        let mut buffer = Box::new([0; 8192]);
        let Launched { stages: pids, shell, gate, pipefail } = launched;
        let opened: io::Result<Vec<_>> = parsed
            .stages
            .iter()
            .zip(&pids)
            .map(|(text, &pid)| {
                let may_trace = tracing::is_safe_before_exec(text, setup);
                let command = &parsed.text[text.span.clone()];
                RunningStage::open(pid, (command, setup.is_some()), may_trace, &mut *buffer)
            })
            .collect();
        let shell_program = tracing::executable(shell.pid()).unwrap_or_default();
        // Read the clock first: opening the gate wakes all stages, which may run before this thread
        // continues.
        let start = clocks();
        let now = Instant::now();
        let (stages, gate) =
            opened.and_then(|stages| Ok((stages, gate.open()?))).map_err(|source| {
                kill_all(&shell, &pids);
                LaunchError::Prepare { what: "watch the stages", source }
            })?;
        let mut watch = Self::new(stages, Some(gate), signals, buffer, now);
        watch.shell_program = shell_program;
        watch.shell_pid = Some(shell.pid());
        watch.pipefail = pipefail;
        watch.states = traced.then(|| StateLog::new(watch.stages.len(), start));
        Ok((watch, shell))
    }

    /// Returns the state of a run of the given stages that begins at `now`. `gate` is that of stages
    /// that contend has started.
    fn new(
        stages: Vec<RunningStage>,
        gate: Option<OpenGate>,
        signals: &'a Signals,
        buffer: Box<[u8; 8192]>,
        now: Instant,
    ) -> Self {
        let mut timeline = Timeline::default();
        let (work, critical) = (RecentWork::new(stages.len()), CriticalTime::new(stages.len()));
        let fills = vec![FillSamples::default(); stages.len().saturating_sub(1)];
        timeline.sample(Duration::ZERO, &critical, counters(&stages, &fills));
        Self {
            signals,
            shell_program: PathBuf::new(),
            shell_pid: None,
            fills,
            input_fill: FillSamples::default(),
            stages,
            pipefail: false,
            interrupts: 0,
            last_interrupt: None,
            begun: now,
            last_sample: now,
            ticks: 0,
            runnable: 0.0,
            work,
            critical,
            timeline,
            states: None,
            detach: None,
            sample_cost: Duration::ZERO,
            cpu_time: cpu::own_time(),
            next_refresh: now + FIRST_SEARCH_DELAY,
            last_progress: now,
            was_stopped: false,
            orphans_cpu: Duration::ZERO,
            buffer,
            _gate: gate,
        }
    }

    fn follow(&mut self, progress: &mut dyn FnMut(&Progress<'_>)) {
        if let Some(signal) = self.signals.interrupted() {
            // The signal arrived before this loop.
            self.end_stages(ReceivedSignal { signal, from_process: true });
        }
        while self.stages.iter().any(|stage| stage.ended.is_none()) && !self.must_detach() {
            self.sleep_until_due();
            self.take_signals(progress);
            self.collect_children();
            if self.last_sample.elapsed() >= self.interval() {
                self.sample_all();
            }
            if self.last_progress.elapsed() >= PROGRESS_INTERVAL {
                self.last_progress = Instant::now();
                self.report(progress);
            }
        }
    }

    /// Returns whether contend is to stop observing a pipeline to which it is attached.
    fn must_detach(&self) -> bool {
        self.detach.is_some_and(|detach| {
            detach.is_due || detach.limit.is_some_and(|limit| self.begun.elapsed() >= limit)
        })
    }

    fn detach_all(&mut self) {
        self.sample_all();
        let now = self.begun.elapsed();
        for stage in &mut self.stages {
            stage.detach(now, &mut *self.buffer);
        }
    }

    /// Discards a Ctrl-C that has not killed the last stage: it was meant for a program that
    /// handles Ctrl-C, such as a pager. The shell continues in that case, and so does contend.
    fn discard_keyboard_interrupt(&self) {
        let died = |signal| self.stages.last().is_some_and(|last| last.was_killed_by(signal));
        if !self.signals.interrupted().is_some_and(died) {
            self.signals.discard_keyboard_interrupt();
        }
    }

    fn interval(&self) -> Duration {
        (self.sample_cost * INTERVAL_PER_SAMPLE_COST)
            .max(self.begun.elapsed() / ELAPSED_PER_INTERVAL)
            .clamp(MIN_SAMPLING_INTERVAL, MAX_SAMPLING_INTERVAL)
    }

    fn sleep_until_due(&self) {
        let rest = self.interval().saturating_sub(self.last_sample.elapsed());
        let mut fds = vec![PollFd::new(self.signals, PollFlags::IN)];
        // The ends of children are announced by a signal.
        let running = self.stages.iter().filter(|stage| stage.ended.is_none());
        let ends = running.filter_map(RunningStage::end_notice);
        fds.extend(ends.map(|end| PollFd::new(end, PollFlags::IN)));
        if let Ok(limit) = Timespec::try_from(rest) {
            let _ = poll(&mut fds, Some(&limit)); // an early return is harmless
        }
    }

    fn take_signals(&mut self, progress: &mut dyn FnMut(&Progress<'_>)) {
        while let Some(arrived) = self.signals.next() {
            if arrived.signal == Signal::TSTP.as_raw() {
                progress(&Progress::Pause);
                self.signals.stop();
            } else if arrived.signal == Signal::CONT.as_raw() {
                self.was_stopped = true;
            } else if arrived.signal != Signal::CHILD.as_raw() {
                self.end_stages(arrived);
            }
        }
    }

    /// Handles a request to end. A terminal also sends its signals to the stages, which handle them
    /// themselves. A signal that a process has sent to contend alone is passed on: the first one
    /// unchanged, the second one as SIGTERM, later ones as SIGKILL.
    fn end_stages(&mut self, arrived: ReceivedSignal) {
        if let Some(detach) = &mut self.detach {
            detach.is_due = true; // the signal is for contend alone
            return;
        }
        let running = self.stages.iter_mut().filter(|stage| stage.ended.is_none());
        if !arrived.from_process {
            running.for_each(|stage| stage.observed.asked_to_end = Some(arrived.signal));
            return;
        }
        // The same request may arrive twice: once for contend, and once for its process group.
        let now = Instant::now();
        if self.last_interrupt.is_none_or(|last| now.duration_since(last) > REPEATED_SIGNAL_TIME) {
            self.interrupts += 1;
        }
        self.last_interrupt = Some(now);
        let signal = match self.interrupts {
            1 => arrived.signal,
            2 => Signal::TERM.as_raw(),
            _ => Signal::KILL.as_raw(),
        };
        for stage in running {
            stage.observed.asked_to_end = Some(signal);
            if let Some(signal) = Signal::from_named_raw(signal) {
                for pid in stage.tree.process_ids().chain([stage.pid]) {
                    let _ = kill_process(pid, signal); // the process may have ended
                }
            }
        }
    }

    /// Handles notifications about children: stopped and ended stages, and ended orphans.
    fn collect_children(&mut self) {
        let now = self.begun.elapsed();
        let mut some_ended = false;
        for index in 0..self.stages.len() {
            if self.stages[index].ended.is_some() {
                continue;
            }
            self.stages[index].collect(now, &mut *self.buffer);
            if self.stages[index].ended.is_some() {
                some_ended = true;
                if let Some(reader) = self.stages.get_mut(index + 1) {
                    reader.record_end_of_input(now, &mut *self.buffer);
                }
            }
        }
        if some_ended {
            self.adopt_orphans();
        }
        // Orphans of the stages become children of contend. Stages and the shell are reaped
        // elsewhere.
        while let Ok(Some((pid, Change::Ended))) = child::peek(Which::Any) {
            if self.is_awaited(pid) {
                break; // the next round reaps it
            }
            let Ok(reaped) = child::reap(pid) else { break };
            match self.stages.iter_mut().find(|stage| stage.tree.has_seen(pid)) {
                Some(stage) => stage.add_orphan(now, reaped.usage),
                None => self.orphans_cpu += reaped.usage.cpu(),
            }
        }
    }

    /// Reaps exiting processes: a process whose output is already closed, so that its reader could
    /// end, may still need a moment in the kernel. Waits for at most [`MAX_EXIT_TIME`]. Background
    /// processes are left running.
    fn collect_last_orphans(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < MAX_EXIT_TIME {
            self.collect_children();
            if !own_children().into_iter().any(|pid| Some(pid) != self.shell_pid && is_exiting(pid))
            {
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn is_awaited(&self, pid: Pid) -> bool {
        Some(pid) == self.shell_pid
            || self.stages.iter().any(|stage| stage.pid == pid && stage.ended.is_none())
    }

    /// Adds orphans to ended stages. Processes that a stage has left running are now children of
    /// contend. Those that can write to the stage's output still belong to the stage: its reader
    /// waits for them.
    fn adopt_orphans(&mut self) {
        for pid in own_children() {
            let known = self.is_awaited(pid) || self.stages.iter().any(|s| s.tree.has_seen(pid));
            if !known {
                let ended = self.stages.iter_mut().filter(|stage| stage.ended.is_some());
                ended.for_each(|stage| stage.tree.adopt(pid));
            }
        }
    }

    fn sample_all(&mut self) {
        let begun = Instant::now();
        let time = begun.duration_since(self.last_sample);
        self.last_sample = begun;
        let now = begun.duration_since(self.begun);
        let refresh = begun >= self.next_refresh;
        if refresh {
            // Sample the pipes first: while contend runs on a CPU that a writer needs, the reader
            // empties them.
            self.sample_pipes();
        }
        self.sample_stages(now, time);
        let states = self.states();
        if let Some(log) = &mut self.states {
            log.note(now, &states);
        }
        self.work.add(&states, time, now);
        self.critical.add(&states, &self.work, time);
        self.timeline.sample(now, &self.critical, counters(&self.stages, &self.fills));
        self.check_first_outputs(now);
        self.count_runnable();
        let check_exec = refresh || now < EXEC_CHECK_TIME;
        self.sample_io(now, refresh);
        for stage in self.stages.iter_mut().filter(|stage| stage.ended.is_none()) {
            if refresh {
                stage.refresh(&mut *self.buffer);
            }
            if check_exec {
                stage.decide_tracing(&self.shell_program);
            }
        }
        if refresh {
            self.next_refresh = begun + SEARCH_INTERVAL;
        }
        self.ticks += 1;
        // The cost includes waking up and going to sleep again.
        let cpu_time = cpu::own_time();
        let cost = cpu_time.saturating_sub(self.cpu_time);
        self.cpu_time = cpu_time;
        self.sample_cost = (self.sample_cost * 7 + cost) / 8;
    }

    /// Samples all stages, as close together in time as possible. Sampling takes a CPU that a stage
    /// could use, so later stages are found queued slightly too often. Each time, another stage is
    /// first, which distributes this error evenly.
    fn sample_stages(&mut self, now: Duration, time: Duration) {
        let stopped = std::mem::take(&mut self.was_stopped);
        let count = self.stages.len();
        let first = usize::try_from(self.ticks).unwrap_or(0) % count;
        for index in (first..count).chain(0..first) {
            let stage = &mut self.stages[index];
            if stage.ended.is_some() && !stage.has_lingering_processes() {
                continue;
            }
            if stopped && self.detach.is_some() {
                // Only contend was stopped; what the stages did meanwhile is unknown.
            } else if stopped {
                stage.tree.seen.waiting[Wait::Stopped as usize] += time;
            } else {
                stage.sample(now, time, &mut *self.buffer);
            }
        }
    }

    /// Reads the stages' counters of bytes and calls, last stage first. Without `all`, skips stages
    /// that do not need it. If a reader waits for input, and its writer is found afterwards to have
    /// written nothing, then the reader has read only its libraries.
    fn sample_io(&mut self, now: Duration, all: bool) {
        let mut waiting_reader = None;
        for index in (0..self.stages.len()).rev() {
            let stage = &mut self.stages[index];
            if stage.ended.is_none() && (all || stage.needs_io(now)) {
                stage.sample_io(now, &mut *self.buffer);
            }
            let reads = stage.reads_before_input();
            if let Some(reads) = waiting_reader
                && self.stages[index].check_nothing_written(&mut *self.buffer)
            {
                self.stages[index + 1].record_startup_reads(reads);
            }
            waiting_reader = reads;
        }
        for index in 1..self.stages.len() {
            if self.stages[index].first_read_was_at(now) {
                self.stages[index - 1].record_first_output();
            }
        }
    }

    /// Checks pipes for first outputs. Skips a pipe whose reader has ended, because opening the
    /// pipe to read its fill could keep the writer from noticing the end.
    fn check_first_outputs(&mut self, now: Duration) {
        for index in 1..self.stages.len() {
            if self.stages[index].ended.is_none() {
                self.stages[index - 1].check_first_output(now);
            }
        }
    }

    fn sample_pipes(&mut self) {
        for (fills, stage) in self.fills.iter_mut().zip(&self.stages) {
            fills.sample(stage.tree.ends().output.as_ref());
        }
        self.input_fill.sample(self.stages[0].tree.ends().input.as_ref());
    }

    /// Returns the states of the stages at the last sample; `None` for an ended stage.
    fn states(&self) -> Vec<Option<State>> {
        let state = |stage: &RunningStage| stage.is_running().then(|| stage.tree.state());
        self.stages.iter().map(state).collect()
    }

    fn count_runnable(&mut self) {
        let active =
            |stage: &&RunningStage| stage.is_running() && stage.tree.state() == State::Active;
        self.runnable += self.stages.iter().filter(active).count() as f64;
    }

    fn report(&self, progress: &mut dyn FnMut(&Progress<'_>)) {
        let stages: Vec<_> = self
            .stages
            .iter()
            .map(|stage| ProgressStage {
                state: stage.is_running().then(|| stage.tree.state()),
                bytes_in: stage.observed.io.map(|io| io.read_bytes),
                bytes_out: stage.observed.io.map(|io| io.write_bytes),
                time: stage.tree.seen,
                run_queue: stage.tree.run_queue(),
                input: stage.input_progress(),
                may_write_to_terminal: stage.may_write_to_terminal(),
            })
            .collect();
        progress(&Progress::Running { elapsed: self.begun.elapsed(), stages: &stages });
    }

    fn into_raw(mut self, own_before: Usage) -> RawRun {
        let own = child::own_usage();
        let now = self.begun.elapsed();
        self.timeline.finish(now, self.critical, counters(&self.stages, &self.fills));
        let stages: Vec<_> = self.stages.into_iter().map(RunningStage::into_raw).collect();
        RawRun {
            wall: stages.iter().map(|stage| stage.ended).max().unwrap_or_default(),
            stages,
            fills: self.fills,
            input_fill: self.input_fill,
            pipefail: self.pipefail,
            shell_status: None,
            interrupted: self.signals.interrupted(),
            orphans_cpu: self.orphans_cpu,
            ticks: self.ticks,
            own_cpu: (own.user + own.system).saturating_sub(own_before.user + own_before.system),
            own_peak_rss: procfs::own_peak_rss(),
            timeline: self.timeline,
            states: self.states,
            runnable_mean: self.runnable / (self.ticks.max(1) as f64),
        }
    }
}

/// Returns the counters of the stages, first to last, with the fill of the pipe behind each.
fn counters<'a>(
    stages: &'a [RunningStage],
    fills: &'a [FillSamples],
) -> impl Iterator<Item = Counters> + 'a {
    let fills = fills.iter().map(FillSamples::total).chain([FillSum::default()]);
    stages.iter().zip(fills).map(|(stage, output_fill)| stage.counters(output_fill))
}

/// Reads the clocks of a trace.
fn clocks() -> Clocks {
    Clocks {
        monotonic: nanoseconds(ClockId::Monotonic),
        boottime: nanoseconds(ClockId::Boottime),
        realtime: nanoseconds(ClockId::Realtime),
    }
}

/// Returns the children of this process, including inherited orphans.
fn own_children() -> Vec<Pid> {
    children_of(rustix::process::getpid()).unwrap_or_default()
}

fn is_exiting(pid: Pid) -> bool {
    Stat::of(pid).is_ok_and(|stat| stat.exiting || stat.state == b'Z')
}

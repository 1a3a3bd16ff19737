//! What the observation has shown, as the figures on which symptoms are judged.

#[cfg(test)]
pub mod testing;

use std::collections::{BTreeMap, HashSet};

use contend_record::doctor::{Cause, Relation, Runtime, ThreadName, ThreadState};
use contend_record::remedy::Library;
use contend_sys::procfs::{Io, Stat, ticks};

use crate::futex::Primitive;
use crate::goroutines::Goroutines;
use crate::observe::Observation;
use crate::processes::{Observed, PipeEnd};
use crate::runtime;
use crate::stacks::Code;
use crate::timeline::{self, Ended, Executions, STATES, Timeline, Track, Wakes};
use crate::wait::{Object, Wait};

/// Length of a run that only checks a condition, and goes back to sleep, in nanoseconds.
const GLANCE_NANOS: u64 = 262_144;

/// Share of the periods of a quota from which it limits the program.
const MIN_THROTTLED: f64 = 0.1;
/// Number of examined threads of a process from which the code of its others is estimated.
const MIN_EXAMINED: usize = 3;
/// Shortest observation from which the load of other programs is known: the kernel counts it in ticks of
/// 10 ms.
const MIN_LOAD_SECONDS: f64 = 0.2;

/// Figures about the program. Shares are of the length of the observation, unless stated otherwise.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Length of the observation, in seconds.
    pub wall: f64,
    /// Number of CPUs that the program may use at the same time.
    pub cpus: f64,
    /// Number of CPUs of the machine that are online.
    pub cpus_online: f64,
    /// Mean number of threads that ran at the same time.
    pub running: f64,
    /// Mean number of threads that were queued for a CPU.
    pub queued: f64,
    /// CPU time of the observed threads and of children that ended, in seconds.
    pub cpu: f64,
    /// Part of that in the kernel, in seconds.
    pub system: f64,
    /// CPU time of children that were not observed, in seconds.
    pub unseen_cpu: f64,
    /// CPU time of other programs, as a share of the machine's CPUs; 0 if the observation was too short to
    /// tell.
    pub others_share: f64,
    /// Share of the periods of its CPU quota in which the program was stopped.
    pub throttled: f64,
    /// The threads, those with the most CPU time first.
    pub threads: Vec<ThreadFacts>,
    /// The processes.
    pub processes: Vec<ProcessFacts>,
    /// Threads that have ended.
    pub ended: Ended,
    /// Executions of programs that began during the observation.
    pub programs: Vec<(Box<str>, Executions)>,
    /// ID of the thread that ran alone for longest, and that time in seconds; `None` if no context
    /// switches were recorded.
    pub longest_alone: Option<(i32, f64)>,
    /// Share of the time before that, in which at least two threads ran.
    pub together_before: f64,
    /// Owners of the locks that threads waited for, as samples have found them.
    pub lock_owners: BTreeMap<u64, BTreeMap<i32, u64>>,
    /// Names of the files to which locks belong that threads waited for, by address.
    pub lock_files: BTreeMap<u64, String>,
    /// Share of the readings in which a process held a file lock.
    pub file_lock_share: f64,
    /// Minor page faults of all processes, per second.
    pub faults_per_second: f64,
    /// Whether context switches were recorded.
    pub has_switches: bool,
    /// Shares of the time by number of running threads; the last one includes higher numbers.
    levels: Vec<f64>,
    causes: Vec<f64>,
    wakes: Vec<((i32, i32), Wakes)>,
}

/// Figures about a thread. Shares are of the length of the observation.
#[derive(Debug, Clone)]
pub struct ThreadFacts {
    /// Its name and IDs.
    pub name: ThreadName,
    /// Runtime of its process.
    pub runtime: Option<Runtime>,
    /// Share of the time for which it was observed.
    pub life: f64,
    /// Share of the time that it ran.
    pub running: f64,
    /// Share of the time that it was queued.
    pub queued: f64,
    /// Shares of the time by state, indexed by [`ThreadState`]. There may be very many threads.
    states: [f32; STATES],
    /// Its waits, with shares of the time; longest first.
    pub waits: Vec<(Wait, f64)>,
    /// Number of times per second that it began to run.
    pub runs_per_second: f64,
    /// Number of times that it began to run.
    pub slices: u64,
    /// Mean length of its runs, in seconds; 0 if unknown.
    pub run_length: f64,
    /// Number of its runs that were longer than a glance at a condition.
    pub long_runs: f64,
    /// Median length of its waits, in seconds; 0 if unknown.
    pub wait_length: f64,
    /// Number of its waits per second, by context switches.
    pub waits_per_second: f64,
    /// Number of times per second that it was preempted or yielded.
    pub preemptions_per_second: f64,
    /// Where it executes; `None` if that was not examined.
    pub code: Option<Box<Code>>,
    /// Number of short sleeps.
    pub short_sleeps: u64,
    /// Number of these during which another thread began to run when none did.
    pub sleeps_with_event: u64,
}

/// Figures about a process.
#[derive(Debug, Clone)]
pub struct ProcessFacts {
    /// The PID.
    pub pid: i32,
    /// Its command line.
    pub command: String,
    /// Its runtime, if it was recognised.
    pub runtime: Option<Runtime>,
    /// Increase of bytes and calls; `None` if they may not be read.
    pub io: Option<Io>,
    /// Its libraries, as far as they matter.
    pub libraries: Vec<Library>,
    /// The pipes at its standard input and output.
    pub pipes: HashSet<PipeEnd>,
    /// Mean number of its threads that ran.
    pub running: f64,
    /// The work of its goroutines; `None` if it is not a program in Go, or that was not examined.
    pub goroutines: Option<Goroutines>,
}

impl ThreadFacts {
    /// Returns the share of the time in a state.
    pub fn in_state(&self, state: ThreadState) -> f64 {
        f64::from(self.states[state as usize])
    }

    /// Returns the share of the time in waits that `is_it` accepts.
    pub fn waiting(&self, is_it: impl Fn(&Wait) -> bool) -> f64 {
        self.waits.iter().filter(|(wait, _)| is_it(wait)).map(|(_, share)| share).sum()
    }

    /// Returns the share of the time that it spends in spin loops, as far as that was examined.
    pub fn spinning(&self) -> f64 {
        self.code.as_ref().map_or(0.0, |code| code.spinning) * self.running
    }

    /// Returns whether the thread only serves its runtime, such as a compiler or a garbage collector.
    pub fn is_helper(&self) -> bool {
        runtime::is_helper(self.runtime, &self.name.name)
    }

    /// Returns the share of the time in waits that end by a timer.
    pub fn in_timers(&self) -> f64 {
        self.waiting(|wait| wait.is_timer(self.runtime))
    }
}

impl Facts {
    /// Computes the figures of an observation of a program on a machine with `cpus_online` CPUs.
    pub fn of(observation: &Observation, cpus_online: f64) -> Self {
        let cpus = observation.cpus;
        let timeline = &observation.timeline;
        let wall = nonzero(observation.length.as_secs_f64());
        let mut threads: Vec<ThreadFacts> = timeline
            .tracks
            .iter()
            .map(|(id, track)| (*id, track.as_ref()))
            .chain(timeline.finished.iter().map(|(id, track)| (*id, track)))
            .map(|(id, track)| thread(observation, id, track, wall))
            .collect();
        // A stable sort would need as much memory again, at the peak of what contend uses.
        threads.sort_unstable_by(|a, b| {
            b.running.total_cmp(&a.running).then_with(|| a.name.tid.cmp(&b.name.tid))
        });
        estimate_codes(&mut threads);
        let states = state_seconds(timeline);
        let running = states[ThreadState::Running as usize] / wall;
        let queued = states[ThreadState::Runnable as usize] / wall;
        let (user, system, faults) = totals(observation);
        let cpu = running * wall;
        let nanos = nonzero(timeline.length() as f64);
        let mut levels: Vec<f64> =
            timeline.levels.iter().map(|&time| time as f64 / nanos).collect();
        while levels.len() > 1 && levels.last() == Some(&0.0) {
            levels.pop();
        }
        let unseen_cpu = unseen_cpu(observation);
        let known = cpu + unseen_cpu + observation.own_cpu.as_secs_f64();
        let others = observation.load.busy.as_secs_f64() - known;
        let others_share = (others / (wall * cpus_online)).clamp(0.0, 1.0);
        Self {
            wall,
            cpus,
            cpus_online,
            running,
            queued,
            cpu,
            system: (system / nonzero(user + system) * cpu).min(cpu),
            unseen_cpu,
            others_share: if wall < MIN_LOAD_SECONDS { 0.0 } else { others_share },
            throttled: observation.throttling.share(),
            processes: observation
                .processes
                .iter()
                .map(|observed| process(observed, &threads))
                .collect(),
            threads,
            ended: timeline.ended,
            programs: timeline.programs.iter().map(|(name, all)| (name.clone(), *all)).collect(),
            longest_alone: timeline.longest_alone.map(|(id, nanos)| (id, seconds(nanos))),
            together_before: seconds(timeline.together_before) / wall,
            lock_owners: observation.lock_owners.clone(),
            lock_files: observation.lock_files.clone(),
            file_lock_share: observation.file_lock_share,
            faults_per_second: faults / wall,
            has_switches: timeline.has_switches(),
            levels,
            causes: timeline.causes.iter().map(|&time| time as f64 / nanos).collect(),
            wakes: timeline.wakes.iter().map(|(pair, wakes)| (*pair, *wakes)).collect(),
        }
    }

    /// Returns whether a CPU quota stops the program so often that other programs are not the reason why
    /// its threads wait for CPUs.
    pub fn is_throttled(&self) -> bool {
        self.throttled >= MIN_THROTTLED
    }

    /// Returns the share of the time with exactly `running` threads on CPUs.
    pub fn at_level(&self, running: usize) -> f64 {
        self.levels.get(running).copied().unwrap_or(0.0)
    }

    /// Returns the share of the time with at least `running` threads on CPUs.
    pub fn from_level(&self, running: usize) -> f64 {
        self.levels.iter().skip(running).sum()
    }

    /// Returns the share of the time with a cause.
    pub fn by(&self, cause: Cause) -> f64 {
        self.causes.get(cause as usize).copied().unwrap_or(0.0)
    }

    /// Returns the number of times that `waker` woke `woken`, as recorded or inferred.
    pub fn wakes(&self, waker: i32, woken: i32) -> Wakes {
        let pair = self.wakes.iter().find(|(pair, _)| *pair == (waker, woken));
        pair.map_or_else(Wakes::default, |(_, wakes)| *wakes)
    }

    /// Returns how often a thread woke others, as recorded or inferred.
    pub fn wakes_by(&self, waker: i32) -> u64 {
        self.all_wakes().filter(|(by, ..)| *by == waker).map(|(.., wakes)| wakes.count).sum()
    }

    /// Returns all pairs of wakers and woken threads, with the number of wake-ups.
    pub fn all_wakes(&self) -> impl Iterator<Item = (i32, i32, Wakes)> + '_ {
        self.wakes.iter().map(|((waker, woken), wakes)| (*waker, *woken, *wakes))
    }

    /// Returns the sum of all executions of programs that only sleep.
    pub fn sleep_programs(&self) -> Executions {
        let mut sum = Executions::default();
        for (_, program) in self.programs.iter().filter(|(name, _)| timeline::only_sleeps(name)) {
            sum.count += program.count;
            sum.run_nanos += program.run_nanos;
            sum.life_nanos += program.life_nanos;
            sum.short_sleeps += program.short_sleeps;
            sum.sleeps_with_event += program.sleeps_with_event;
        }
        sum
    }

    /// Returns the thread that most often owned the lock at this address when others were found to wait
    /// for it, and its share of these samples. Other programs cannot be seen.
    pub fn owner(&self, address: u64) -> Option<(&ThreadFacts, f64)> {
        let owners = self.lock_owners.get(&address)?;
        let (id, count) = owners.iter().max_by_key(|(_, count)| **count)?;
        let sum: u64 = owners.values().sum();
        Some((self.thread(*id)?, *count as f64 / sum.max(1) as f64))
    }

    /// Returns the thread with this ID, if it was observed.
    pub fn thread(&self, id: i32) -> Option<&ThreadFacts> {
        self.threads.iter().find(|thread| thread.name.tid == id)
    }

    /// Returns the threads that work for the program: those that use CPU time, without helpers of
    /// the runtime.
    pub fn workers(&self) -> impl Iterator<Item = &ThreadFacts> {
        const MIN_SHARE: f64 = 0.005;
        self.threads.iter().filter(|thread| thread.running > MIN_SHARE && !thread.is_helper())
    }

    /// Returns the share of the wall time that would be saved if the program's CPU time were spread
    /// evenly over `threads` threads and its CPUs.
    pub fn parallel_gain(&self, threads: usize) -> f64 {
        self.parallel_gain_of(self.running, threads)
    }

    /// Returns the share of the wall time that would be saved if only `work`, a mean number of running
    /// threads, were left and spread as in [`Self::parallel_gain`].
    pub fn parallel_gain_of(&self, work: f64, threads: usize) -> f64 {
        // CPUs that other programs use are not free.
        let free = (self.cpus * (1.0 - self.others_share)).max(self.running);
        let width = free.min(threads.max(1) as f64).max(f64::MIN_POSITIVE);
        (1.0 - work / width).clamp(0.0, 1.0)
    }

    /// Returns the share of the CPU time in the kernel.
    pub fn system_share(&self) -> f64 {
        self.system / nonzero(self.cpu)
    }
}

fn process(observed: &Observed, threads: &[ThreadFacts]) -> ProcessFacts {
    let pid = observed.pid.as_raw_nonzero().get();
    let own: Vec<&ThreadFacts> = threads.iter().filter(|thread| thread.name.pid == pid).collect();
    let is_go = observed.runtime == Some(Runtime::Go);
    ProcessFacts {
        pid,
        command: observed.command.clone(),
        runtime: observed.runtime,
        io: observed.io_increase(),
        libraries: observed.libraries.found().unwrap_or_default(),
        pipes: observed.pipes.clone().unwrap_or_default(),
        running: own.iter().map(|thread| thread.running).sum(),
        goroutines: is_go.then(|| Goroutines::of(&own)).flatten(),
    }
}

/// Estimates the code of busy threads that were not examined from that of the others of the same process, if
/// there are several. Goroutines are judged by process in any case.
fn estimate_codes(threads: &mut [ThreadFacts]) {
    let mut examined: BTreeMap<i32, Vec<&Code>> = BTreeMap::new();
    for thread in &*threads {
        if let (Some(code), false) = (&thread.code, thread.runtime == Some(Runtime::Go)) {
            examined.entry(thread.name.pid).or_default().push(code);
        }
    }
    examined.retain(|_, codes| codes.len() >= MIN_EXAMINED);
    let mean = |(pid, codes): (i32, Vec<&Code>)| (pid, Box::new(Code::mean(&codes)));
    let means: BTreeMap<i32, Box<Code>> = examined.into_iter().map(mean).collect();
    for thread in threads.iter_mut().filter(|thread| thread.code.is_none()) {
        thread.code = means.get(&thread.name.pid).cloned();
    }
}

fn thread(observation: &Observation, id: i32, track: &Track, wall: f64) -> ThreadFacts {
    let share = |nanos: u64| seconds(nanos) / wall;
    let process = observation
        .processes
        .iter()
        .find(|process| process.pid.as_raw_nonzero().get() == track.process);
    let mut waits: Vec<(Wait, f64)> =
        track.waits.iter().map(|(wait, time)| (*wait, share(time.nanos))).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let runs = track.runs.count().max(track.slices);
    let code = observation.codes.get(&id).cloned().map(Box::new);
    ThreadFacts {
        name: ThreadName {
            pid: track.process,
            tid: id,
            name: observation.names.get(&id).cloned().unwrap_or_default(),
            function: code.as_ref().and_then(|code| code.main_function()).map(str::to_owned),
        },
        runtime: process.and_then(|process| process.runtime),
        life: share(track.life_nanos(observation.timeline.until())),
        running: share(track.states[ThreadState::Running as usize]),
        queued: share(track.states[ThreadState::Runnable as usize]),
        states: track.states.map(|nanos| narrow(share(nanos))),
        waits,
        runs_per_second: runs as f64 / wall,
        slices: runs,
        run_length: track.runs.mean_nanos() / 1e9,
        long_runs: runs as f64 * (1.0 - track.runs.share_below(GLANCE_NANOS)),
        wait_length: track.blocks.median_nanos() as f64 / 1e9,
        waits_per_second: track.blocks.count() as f64 / wall,
        preemptions_per_second: track.preemptions as f64 / wall,
        code,
        short_sleeps: track.short_sleeps,
        sleeps_with_event: track.sleeps_with_event,
    }
}

/// Returns user and system time in seconds, and the number of minor page faults, of all processes and
/// of the children that they waited for.
fn totals(observation: &Observation) -> (f64, f64, f64) {
    let (mut user, mut system, mut faults) = (0.0, 0.0, 0.0);
    for process in &observation.processes {
        let (Some(first), Some(last)) = (process.first, process.last) else { continue };
        let all = |stat: &Stat| {
            (
                stat.user_ticks + stat.children_user_ticks,
                stat.system_ticks + stat.children_system_ticks,
            )
        };
        let time = |after: u64, before: u64| ticks(after.saturating_sub(before)).as_secs_f64();
        user += time(all(&last).0, all(&first).0);
        system += time(all(&last).1, all(&first).1);
        faults += last.minor_faults.saturating_sub(first.minor_faults) as f64;
    }
    (user, system, faults)
}

/// Returns the CPU time of children that have ended without being observed, in seconds. Context switches
/// show all children.
fn unseen_cpu(observation: &Observation) -> f64 {
    if observation.timeline.has_switches() {
        return 0.0;
    }
    let (mut children, mut ended) = (0, 0);
    for process in &observation.processes {
        let (Some(first), Some(last)) = (process.first, process.last) else { continue };
        let of_children = |stat: Stat| stat.children_user_ticks + stat.children_system_ticks;
        children += of_children(last).saturating_sub(of_children(first));
        if process.has_ended() && process.relation == Relation::Descendant {
            ended += last.user_ticks + last.system_ticks + of_children(last);
        }
    }
    ticks(children.saturating_sub(ended)).as_secs_f64()
}

/// Threads that wait for the same lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiters {
    /// Number of threads.
    pub threads: usize,
    /// Sum of their shares of the time.
    pub share: f64,
}

/// Returns the waiting threads by the address of the lock, for locks in memory.
pub fn waiters(threads: &[ThreadFacts]) -> BTreeMap<u64, Waiters> {
    let mut by_address: BTreeMap<u64, Waiters> = BTreeMap::new();
    for thread in threads {
        for (wait, share) in &thread.waits {
            if let Object::Futex(futex) = wait.object
                && futex.primitive != Primitive::Condition
            {
                let waiters =
                    by_address.entry(futex.address).or_insert(Waiters { threads: 0, share: 0.0 });
                waiters.threads += 1;
                waiters.share += share;
            }
        }
    }
    by_address
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits are enough for a share")]
fn narrow(share: f64) -> f32 {
    share as f32
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Returns a number to divide by: `value`, but not 0.
fn nonzero(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE)
}

/// Returns the total time of all threads by state, in seconds, indexed by [`ThreadState`].
pub fn state_seconds(timeline: &Timeline) -> Vec<f64> {
    let mut sums: Vec<f64> = timeline.past_states.iter().map(|&nanos| seconds(nanos)).collect();
    for track in timeline.tracks.values() {
        for (sum, &nanos) in sums.iter_mut().zip(&track.states) {
            *sum += seconds(nanos);
        }
    }
    sums
}

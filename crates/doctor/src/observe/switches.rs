//! Follows the threads of the program, and reads their context switches.

use std::collections::{BTreeMap, HashSet};
use std::io;

use contend_record::doctor::Relation;
use contend_sys::perf::{Event, Record, Recorder};
use contend_sys::procfs::{self, with_descendants};
use contend_sys::waking::Waking;
use contend_sys::{Pid, cpu};
use rustix::io::Errno;

use super::{Config, Observer, Start, now};
use crate::descriptors::Budget;
use crate::{runtime, wakes};

/// Largest number of threads whose context switches are recorded from the start.
const MAX_FOLLOWED: usize = 2000;

/// Starts to record context switches of the found processes, and wake-ups by `waking`. Returns why that
/// is not possible, if it is not.
pub(super) fn record_switches(
    config: &Config,
    found: &[(Pid, Relation)],
    waking: Option<Waking>,
) -> (Option<Recorder>, Option<String>) {
    if !config.switches {
        return (None, Some("it was not requested".to_owned()));
    }
    let cpus = cpu::online_list();
    let mut recorder: Option<Recorder> = None;
    let mut followed: HashSet<Pid> = HashSet::new();
    let mut all: Vec<Pid> = found.iter().map(|(pid, _)| *pid).collect();
    loop {
        // A thread that was created before its creator was followed must be followed on its own; one
        // that was created later is followed already.
        let created: HashSet<i32> = recorder.iter_mut().flat_map(started).collect();
        let threads: Vec<Pid> = all
            .iter()
            .flat_map(|pid| procfs::threads(*pid))
            .filter(|id| !followed.contains(id) && !created.contains(&id.as_raw_nonzero().get()))
            .collect();
        if threads.is_empty() {
            break;
        }
        if threads.len() + followed.len() > MAX_FOLLOWED {
            let reason = format!("the program has more than {MAX_FOLLOWED} threads");
            return (None, Some(reason));
        }
        let count = (threads.len() + followed.len()) * cpus.len();
        let mut budget = Budget::new();
        if !budget.take(threads.len() * cpus.len()) {
            let reason = format!(
                "{count} file descriptors are needed, one for each thread and CPU, and only {} more may \
                 be opened (`ulimit -n`)",
                budget.left()
            );
            return (None, Some(reason));
        }
        for thread in threads {
            followed.insert(thread);
            let result = match &mut recorder {
                Some(recorder) => recorder.follow(thread),
                None => wakes::recorder(thread, waking).map(|new| recorder = Some(new)),
            };
            match result {
                Ok(()) => {}
                // It has ended in the meantime.
                Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                Err(error) => return (None, Some(why_no_switches(&error))),
            }
        }
        all = all.iter().flat_map(|pid| with_descendants(*pid)).collect();
        all.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        all.dedup();
    }
    match recorder {
        Some(recorder) => (Some(recorder), None),
        None => (None, Some("the program has ended".to_owned())),
    }
}

/// Returns the threads whose start is in the records.
fn started(recorder: &mut Recorder) -> Vec<i32> {
    let records = recorder.peek().iter();
    let is_start = |record: &&Record| matches!(record.event, Event::Started { .. });
    records.filter(is_start).map(|record| record.thread).collect()
}

fn why_no_switches(error: &io::Error) -> String {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    match error.kind() {
        io::ErrorKind::PermissionDenied => match level {
            Some(level) if level.trim().parse::<i32>().is_ok_and(|level| level > 2) => format!(
                "kernel.perf_event_paranoid is {}: set it to 2 or less, or run contend as root",
                level.trim()
            ),
            // A filter of system calls (seccomp) denies the call even for the user's own processes.
            _ if is_denied() => {
                "perf_event_open is not permitted here, as in containers with the usual filter of system \
                 calls (seccomp)"
                    .to_owned()
            }
            _ => "not permitted for processes of another user: run contend as root".to_owned(),
        },
        _ => format!("the kernel does not provide it ({error})"),
    }
}

/// Returns whether this process may not even record its own context switches.
fn is_denied() -> bool {
    Pid::from_raw(std::process::id().cast_signed())
        .is_some_and(|own| Recorder::new(own, &cpu::allowed_list()).is_err())
}

impl Observer<'_> {
    /// Reads the context switches up to now, and returns the threads that they are about, each at least
    /// once. Adds new threads and processes.
    pub(super) fn read_switches(&mut self) -> Vec<i32> {
        let mut active = std::mem::take(&mut self.active);
        active.clear();
        let Some(recorder) = &mut self.recorder else { return active };
        let mut executed: BTreeMap<i32, u64> = BTreeMap::new();
        let mut renamed: Vec<(i32, Box<str>)> = Vec::new();
        let (timeline, started, tick) = (&mut self.timeline, &mut self.started, self.tick);
        let mut trace = self.trace.as_mut();
        let (stacks, awake) = (&mut self.stacks, &mut self.awake);
        let mut enough: Vec<i32> = Vec::new();
        let duty_cycle = &mut self.duty_cycle;
        recorder.read(now(), &mut |record| {
            duty_cycle.note(matches!(record.event, Event::Started { .. }));
            match &record.event {
                Event::Started { .. } => {
                    started.insert(record.thread, (record.process, tick));
                }
                Event::Executed(name) => {
                    executed.insert(record.process, record.time);
                    renamed.push((record.thread, name.clone()));
                }
                Event::In | Event::Blocked | Event::Preempted => {
                    if active.last() != Some(&record.thread) {
                        active.push(record.thread);
                        awake.insert(record.process);
                    }
                }
                Event::Ended => drop(started.remove(&record.thread)),
                Event::At(stack) => {
                    if stacks.note(record.thread, stack) {
                        enough.push(record.thread);
                    }
                    return;
                }
                Event::Woke { .. } => return timeline.record(&record),
                Event::Renamed(name) => renamed.push((record.thread, name.clone())),
                Event::Lost(_) => {}
            }
            timeline.record(&record);
            if let Some(trace) = &mut trace {
                trace.record(&record);
                trace.note_moments(timeline);
            }
        });
        for thread in enough.into_iter().filter_map(Pid::from_raw) {
            recorder.stop_sampling(thread);
            self.budget.give_back(recorder.descriptors());
        }
        self.add_started();
        for (process, time) in executed {
            self.note_execution(process, time);
        }
        for (thread, name) in renamed {
            if let Some(known) = self.names.get_mut(&thread) {
                *known = name.into_string();
            }
        }
        active
    }

    /// Notes that a process has executed another program at `time`. Its other threads have ended, and the
    /// one that continues has the ID of the process, whichever it was.
    pub(super) fn note_execution(&mut self, process: i32, time: u64) {
        let Some(known) = self.processes.get_mut(&process) else { return };
        known.update_program();
        let runtime = known.runtime;
        if known.threads > 1 {
            let all = self.samplers.iter();
            let is_other =
                all.filter(|(id, sampler)| sampler.process == process && **id != process);
            let others: Vec<i32> = is_other.map(|(id, _)| *id).collect();
            for id in others {
                self.drop_thread(id);
                self.timeline.forget(id, time);
            }
        }
        let name = self.names.get(&process).map_or("", String::as_str);
        self.timeline.set_runtime(process, runtime, runtime::is_helper(runtime, name));
    }

    /// Starts to record the context switches of a thread that has been found later than the others, unless
    /// they are recorded already.
    pub(super) fn follow(&mut self, thread: Pid) {
        let id = thread.as_raw_nonzero().get();
        let Some(recorder) = &mut self.recorder else { return };
        if self.tick == 0 || self.timeline.tracks.contains_key(&id) {
            return;
        }
        let count = recorder.descriptors();
        if self.budget.take(count) && recorder.follow(thread).is_err() {
            self.budget.give_back(count); // samples still count
        }
    }

    /// Adds the threads that have started in earlier intervals and have not ended since. Their records
    /// suffice for those that live shorter.
    pub(super) fn add_started(&mut self) {
        let tick = self.tick;
        let lasting: Vec<(i32, i32, u64)> = self
            .started
            .iter()
            .filter(|(_, (_, started))| *started < tick)
            .map(|(thread, (process, started))| (*process, *thread, *started))
            .collect();
        for (process, thread, started) in lasting {
            self.started.remove(&thread);
            let (Some(pid), Some(id)) = (Pid::from_raw(process), Pid::from_raw(thread)) else {
                continue;
            };
            // An earlier thread had the same ID.
            if self.samplers.get(&thread).is_some_and(|sampler| sampler.found + 1 < started) {
                self.drop_thread(thread);
                self.vanished.retain(|vanished| *vanished != thread);
            }
            match self.processes.get(&process).filter(|known| !known.has_ended()) {
                Some(known) => self.add_thread(pid, id, known.runtime, Start::Observed),
                None => self.add_process(pid, Relation::Descendant, Start::Observed),
            }
        }
    }
}

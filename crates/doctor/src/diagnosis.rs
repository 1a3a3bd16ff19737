//! Turns an observation into a record: the figures, the findings and the diagnosis in words.

use std::collections::BTreeMap;

use contend_record::doctor::{
    Cause, DoctorRecord, Finding, Layer, LayerId, Moments, Observation as ObservationRecord,
    Process, Thread, ThreadState, ThreadWait,
};
use contend_record::stats::median;
use contend_record::warning::{Warning, WarningId};

use crate::facts::{Facts, ThreadFacts, state_seconds};
use crate::futex::Primitive;
use crate::observe::Observation;
use crate::symptom;
use crate::time_series::time_series;
use crate::wait::{Object, Wait};

/// Largest number of threads in a record.
const MAX_THREADS: usize = 100;
/// Largest number of waits of a thread in a record, and the smallest share of the observation for one.
const MAX_WAITS: usize = 3;
const MIN_WAIT: f64 = 0.01;
/// Load of other programs, as a share of the CPUs, from which the figures are less reliable.
const MAX_OTHERS: f64 = 0.1;
/// CPU time of unobserved children from which the figures lack them: at least this many seconds, and this
/// part of the program's.
const MIN_UNSEEN_SECONDS: f64 = 0.05;
const MAX_UNSEEN: f64 = 0.1;
/// Shortest observation from which a diagnosis is made, in seconds.
const MIN_SECONDS: f64 = 0.2;

/// Returns the record of an observation, without the fields about the machine and the command, which
/// the caller knows. `cpus_online` is the number of CPUs of the machine.
pub fn record(observation: &Observation, cpus_online: f64) -> DoctorRecord {
    let facts = Facts::of(observation, cpus_online);
    let findings = if facts.wall < MIN_SECONDS { Vec::new() } else { symptom::findings(&facts) };
    let moments = moments(&facts);
    let time_series = time_series(
        &observation.causes,
        &observation.timeline,
        observation.trace.as_ref().filter(|trace| trace.is_complete()),
        &findings,
        |cause| reported(cause, &facts),
    );
    let timeline = &observation.timeline;
    let states = state_seconds(timeline);
    DoctorRecord {
        schema: contend_record::doctor::SCHEMA.to_owned(),
        observed_seconds: facts.wall,
        diagnosis: diagnosis(&facts, &moments, &findings),
        thread_seconds: timeline.life_nanos() as f64 / 1e9,
        state_seconds: by_state(&states),
        cpu_seconds: facts.cpu,
        system_seconds: facts.system,
        cpus: facts.cpus,
        processes: processes(observation),
        threads: threads(&facts, &findings),
        warnings: warnings(observation, &facts),
        observation: ObservationRecord {
            layers: layers(observation),
            processes: observation.processes.len() as u64,
            threads: observation
                .processes
                .iter()
                .map(|process| process.most_threads.max(1) as u64)
                .sum(),
            samples: observation.samples,
            interval_seconds: median(&observation.intervals),
            switches: timeline.has_switches().then_some(timeline.records),
            switches_share: timeline.recorded_share(),
            own_cpu_seconds: observation.own_cpu.as_secs_f64(),
            others_cpu_share: (facts.wall >= MIN_SECONDS).then_some(facts.others_share),
        },
        moments,
        time_series,
        findings,
        ..DoctorRecord::default()
    }
}

fn by_state(seconds: &[f64]) -> BTreeMap<ThreadState, f64> {
    let all = ThreadState::ALL.iter().map(|&state| (state, seconds[state as usize]));
    all.filter(|(_, seconds)| *seconds > 0.0).collect()
}

fn moments(facts: &Facts) -> Vec<Moments> {
    let mut moments: Vec<Moments> = Cause::ALL
        .iter()
        .map(|&cause| {
            let share = facts.by(cause);
            Moments { cause: reported(cause, facts), seconds: share * facts.wall, share }
        })
        .filter(|moments| moments.share > 0.0)
        .collect();
    moments.sort_by(|a, b| b.share.total_cmp(&a.share));
    moments
}

/// Returns the cause as which `cause` is reported. Which programs used the CPUs is known only for the whole
/// observation.
fn reported(cause: Cause, facts: &Facts) -> Cause {
    let others = facts.others_share > MAX_OTHERS && !facts.is_throttled();
    if others && cause == Cause::Limited { Cause::OtherLoad } else { cause }
}

fn processes(observation: &Observation) -> Vec<Process> {
    let mut processes: Vec<Process> = observation
        .processes
        .iter()
        .map(|process| {
            let pid = process.pid.as_raw_nonzero().get();
            let living = observation.timeline.tracks.values();
            let runs = living
                .filter(|track| track.process == pid)
                .map(|track| track.states[ThreadState::Running as usize]);
            let past = observation.timeline.past_runs.get(&pid).copied().unwrap_or(0);
            let io = process.io_increase();
            Process {
                pid,
                parent: process.parent,
                command: process.command.clone(),
                runtime: process.runtime,
                libraries: process.libraries.found(),
                threads: process.most_threads,
                cpu_seconds: (past + runs.sum::<u64>()) as f64 / 1e9,
                read_bytes: io.map(|io| io.read_bytes),
                write_bytes: io.map(|io| io.write_bytes),
                reads: io.map(|io| io.reads),
                writes: io.map(|io| io.writes),
                relation: process.relation,
            }
        })
        .collect();
    processes.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    processes.truncate(MAX_THREADS);
    processes
}

fn threads(facts: &Facts, findings: &[Finding]) -> Vec<Thread> {
    let is_named = |thread: &ThreadFacts| {
        findings.iter().any(|finding| finding.threads.contains(&thread.name))
    };
    // The busiest ones, and those of the findings.
    let named = facts.threads.iter().skip(MAX_THREADS).filter(|thread| is_named(thread));
    let named: Vec<&ThreadFacts> = named.take(MAX_THREADS).collect();
    let mut chosen: Vec<&ThreadFacts> =
        facts.threads.iter().take(MAX_THREADS - named.len()).collect();
    chosen.extend(named);
    let record = |thread: &ThreadFacts| {
        let states: Vec<f64> =
            ThreadState::ALL.iter().map(|&state| thread.in_state(state) * facts.wall).collect();
        Thread {
            name: thread.name.clone(),
            observed_seconds: thread.life * facts.wall,
            state_seconds: by_state(&states),
            slices: thread.slices,
            waits: waits(thread, facts),
        }
    };
    chosen.into_iter().map(record).collect()
}

/// Returns the longest waits of a thread.
fn waits(thread: &ThreadFacts, facts: &Facts) -> Vec<ThreadWait> {
    let long = thread.waits.iter().filter(|(_, share)| *share >= MIN_WAIT);
    let wait = |(wait, share): &(Wait, f64)| {
        let holder = match wait.object {
            Object::Futex(futex) => facts.owner(futex.address).map(|(holder, _)| holder.name.tid),
            _ => None,
        };
        ThreadWait { state: wait.state, object: object(wait), seconds: share * facts.wall, holder }
    };
    long.take(MAX_WAITS).map(wait).collect()
}

/// Names the object of a wait; `None` if it is unknown.
fn object(wait: &Wait) -> Option<String> {
    match wait.object {
        Object::Futex(futex) => Some(match futex.primitive {
            Primitive::Lock => format!("lock {:#x}", futex.address),
            Primitive::Condition => format!("condition {:#x}", futex.address),
            Primitive::InterpreterLock => "interpreter lock".to_owned(),
        }),
        Object::Descriptor(fd) => Some(format!("descriptor {fd}")),
        Object::Time(Some(time)) => Some(format!("sleep of {time:?}")),
        Object::Descriptors(Some(time)) => Some(format!("descriptors, at most {time:?}")),
        Object::Descriptors(None) => Some("descriptors".to_owned()),
        Object::Time(None) | Object::Unknown => None,
    }
}

fn layers(observation: &Observation) -> Vec<Layer> {
    let has_io = observation.processes.iter().any(|process| process.first_io.is_some());
    let layer = |id: LayerId, used: bool, reason: Option<&str>| Layer {
        id,
        used,
        reason: reason.filter(|_| !used).map(str::to_owned),
    };
    let owner = "not permitted for processes of another user, and with kernel.yama.ptrace_scope 1 or \
                 more only for children of contend: start the program with `contend doctor -- COMMAND`, \
                 or run contend as root";
    vec![
        layer(LayerId::Scheduler, true, None),
        layer(
            LayerId::Switches,
            observation.no_switches.is_none(),
            observation.no_switches.as_deref(),
        ),
        layer(LayerId::Wakes, observation.no_wakes.is_none(), observation.no_wakes.as_deref()),
        layer(LayerId::SystemCalls, observation.shows_calls, Some(owner)),
        layer(
            LayerId::WaitChannels,
            observation.shows_names,
            Some(if observation.shows_calls { "system calls tell more" } else { owner }),
        ),
        layer(
            LayerId::Io,
            has_io,
            Some("not permitted for processes of another user: run contend as root"),
        ),
    ]
}

fn warnings(observation: &Observation, facts: &Facts) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: WarningId, message: String| warnings.push(Warning::new(id, message));
    if facts.others_share > MAX_OTHERS {
        let share = 100.0 * facts.others_share;
        let message = format!("other programs used {share:.0} % of the CPUs");
        warn(WarningId::OtherLoad, message);
    }
    let steal = observation.load.steal.as_secs_f64() / (facts.wall * facts.cpus_online);
    if steal > 0.05 {
        let message = format!("the hypervisor took {:.0} % of the CPU time (steal)", 100.0 * steal);
        warn(WarningId::Steal, message);
    }
    if observation.unsampled > 0 {
        let message = format!(
            "{} threads were not sampled: contend has no more file descriptors (`ulimit -n`)",
            observation.unsampled
        );
        warn(WarningId::Unobserved, message);
    }
    if observation.left_out > 0 {
        let message = format!(
            "{} processes were not observed, because there were too many",
            observation.left_out
        );
        warn(WarningId::Unobserved, message);
    }
    if observation.processes.is_empty() {
        let message =
            "no process could be observed: it had ended, or this user may not see it in /proc";
        warn(WarningId::Unobserved, message.to_owned());
    }
    if facts.unseen_cpu > MIN_UNSEEN_SECONDS && facts.unseen_cpu > MAX_UNSEEN * facts.cpu {
        let message = format!(
            "children that were too short-lived to be observed used {:.2} s of CPU time, which is in no \
             figure; context switches would show them",
            facts.unseen_cpu
        );
        warn(WarningId::Unobserved, message);
    }
    if observation.timeline.lost > 0 {
        let message = format!(
            "{} context switches were lost, because the kernel's buffer was full",
            observation.timeline.lost
        );
        warn(WarningId::Approximate, message);
    }
    if facts.wall < MIN_SECONDS {
        let message =
            format!("the observation was too short for a diagnosis ({:.2} s)", facts.wall);
        warn(WarningId::FewSamples, message);
    }
    warnings
}

/// Returns what a program waited for whose threads hardly ran, by their longest waits.
fn idle(facts: &Facts) -> &'static str {
    const STATES: [ThreadState; 7] = [
        ThreadState::Poll,
        ThreadState::Condition,
        ThreadState::Sleep,
        ThreadState::Socket,
        ThreadState::Pipe,
        ThreadState::Terminal,
        ThreadState::Other,
    ];
    let time = |state: ThreadState| -> f64 {
        facts.threads.iter().map(|thread| thread.in_state(state)).sum()
    };
    let longest = STATES.into_iter().max_by(|a, b| time(*a).total_cmp(&time(*b)));
    match longest.unwrap_or(ThreadState::Poll) {
        ThreadState::Condition => "No thread ran: they waited for work, or for each other.",
        ThreadState::Sleep => "No thread ran: it slept.",
        ThreadState::Socket => "No thread ran: it waited for another program at a socket.",
        ThreadState::Pipe => "No thread ran: it waited for another program at a pipe.",
        ThreadState::Terminal => "No thread ran: it waited for the terminal.",
        ThreadState::Other => "No thread ran: it waited for an event in the kernel.",
        _ => "It was idle: no work arrived.",
    }
}

/// Returns the diagnosis in a paragraph.
fn diagnosis(facts: &Facts, moments: &[Moments], findings: &[Finding]) -> String {
    if facts.wall < MIN_SECONDS {
        return "The observation was too short for a diagnosis.".to_owned();
    }
    let use_of_cpus = format!(
        "The program used {:.1} of {} on average.",
        facts.running,
        match facts.cpus {
            1.0 => "1 CPU".to_owned(),
            cpus if (cpus - cpus.round()).abs() < 0.05 => format!("{cpus:.0} CPUs"),
            cpus => format!("{cpus:.1} CPUs"),
        }
    );
    if let Some(first) = findings.first() {
        let gain = first.gain_share.map_or_else(String::new, |gain| {
            format!(" A remedy would save about {:.0} % of the time.", 100.0 * gain)
        });
        return format!("{use_of_cpus} {}{gain}", first.message);
    }
    let most = moments.first().map_or(Cause::Unknown, |moments| moments.cause);
    let workers = facts.workers().count();
    let verdict = match most {
        Cause::Busy => "All its CPUs were busy with its own work: nothing to gain from concurrency."
            .to_owned(),
        Cause::Serial if workers <= 1 => {
            "A single thread did all the work, and nothing waited for it: the program is not parallel."
                .to_owned()
        }
        Cause::Serial => "It ran, but rarely on all CPUs at the same time; no symptom explains a loss."
            .to_owned(),
        Cause::OtherLoad => "Other programs used the CPUs that it was ready to use.".to_owned(),
        Cause::Limited => "Its threads were ready, but got no CPU at once.".to_owned(),
        Cause::Lock => "Its threads waited for locks, and none ran.".to_owned(),
        Cause::Sleep => "It slept for short times, and nothing waited for that.".to_owned(),
        Cause::Disk => "It waited for a disk or a file system.".to_owned(),
        Cause::Child => "It waited for a child process.".to_owned(),
        Cause::Idle => idle(facts).to_owned(),
        Cause::Stopped => "It was stopped.".to_owned(),
        Cause::Unknown => "The reason for its waits could not be seen.".to_owned(),
    };
    format!("{use_of_cpus} {verdict}")
}

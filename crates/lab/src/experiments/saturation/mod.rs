//! Family `saturation`: independent workers, from one to twice the number of CPUs.
//!
//! ```text
//!  prepare (not timed)          timed                            after
//!  ──────────────────────────   ──────────────────────────────   ─────────────────────
//!  fork processes, start        gate opens ... last worker has   reap all processes
//!  threads, prepare each        finished its work
//!  workload, wait at the gate
//! ```
//!
//! Each worker does the same amount of work, so the time would be constant if workers did not
//! compete for CPUs, memory bandwidth or locks.

pub mod allocation;
pub mod compute;
pub mod memory;
mod workers;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::cpu;

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_alternates_cpus,
};
use crate::engine::setting::Setting;
use crate::support::limits::{self, UnitKind};
use workers::{WorkerGroup, Workload};

/// Number of units of work for each worker.
const WORK: Setting = Setting::number(
    "work",
    "units of work of each worker, about 1 ms each [default: 100]",
    1,
    100_000,
);

/// Number of processes.
const PROCESSES: Setting = Setting::number(names::PROCESSES, "number of processes", 1, 1000);

/// Number of threads in each process.
const THREADS: Setting =
    Setting::number(names::THREADS, "number of threads in each process", 1, 1000);

const SETTINGS: [&Setting; 3] = [&PROCESSES, &THREADS, &WORK];

/// Defines an experiment of this family.
const fn experiment(
    name: &'static str,
    summary: &'static str,
    about: &'static str,
    view: View,
    subject: fn(&Parameters) -> Result<Box<dyn Subject>, SubjectError>,
) -> Experiment {
    Experiment {
        name,
        summary,
        about,
        view,
        unit: Unit::Nanoseconds,
        sampling: Sampling::Fixed(7),
        fit: Fit::Scaling,
        settings: &SETTINGS,
        cases,
        unavailable,
        alternates_cpus: never_alternates_cpus,
        demands: Demands::NONE.with_cost_ms(50, 50).with_ns_per(&[("work", 5_000_000)]),
        subject,
    }
}

/// Appends the description that all experiments of this family share to `$work`, the description of
/// what the workers of one experiment do.
macro_rules! about {
    ($work:literal) => {
        concat!(
            $work,
            " `processes` processes with `threads` threads each wait at a gate; the value is the time from \
             its opening until the last worker has finished. Every worker does the same `work`. \
             `cpu` is the CPU time of all workers, `load` their share of the CPUs in percent. \
             Speed-up is the work done in a given time, relative to one worker; efficiency is the \
             speed-up divided by the number of workers or of CPUs, whichever is smaller. Two laws \
             are fitted to the samples: Amdahl's law to the cases with a CPU for each worker, and \
             Gunther's universal scalability law to the same cases, or to all if these are fewer \
             than three. A CPU quota of the cgroup counts as its number of CPUs. Workers range up \
             to twice that number."
        )
    };
}
use about;

/// Maximum number of workers in a case.
const MAX_WORKERS: u64 = 4096;

fn value_of(parameters: &Parameters, setting: &Setting) -> u64 {
    parameters.number(setting.name).unwrap_or(1).max(1)
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let workers = value_of(parameters, &PROCESSES) * value_of(parameters, &THREADS);
    if workers > MAX_WORKERS {
        return Some(format!("needs {workers} workers, but at most {MAX_WORKERS} are supported"));
    }
    let kind =
        if value_of(parameters, &THREADS) > 1 { UnitKind::Thread } else { UnitKind::Process };
    limits::shortage(kind, workers)
}

/// Returns the numbers of workers to measure on `cpus` CPUs, from 1 to twice that number in
/// ascending order: dense at first, then sparse.
fn worker_counts(cpus: u64) -> Vec<u64> {
    let max = 2 * cpus;
    let mut counts: Vec<u64> = (1..=max.min(4)).collect();
    let later = (1..20).flat_map(|power| [3 << power, 4 << power]);
    counts.extend(later.filter(|&count| count > 4 && count < max));
    counts.extend([cpus, max]);
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    let cpus = scope.cpus.usable;
    let all = worker_counts(cpus);
    let quick = [1, cpus, 2 * cpus];
    let counts = scope.choose(&all, &quick, &[1, 2]);
    let work = scope.choose(&[100_u64], &[20], &[2])[0];
    let case = |processes: u64, threads: u64| {
        let case = Parameters::new().with(PROCESSES.name, processes);
        case.with(THREADS.name, threads).with(WORK.name, work)
    };
    let mut cases: Vec<Parameters> = Vec::new();
    let of_threads = counts.iter().map(|&count| case(1, count));
    let of_processes = counts.iter().map(|&count| case(count, 1));
    for case in of_threads.chain(of_processes).chain([case(cpus, 2)]) {
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

/// The subject of a case, whose samples run a workload once in each worker of a group.
struct Saturation<J> {
    group: WorkerGroup,
    workload: J,
}

/// Creates the subject of a case. `workload` receives the units of work for each worker and the
/// number of workers, and returns the workload.
fn saturation_subject<J: Workload + 'static>(
    parameters: &Parameters,
    workload: impl FnOnce(u64, u64) -> J,
) -> Box<dyn Subject> {
    let value_of = |setting: &Setting| value_of(parameters, setting);
    let group = WorkerGroup { processes: value_of(&PROCESSES), threads: value_of(&THREADS) };
    Box::new(Saturation { group, workload: workload(value_of(&WORK), group.workers()) })
}

impl<J: Workload> Subject for Saturation<J> {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let result = self.group.run(&self.workload)?;
        let elapsed = result.elapsed.as_nanos() as f64;
        let cpu = result.cpu.as_nanos() as f64;
        let sample = Sample::of(elapsed)
            .with("cpu", Unit::Nanoseconds, cpu)
            .with("load", Unit::Count, 100.0 * cpu / elapsed / cpu::allowed() as f64)
            .with("preemptions", Unit::Count, result.involuntary_switches as f64);
        Ok(match result.throttled {
            Some(throttled) => {
                sample.with("throttled", Unit::Nanoseconds, throttled.as_nanos() as f64)
            }
            None => sample,
        })
    }

    fn facts(&self) -> Facts {
        let mut facts = self.workload.facts();
        if let Some(quota) = cpu::quota() {
            facts.insert("cpu_quota".to_owned(), format!("{quota:.2} CPUs").into());
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_go_up_to_twice_the_cpus() {
        assert_eq!(worker_counts(1), [1, 2]);
        assert_eq!(worker_counts(2), [1, 2, 3, 4]);
        assert_eq!(worker_counts(4), [1, 2, 3, 4, 6, 8]);
        assert_eq!(worker_counts(20), [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40]);
    }
}

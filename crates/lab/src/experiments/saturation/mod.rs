//! Family `saturation`: workers with work of their own, until every CPU is used, and beyond.

pub mod allocation;
pub mod compute;
pub mod memory;
mod workers;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::cpu;

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_hands_over,
};
use crate::engine::setting::Setting;
use crate::support::limits::{self, Kind};
use workers::{WorkerGroup, Workload};

/// Work of each worker.
const WORK: Setting = Setting::number(
    "work",
    "how much each worker does, 100 by itself; one takes a millisecond or so",
    1,
    100_000,
);

/// Processes.
const PROCESSES: Setting = Setting::number(names::PROCESSES, "how many processes work", 1, 1000);

/// Threads of each.
const THREADS: Setting =
    Setting::number(names::THREADS, "how many threads work in each process", 1, 1000);

const SETTINGS: [&Setting; 3] = [&PROCESSES, &THREADS, &WORK];

/// A row of the table.
const fn row(
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
        unavailable: unavailable,
        hands_over: never_hands_over,
        demands: Demands::NONE,
        subject,
    }
}

/// What is said of every one of them.
macro_rules! about {
    ($work:literal) => {
        concat!(
            $work,
            " `processes` with so many `threads` each wait at a gate; the value is the time from its \
             opening until the last one has done its `work`, which is as much for each of them. `cpu` is the CPU time of all of them, `load` the part of the CPUs that \
             it is, in percent. The speed-up is how much more was done in the same time than by one \
             alone, the efficiency what part it is of the workers, or of the CPUs where these are \
             fewer. Laid through the samples: Amdahl's law, as far as there is a CPU for each worker, \
             and Gunther's universal scalability law, as far too, or over all cases where these are \
             fewer than three. A cgroup's CPU quota counts as so many CPUs: workers go up to twice \
             their number."
        )
    };
}
use about;

/// Workers at most.
const MAX_WORKERS: u64 = 4096;

fn value_of(parameters: &Parameters, setting: &Setting) -> u64 {
    parameters.number(setting.name).unwrap_or(1).max(1)
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let workers = value_of(parameters, &PROCESSES) * value_of(parameters, &THREADS);
    if workers > MAX_WORKERS {
        return Some(format!("needs {workers} workers, and no more than {MAX_WORKERS} are made"));
    }
    let kind = if value_of(parameters, &THREADS) > 1 { Kind::Thread } else { Kind::Process };
    limits::not_so_many(kind, workers)
}

/// Numbers of workers up to so many: all of the first ones, later fewer.
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
    let some = [1, cpus, 2 * cpus];
    let counts = scope.choose(&all, &some, &[1, 2]);
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

/// Workers and what they do.
struct Saturation<J> {
    group: WorkerGroup,
    workload: J,
}

/// Workers with a workload, which is made for so much work and so many workers.
fn saturation<J: Workload + 'static>(
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

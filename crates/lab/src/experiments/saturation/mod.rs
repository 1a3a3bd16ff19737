//! Family `saturation`: workers with work of their own, until every CPU is used, and beyond.

pub mod allocation;
pub mod compute;
mod crew;
pub mod memory;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::cpu;

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_hands_over,
};
use crate::engine::setting::Setting;
use crate::support::limits::{self, Kind};
use crew::{Crew, Job};

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
        unavailable: too_many,
        hands_over: never_hands_over,
        demands: Demands::NONE.lasting(50, 50).and_ns_per(&[("work", 5_000_000)]),
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
const MOST: u64 = 4096;

fn wanted(parameters: &Parameters, setting: &Setting) -> u64 {
    parameters.number(setting.name).unwrap_or(1).max(1)
}

fn too_many(parameters: &Parameters) -> Option<String> {
    let workers = wanted(parameters, &PROCESSES) * wanted(parameters, &THREADS);
    if workers > MOST {
        return Some(format!("needs {workers} workers, and no more than {MOST} are made"));
    }
    let kind = if wanted(parameters, &THREADS) > 1 { Kind::Thread } else { Kind::Process };
    limits::not_so_many(kind, workers)
}

/// Numbers of workers up to so many: all of the first ones, later fewer.
fn counts(cpus: u64) -> Vec<u64> {
    let most = 2 * cpus;
    let mut counts: Vec<u64> = (1..=most.min(4)).collect();
    let later = (1..20).flat_map(|power| [3 << power, 4 << power]);
    counts.extend(later.filter(|&count| count > 4 && count < most));
    counts.extend([cpus, most]);
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    let cpus = scope.cpus.usable;
    let all = counts(cpus);
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
    crew: Crew,
    job: J,
}

/// Workers with a job, which is made for so much work and so many workers.
fn saturation<J: Job + 'static>(
    parameters: &Parameters,
    job: impl FnOnce(u64, u64) -> J,
) -> Box<dyn Subject> {
    let wanted = |setting: &Setting| wanted(parameters, setting);
    let crew = Crew { processes: wanted(&PROCESSES), threads: wanted(&THREADS) };
    Box::new(Saturation { crew, job: job(wanted(&WORK), crew.workers()) })
}

impl<J: Job> Subject for Saturation<J> {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let shift = self.crew.work(&self.job)?;
        let elapsed = shift.elapsed.as_nanos() as f64;
        let cpu = shift.cpu.as_nanos() as f64;
        let sample = Sample::of(elapsed)
            .with("cpu", Unit::Nanoseconds, cpu)
            .with("load", Unit::Count, 100.0 * cpu / elapsed / cpu::allowed() as f64)
            .with("preemptions", Unit::Count, shift.involuntary_switches as f64);
        Ok(match shift.throttled {
            Some(throttled) => {
                sample.with("throttled", Unit::Nanoseconds, throttled.as_nanos() as f64)
            }
            None => sample,
        })
    }

    fn facts(&self) -> Facts {
        let mut facts = self.job.facts();
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
        assert_eq!(counts(1), [1, 2]);
        assert_eq!(counts(2), [1, 2, 3, 4]);
        assert_eq!(counts(4), [1, 2, 3, 4, 6, 8]);
        assert_eq!(counts(20), [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40]);
    }
}

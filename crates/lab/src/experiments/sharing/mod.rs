//! Family `sharing`: demonstrations in which two processes or threads write to a variable that has
//! a page to itself.

pub mod process;
pub mod thread;

use std::time::{Duration, Instant};

use contend_record::lab::{Step, Task, Unit, View};
use contend_record::parameters::Parameters;
use contend_sys::Pid;
use contend_sys::procfs::{Rollup, Stat, read_once};

use crate::engine::experiment::{
    Demands, Experiment, Fit, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};

/// Defines a demonstration, which runs once and has a value in bytes.
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
        unit: Unit::Bytes,
        sampling: Sampling::Fixed(1),
        fit: Fit::None,
        settings: &[],
        cases,
        unavailable,
        alternates_cpus: never_alternates_cpus,
        demands: Demands::NONE,
        subject,
    }
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    vec![Parameters::new().with("step_ms", scope.step_milliseconds)]
}

/// Returns why the memory use of processes cannot be read from `/proc`, or `None` if it can.
fn unavailable(_: &Parameters) -> Option<String> {
    crate::experiments::units::parent::memory_unreadable()
}

/// A reporter of the steps of a demonstration, which pauses after each step.
struct StepReporter<'a> {
    begun: Instant,
    pause: Duration,
    on_step: &'a mut dyn FnMut(Step),
}

/// Address and value of the variable, as read by a process or thread.
#[derive(Clone, Copy)]
struct Observation {
    address: usize,
    value: i64,
}

impl<'a> StepReporter<'a> {
    fn new(parameters: &Parameters, on_step: &'a mut dyn FnMut(Step)) -> Self {
        let pause = Duration::from_millis(parameters.number("step_ms").unwrap_or(0));
        Self { begun: Instant::now(), pause, on_step }
    }

    fn step(&mut self, who: &str, what: &str, observed: Option<Observation>, tasks: Vec<Task>) {
        (self.on_step)(Step {
            at_seconds: self.begun.elapsed().as_secs_f64(),
            who: who.to_owned(),
            what: what.to_owned(),
            address: observed.map(|observed| format!("{:#x}", observed.address)),
            value: observed.map(|observed| observed.value),
            tasks,
        });
        std::thread::sleep(self.pause);
    }
}

/// Returns all threads of the given processes with their state and the memory of their process,
/// from `/proc`. Values that cannot be read are empty or 0.
fn read_tasks(pids: &[i32]) -> Vec<Task> {
    pids.iter()
        .flat_map(|&pid| threads_of(pid).into_iter().map(move |tid| task(pid, tid)))
        .collect()
}

fn threads_of(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut tids: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

fn task(pid: i32, tid: i32) -> Task {
    let mut buffer = [0; 4096];
    let stat =
        read_once(&format!("/proc/{pid}/task/{tid}/stat"), &mut buffer).ok().and_then(Stat::parse);
    let memory = Pid::from_raw(pid).and_then(|pid| Rollup::of(pid).ok()).unwrap_or_default();
    Task {
        pid,
        tid,
        ppid: stat.map_or(0, |stat| stat.parent),
        state: stat.map_or_else(String::new, |stat| char::from(stat.state).to_string()),
        rss_bytes: memory.rss,
        pss_bytes: memory.pss,
        shared_bytes: memory.shared,
        private_bytes: memory.private,
        minor_faults: stat.map_or(0, |stat| stat.minor_faults),
    }
}

/// Waits until the main thread of process `pid`, which is about to block, is asleep, or until about
/// 100 ms have passed.
fn wait_until_asleep(pid: i32) {
    for _ in 0..200 {
        if task(pid, pid).state == "S" {
            break;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Returns the entry of the main thread of process `pid`, or an empty one if there is none.
fn find_task(tasks: &[Task], pid: i32) -> Task {
    tasks.iter().find(|task| task.tid == pid).cloned().unwrap_or_default()
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

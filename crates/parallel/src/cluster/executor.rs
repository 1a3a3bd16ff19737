//! Executes a plan whose first group runs over parts on several machines.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contend_record::Writer;
use contend_record::run::{DividedOutcome, Division, HostParts, Part};
use contend_shell::environment::in_path;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use super::attempt::message;
use super::driver::{DriveError, Driven, Driver, Event};
use super::engine::Engine;
use super::job::{self, Divider, Job, JobError, Written};
use super::processes::{Processes, Share};
use super::report::{End, PartReport};
use super::slurm::{self, Slurm};
use super::spark::{self, Spark};
use super::timeline::Timeline;
use super::tree;
use super::work::{Place, Work};
use super::worth::{Capacity, predict};
use crate::execute::{ExecuteError, Executor, Launcher, Local};
use crate::plan::estimate::time;
use crate::plan::flow::Amount;
use crate::plan::ir::Plan;

/// Number of parts for each attempt that can run at the same time on this machine, so that parts of different cost even out.
const PARTS_PER_SLOT: u64 = 3;
/// Size of a part for a cluster in bytes, unless the number of parts is given. How many attempts a cluster runs at the same
/// time is not known.
const PART_BYTES: u64 = 64 << 20;
/// Largest number of parts for a cluster, unless it is given: each costs its driver some memory and time.
const MAX_PARTS: u64 = 10_000;
/// Smallest size of a part in bytes, unless the number of parts is given.
const MIN_PART_BYTES: u64 = 1 << 20;
/// Largest size of a part in bytes, unless the number of parts is given.
const MAX_PART_BYTES: u64 = 256 << 20;

/// Time until reports of other machines can certainly be read, once their processes have ended.
const DELAY_OF_REPORTS: Duration = Duration::from_secs(5);

/// Time without an attempt until the user learns of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time that a store may be unreachable.
const TOLERANCE: Duration = Duration::from_mins(5);

/// Largest number of failed attempts whose reasons are kept.
const SHOWN_FAILURES: usize = 20;

/// The resources of a task of a cluster.
const OF_TASK: Share = Share { jobs: 1, memory: 256 << 20 };

/// What runs the parts of a plan's first group.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The engine that starts attempts.
    pub engine: EngineKind,
    /// The number of parts; `None` if contend chooses it.
    pub parts: Option<u64>,
    /// The greatest number of outputs that are combined at once; `None` if contend chooses it.
    pub fan_in: Option<usize>,
    /// Whether trouble with the engine or the work directory makes the plan run on this machine. Otherwise, it is an error.
    pub falls_back: bool,
    /// What is known of the cluster. If it is given, a plan runs over parts only if that is expected to be faster.
    pub capacity: Option<Capacity>,
    /// Where the work directory is created.
    pub work: Place,
    /// The version of this contend.
    pub contend: Writer,
    /// The path of this contend.
    pub program: PathBuf,
    /// The new directory into which the job is written instead of being run; `None` to run it.
    pub emit: Option<PathBuf>,
    /// The work directory of a job whose driver has died, and which is continued; `None` for a new job.
    pub resume: Option<Work>,
}

/// A kind of engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// Processes on this machine.
    Local,
    /// Apache Spark.
    Spark {
        /// The URL of the master; `None` for the one that Spark is configured with.
        master: Option<String>,
        /// More options for `spark-submit`.
        options: Vec<String>,
    },
    /// Slurm.
    Slurm {
        /// More options for `sbatch`.
        options: Vec<String>,
    },
}

impl Cluster {
    /// Decides whether the first group of a plan runs over parts, and returns the reason. This machine has `jobs` CPUs.
    ///
    /// # Errors
    /// Returns the reason why the group runs on this machine.
    pub fn judge(&self, plan: &Plan, jobs: usize) -> Result<String, String> {
        let given = Ok("an engine is given".to_owned());
        let (names, group, _) = job::divisible(plan)?;
        // A file that cannot be examined is an error later.
        let Some(input) = Amount::of_input(names) else { return given };
        let least = self.engine.min_bytes();
        if input.bytes < least && self.parts.is_none() {
            let least = least >> 20;
            return Err(format!("its files have less than {least} MiB: --parts divides them, too"));
        }
        let Some(capacity) = self.capacity else { return given };
        let parts = self.parts.unwrap_or_else(|| self.part_count(input.bytes, jobs));
        let count = usize::try_from(parts).unwrap_or(usize::MAX);
        let levels = tree::levels(count, &tree::of_group(group, count, self.fan_in));
        let predicted = predict(plan, input, &self.engine, capacity, (parts, levels), jobs);
        let (here, there) = (time(predicted.here), time(predicted.there));
        let engine = self.engine.name();
        let why = format!("it takes an estimated {here} here, and {there} on {engine}");
        if predicted.is_worth_it() { Ok(why) } else { Err(why) }
    }

    /// Returns how the files of a plan's first group are divided, with a list of the parts. `jobs` attempts can run at the same
    /// time on this machine.
    ///
    /// # Errors
    /// Returns an error if the plan's first group cannot run over parts, or a file cannot be examined.
    pub fn division(&self, plan: &Plan, jobs: usize) -> Result<Division, JobError> {
        let job = self.job(&Written::default(), plan, jobs)?;
        let part = |range: &Range<u64>| Part {
            first: range.start + 1,
            last: range.end,
            files: job.files_of(range).map(|file| file.name.clone()).collect(),
        };
        let list = job.parts.iter().map(part).collect();
        Ok(Division { list, ..division(&job, &self.engine) })
    }

    /// Writes a job, and what its engine needs, into the new directory `folder`, so that a person can start it. `jobs` is as
    /// for [`Self::division`].
    ///
    /// # Errors
    /// Returns an error as for [`Self::division`], or if the directory exists or a file cannot be written.
    pub(crate) fn emit(
        &self,
        folder: &Path,
        written: &Written,
        plan: &Plan,
        jobs: usize,
        launcher: &Launcher,
    ) -> Result<(), ExecuteError> {
        let emit = || -> Result<(), ClusterError> {
            let job = self.job(written, plan, jobs)?;
            let cannot = |source| JobError::File { path: folder.to_owned(), source };
            let work = Work::create_at(folder).map_err(cannot)?;
            let work = work.in_new_store(self.work.store.as_deref());
            let job = job.in_work(&work);
            let write = || -> Result<(), ClusterError> {
                let path = || work.store().map_or_else(String::new, ToString::to_string);
                let opened = work.open_store();
                opened.map_err(|source| DriveError::Work { path: path(), source })?;
                job.write(&work.job_file())?;
                // A driver has the combinations run later.
                let parts: Vec<usize> = (0..job.parts.len()).collect();
                let engine = self.engine(launcher, jobs, OF_TASK.memory);
                let words = engine.prepare(&work, &parts, 0).map_err(DriveError::from)?;
                let written = work.write_script(&written.text, self.engine.name(), &words);
                Ok(written.map_err(cannot)?)
            };
            let result = write();
            if result.is_err() {
                let _ = work.remove(); // the error matters more
            }
            result
        };
        emit().map_err(|error| ExecuteError::Parts(error.into()))
    }

    /// Returns why no job can be started at present, if that is known; `None` otherwise.
    pub fn trouble(&self) -> Option<String> {
        let program = match self.engine {
            EngineKind::Local => None,
            EngineKind::Spark { .. } => Some(spark::SUBMIT),
            EngineKind::Slurm { .. } => Some(slurm::SUBMIT),
        };
        if let Some(missing) = program.filter(|program| in_path(program).is_none()) {
            return Some(format!("cannot start {missing}: it is not in PATH"));
        }
        let directory = &self.work.directory;
        let is_writable = access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        let work = directory.display();
        (!is_writable)
            .then(|| format!("cannot write to {work}, the directory for work directories"))
    }

    /// Returns the engine. `slots` attempts run at the same time on this machine, with `memory` bytes for data in all.
    fn engine<'a>(
        &self,
        launcher: &'a Launcher,
        slots: usize,
        memory: u64,
    ) -> Box<dyn Engine + 'a> {
        let program = self.program.clone();
        match &self.engine {
            EngineKind::Local => {
                let share = Share { jobs: 1, memory: memory / slots.max(1) as u64 };
                Box::new(Processes::new(launcher, program, slots, share))
            }
            EngineKind::Spark { master, options } => {
                Box::new(Spark::new(launcher, program, master.clone(), options.clone(), OF_TASK))
            }
            EngineKind::Slurm { options } => {
                Box::new(Slurm::new(launcher, program, options.clone(), OF_TASK))
            }
        }
    }

    /// Plans a job.
    fn job(&self, written: &Written, plan: &Plan, jobs: usize) -> Result<Job, JobError> {
        self.judge(plan, jobs).map_err(|why| JobError::NoParts(why.into()))?;
        let directory = std::env::current_dir().unwrap_or_default();
        let count = |bytes| self.parts.unwrap_or_else(|| self.part_count(bytes, jobs));
        let divider = Divider { count, fan_in: self.fan_in };
        let job = Job::new(written, plan, divider, self.contend.clone(), directory)?;
        Ok(Job { engine: self.engine.clone(), ..job })
    }

    fn part_count(&self, bytes: u64, jobs: usize) -> u64 {
        if self.engine != EngineKind::Local {
            return bytes.div_ceil(PART_BYTES).clamp(1, MAX_PARTS);
        }
        let even = jobs as u64 * PARTS_PER_SLOT;
        even.min(bytes / MIN_PART_BYTES).max(bytes.div_ceil(MAX_PART_BYTES)).max(1)
    }
}

/// Returns how a job divides its files.
fn division(job: &Job, engine: &EngineKind) -> Division {
    let sizes = job.parts.iter().map(|part| part.end - part.start);
    Division {
        engine: engine.name().to_owned(),
        parts: job.parts.len() as u64,
        combinations: job.combinations.len() as u64,
        input_bytes: sizes.clone().sum(),
        part_bytes: sizes.max().unwrap_or(0),
        list: Vec::new(),
    }
}

/// Counts an attempt that has failed, for the given reason.
fn count_failure(divided: &mut DividedOutcome, why: &str) {
    divided.attempts += 1;
    if divided.failures.len() < SHOWN_FAILURES {
        divided.failures.push(why.to_owned());
    }
}

/// Counts an attempt that has been accepted, at a part or at a combination.
fn count(divided: &mut DividedOutcome, report: &PartReport, is_part: bool) {
    divided.attempts += 1;
    let place = divided.hosts.binary_search_by(|host| host.name.cmp(&report.host));
    let index = place.unwrap_or_else(|index| {
        divided
            .hosts
            .insert(index, HostParts { name: report.host.clone(), ..HostParts::default() });
        index
    });
    let host = &mut divided.hosts[index];
    if is_part {
        host.parts += 1;
    } else {
        host.combinations += 1;
    }
    host.wall_seconds += report.wall_seconds;
    host.cpu_seconds += report.stages.values().map(|stage| stage.cpu_seconds).sum::<f64>();
    if let End::Complete(output) = &report.end {
        host.output_bytes += output.bytes;
    }
}

impl EngineKind {
    /// Returns the name of the engine, as on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Spark { .. } => "spark",
            Self::Slurm { .. } => "slurm",
        }
    }

    /// Returns the size in bytes from which files are divided, unless the number of parts is given.
    fn min_bytes(&self) -> u64 {
        match self {
            Self::Local => 2 * MIN_PART_BYTES,
            Self::Spark { .. } | Self::Slurm { .. } => PART_BYTES,
        }
    }

    /// Returns the time until reports of other machines can certainly be read.
    fn delay_of_reports(&self) -> Duration {
        match self {
            Self::Local => Duration::ZERO,
            Self::Spark { .. } | Self::Slurm { .. } => DELAY_OF_REPORTS,
        }
    }
}

/// Why the parts of a run have no output.
#[derive(Debug, thiserror::Error)]
enum ClusterError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// An executor that has a plan's first group run over parts, and runs the rest of the plan on this machine.
#[derive(Debug)]
pub struct Clustered<'a> {
    /// The executor for everything but the parts.
    pub local: Local<'a>,
    /// What runs the parts.
    pub cluster: &'a Cluster,
    /// The work directory: empty, or that of the job to continue.
    pub work: &'a Work,
    /// The pipeline.
    pub written: &'a Written,
}

impl Executor for Clustered<'_> {
    fn execute(&self, plan: &Plan) -> Result<(), ExecuteError> {
        match self.outputs(plan) {
            Ok(Ok(outputs)) => self.local.execute_after_parts(plan, outputs),
            Ok(Err(why)) => {
                self.local.tally.note_refusal(why);
                self.local.execute(plan)
            }
            // Nothing has been written.
            Err(ClusterError::Drive(
                error
                @ (DriveError::Engine(_) | DriveError::NoAttempt(_) | DriveError::Work { .. }),
            )) if self.cluster.falls_back => {
                self.local.tally.note_refusal(message(&error));
                self.local.execute(plan)
            }
            Err(ClusterError::Drive(DriveError::Interrupted)) => {
                Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into())
            }
            Err(error) => Err(ExecuteError::Parts(error.into())),
        }
    }
}

impl Clustered<'_> {
    /// Returns the outputs of all parts, or the reason why the plan has to run on one machine.
    fn outputs(&self, plan: &Plan) -> Result<Result<Vec<PathBuf>, String>, ClusterError> {
        let job = if self.cluster.resume.is_some() {
            Job::read(&self.work.job_file())?
        } else {
            match self.new_job(plan) {
                Err(JobError::NoParts(why)) => return Ok(Err(why.into_owned())),
                job => job?,
            }
        };
        if job.parts.is_empty() {
            return Ok(Err("its input is empty".to_owned()));
        }
        let tally = self.local.tally;
        tally.input().set_size(job.parts.last().map(|part| part.end));
        tally.set_division(division(&job, &self.cluster.engine));
        // Reports that are there before anything is submitted are of an earlier driver.
        let timeline: RefCell<Option<Timeline>> = RefCell::default();
        let observer = |event: Event<'_>| match event {
            Event::Submits => drop(timeline.borrow_mut().get_or_insert_with(Timeline::new)),
            Event::Waits(why) => tally.note_delay(why),
            Event::Failed(why) => tally.change_divided(|divided| count_failure(divided, why)),
            Event::Accepted(report) => {
                let part = job.parts.get(report.part);
                match part {
                    Some(range) => {
                        if let Some(timeline) = &mut *timeline.borrow_mut() {
                            timeline.ended(report);
                        }
                        let bytes = range.end - range.start;
                        tally.part_ended(&job.group, &report.tallies(), bytes);
                    }
                    None => tally.used_elsewhere(&job.group, &report.tallies()),
                }
                tally.change_divided(|divided| count(divided, report, part.is_some()));
            }
        };
        let launcher = self.local.launcher;
        let driver = Driver {
            job: &job,
            work: self.work,
            is_over: &|| launcher.is_over(),
            observer: &observer,
            delay: self.cluster.engine.delay_of_reports(),
            patience: PATIENCE,
            tolerance: TOLERANCE,
        };
        if let (EngineKind::Slurm { .. }, true) = (&job.engine, self.cluster.engine != job.engine) {
            // Otherwise, the engine does that itself.
            let program = self.cluster.program.clone();
            Slurm::new(launcher, program, Vec::new(), OF_TASK).cancel_left(self.work);
        }
        let mut engine = self.cluster.engine(launcher, self.slots(), self.local.settings.memory);
        let hold = launcher.hold();
        let driven = driver.run(&mut *engine);
        drop(hold);
        if let Some(timeline) = timeline.take() {
            tally.change_divided(|divided| timeline.record(divided));
        }
        match driven? {
            Driven::Refused(why) => {
                self.local.tally.start_again(&job.group);
                self.local.tally.input().forget();
                Ok(Err(why))
            }
            Driven::Complete(outputs) => Ok(Ok(outputs)),
        }
    }

    /// Plans a job, and writes it into the work directory.
    fn new_job(&self, plan: &Plan) -> Result<Job, JobError> {
        let job = self.cluster.job(self.written, plan, self.slots())?.in_work(self.work);
        job.write(&self.work.job_file())?;
        Ok(job)
    }

    /// Returns the number of attempts that can run at the same time.
    fn slots(&self) -> usize {
        self.local.settings.jobs
    }
}

//! Executes a plan whose first group runs over parts on several machines.

use std::path::PathBuf;

use contend_record::Writer;

use super::driver::{DriveError, Driven, Driver};
use super::engine::Engine;
use super::job::{Job, JobError, Written};
use super::processes::{Processes, Share};
use super::report::PartReport;
use super::spark::Spark;
use super::work::Work;
use crate::execute::{ExecuteError, Executor, Local};
use crate::plan::ir::Plan;

/// Number of parts for each attempt that can run at the same time, so that parts of different cost even out.
const PARTS_PER_SLOT: u64 = 3;
/// Smallest size of a part in bytes, unless the number of parts is given.
const MIN_PART_BYTES: u64 = 1 << 20;
/// Largest size of a part in bytes, unless the number of parts is given.
const MAX_PART_BYTES: u64 = 256 << 20;

/// Memory that a task of a cluster may use for data, in bytes.
const MEMORY_OF_TASK: u64 = 256 << 20;

/// What runs the parts of a plan's first group.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The engine that starts attempts.
    pub engine: EngineKind,
    /// The number of parts; `None` if contend chooses it.
    pub parts: Option<u64>,
    /// The directory for the work directory. All machines must be able to read and write it.
    pub work: PathBuf,
    /// The version of this contend.
    pub contend: Writer,
    /// The path of this contend.
    pub program: PathBuf,
    /// The work directory of a job whose driver has died, and which is continued; `None` for a new job.
    pub resume: Option<PathBuf>,
}

/// A kind of engine.
#[derive(Debug, Clone, PartialEq, Eq)]
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
                Err(JobError::NoParts(why)) => return Ok(Err(why.to_owned())),
                job => job?,
            }
        };
        if job.parts.is_empty() {
            return Ok(Err("its input is empty".to_owned()));
        }
        self.local.tally.input().set_size(job.parts.last().map(|part| part.end));
        let accepted = |report: &PartReport| {
            let range = &job.parts[report.part];
            self.local.tally.part_ended(&job.group, &report.tallies(), range.end - range.start);
        };
        let launcher = self.local.launcher;
        let driver = Driver {
            job: &job,
            work: self.work,
            is_over: &|| launcher.is_over(),
            accepted: &accepted,
        };
        match driver.run(&mut *self.engine())? {
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
        let Cluster { contend, parts, .. } = self.cluster;
        let directory = std::env::current_dir().unwrap_or_default();
        let count = |bytes| parts.unwrap_or_else(|| self.part_count(bytes));
        let job = Job::new(self.written, plan, count, contend.clone(), directory)?;
        job.write(&self.work.job_file())?;
        Ok(job)
    }

    /// Returns the number of attempts that can run at the same time.
    fn slots(&self) -> usize {
        self.local.settings.jobs
    }

    fn part_count(&self, bytes: u64) -> u64 {
        let even = self.slots() as u64 * PARTS_PER_SLOT;
        even.min(bytes / MIN_PART_BYTES).max(bytes.div_ceil(MAX_PART_BYTES)).max(1)
    }

    fn engine(&self) -> Box<dyn Engine + '_> {
        let Cluster { engine, program, .. } = self.cluster;
        let (launcher, program) = (self.local.launcher, program.clone());
        match engine {
            EngineKind::Local => {
                let memory = self.local.settings.memory / self.slots() as u64;
                let share = Share { jobs: 1, memory };
                Box::new(Processes::new(launcher, program, self.slots(), share))
            }
            EngineKind::Spark { master, options } => {
                let share = Share { jobs: 1, memory: MEMORY_OF_TASK };
                Box::new(Spark::new(launcher, program, master.clone(), options.clone(), share))
            }
        }
    }
}

//! `contend part`: runs one part of a job, on the machine of a worker.

use anyhow::{Context as _, Result, anyhow};
use contend_parallel::cluster::{Attempt, End, Job, Work};
use contend_parallel::execute::{Launcher, Settings};
use contend_shell::environment::Paths;
use contend_sys::Signal;
use contend_sys::signal::SignalFd;
use rustix::process::set_parent_process_death_signal;

use crate::cli::part::PartArgs;
use crate::exit::Exit;
use crate::{host, output, version};

/// Runs an attempt, and prints its report as a line of JSON.
///
/// # Errors
/// Returns an error if the job cannot be read, its directory cannot be entered, the attempt fails, or its report
/// cannot be written.
pub fn run(args: &PartArgs) -> Result<Exit> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .context("cannot arrange to end with the parent")?;
    let plan = args.plan.canonicalize();
    let plan = plan.with_context(|| format!("cannot find {}", args.plan.display()))?;
    let job = Job::read(&plan)?;
    if !job.environment.are_set() {
        let error = job.environment.start_again();
        return Err(anyhow::Error::from(error).context("cannot start contend"));
    }
    let scratch = args.scratch.as_ref().map(|scratch| scratch.canonicalize()).transpose();
    let scratch = scratch.context("cannot find the directory for the files of the attempt")?;
    let work = match (&job.store, &scratch) {
        (None, _) => Work::at(plan.parent().context("the job has no directory")?),
        (Some(store), Some(scratch)) => Work::at(scratch).in_store(Some(store)),
        (Some(_), None) => return Err(anyhow!("the job has a store, so that --scratch is needed")),
    };
    // Machines that share only a store need not have the directory.
    let directory = scratch.as_ref().filter(|_| job.store.is_some() && !job.directory.exists());
    let directory = directory.unwrap_or(&job.directory);
    std::env::set_current_dir(directory)
        .with_context(|| format!("cannot enter {}", directory.display()))?;
    let attempt = Attempt { job: &job, part: args.part, attempt: args.attempt, work: &work };
    let settings = Settings {
        jobs: args.jobs.into(),
        memory: args.memory,
        chunk_bytes: None,
        folder: std::env::temp_dir(),
    };
    // Signals end this process at once, and its commands with it.
    let mask = SignalFd::block(&[]).context("cannot read the signal mask")?.mask_before();
    let launcher = Launcher::new(mask, Paths::new(), Vec::new());
    let report = attempt.run_and_report(&version::writer(), host::name(), settings, &launcher);
    let report = report.context("cannot write the report of the attempt")?;
    output::stdout(&format!("{}\n", serde_json::to_string(&report)?))?;
    match report.end {
        End::Failed(why) | End::CommandFailed(why) => Err(anyhow!(why)),
        // The same attempt would end in the same way.
        End::Complete(_) | End::NoRecord | End::Refused(_) | End::BadInput { .. } => {
            Ok(Exit::Success)
        }
    }
}

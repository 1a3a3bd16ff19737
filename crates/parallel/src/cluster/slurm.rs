//! The engine that has Slurm run attempts.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use contend_shell::environment::in_path;
use contend_sys::child::ExitStatus;
use rustix::io::Errno;

use super::engine::{Engine, EngineError, State};
use super::processes::{Share, command};
use super::work::{Work, end_of_file};
use crate::execute::Launcher;

/// The program that submits an array of tasks.
pub const SUBMIT: &str = "sbatch";
/// The program that lists tasks which have not ended.
const LIST: &str = "squeue";
/// The program that ends tasks.
const CANCEL: &str = "scancel";
/// The program that counts CPUs.
const COUNT: &str = "sinfo";
/// The script of a task.
const SCRIPT: &str = include_str!("slurm.sh");
/// Name of that script's file in the work directory.
const SCRIPT_FILE: &str = "slurm.sh";
/// Name of the file in the work directory with contend itself.
const PROGRAM_FILE: &str = "contend";
/// Largest number of tasks. By default, Slurm accepts arrays of up to 1000.
const MAX_TASKS: u64 = 1000;
/// Number of tasks if the number of CPUs is unknown.
const DEFAULT_TASKS: u64 = 16;
/// Shortest time between two queries of Slurm. Each one costs its controller some work.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time between two queries of Slurm.
const MAX_INTERVAL: Duration = Duration::from_secs(10);
/// Number of consecutive queries without an answer after which the engine has failed. A controller that restarts answers
/// later.
const MAX_SILENCE: u32 = 30;
/// Time that tasks get to end after they are cancelled.
const GRACE_PERIOD: Duration = Duration::from_secs(15);
/// States of tasks that have not ended.
const STATES: &str = "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING";
/// Number of bytes from the end of a log that an error shows.
const SHOWN_LOG_BYTES: usize = 1000;

/// An engine that has Slurm run attempts, as tasks of an array. Each task runs parts until none is left.
#[derive(Debug)]
pub struct Slurm<'a> {
    launcher: &'a Launcher,
    /// The path of contend, which is copied into the work directory.
    program: PathBuf,
    /// More options for `sbatch`.
    options: Vec<String>,
    share: Share,
    running: Option<Submitted>,
}

/// An array of tasks.
#[derive(Debug)]
struct Submitted {
    /// The ID of the array, and the cluster's name after a semicolon, if there are several.
    id: String,
    /// The last answer of Slurm.
    state: State,
    /// Why tasks wait, if none is running.
    waiting: Option<String>,
    /// The work directory.
    work: PathBuf,
    next: Instant,
    interval: Duration,
    /// Number of queries without an answer since the last answer.
    silence: u32,
}

impl Submitted {
    /// Returns how tasks end without a report, with the end of the last log of one.
    fn end_of_log(&self) -> String {
        let (id, _) = of_cluster(&self.id);
        let prefix = format!("slurm.{id}.");
        let entries = fs::read_dir(&self.work).into_iter().flatten().flatten();
        let logs =
            entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
        let text = logs.into_iter().find_map(|log| end_of_file(&log.path(), SHOWN_LOG_BYTES));
        let ended = "Slurm's tasks have ended".to_owned();
        text.map_or(ended.clone(), |text| format!("{ended}: {text}"))
    }
}

/// Returns the name of a job for Slurm. Jobs in other directories have other names.
fn name_of(work: &Work) -> String {
    let path = work.path().as_os_str().as_encoded_bytes();
    format!("contend-{:016x}", xxhash_rust::xxh3::xxh3_64(path))
}

/// Returns the ID in the answer of `sbatch`, and the option for the other programs if it names a cluster.
fn of_cluster(answer: &str) -> (&str, Option<String>) {
    match answer.split_once(';') {
        Some((id, cluster)) => (id, Some(format!("--clusters={cluster}"))),
        None => (answer, None),
    }
}

/// Returns why tasks wait, from the answer of `squeue`; `None` if a task is running, or none waits.
fn waiting_for(tasks: &str) -> Option<&str> {
    if tasks.lines().any(|line| !line.starts_with("PENDING")) {
        return None;
    }
    tasks.lines().next().map(|line| line.trim_start_matches("PENDING").trim())
}

/// How a program of Slurm ended.
struct Answer {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl<'a> Slurm<'a> {
    /// Creates an engine.
    pub fn new(
        launcher: &'a Launcher,
        program: PathBuf,
        options: Vec<String>,
        share: Share,
    ) -> Self {
        Self { launcher, program, options, share, running: None }
    }

    /// Runs a program of Slurm.
    fn ask(&self, words: Vec<String>) -> Result<Answer, EngineError> {
        let command = command(words);
        let cannot = |source| EngineError::Start { program: command.program.clone(), source };
        if in_path(&command.program).is_none() {
            return Err(cannot(Errno::NOENT.into()));
        }
        let null = File::open("/dev/null")?;
        let [mut stdout, mut stderr] = [tempfile::tempfile()?, tempfile::tempfile()?];
        let streams = [Some(&null), Some(&stdout), Some(&stderr)];
        let status = self.launcher.run_helper(&command, streams).map_err(cannot)?;
        let text = |file: &mut File| {
            let mut bytes = Vec::new();
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        Ok(Answer { status, stdout: text(&mut stdout)?, stderr: text(&mut stderr)? })
    }

    /// Returns the number of tasks for a number of parts: one for each CPU of the cluster, if that is known.
    fn task_count(&self, parts: usize) -> u64 {
        let words = [COUNT, "--noheader", "--format=%C"].map(str::to_owned).to_vec();
        let answer = self.ask(words).ok();
        // The CPUs that are allocated, idle, other and all, for each partition.
        let all = |line: &str| line.rsplit('/').next()?.trim().parse::<u64>().ok();
        let cpus = answer.map(|answer| answer.stdout.lines().filter_map(all).sum::<u64>());
        let cpus = cpus.filter(|&cpus| cpus > 0).unwrap_or(DEFAULT_TASKS);
        cpus.min(parts as u64).clamp(1, MAX_TASKS)
    }

    /// Returns the command that submits the tasks.
    fn command(&self, work: &Work, batch: u32, tasks: u64) -> Vec<String> {
        let file = |name: &str| work.path().join(name).display().to_string();
        let mut words = vec![
            SUBMIT.to_owned(),
            "--parsable".to_owned(),
            format!("--array=0-{}", tasks - 1),
            format!("--job-name={}", name_of(work)),
            // The parts of a task that is lost are in the next batch.
            "--no-requeue".to_owned(),
            format!("--chdir={}", work.path().display()),
            format!("--output={}", file("slurm.%A.%a.log")),
        ];
        words.extend(self.options.iter().cloned());
        words.extend([file(SCRIPT_FILE), work.path().display().to_string(), file(PROGRAM_FILE)]);
        words.extend([
            batch.to_string(),
            self.share.jobs.to_string(),
            self.share.memory.to_string(),
        ]);
        words
    }

    /// Ends the tasks of arrays that a driver before this one has submitted, perhaps for another engine.
    pub fn cancel_left(&self, work: &Work) {
        let entries = fs::read_dir(work.path()).into_iter().flatten().flatten();
        let is_id = |name: &str| {
            name.strip_prefix("slurm.").is_some_and(|rest| rest.strip_suffix(".id").is_some())
        };
        let files = entries.filter(|it| it.file_name().to_str().is_some_and(is_id));
        for file in files {
            if let Ok(id) = fs::read_to_string(file.path()) {
                self.end(&id);
                let _ = fs::remove_file(file.path()); // it only costs time to end it again
            }
        }
    }

    /// Ends the tasks of an array. Nothing else can be done if that fails: their attempts are not accepted any more.
    fn end(&self, id: &str) {
        let (id, cluster) = of_cluster(id);
        let words = [CANCEL, "--quiet", id].into_iter().map(str::to_owned);
        let _ = self.ask(words.chain(cluster).collect());
    }

    /// Ends the tasks of a job whose submission has failed. It may have been cut short after Slurm had accepted the array.
    fn end_by_name(&self, work: &Work) {
        let name = format!("--name={}", name_of(work));
        let _ = self.ask(vec![CANCEL.to_owned(), "--quiet".to_owned(), name]); // see `end`
    }

    /// Asks Slurm for the tasks of an array that have not ended. Returns `None` if it does not answer.
    fn tasks(&self, id: &str) -> Result<Option<String>, EngineError> {
        let (id, cluster) = of_cluster(id);
        // Slurm forgets an array some time after its end. Asked for its ID, it would then fail.
        let words = [LIST, "--me", "--noheader", "--format=%F %T %r", STATES];
        let answer = self.ask(words.into_iter().map(str::to_owned).chain(cluster).collect())?;
        let own = answer.stdout.lines().filter_map(|line| line.strip_prefix(id)?.strip_prefix(' '));
        let is_answer = answer.status == ExitStatus::Exited(0);
        Ok(is_answer.then(|| own.collect::<Vec<_>>().join("\n")))
    }
}

impl Engine for Slurm<'_> {
    fn prepare(
        &self,
        work: &Work,
        parts: &[usize],
        batch: u32,
    ) -> Result<Vec<String>, EngineError> {
        fs::write(work.path().join(SCRIPT_FILE), SCRIPT)?;
        let program = work.path().join(PROGRAM_FILE);
        if !program.exists() {
            // A driver that is killed must not leave half of it.
            let copy = tempfile::Builder::new().prefix(".contend-").tempfile_in(work.path())?;
            fs::copy(&self.program, copy.path())?;
            copy.as_file().sync_all()?;
            copy.persist(&program).map_err(|error| error.error)?;
        }
        work.write_todo(parts, batch)?;
        Ok(self.command(work, batch, self.task_count(parts.len())))
    }

    fn submit(&mut self, work: &Work, parts: &[usize], batch: u32) -> Result<(), EngineError> {
        self.cancel_left(work);
        let answer = self.ask(self.prepare(work, parts, batch)?)?;
        let id = answer.stdout;
        if answer.status != ExitStatus::Exited(0) || id.is_empty() {
            self.end_by_name(work);
            return Err(EngineError::Failed { program: SUBMIT, message: answer.stderr });
        }
        fs::write(work.path().join(format!("slurm.{batch}.id")), &id)?;
        self.running = Some(Submitted {
            id,
            state: State::Running,
            waiting: None,
            work: work.path().to_owned(),
            next: Instant::now() + MIN_INTERVAL,
            interval: MIN_INTERVAL,
            silence: 0,
        });
        Ok(())
    }

    fn poll(&mut self) -> Result<State, EngineError> {
        let Some(it) = &self.running else { return Ok(State::Over(String::new())) };
        if it.state != State::Running || Instant::now() < it.next {
            return Ok(it.state.clone());
        }
        // Trouble of this machine passes, too.
        let tasks = self.tasks(&it.id).unwrap_or_default();
        let is_over = tasks.as_ref().is_some_and(String::is_empty);
        let trouble = is_over.then(|| it.end_of_log());
        let Some(it) = &mut self.running else { return Ok(State::Over(String::new())) };
        it.silence = if tasks.is_some() { 0 } else { it.silence + 1 };
        if it.silence > MAX_SILENCE {
            let message = format!("it has not answered {MAX_SILENCE} times");
            return Err(EngineError::Failed { program: LIST, message });
        }
        it.waiting = tasks.as_deref().and_then(waiting_for).map(str::to_owned);
        if let Some(trouble) = trouble {
            it.state = State::Over(trouble);
        }
        it.interval = MAX_INTERVAL.min(it.interval * 3 / 2);
        it.next = Instant::now() + it.interval;
        Ok(it.state.clone())
    }

    fn waiting(&self, _: bool) -> Option<String> {
        let reason = self.running.as_ref()?.waiting.as_ref()?;
        Some(format!("no task of Slurm is running: {reason}"))
    }

    fn cancel(&mut self) {
        let Some(it) = self.running.take() else { return };
        self.end(&it.id);
        let begun = Instant::now();
        while begun.elapsed() < GRACE_PERIOD
            && self.tasks(&it.id).is_ok_and(|tasks| tasks.is_none_or(|tasks| !tasks.is_empty()))
        {
            std::thread::sleep(MIN_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_slurm_are_understood() {
        assert_eq!(of_cluster("12"), ("12", None));
        assert_eq!(of_cluster("12;east"), ("12", Some("--clusters=east".to_owned())));
        assert_eq!(waiting_for(""), None);
        assert_eq!(waiting_for("PENDING Resources\nPENDING Resources"), Some("Resources"));
        assert_eq!(waiting_for("PENDING Resources\nRUNNING None"), None);
    }
}

//! Measures cases in rounds. In each round, the tools run the case once each, in random order. A
//! tool whose output is wrong drops out, and short cases have further rounds of bash and contend.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use contend_record::pipe::PipeRecord;
use contend_sys::Pid;
use contend_sys::child::{self, ExitStatus};
use fastrand::Rng;

use super::cases::Case;
use super::tools::{Kind, Paths, RunContext, Tool};
use crate::Timed;

/// What all runs of cases have in common: tools, folders, and number and order of the runs.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Paths of the tools.
    pub paths: &'a Paths,
    /// Installed tools, bash first.
    pub tools: Vec<&'a Tool>,
    /// Folder of the inputs.
    pub inputs: &'a Path,
    /// Folder for outputs and temporary files.
    pub outputs: &'a Path,
    /// Number of CPUs that may be used.
    pub cpus: usize,
    /// Number of runs of a case with each tool; bash and contend run short cases more often.
    pub rounds: usize,
    /// Seed of the order in which tools run.
    pub seed: u64,
}

/// One run of a case with a tool.
#[derive(Debug, Clone)]
pub struct Run {
    /// Time and resources of the run.
    pub timed: Timed,
    /// Exit status; `None` if the run was killed at the limit.
    pub status: Option<ExitStatus>,
    /// Peak memory in bytes: the largest resident set of one process, or that of contend and its
    /// commands together if contend has reported a larger one.
    pub peak: u64,
}

/// All runs of a tool for one case.
#[derive(Debug)]
pub struct Runs {
    /// Name of the tool.
    pub tool: &'static str,
    /// The runs, up to and including the first whose output or status is wrong.
    pub runs: Vec<Run>,
    /// How the output or status differs from bash's; `None` if it does not.
    pub wrong: Option<String>,
    /// A note for readers of the times, if there is one.
    pub remark: Option<String>,
}

/// The time limit of a run is bash's first wall time multiplied by this factor, plus a minute. For
/// the run that measures memory, contend's last wall time takes the place of bash's.
const TIMEOUT_FACTOR: u32 = 10;
/// Time with bash below which a case is short. Bash and contend run short cases more often.
const SHORT_CASE: Duration = Duration::from_millis(200);
/// Factor by which bash and contend run a short case more often than a long one.
const SHORT_CASE_FACTOR: usize = 5;
const MINUTE: Duration = Duration::from_mins(1);

impl Bench<'_> {
    /// Measures a case on inputs of one size, which must exist. Returns the runs of each tool that
    /// can run the case, bash first. The first run, with bash, is not counted; its output is the
    /// expected one. Before it, the inputs are read into the page cache.
    ///
    /// # Errors
    /// Returns an error if an input is missing, another file cannot be read or written, or bash or
    /// a tool that can run the case cannot be started.
    pub fn case(&self, case: &Case, size: u64) -> Result<Vec<Runs>> {
        for file in case.files(self.inputs, size) {
            io::copy(&mut File::open(file)?, &mut io::sink())?;
        }
        fs::write(self.file("script"), format!("{}\n", case.text))?;
        let bash = self.tools.first().context("bash is always installed")?;
        let first = self.run(bash, case, size, None, None)?.context("bash runs all")?;
        fs::rename(self.file("out"), self.file("expected"))?;
        let mut all: Vec<(&Tool, Runs)> =
            self.tools.iter().map(|tool| (*tool, new(tool))).collect();
        let mut random = Rng::with_seed(self.seed ^ size);
        for round in 0..self.rounds_of(bash, first.timed.wall) {
            random.shuffle(&mut all);
            let runs = |tool: &Tool| round < self.rounds_of(tool, first.timed.wall);
            let still =
                all.iter_mut().filter(|(tool, so_far)| so_far.wrong.is_none() && runs(tool));
            for (tool, runs) in still {
                self.once(tool, case, size, &first, runs)?;
            }
        }
        for (tool, runs) in &mut all {
            self.measure_memory(tool, case, size, runs)?;
        }
        let order = |name| self.tools.iter().position(|tool| tool.name == name);
        all.sort_by_key(|(tool, _)| order(tool.name));
        Ok(all.into_iter().map(|(_, runs)| runs).filter(|runs| !runs.runs.is_empty()).collect())
    }

    /// Returns the number of runs with `tool` of a case that takes `wall` with bash. bash and
    /// contend run short cases more often, because short times vary more, and show the cost of
    /// starting contend.
    fn rounds_of(&self, tool: &Tool, wall: Duration) -> usize {
        let ours = matches!(tool.kind, Kind::Bash | Kind::Contend);
        if ours && wall < SHORT_CASE { self.rounds * SHORT_CASE_FACTOR } else { self.rounds }
    }

    /// Adds one run of a tool to `runs`, and compares its output and status with those of `first`,
    /// bash's first run. Does nothing if the tool cannot run the case.
    fn once(
        &self,
        tool: &Tool,
        case: &Case,
        size: u64,
        first: &Run,
        runs: &mut Runs,
    ) -> Result<()> {
        let limit = first.timed.wall * TIMEOUT_FACTOR + MINUTE;
        let Some(run) = self.run(tool, case, size, Some(limit), None)? else { return Ok(()) };
        runs.wrong = self.wrong(&run, first)?;
        if tool.kind == Kind::Pash && self.last_stderr()?.contains("No region was parallelized") {
            runs.remark = Some("unchanged: found nothing to parallelise".to_owned());
        }
        runs.runs.push(run);
        Ok(())
    }

    /// Runs contend once more with statistics, and raises [`Run::peak`] of the last run to the peak
    /// memory that they report. Collecting statistics takes time, so the time of this run does not
    /// count. Does nothing for other tools.
    fn measure_memory(&self, tool: &Tool, case: &Case, size: u64, runs: &mut Runs) -> Result<()> {
        let Some(last) = runs.runs.last_mut().filter(|_| tool.kind == Kind::Contend) else {
            return Ok(());
        };
        let stats = self.file("stats");
        let _ = fs::remove_file(&stats); // the file may be missing
        let limit = last.timed.wall * TIMEOUT_FACTOR + MINUTE;
        self.run(tool, case, size, Some(limit), Some(&stats))?;
        let told = fs::read(&stats).ok().and_then(|text| peak(&text));
        last.peak = last.peak.max(told.unwrap_or(0));
        Ok(())
    }

    fn wrong(&self, run: &Run, first: &Run) -> Result<Option<String>> {
        let last_stderr = || -> Result<String> {
            Ok(self.last_stderr()?.lines().last().map_or(String::new(), |line| format!(": {line}")))
        };
        if run.status.is_none() {
            return Ok(Some(format!("took too long{}", last_stderr()?)));
        }
        if let Some(place) = difference(&self.file("out"), &self.file("expected"))? {
            return Ok(Some(format!("differs at byte {place}{}", last_stderr()?)));
        }
        if run.status != first.status {
            return Ok(Some(format!("ended with {:?}, bash with {:?}", run.status, first.status)));
        }
        Ok(None)
    }

    /// Returns the last run's standard error.
    fn last_stderr(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.file("err"))?).into_owned())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.outputs.join(name)
    }

    /// Runs a case once. Kills the run at `limit`, and lets contend write statistics to the file
    /// `stats`, if these are given. Returns `None` if the tool cannot run the case.
    fn run(
        &self,
        tool: &Tool,
        case: &Case,
        size: u64,
        limit: Option<Duration>,
        stats: Option<&Path>,
    ) -> Result<Option<Run>> {
        let scratch = tempfile::tempdir_in(self.outputs)?;
        let script = self.file("script");
        let context =
            RunContext { script: &script, stats, scratch: scratch.path(), cpus: self.cpus };
        let Some(mut command) = tool.command(case, self.paths, &context) else { return Ok(None) };
        command.current_dir(case.folder(self.inputs, size)).env("LC_ALL", &case.locale);
        let stdin = match &case.files(self.inputs, size)[..] {
            [input, ..] if case.from_stdin => File::open(input)?.into(),
            _ => Stdio::null(),
        };
        command.stdin(stdin).stdout(File::create(self.file("out"))?);
        let (timed, status) =
            run_with_limit(command.stderr(File::create(self.file("err"))?), limit)?;
        Ok(Some(Run { timed, status, peak: timed.usage.max_rss }))
    }
}

fn new(tool: &Tool) -> Runs {
    Runs { tool: tool.name, runs: Vec::new(), wrong: None, remark: None }
}

/// Returns the peak memory from contend's statistics, in bytes, or `None` if they do not have it.
fn peak(stats: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(stats).ok()?;
    value.pointer("/outcome/peak_memory_bytes")?.as_u64()
}

/// Runs a command in its own process group, and kills the group at `limit`, if that is given.
/// Returns the time and resources of the run, and the exit status, which is `None` if the group was
/// killed.
///
/// # Errors
/// Returns an error if the command cannot be started or waited for.
pub fn run_with_limit(
    command: &mut Command,
    limit: Option<Duration>,
) -> Result<(Timed, Option<ExitStatus>)> {
    let begun = Instant::now();
    let child = command.process_group(0).spawn().context("cannot start a command")?;
    let pid = Pid::from_child(&child);
    let (done, waited) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late =
            waited.recv_timeout(limit.unwrap_or(Duration::MAX)) == Err(RecvTimeoutError::Timeout);
        late && rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).is_ok()
    });
    let reaped = child::reap(pid)?;
    let wall = begun.elapsed();
    drop(done);
    let killed = watch.join().unwrap_or(false);
    Ok((Timed { wall, usage: reaped.usage }, (!killed).then_some(reaped.status)))
}

/// Returns the position, from 1, of the first byte in which two files differ, or that only one of
/// them has; `None` if they are the same.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn difference(one: &Path, other: &Path) -> Result<Option<u64>> {
    let [mut one, mut other] = [open(one)?, open(other)?];
    let [mut ours, mut theirs] = [vec![0; 1 << 16], vec![0; 1 << 16]];
    let mut place = 0;
    loop {
        let count = fill(&mut one, &mut ours)?;
        let theirs_count = fill(&mut other, &mut theirs)?;
        let (ours, theirs) = (&ours[..count], &theirs[..theirs_count]);
        if ours != theirs {
            let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
            return Ok(Some(place + same as u64 + 1));
        }
        if count == 0 {
            return Ok(None);
        }
        place += count as u64;
    }
}

fn open(path: &Path) -> Result<BufReader<File>> {
    Ok(BufReader::new(File::open(path)?))
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Profiles a case with `contend pipe`, for the CPU time of each stage.
///
/// # Errors
/// Returns an error if contend cannot be started or writes no record.
pub fn profiled(contend: &Path, case: &Case, inputs: &Path, size: u64) -> Result<PipeRecord> {
    let json = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(contend);
    command
        .args(["pipe", "--no-advice", "--no-store", "--output", "/dev/null", "--json"])
        .arg(json.path());
    if case.from_stdin {
        command.arg("--stdin").arg(case.input.file);
    }
    command.arg("--").arg(&case.text);
    command.current_dir(case.folder(inputs, size)).env("LC_ALL", &case.locale);
    // GNU grep stops at the first match if its output is /dev/null.
    command.stdin(Stdio::null()).stdout(tempfile::tempfile()?);
    let done = command.output().context("cannot start contend")?;
    let text = fs::read_to_string(json.path())?;
    let last_stderr = String::from_utf8_lossy(&done.stderr);
    let last = last_stderr.lines().last().unwrap_or("no record");
    ensure!(!text.is_empty(), "case {}: contend pipe: {last}", case.name);
    Ok(serde_json::from_str(&text)?)
}

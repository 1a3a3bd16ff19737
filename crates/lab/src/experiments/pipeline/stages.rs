//! Runs pipelines without a shell: one program for each stage, connected by pipes.
//!
//! This process closes its ends of the pipes as the stages start, polls the stages' pidfds, and
//! reaps each stage that exits, which yields the stage's CPU time. The wall time of a stage runs
//! from its start to its exit. On any error, all stages are killed and reaped.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use contend_record::lab::Unit;
use contend_record::stats::median;
use contend_sys::child::{ExitStatus, Usage, reap};
use contend_sys::{Pid, Signal, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, kill_process, pidfd_open};

use crate::engine::experiment::{ErrorContext, Sample, StageSample, SubjectError};
use crate::support::inputs::Input;

/// A stage: a program with its arguments.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Name of the stage in tables and errors.
    pub label: String,
    /// Program and its arguments; must not be empty.
    pub words: Vec<String>,
}

impl Stage {
    /// Creates a stage whose label is its words, separated by spaces.
    pub fn new(words: &[&str]) -> Self {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        Self { label: words.join(" "), words }
    }
}

/// A started stage, which is killed and reaped on drop unless it has ended.
struct RunningStage {
    pid: Pid,
    /// A pidfd, which becomes readable when the stage exits.
    pidfd: OwnedFd,
    begun: Instant,
    /// Time at which the exit was noticed, exit status, and resource usage; `None` while the stage
    /// runs.
    ended: Option<(Instant, ExitStatus, Usage)>,
}

impl RunningStage {
    fn start(stage: &Stage, input: Stdio, output: Stdio, errors: &File) -> io::Result<Self> {
        let (program, arguments) = stage.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(input).stdout(output).stderr(errors.try_clone()?);
        let begun = Instant::now();
        let pid = Pid::from_child(&spawn::spawn_bound(&mut command)?);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { pid, pidfd, begun, ended: None }),
            Err(error) => {
                let _ = kill_process(pid, Signal::KILL);
                reap(pid)?;
                Err(error.into())
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let at = Instant::now();
        let reaped = reap(self.pid)?;
        self.ended = Some((at, reaped.status, reaped.usage));
        Ok(())
    }
}

impl Drop for RunningStage {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // The kernel does not reuse the process id before the process is reaped.
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = reap(self.pid);
        }
    }
}

/// Wall time of a pipeline, and wall time and resource usage of each stage.
#[derive(Debug, Clone)]
struct PipelineTimes {
    wall: Duration,
    stages: Vec<(Duration, Usage)>,
}

impl PipelineTimes {
    fn user(&self) -> Duration {
        self.stages.iter().map(|(_, usage)| usage.user).sum()
    }

    fn system(&self) -> Duration {
        self.stages.iter().map(|(_, usage)| usage.system).sum()
    }
}

/// Runs `copies` copies of a pipeline concurrently on the same input and discards their output. The
/// value of the sample is the wall time until all copies have ended, in nanoseconds.
///
/// # Errors
/// Returns an error if:
/// - a stage cannot be started;
/// - a stage does not exit with status 0, in which case the error includes the first line that any
///   stage wrote to standard error;
/// - a system call fails.
pub fn run(stages: &[Stage], input: &Input, copies: u64) -> Result<Sample, SubjectError> {
    let mut errors = File::from(
        rustix::fs::memfd_create("contend-errors", rustix::fs::MemfdFlags::CLOEXEC)
            .context("create a file for the messages of stages")?,
    );
    let begun = Instant::now();
    let mut running = Vec::new();
    for _ in 0..copies {
        running.push(start(stages, input, &errors)?);
    }
    await_all(&mut running).context("wait for stages")?;
    let wall = begun.elapsed();
    for pipeline in &running {
        check(stages, pipeline, &mut errors)?;
    }
    let times: Vec<_> = running.iter().map(|pipeline| times(pipeline)).collect();
    Ok(sample(stages, &times, wall, input.len_bytes() * copies))
}

fn start(
    stages: &[Stage],
    input: &Input,
    errors: &File,
) -> Result<Vec<RunningStage>, SubjectError> {
    let mut running = Vec::new();
    let mut next = Stdio::from(input.open().context("read the input")?);
    for (index, stage) in stages.iter().enumerate() {
        let (output, after) = if index + 1 == stages.len() {
            (Stdio::null(), Stdio::null())
        } else {
            let (reader, writer) = io::pipe().context("make a pipe")?;
            (Stdio::from(writer), Stdio::from(reader))
        };
        let input = std::mem::replace(&mut next, after);
        let what = format!("start {}", stage.words.first().map_or("a stage", String::as_str));
        running.push(RunningStage::start(stage, input, output, errors).context(&what)?);
    }
    Ok(running)
}

/// Waits until all stages have exited, reaps them, and records the time and the outcome of each
/// exit.
fn await_all(pipelines: &mut [Vec<RunningStage>]) -> io::Result<()> {
    loop {
        let mut left: Vec<&mut RunningStage> =
            pipelines.iter_mut().flatten().filter(|stage| stage.ended.is_none()).collect();
        if left.is_empty() {
            return Ok(());
        }
        let mut ends: Vec<_> =
            left.iter().map(|stage| PollFd::new(&stage.pidfd, PollFlags::IN)).collect();
        match poll(&mut ends, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let ended: Vec<bool> = ends.iter().map(|end| !end.revents().is_empty()).collect();
        for (stage, _) in left.iter_mut().zip(ended).filter(|(_, ended)| *ended) {
            stage.finish()?;
        }
    }
}

/// Returns an error unless all stages have exited with status 0. If a stage fails, SIGPIPE may kill
/// the stages before it, so the error names the first failed stage that SIGPIPE has not killed, if
/// any.
fn check(
    stages: &[Stage],
    pipeline: &[RunningStage],
    errors: &mut File,
) -> Result<(), SubjectError> {
    let status = |one: &RunningStage| one.ended.map(|(_, status, _)| status);
    let failed = stages
        .iter()
        .zip(pipeline.iter().map(status))
        .filter(|(_, status)| *status != Some(ExitStatus::Exited(0)))
        .min_by_key(|(_, status)| *status == Some(ExitStatus::Signaled(Signal::PIPE.as_raw())));
    let Some((stage, status)) = failed else { return Ok(()) };
    let how = match status {
        Some(ExitStatus::Exited(status)) => format!("exited with status {status}"),
        Some(ExitStatus::Signaled(signal)) => {
            format!("was killed by SIG{}", contend_record::signal::name(signal).unwrap_or("?"))
        }
        None => "did not exit".to_owned(),
    };
    let mut text = Vec::new();
    let _ = errors.rewind().and_then(|()| errors.read_to_end(&mut text)); // on failure, omit the line
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().map_or_else(String::new, |line| format!(": {line}"));
    Err(SubjectError::Unexpected(format!("{} {how}{line}", stage.label)))
}

fn times(pipeline: &[RunningStage]) -> PipelineTimes {
    let end = |stage: &RunningStage| stage.ended.map_or(stage.begun, |(at, _, _)| at);
    let begun = pipeline.first().map(|stage| stage.begun);
    let wall = pipeline.iter().map(end).max().zip(begun);
    let stages = pipeline.iter().map(|stage| {
        let usage = stage.ended.map(|(_, _, usage)| usage).unwrap_or_default();
        (end(stage).saturating_duration_since(stage.begun), usage)
    });
    PipelineTimes {
        wall: wall.map_or(Duration::ZERO, |(end, begun)| end.saturating_duration_since(begun)),
        stages: stages.collect(),
    }
}

/// Builds the sample. With several copies, the times of a stage are means over the copies, `user`
/// and `system` are totals, and the times of a copy (`copy_real`, `copy_user`, `copy_system`) are
/// medians.
fn sample(stages: &[Stage], copies: &[PipelineTimes], wall: Duration, bytes: u64) -> Sample {
    let nanos = |time: Duration| time.as_nanos() as f64;
    let mean = |of: &dyn Fn(&PipelineTimes) -> Duration| {
        copies.iter().map(|times| nanos(of(times))).sum::<f64>() / copies.len().max(1) as f64
    };
    let median_of = |of: &dyn Fn(&PipelineTimes) -> Duration| {
        median(&copies.iter().map(|times| nanos(of(times))).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let all = |of: &dyn Fn(&PipelineTimes) -> Duration| mean(of) * copies.len() as f64;
    let stage = |(index, stage): (usize, &Stage)| StageSample {
        stage: stage.label.clone(),
        real: mean(&|times| times.stages[index].0),
        user: mean(&|times| times.stages[index].1.user),
        system: mean(&|times| times.stages[index].1.system),
    };
    let mut sample = Sample::of(nanos(wall))
        .with("user", Unit::Nanoseconds, all(&PipelineTimes::user))
        .with("system", Unit::Nanoseconds, all(&PipelineTimes::system))
        .with("input", Unit::Bytes, bytes as f64);
    if copies.len() > 1 {
        sample = sample
            .with("copy_real", Unit::Nanoseconds, median_of(&|times| times.wall))
            .with("copy_user", Unit::Nanoseconds, median_of(&PipelineTimes::user))
            .with("copy_system", Unit::Nanoseconds, median_of(&PipelineTimes::system));
    }
    sample.stages = stages.iter().enumerate().map(stage).collect();
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn input() -> Input {
        Input::new(|mut file| file.write_all(b"one\ntwo\n")).expect("memory")
    }

    fn sh(text: &str) -> Stage {
        Stage::new(&["sh", "-c", text])
    }

    #[test]
    fn every_stage_reads_the_output_of_the_previous_one() {
        let stages = [Stage::new(&["cat"]), sh("grep two"), sh("[ \"$(cat)\" = two ]")];
        let sample = run(&stages, &input(), 1).expect("it works");
        assert_eq!(sample.stages.len(), 3);
        assert_eq!(sample.stages[0].stage, "cat");
        assert!(sample.stages.iter().all(|stage| stage.real > 0.0 && stage.real <= sample.value));
        let cpu: f64 = sample.stages.iter().map(|stage| stage.user + stage.system).sum();
        let all = sample.metrics["user"].0 + sample.metrics["system"].0;
        assert!((cpu - all).abs() < 1.0, "{cpu} {all}");
        assert_eq!(sample.metrics["input"], (8.0, Unit::Bytes));
    }

    #[test]
    fn copies_all_read_the_whole_input() {
        let sample = run(&[sh("[ $(wc -l) = 2 ]"), Stage::new(&["cat"])], &input(), 10);
        let sample = sample.expect("it works");
        assert_eq!(sample.metrics["input"], (80.0, Unit::Bytes));
        assert!(sample.metrics["copy_real"].0 <= sample.value);
    }

    #[test]
    fn a_stage_that_fails_is_named_with_its_words() {
        let stages = [Stage::new(&["cat"]), sh("echo no room >&2; exit 3")];
        let error = run(&stages, &input(), 1).expect_err("it fails").to_string();
        assert!(error.ends_with("exited with status 3: no room"), "{error}");
        let error = run(&[sh("kill -KILL $$")], &input(), 1).expect_err("it is killed");
        assert!(error.to_string().ends_with("was killed by SIGKILL"), "{error}");
    }

    #[test]
    fn started_stages_are_killed_when_a_later_one_cannot_start() {
        let stages = [Stage::new(&["sleep", "1000"]), Stage::new(&["/no/such/program"])];
        let error = run(&stages, &input(), 1).expect_err("it is not there").to_string();
        assert!(error.starts_with("cannot start /no/such/program: "), "{error}");
    }
}

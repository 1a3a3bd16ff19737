//! `contend run --probe`: measures an engine with two small jobs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, anyhow};
use contend_parallel::cluster::{Capacity, Work};
use contend_record::run::{DividedOutcome, RunRecord};
use contend_report::render::units::{bytes, counted, seconds};
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, Signal, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::kill_process;

use crate::exit::Exit;
use crate::output;
use crate::settings::Probe;

/// Number of parts of the job whose parts only wait, and the largest one of that whose parts read.
const PARTS: u64 = 64;
/// Time that each of these parts waits, in seconds.
const WAIT_SECONDS: f64 = 0.2;
/// Size of the file that the parts of the other job read, in bytes.
const READ_BYTES: u64 = 256_000_000;
/// Time between two looks at a job.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Measures the engine, and prints what was measured, with settings for `--on auto`.
///
/// # Errors
/// Returns an error if a job fails, or the work directory cannot be used.
pub fn run(probe: &Probe) -> Result<Exit> {
    let signals = Signals::block().context("cannot block signals")?;
    let directory = &probe.place.directory;
    let work = Work::create(directory)
        .with_context(|| format!("cannot create a directory in {}", directory.display()))?
        .in_new_store(probe.place.store.as_deref());
    let opened = work.open_store().context("cannot use the store");
    let measured = opened.and_then(|()| measure(probe, &work, &signals));
    if let Err(error) = work.remove() {
        output::error(&format!("cannot remove {}: {error}", work.path().display()));
    }
    if let Some(signal) = signals.interrupted() {
        return Ok(Exit::Signal(signal));
    }
    let (waiting, reading) = measured?;
    output::stdout(&report(probe, &capacity(&waiting, &reading)?))?;
    Ok(Exit::Success)
}

/// Runs a job whose parts wait, and one whose parts read a file. Returns what became of the parts.
fn measure(
    probe: &Probe,
    work: &Work,
    signals: &Signals,
) -> Result<(DividedOutcome, DividedOutcome)> {
    let waits = format!("sh -c 'sleep {WAIT_SECONDS}; exec cat'");
    let name = sample(work, signals, "waits", PARTS * 2)?;
    let words = [format!("--parts={PARTS}"), format!("--map={waits}")];
    let waiting = job(probe, work, signals, &words, &format!("cat {name} | {waits}"))?;
    let name = sample(work, signals, "reads", READ_BYTES)?;
    let words = [format!("--parts={}", waiting.at_once.clamp(1, PARTS))];
    let reading =
        job(probe, work, signals, &words, &format!("cat {name} | LC_ALL=C tr -d '0\\n'"))?;
    Ok((waiting, reading))
}

/// Writes a file of lines where the workers can read it. Returns its name as a word of the shell.
fn sample(work: &Work, signals: &Signals, name: &str, bytes: u64) -> Result<String> {
    let path = work.path().join(name);
    let write = || {
        let mut file = BufWriter::new(File::create(&path)?);
        let line = "0\n".repeat(1 << 10);
        let mut left = bytes;
        while left > 0 {
            if signals.interrupted().is_some() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = left.min(line.len() as u64);
            file.write_all(&line.as_bytes()[..usize::try_from(count).unwrap_or(0)])?;
            left -= count;
        }
        file.into_inner()?.sync_all()?;
        work.publish(name)
    };
    write().context("cannot write a file for the workers")?;
    let shared = work.store().map_or_else(|| path.display().to_string(), |it| it.name_of(name));
    Ok(contend_record::shell::quote(&shared))
}

/// Runs a pipeline as a job of the engine, in a process of its own.
fn job(
    probe: &Probe,
    work: &Work,
    signals: &Signals,
    words: &[String],
    pipeline: &str,
) -> Result<DividedOutcome> {
    let [record, log, out] = ["record.json", "log", "out"].map(|name| work.path().join(name));
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 2>\"$0\""]).arg(&log).arg(&probe.program);
    command.args(["run", "--no-progress", "--no-store", "--json"]).arg(&record);
    command.args(&probe.engine).args(words).arg(pipeline);
    // The engine has the options of the configuration file already.
    command.env("XDG_CONFIG_HOME", work.path());
    command.stdin(Stdio::null()).stdout(File::create(&out)?);
    let status = wait(&mut command, signals).context("cannot run a job")?;
    let message = || {
        let log = fs::read_to_string(&log).unwrap_or_default();
        anyhow!("the job failed: {}", log.trim_end().trim_start_matches("contend: "))
    };
    if !status.success() {
        return Err(message());
    }
    let record: RunRecord = serde_json::from_slice(&fs::read(&record)?)?;
    record.outcome.and_then(|outcome| outcome.divided).ok_or_else(message)
}

/// Runs a command. Signals that ask contend to end ask the command, too; it gets the time that it needs to clean up.
fn wait(command: &mut Command, signals: &Signals) -> io::Result<ExitStatus> {
    let mut child = spawn::spawn(command, &[0, 1], signals.mask_before(), Signal::TERM)?;
    let mut is_asked = signals.interrupted().is_some();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // The terminal has sent its signals to the command as well.
        is_asked |= signals.next_ending().is_some_and(|arrived| !arrived.is_from_keyboard());
        if std::mem::take(&mut is_asked) {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM); // it may have ended
        }
        // The end of the command does not interrupt this.
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&INTERVAL));
    }
}

/// Returns what the two jobs tell of the cluster.
fn capacity(waiting: &DividedOutcome, reading: &DividedOutcome) -> Result<Capacity> {
    let complete = "no part is complete";
    let slots = waiting.at_once.max(1);
    let in_turn = PARTS.div_ceil(slots) as f64;
    let part = waiting.parts_seconds.context(complete)? / in_turn - WAIT_SECONDS;
    let part = part.max(0.0);
    let read = (reading.parts_seconds.context(complete)? - part).max(1e-3);
    Ok(Capacity {
        slots,
        start_seconds: waiting.start_seconds,
        part_seconds: Some(part),
        bytes_per_second: Some(READ_BYTES as f64 / read),
    })
}

/// Says what was measured, and how to use it.
fn report(probe: &Probe, capacity: &Capacity) -> String {
    let Capacity { slots, start_seconds, part_seconds, bytes_per_second } = *capacity;
    let [start, part, rate] =
        [start_seconds, part_seconds, bytes_per_second].map(Option::unwrap_or_default);
    let least = if slots >= PARTS { "at least " } else { "" };
    let mut text = format!(
        "{}: the first part began after {}. It ran {least}{} at a time, and each took {} besides its command.\n\
         Together they read a new file of {} at {}/s.\n",
        probe.name,
        seconds(start),
        counted(slots, "part"),
        seconds(part),
        bytes(READ_BYTES as f64),
        bytes(rate),
    );
    if let Some(file) = &probe.file {
        let _ = write!(
            text,
            "\nFor --on auto, in {}:\n\n[{}]\nslots = {slots}\nstart_seconds = {start:.2}\n\
             part_seconds = {part:.3}\nbytes_per_second = {rate:.2e}\n",
            file.display(),
            probe.name
        );
    }
    text
}

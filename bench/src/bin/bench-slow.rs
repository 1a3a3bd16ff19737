//! Runs a program more slowly, as if its code were worse: for every 10 ms of CPU time that the
//! program uses, stops it and uses a share of that time itself.
//!
//! Input, output and exit code are the program's own; if a signal kills it, the exit code is 128
//! plus the signal's number. There is no delay for CPU time after the last stop, which is less than
//! 10 ms plus what is used between two checks, nor for CPU time of the program's children.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use contend_sys::child::{self, Change, ExitStatus, Which};
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

/// Run a program more slowly.
#[derive(Debug, Parser)]
struct Args {
    /// Share of the program's CPU time by which it is slowed; 0 only observes it.
    #[arg(long)]
    by: f64,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Time between two checks of the program's CPU time.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// Unit of the CPU times in `/proc/PID/stat`, and minimum CPU time between two stops.
const TICK: Duration = Duration::from_millis(10);

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let (program, arguments) = args.command.split_first().context("no program")?;
    let mut command = Command::new(program);
    command.args(arguments).arg0(program);
    let pid = Pid::from_child(&command.spawn().with_context(|| format!("cannot run {program}"))?);
    drop_standard_streams();
    let mut paid = Duration::ZERO;
    loop {
        std::thread::sleep(CHECK_INTERVAL);
        if let Ok(Some((_, Change::Ended))) = child::peek(Which::One(pid)) {
            return Ok(ExitCode::from(status_code(child::reap(pid)?.status)));
        }
        let used = cpu_time(pid);
        let due = used.saturating_sub(paid);
        if due >= TICK {
            paid = used;
            let delay = due.mul_f64(args.by);
            if !delay.is_zero() && kill_process(pid, Signal::STOP).is_ok() {
                spin(delay);
                let _ = kill_process(pid, Signal::CONT); // it may have been killed
            }
        }
    }
}

/// Points the standard input and output at `/dev/null`, so that only the program holds ends of the
/// pipeline's pipes.
fn drop_standard_streams() {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

fn status_code(status: ExitStatus) -> u8 {
    u8::try_from(status.shell_code()).unwrap_or(1)
}

/// Returns the CPU time of all threads of a process so far, in steps of 10 ms; 0 if it cannot be
/// read.
fn cpu_time(pid: Pid) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let ticks = stat.ok().and_then(|stat| {
        // The command, in parentheses, may contain anything; state is the field after it, and user
        // and system time are the 12th and 13th from there.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        Some(times.next()?.ok()? + times.next()?.ok()?)
    });
    TICK * u32::try_from(ticks.unwrap_or(0)).unwrap_or(u32::MAX)
}

fn spin(delay: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < delay {
        std::hint::spin_loop();
    }
}

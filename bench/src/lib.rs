//! Shared parts of the benchmark programs: running and timing commands, generated inputs, random
//! pipelines and scripts, and the listings of pipelines and cases.

#![expect(clippy::missing_errors_doc, reason = "every error ends a benchmark, which prints it")]

pub mod awkward;
pub mod inputs;
pub mod listing;
pub mod pipelines;
pub mod run;
pub mod scripts;
pub mod simulation;

#[cfg(test)]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use contend_record::pipe::PipeRecord;
use contend_sys::child::{self, Usage};

/// Returns the path of a program of this workspace, in the folder of the running program. Fails if
/// it has not been built there.
pub fn built_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let path = own.with_file_name(name);
    ensure!(
        path.is_file(),
        "{} is missing: build everything first with `cargo build --profile dist --workspace`",
        path.display()
    );
    Ok(path)
}

/// Time and resources of a finished command and its children.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    /// Wall time from start to exit.
    pub wall: Duration,
    /// Resources of the command and of the descendants that it waited for.
    pub usage: Usage,
}

impl Timed {
    /// Returns user time plus system time.
    pub fn cpu(&self) -> Duration {
        self.usage.user + self.usage.system
    }
}

/// Runs a command with `/dev/null` as its standard input, output and error, and returns its time
/// and resource usage. Ignores its exit status.
pub fn time(command: &mut Command) -> Result<Timed> {
    time_with(command, Stdio::null(), Stdio::null())
}

/// Runs a command with the given input and output and `/dev/null` as standard error, and returns
/// its time and resource usage. Ignores its exit status.
///
/// GNU grep, even with -c, stops at the first match if its output is /dev/null. If a pipeline may
/// end with grep, the output has to be a file.
pub fn time_with(command: &mut Command, stdin: Stdio, stdout: Stdio) -> Result<Timed> {
    let begun = Instant::now();
    let child = command
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a command")?;
    let reaped = child::reap(contend_sys::Pid::from_child(&child))?;
    Ok(Timed { wall: begun.elapsed(), usage: reaped.usage })
}

/// Returns a command that runs `pipeline` with bash.
pub fn bash_command(pipeline: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg("-c").arg(pipeline);
    command
}

/// Returns shell text that runs `pipeline`, in which `contend run` starts the program `contend` and
/// saves nothing.
pub fn with_own_contend(contend: &Path, pipeline: &str) -> String {
    let own = contend_record::shell::quote(&contend.display().to_string());
    format!("contend() {{ shift; {own} run --no-store --no-progress \"$@\"; }}; {pipeline}")
}

/// Returns a command that runs `pipeline` with `contend pipe`, which discards the output of the
/// pipeline, gives no advice and saves no record.
pub fn contend_command(contend: &Path, pipeline: &str) -> Command {
    let mut command = Command::new(contend);
    command.args(["pipe", "--discard", "--no-advice", "--no-store", "--"]).arg(pipeline);
    command
}

/// Profiles `pipeline` with `contend pipe` and no input, and returns the record. Fails if contend
/// writes no record.
pub fn profile(contend: &Path, pipeline: &str) -> Result<PipeRecord> {
    let mut command = Command::new(contend);
    command.args(["pipe", "--no-advice", "--no-store"]);
    record_of(command, pipeline)
}

/// Runs `command`, a `contend pipe` without its pipeline, on `pipeline`, and returns the record.
/// The pipeline's output is discarded. Fails if contend writes no record, but ignores its exit
/// status.
pub fn record_of(mut command: Command, pipeline: &str) -> Result<PipeRecord> {
    let json = tempfile::NamedTempFile::new()?;
    command.args(["--discard", "--output", "/dev/null", "--json"]).arg(json.path());
    let output = command.arg("--").arg(pipeline).stdin(Stdio::null()).output()?;
    let text = std::fs::read_to_string(json.path())?;
    serde_json::from_str(&text).with_context(|| {
        format!("`{pipeline}`: no record: {}", String::from_utf8_lossy(&output.stderr))
    })
}

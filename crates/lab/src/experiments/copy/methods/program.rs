//! Copies a file with the standard programs `cp` and `dd`.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use contend_sys::Pid;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::super::run_queue_time_of;
use super::{CopyJob, CopyMethod};
use crate::support::programs;

/// The `cp` method, whose time includes the start of the program.
pub const CP: CopyMethod = CopyMethod {
    name: "cp",
    summary: "the program cp, including its start",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| programs::missing(["cp"]),
    prepare: None,
    copy: |job| run(Command::new("cp").arg("--").arg(job.from).arg(job.to), &mut job.queued),
    counts_calls: false,
};

/// The `dd` method with blocks of 64 KiB, whose time includes the start of the program.
pub const DD: CopyMethod = CopyMethod {
    name: "dd",
    summary: "the program dd with blocks of 64 KiB, including its start",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| programs::missing(["dd"]),
    prepare: None,
    copy: |job: &mut CopyJob<'_>| {
        let operand = |name: &str, path: &std::path::Path| {
            let mut operand = std::ffi::OsString::from(name);
            operand.push(path);
            operand
        };
        let (from, to) = (operand("if=", job.from), operand("of=", job.to));
        run(Command::new("dd").arg(from).arg(to).arg("bs=65536"), &mut job.queued)
    },
    counts_calls: false,
};

/// Runs a program and adds the time that it was queued for a CPU to `queue`. The kernel reports
/// that time only until the process is reaped.
///
/// # Errors
/// Returns an error if the program cannot be started or does not succeed.
fn run(command: &mut Command, queue: &mut Duration) -> io::Result<()> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn()?;
    let pid = Pid::from_child(&child);
    while let Err(Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    *queue += run_queue_time_of(&PathBuf::from(format!("/proc/{}/schedstat", child.id())));
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "the program ended with \
        {status}"
        )))
    }
}

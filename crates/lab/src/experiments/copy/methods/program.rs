//! By programs that everybody has.

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

/// What copies files every day.
pub const CP: CopyMethod = CopyMethod {
    name: "cp",
    summary: "the program cp, its start included",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| programs::missing(["cp"]),
    prepare: None,
    copy: |job| run(Command::new("cp").arg("--").arg(job.from).arg(job.to), &mut job.queued),
    counts_calls: false,
};

/// What copies disks.
pub const DD: CopyMethod = CopyMethod {
    name: "dd",
    summary: "the program dd with blocks of 64 KiB, its start included",
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

/// Runs it, and adds how long it has waited for a CPU: the kernel tells until its end is taken.
fn run(command: &mut Command, queue: &mut Duration) -> io::Result<()> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn()?;
    let pid = Pid::from_child(&child);
    while let Err(Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    *queue += run_queue_time_of(&PathBuf::from(format!("/proc/{}/schedstat", child.id())));
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

//! By programs that everybody has.

use std::io;
use std::process::{Command, Stdio};

use super::{Job, Way};
use crate::programs;

/// What copies files every day.
pub const CP: Way = Way {
    name: "cp",
    summary: "the program cp, its start included",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| programs::missing(["cp"]),
    prepare: None,
    copy: |job| run(Command::new("cp").arg("--").arg(job.from).arg(job.to)),
    counts: false,
};

/// What copies disks.
pub const DD: Way = Way {
    name: "dd",
    summary: "the program dd with blocks of 64 KiB, its start included",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| programs::missing(["dd"]),
    prepare: None,
    copy: |job: &mut Job<'_>| {
        let operand = |name: &str, path: &std::path::Path| {
            let mut operand = std::ffi::OsString::from(name);
            operand.push(path);
            operand
        };
        let (from, to) = (operand("if=", job.from), operand("of=", job.to));
        run(Command::new("dd").arg(from).arg(to).arg("bs=65536"))
    },
    counts: false,
};

fn run(command: &mut Command) -> io::Result<()> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = quiet.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

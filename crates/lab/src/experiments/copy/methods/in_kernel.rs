//! Copies a file inside the kernel, without a buffer in user space.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{copy_file_range, sendfile};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

use super::{CopyJob, CopyMethod, always_available};
use crate::support::syscalls::Call;

/// The `copy_file_range` method. The file system may share blocks between the files, or have a
/// server copy them.
pub const COPY_FILE_RANGE: CopyMethod = CopyMethod {
    name: "copy_file_range",
    summary: "copy_file_range: the kernel copies, or has the file system share blocks",
    blocks: &[],
    advices: &[],
    unavailable: always_available,
    prepare: None,
    copy: |job| {
        copy_whole_file(job, Call::CopyFileRange, |files, left| {
            Ok(copy_file_range(&files.0, None, &files.1, None, left)?)
        })
    },
    counts_calls: true,
};

/// The `sendfile` method, which makes the system call that web servers use to send files.
pub const SENDFILE: CopyMethod = CopyMethod {
    name: "sendfile",
    summary: "sendfile: the kernel copies",
    blocks: &[],
    advices: &[],
    unavailable: always_available,
    prepare: None,
    copy: |job| {
        copy_whole_file(job, Call::Sendfile, |files, left| {
            Ok(sendfile(&files.1, &files.0, None, left)?)
        })
    },
    counts_calls: true,
};

/// The `splice` method, which moves data through a pipe inside the kernel.
pub const SPLICE: CopyMethod = CopyMethod {
    name: "splice",
    summary: "splice into a pipe and out of it: pages are moved into the pipe, and copied once",
    blocks: &[],
    advices: &[],
    unavailable: always_available,
    prepare: None,
    copy: |job| {
        const PIPE_BYTES: usize = 1 << 20;
        let files = job.open()?;
        let (read, write) = job.call(Call::Pipe, || Ok(pipe()?))?;
        // A larger pipe is faster, but the copy works with any capacity.
        let capacity = job.call(Call::Fcntl, || Ok(fcntl_setpipe_size(&write, PIPE_BYTES)?));
        let capacity = capacity.unwrap_or(64 << 10);
        let mut left = job.bytes;
        while left > 0 {
            let flags = SpliceFlags::MOVE;
            let (from, to) = (files.0.as_fd(), files.1.as_fd());
            let take = || Ok(splice(from, None, &write, None, capacity, flags)?);
            let mut in_pipe = require_progress(job.call(Call::Splice, take)?)?;
            left = left.saturating_sub(in_pipe);
            while in_pipe > 0 {
                let give = || Ok(splice(&read, None, to, None, in_pipe, flags)?);
                in_pipe -= require_progress(job.call(Call::Splice, give)?)?;
            }
        }
        job.tally.add_many(Call::Close, 2);
        drop((read, write));
        job.close(files);
        Ok(())
    },
    counts_calls: true,
};

/// Opens the files, calls `make` until the whole source is copied, and closes the files. `make`
/// receives the files and the number of remaining bytes. It makes the system call `call` and
/// returns the number of bytes that it copied.
fn copy_whole_file(
    job: &mut CopyJob<'_>,
    call: Call,
    mut make: impl FnMut(&(File, File), usize) -> io::Result<usize>,
) -> io::Result<()> {
    let files = job.open()?;
    let mut left = job.bytes;
    while left > 0 {
        left -= require_progress(job.call(call, || make(&files, left))?)?;
    }
    job.close(files);
    Ok(())
}

/// Returns `bytes`, or an error if it is 0, because the copy would then never end.
fn require_progress(bytes: usize) -> io::Result<usize> {
    if bytes == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

//! Copies a file with `read(2)` and `write(2)`.

use super::{CopyMethod, Resources, always_available};
use crate::support::syscalls::Call;

/// The `read-write` method: one block at a time. With blocks of one byte, the file is smaller by
/// default, because each byte takes two system calls.
pub const METHOD: CopyMethod = CopyMethod {
    name: "read-write",
    summary: "read and write, one block at a time",
    blocks: &[1, 512, 4096, 65_536, 1 << 20, 4 << 20],
    advices: &[],
    unavailable: always_available,
    prepare: Some(|block| Ok(Resources { buffer: vec![1; block], uring: None })),
    copy: |job| {
        let files = job.open()?;
        let mut buffer = std::mem::take(&mut job.resources.buffer);
        loop {
            let read = job.call(Call::Read, || Ok(rustix::io::read(&files.0, &mut buffer)?))?;
            let mut rest = &buffer[..read];
            if rest.is_empty() {
                break;
            }
            while !rest.is_empty() {
                let written = job.call(Call::Write, || Ok(rustix::io::write(&files.1, rest)?))?;
                rest = &rest[written..];
            }
        }
        job.resources.buffer = buffer;
        job.close(files);
        Ok(())
    },
    counts_calls: true,
};

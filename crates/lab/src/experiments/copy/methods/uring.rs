//! Copies a file with `io_uring`, keeping several reads and writes in flight.

use std::io;
use std::os::fd::AsFd;

use contend_sys::uring::{Operation, Uring};

use super::{CopyJob, CopyMethod, Resources};
use crate::support::syscalls::Call;

/// The `io-uring` method. Each buffer is filled from the source and written to the target,
/// independently of the other buffers.
pub const METHOD: CopyMethod = CopyMethod {
    name: "io-uring",
    summary: "io_uring: 8 blocks of 256 KiB in flight",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| {
        let error = Uring::new(1, 1).err()?;
        Some(format!("the kernel refuses io_uring: {error}"))
    },
    prepare: Some(|_| {
        let mut uring = Uring::new(BUFFER_COUNT, BLOCK_BYTES)?;
        (0..BUFFER_COUNT as usize).for_each(|buffer| uring.buffer(buffer).fill(1));
        Ok(Resources { buffer: Vec::new(), uring: Some(uring) })
    }),
    copy: |job| {
        let mut uring = job.resources.uring.take().ok_or(io::ErrorKind::NotConnected)?;
        let copied = copy(job, &mut uring);
        job.resources.uring = Some(uring);
        copied
    },
    counts_calls: true,
};

const BUFFER_COUNT: u32 = 8;
const BLOCK_BYTES: usize = 256 << 10;

/// The operation in flight on a buffer.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    operation: Operation,
    /// Offset of the block in both files, in bytes.
    offset: usize,
    /// Length of the block in bytes.
    bytes: usize,
    /// Number of bytes of the block transferred so far by this operation.
    done: usize,
}

fn copy(job: &mut CopyJob<'_>, uring: &mut Uring) -> io::Result<()> {
    let files = job.open()?;
    let submit = |uring: &mut Uring, buffer: usize, transfer: &Transfer| {
        let file = match transfer.operation {
            Operation::Read => files.0.as_fd(),
            Operation::Write => files.1.as_fd(),
        };
        let part = [transfer.done, transfer.bytes];
        uring.submit(
            transfer.operation,
            file,
            buffer,
            part,
            (transfer.offset + transfer.done) as u64,
        );
    };
    let mut next = 0;
    let mut begin = |job: &CopyJob<'_>| {
        let offset = next;
        next += BLOCK_BYTES;
        let bytes = job.bytes.saturating_sub(offset).min(BLOCK_BYTES);
        (bytes > 0).then_some(Transfer { operation: Operation::Read, offset, bytes, done: 0 })
    };
    let mut transfers: Vec<Option<Transfer>> = (0..BUFFER_COUNT).map(|_| begin(job)).collect();
    for (buffer, transfer) in transfers.iter().enumerate() {
        if let Some(transfer) = transfer {
            submit(uring, buffer, transfer);
        }
    }
    while transfers.iter().any(Option::is_some) {
        job.call(Call::IoUringEnter, || uring.enter())?;
        while let Some((buffer, bytes)) = uring.done() {
            let Some(transfer) = &mut transfers[buffer] else { continue };
            let bytes = bytes?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            transfer.done += bytes;
            if transfer.done == transfer.bytes {
                transfers[buffer] = match transfer.operation {
                    Operation::Read => {
                        Some(Transfer { operation: Operation::Write, done: 0, ..*transfer })
                    }
                    Operation::Write => begin(job),
                };
            }
            if let Some(transfer) = &transfers[buffer] {
                submit(uring, buffer, transfer);
            }
        }
    }
    job.close(files);
    Ok(())
}

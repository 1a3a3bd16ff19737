//! By submissions, several at a time.

use std::io;
use std::os::fd::AsFd;

use contend_sys::uring::{Operation, Uring};

use super::{Job, Ready, Way};
use crate::support::calls::Call;

/// Reads and writes that are on their way at the same time.
pub const WAY: Way = Way {
    name: "io-uring",
    summary: "io_uring: 8 blocks of 256 KiB read and written at the same time",
    blocks: &[],
    advices: &[],
    unavailable: |_, _| {
        let error = Uring::new(1, 1).err()?;
        Some(format!("io_uring is refused: {error}"))
    },
    prepare: Some(|_| {
        let mut uring = Uring::new(BUFFERS, BLOCK)?;
        (0..BUFFERS as usize).for_each(|buffer| uring.buffer(buffer).fill(1));
        Ok(Ready { buffer: Vec::new(), uring: Some(uring) })
    }),
    copy: |job| {
        let mut uring = job.ready.uring.take().ok_or(io::ErrorKind::NotConnected)?;
        let copied = copy(job, &mut uring);
        job.ready.uring = Some(uring);
        copied
    },
    counts: true,
};

const BUFFERS: u32 = 8;
const BLOCK: usize = 256 << 10;

/// What is being done with a buffer.
#[derive(Debug, Clone, Copy)]
struct Piece {
    operation: Operation,
    /// Its place in the files.
    offset: usize,
    /// How much of it there is, and how much of that was read or written.
    bytes: usize,
    done: usize,
}

fn copy(job: &mut Job<'_>, uring: &mut Uring) -> io::Result<()> {
    let files = job.open()?;
    let submit = |uring: &mut Uring, buffer: usize, piece: &Piece| {
        let file = match piece.operation {
            Operation::Read => files.0.as_fd(),
            Operation::Write => files.1.as_fd(),
        };
        let part = [piece.done, piece.bytes];
        uring.submit(piece.operation, file, buffer, part, (piece.offset + piece.done) as u64);
    };
    let mut next = 0;
    let mut begin = |job: &Job<'_>| {
        let offset = next;
        next += BLOCK;
        let bytes = job.bytes.saturating_sub(offset).min(BLOCK);
        (bytes > 0).then_some(Piece { operation: Operation::Read, offset, bytes, done: 0 })
    };
    let mut pieces: Vec<Option<Piece>> = (0..BUFFERS).map(|_| begin(job)).collect();
    for (buffer, piece) in pieces.iter().enumerate() {
        if let Some(piece) = piece {
            submit(uring, buffer, piece);
        }
    }
    while pieces.iter().any(Option::is_some) {
        job.call(Call::IoUringEnter, || uring.enter())?;
        while let Some((buffer, bytes)) = uring.done() {
            let Some(piece) = &mut pieces[buffer] else { continue };
            let bytes = bytes?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            piece.done += bytes;
            if piece.done == piece.bytes {
                pieces[buffer] = match piece.operation {
                    Operation::Read => {
                        Some(Piece { operation: Operation::Write, done: 0, ..*piece })
                    }
                    Operation::Write => begin(job),
                };
            }
            if let Some(piece) = &pieces[buffer] {
                submit(uring, buffer, piece);
            }
        }
    }
    job.close(files);
    Ok(())
}

//! The rest of an input, which is not divided into chunks.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::thread;
use std::time::Instant;

use rustix::pipe::{SpliceFlags, splice};

use super::super::backoff::PollBackoff;
use super::super::pipe::capacity;
use super::super::processes::FULL_READ_BYTES;
use super::{BLOCK_BYTES, ChunkSource, Source, read_from, retried};

/// A reader of the rest of an input, which is the whole input if that consists of files.
#[derive(Debug)]
pub(in super::super) struct Rest<'a> {
    pub(super) chunks: &'a ChunkSource<'a>,
    /// Blocks of bytes to return before the source is read, in reverse order.
    pub(super) waiting: Vec<Vec<u8>>,
    /// Number of bytes of the last block in `waiting` that have already been returned.
    pub(super) offset: usize,
    /// Offset of the next read, if the source consists of files.
    pub(super) position: u64,
}

impl Read for Rest<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.next(buffer)?;
        self.chunks.counted.inspect(|intake| intake.add_bytes(read as u64));
        Ok(read)
    }
}

impl Rest<'_> {
    /// Returns the stream that must be readable before more can be read, or `None` if reading does
    /// not block.
    pub(in super::super) fn source(&self) -> Option<&File> {
        match &self.chunks.source {
            Source::Stream(file) => {
                let waiting: usize = self.waiting.iter().map(Vec::len).sum();
                (waiting == self.offset).then_some(file)
            }
            Source::Files(_) => None,
        }
    }

    /// Writes the rest of the input into a pipe, until the input ends, the pipe's reader closes it,
    /// or the run is being ended.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or the pipe cannot be written.
    pub(in super::super) fn pour_into(mut self, mut pipe: File) -> io::Result<()> {
        let mut block = vec![0; BLOCK_BYTES];
        let mut backoff = PollBackoff::of(match &self.chunks.source {
            Source::Stream(stream) => capacity(stream),
            Source::Files(_) => 0,
        });
        loop {
            if let Some(rest) = backoff.remaining_delay(Instant::now()) {
                thread::sleep(rest);
            }
            let moved = match self.source() {
                None => self.next(&mut block).and_then(|read| {
                    pipe.write_all(&block[..read])?;
                    Ok(read)
                }),
                Some(source) => {
                    if !self.chunks.stop.wait_for_either(source, &pipe)? {
                        return Ok(());
                    }
                    moved(source, &pipe, &mut block)
                }
            };
            match moved {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    self.chunks.counted.inspect(|intake| intake.add_bytes(bytes as u64));
                    backoff.moved(bytes);
                    if bytes < FULL_READ_BYTES {
                        backoff.note_idle(Instant::now());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn next(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.waiting.last() {
            let left = &first[self.offset..];
            if left.is_empty() {
                self.waiting.pop();
                self.offset = 0;
                continue;
            }
            let most = left.len().min(buffer.len());
            buffer[..most].copy_from_slice(&left[..most]);
            self.offset += most;
            return Ok(most);
        }
        let read = match &self.chunks.source {
            Source::Stream(file) => retried(|| read_from(file, buffer)),
            Source::Files(files) => files.read_at(buffer, self.position),
        }?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Moves bytes of a stream into a pipe, without a copy if the kernel can splice, and otherwise
/// through `block`. Returns their number, which is 0 at the end of the stream.
fn moved(source: &File, mut pipe: &File, block: &mut [u8]) -> io::Result<usize> {
    match retried(|| Ok(splice(source, None, pipe, None, 1 << 20, SpliceFlags::MOVE)?)) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let read = retried(|| read_from(source, block))?;
            pipe.write_all(&block[..read])?;
            Ok(read)
        }
        result => result,
    }
}

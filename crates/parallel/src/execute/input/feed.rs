//! Feeds commands with chunks.

use std::io;
use std::ops::Range;

use memchr::memchr;

use super::super::chunk_input::ChunkInput;
use super::super::error::GroupError;
use super::super::instance::Instance;
use super::super::sink::OutputSink;
use super::files::Files;
use super::{BLOCK_BYTES, ChunkData, ChunkSource};

/// Number of bytes by which checks of the guard run ahead of the commands. A byte that violates the
/// guard may affect the output for all bytes in the same buffer of a command. The buffer of `grep`
/// has 96 KiB.
const READ_AHEAD_BYTES: u64 = 256 << 10;

/// The result of feeding commands with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Fed {
    /// The whole chunk has been passed to the commands, or they have closed their input.
    All,
    /// The reader wants no more output.
    Unwanted,
    /// The guard rejected the chunk, or its remainder.
    Rejected,
}

impl ChunkSource<'_> {
    /// Feeds commands with a chunk, and forwards their output. A range of files is checked against
    /// the guard while it is fed, and reaches processes without a copy if the kernel can splice.
    ///
    /// # Errors
    /// Returns an error if the chunk cannot be read, the commands cannot be fed, or their output
    /// cannot be forwarded.
    pub(in super::super) fn feed(
        &self,
        data: &ChunkData,
        instance: &mut Instance<'_>,
        output: &mut impl OutputSink,
    ) -> Result<Fed, GroupError> {
        match data {
            ChunkData::Bytes(bytes) => {
                let wanted = instance.feed(&mut ChunkInput::Bytes(bytes), output)?;
                Ok(if wanted.is_break() { Fed::Unwanted } else { Fed::All })
            }
            ChunkData::FileRange(range) => match self.source.files() {
                Some(files) => self.feed_from(files, range.clone(), instance, output),
                None => Ok(Fed::All),
            },
        }
    }

    /// Returns the bytes of a chunk, or `None` if the guard rejects them.
    ///
    /// # Errors
    /// Returns an error if the chunk cannot be read.
    pub(in super::super) fn bytes(&self, data: ChunkData) -> io::Result<Option<Vec<u8>>> {
        let range = match data {
            ChunkData::Bytes(bytes) => return Ok(Some(bytes)),
            ChunkData::FileRange(range) => range,
        };
        let Some(files) = self.source.files() else { return Ok(None) };
        let bytes = files.read_range(range)?;
        self.counted.inspect(|intake| intake.add_bytes(bytes.len() as u64));
        Ok(Some(bytes).filter(|bytes| self.guard.accepts(bytes)))
    }

    /// Returns whether a chunk is ASCII without NUL, which some commands treat as the end of a
    /// string in UTF-8 locales.
    ///
    /// # Errors
    /// Returns an error if the chunk cannot be read.
    pub(in super::super) fn is_ascii(&self, data: &ChunkData) -> io::Result<bool> {
        let mut range = match data {
            ChunkData::Bytes(bytes) => return Ok(is_ascii(bytes)),
            ChunkData::FileRange(range) => range.clone(),
        };
        let Some(files) = self.source.files() else { return Ok(false) };
        while !range.is_empty() {
            let bytes =
                files.read_range(range.start..range.end.min(range.start + BLOCK_BYTES as u64))?;
            let (is_ascii, length) = (is_ascii(&bytes), bytes.len());
            files.recycle(bytes);
            if !is_ascii || length == 0 {
                return Ok(is_ascii);
            }
            range.start += length as u64;
        }
        Ok(true)
    }

    fn feed_from(
        &self,
        files: &Files,
        mut range: Range<u64>,
        instance: &mut Instance<'_>,
        output: &mut impl OutputSink,
    ) -> Result<Fed, GroupError> {
        if !self.guard.accepts_end(files, &range)? {
            return Ok(Fed::Rejected);
        }
        let mut seen = range.start;
        while !range.is_empty() && instance.is_reading() {
            let Some((file, there)) = files.file_at(range.start) else { break };
            let bytes =
                (range.end - range.start).min(there.end - there.start).min(BLOCK_BYTES as u64);
            if !self.guard.accepts_until(
                files,
                &mut seen,
                range.start + bytes + READ_AHEAD_BYTES,
            )? {
                return Ok(Fed::Rejected);
            }
            let mut left = ChunkInput::File(file, there.start..there.start + bytes);
            if instance.feed(&mut left, output)?.is_break() {
                return Ok(Fed::Unwanted);
            }
            self.counted.inspect(|intake| intake.add_bytes(bytes));
            range.start += bytes;
        }
        Ok(Fed::All)
    }
}

fn is_ascii(bytes: &[u8]) -> bool {
    bytes.is_ascii() && memchr(0, bytes).is_none()
}

//! What of an input no part is made of any more.

use std::fs::File;
use std::io::{self, Read};

use super::{Parts, Source, read_from, retried};

/// What is left of an input, in order.
#[derive(Debug)]
pub(in super::super) struct Rest<'a> {
    pub(super) parts: &'a Parts<'a>,
    /// What comes before the stream, last first.
    pub(super) waiting: Vec<Vec<u8>>,
    pub(super) offset: usize,
    pub(super) position: u64,
}

impl Read for Rest<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.next(buffer)?;
        self.parts.counted.inspect(|intake| intake.took(read));
        Ok(read)
    }
}

impl Rest<'_> {
    /// What has to be waited for before more can be read.
    pub(in super::super) fn source(&self) -> Option<&File> {
        match &self.parts.source {
            Source::Stream(file) => {
                let waiting: usize = self.waiting.iter().map(Vec::len).sum();
                (waiting == self.offset).then_some(file)
            }
            Source::Files { .. } => None,
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
        let read = match &self.parts.source {
            Source::Stream(file) => retried(|| read_from(file, buffer)),
            Source::Files { .. } => self.parts.read_at(buffer, self.position),
        }?;
        self.position += read as u64;
        Ok(read)
    }
}

//! The input of a group, cut into chunks.
//!
//! A chunk of files is a range, which reaches processes without a copy if the kernel can splice. An
//! input that can be read only once, or that must be scanned from its beginning to find cuts, is
//! read into memory in order.
//!
//! ```text
//! files, cut needs no scan:  split_off (files.rs) ──────────────→ ChunkData::FileRange
//! stream, or cut needs one:  fill (lull.rs) → Scanner → guard ──→ ChunkData::Bytes
//! ```
//!
//! Several workers take chunks from one [`ChunkSource`]. If the group has to fall back,
//! [`ChunkSource::rest`] yields the unprocessed input; for files, it yields the whole input.

mod feed;
mod files;
mod guard;
mod lull;
mod pool;
mod rest;
mod stop;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cut::{self, Scanner};
use super::intake::Intake;
use super::launcher::Launcher;
use crate::plan::flow::Amount;
use crate::plan::ir::{Cut, Guard};

pub(super) use feed::Fed;
use files::Files;
pub(super) use files::{LOOK_BACK_BYTES, Slice, range_of};
use guard::GuardState;
pub(super) use lull::{Answers, Lull};
pub use lull::{Beginning, read_beginning};
use lull::{Hold, MAX_RECORD_BYTES, Pause};
pub(super) use rest::Rest;
use stop::StopToken;

/// Maximum number of bytes read at a time.
const BLOCK_BYTES: usize = 256 << 10;
/// Size in bytes of the sample from which the mean length of lines is estimated.
const LINE_SAMPLE_BYTES: usize = 2 << 10;

/// The input of a group.
#[derive(Debug)]
pub(super) enum Input {
    /// Files to read, in order.
    Files(Vec<Slice>),
    /// A stream that can be read only once, with the bytes already read from it.
    Stream(Vec<u8>, File),
}

/// A chunk of the input.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The number of the chunk in the order of the input, from 0; always 0 for chunks of a share or
    /// of the rest.
    pub index: usize,
    /// The bytes, or their range in the files.
    pub data: ChunkData,
}

/// The bytes of a chunk, or where to read them.
#[derive(Debug)]
pub(super) enum ChunkData {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// An unread range of the concatenated files.
    FileRange(Range<u64>),
}

impl ChunkData {
    /// Returns the size of the chunk in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::FileRange(range) => {
                usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
            }
        }
    }
}

/// The result of a request for a chunk.
#[derive(Debug)]
pub(super) enum NextChunk {
    /// The next chunk.
    Chunk(Chunk),
    /// The input has ended, or the source has been stopped or has already rejected a chunk.
    Eof,
    /// The next chunk is rejected: the guard does not accept it, its records are too long, or the
    /// stream is slow or silent.
    Rejected,
}

/// A source of chunks, from which several workers take them.
#[derive(Debug)]
pub(super) struct ChunkSource<'a> {
    source: Source,
    cut: Cut,
    guard: GuardState,
    state: Mutex<State>,
    stop: StopToken<'a>,
    /// Counters for the bytes and chunks handed out; set only for the first group of a run.
    counted: Option<&'a Intake>,
    /// How to proceed when a stream falls silent or is slow.
    lull: Lull<'a>,
    /// Maximum number of bytes searched for a cut before records count as too long, unless twice
    /// the wanted size of a chunk is more.
    longest: usize,
}

#[derive(Debug)]
enum Source {
    Files(Files),
    Stream(File),
}

impl Source {
    /// Returns the files, unless the input is a stream.
    fn files(&self) -> Option<&Files> {
        match self {
            Self::Files(files) => Some(files),
            Self::Stream(_) => None,
        }
    }
}

#[derive(Debug)]
struct State {
    /// The index of the next chunk.
    next: usize,
    /// Offset in the input up to which chunks have been handed out or read.
    position: u64,
    /// Bytes read but not yet handed out.
    buffer: Vec<u8>,
    scanner: Scanner,
    ended: bool,
    rejected: bool,
    /// Chunks given back by workers, by index.
    returned: BTreeMap<usize, Vec<u8>>,
}

impl<'a> ChunkSource<'a> {
    pub(super) fn new(launcher: &'a Launcher, input: Input, cut: &Cut, guard: &Guard) -> Self {
        let (buffer, source) = match input {
            Input::Files(slices) => (Vec::new(), Source::Files(Files::new(slices))),
            Input::Stream(buffer, file) => (buffer, Source::Stream(file)),
        };
        let state = State {
            next: 0,
            position: 0,
            buffer,
            scanner: Scanner::new(cut),
            ended: false,
            rejected: false,
            returned: BTreeMap::new(),
        };
        Self {
            source,
            cut: cut.clone(),
            guard: GuardState::new(guard, cut.records),
            state: Mutex::new(state),
            stop: StopToken::new(launcher),
            counted: None,
            lull: Lull::default(),
            longest: MAX_RECORD_BYTES,
        }
    }

    /// Counts handed-out bytes and chunks in `intake`, and sets the size of the input there.
    pub(super) fn counted(self, intake: &'a Intake) -> Self {
        intake.set_size(self.size());
        Self { counted: Some(intake), ..self }
    }

    /// Returns whether the whole input can be read again, because it consists of files.
    pub(super) fn can_be_read_again(&self) -> bool {
        self.source.files().is_some()
    }

    /// Returns the size of the input in bytes, or `None` if it is a stream.
    pub(super) fn size(&self) -> Option<u64> {
        self.source.files().map(Files::size)
    }

    /// Returns the mean length of the lines in a small sample, in bytes.
    ///
    /// # Errors
    /// Returns an error if the lines cannot be read.
    pub(super) fn line(&self) -> io::Result<f64> {
        Ok(Amount::of_bytes(&self.sample(LINE_SAMPLE_BYTES)?).line)
    }

    /// Returns a sample of at most `bytes` bytes: from the middle of files, or from the beginning
    /// of a stream. In files, it begins at a position where they may be cut, if there is one. It
    /// ends after its last separator, if it has one. If a stream pauses, the sample is taken from
    /// the bytes read until then. Bytes sampled from a stream stay in the buffer, so the chunks
    /// contain them, too.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read.
    pub(super) fn sample(&self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut sample = match &self.source {
            Source::Files(files) => {
                let size = files.size();
                let middle = (size / 2).saturating_sub(bytes as u64 / 2);
                let sample = files.read_range(middle..(middle + bytes as u64).min(size))?;
                let start = cut::first(&self.cut, &sample).filter(|_| middle > 0).unwrap_or(0);
                sample[start..].to_vec()
            }
            Source::Stream(_) => {
                let mut state = self.lock();
                let mut hold = Hold::of(&state.buffer);
                self.fill(&mut state, bytes, &mut hold)?;
                state.buffer[..bytes.min(state.buffer.len())].to_vec()
            }
        };
        let last = memchr::memrchr(self.cut.records.separator(), &sample);
        sample.truncate(last.map_or(sample.len(), |last| last + 1));
        Ok(sample)
    }

    /// Returns whether chunks are read into memory before commands get them.
    pub(super) fn reads_into_memory(&self) -> bool {
        !(self.can_be_read_again() && self.cut.is_local())
    }

    /// Returns whether the input consists of files whose names still refer to them.
    pub(super) fn are_in_place(&self) -> bool {
        self.source.files().is_some_and(Files::are_in_place)
    }

    /// Returns the file if the input is a single one, and `None` otherwise.
    pub(super) fn only_file(&self) -> Option<&File> {
        self.source.files().and_then(Files::only)
    }

    /// Counts the whole input as read, because the commands have read it themselves. Does nothing
    /// if the input is not counted.
    pub(super) fn count_as_read_by_commands(&self) {
        if let Some(intake) = self.counted {
            intake.start_again();
            intake.add_bytes(self.size().unwrap_or(0));
        }
    }

    /// Returns whether [`Self::take`] has handed out no chunk.
    pub(super) fn none_was_taken(&self) -> bool {
        self.lock().next == 0
    }

    /// Returns whether [`Self::take`] has rejected a chunk. That chunk and all later input are then
    /// still to be processed.
    pub(super) fn has_rest(&self) -> bool {
        self.lock().rejected
    }

    /// Returns why input was rejected, as shown to users, or `None` if none was.
    pub(super) fn refused(&self) -> Option<&str> {
        self.guard.refused()
    }

    /// Watches `pipe` from now on: if its reader closes it while contend waits for a stream, the
    /// source is stopped. `None` ends the watch.
    pub(super) fn watch(&self, pipe: Option<File>) {
        self.stop.watch(pipe);
    }

    /// Stops handing out chunks.
    pub(super) fn stop(&self) {
        self.stop.stop();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Returns the next chunk, of about `wanted` bytes, or more if records are longer.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read.
    pub(super) fn take(&self, wanted: usize) -> io::Result<NextChunk> {
        let mut state = self.lock();
        if self.is_stopped() || state.rejected {
            return Ok(NextChunk::Eof);
        }
        let taken = match &self.source {
            Source::Files(files) if self.cut.is_local() => {
                let mut left = state.position..files.size();
                let Some(range) = files.split_off(&self.cut, &mut left, wanted)? else {
                    return Ok(NextChunk::Eof);
                };
                state.position = left.start;
                state.next += 1;
                let data = ChunkData::FileRange(range);
                NextChunk::Chunk(Chunk { index: state.next - 1, data })
            }
            _ => self.take_in_order(&mut state, wanted)?,
        };
        if let (NextChunk::Chunk(_), Some(intake)) = (&taken, self.counted) {
            intake.count_chunk();
        }
        Ok(taken)
    }

    /// Divides the files into at most `count` shares of about equal size that consist of whole
    /// records. `count` must not be 0. [`Self::take`] hands out no chunk afterwards. Returns `None`
    /// if the input is a stream or must be scanned from its beginning to find cuts.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read.
    pub(super) fn shares(&self, count: usize) -> io::Result<Option<Vec<Range<u64>>>> {
        let Some(files) = self.source.files() else { return Ok(None) };
        let size = files.size();
        if !self.cut.is_local() {
            return Ok(None);
        }
        let wanted = usize::try_from(size.div_ceil(count as u64)).unwrap_or(usize::MAX);
        let mut left = 0..size;
        let mut shares = Vec::new();
        while let Some(range) = files.split_off(&self.cut, &mut left, wanted)? {
            shares.push(range);
        }
        self.lock().position = size;
        Ok(Some(shares))
    }

    /// Takes a chunk of about `wanted` bytes from the front of `share`.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read.
    pub(super) fn take_of(&self, share: &mut Range<u64>, wanted: usize) -> io::Result<NextChunk> {
        if self.is_stopped() {
            return Ok(NextChunk::Eof);
        }
        let Some(files) = self.source.files() else { return Ok(NextChunk::Eof) };
        let Some(range) = files.split_off(&self.cut, share, wanted)? else {
            return Ok(NextChunk::Eof);
        };
        self.counted.inspect(|intake| intake.count_chunk());
        Ok(NextChunk::Chunk(Chunk { index: 0, data: ChunkData::FileRange(range) }))
    }

    /// Makes the memory of a processed chunk of files available for later chunks. Does nothing for
    /// a stream.
    pub(super) fn recycle(&self, bytes: Vec<u8>) {
        if let Some(files) = self.source.files() {
            files.recycle(bytes);
        }
    }

    /// Checks whether the guard accepts all of the files, and remembers the result for later
    /// chunks. Does nothing for a stream, or if the result is known already.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read.
    pub(super) fn check_guard(&self) -> io::Result<()> {
        self.source.files().map_or(Ok(()), |files| self.guard.check_files(files))
    }

    /// Returns whether workers have given chunks back.
    pub(super) fn has_returned(&self) -> bool {
        !self.lock().returned.is_empty()
    }

    /// Gives back a chunk that could not be processed. Only bytes in memory are kept: files can be
    /// read again.
    pub(super) fn give_back(&self, chunk: Chunk) {
        if let ChunkData::Bytes(bytes) = chunk.data {
            self.lock().returned.insert(chunk.index, bytes);
        }
    }

    /// Returns the rest of the input in order: chunks that were given back, then bytes that were
    /// never handed out. For files, the rest is the whole input from its beginning. No chunk may be
    /// taken afterwards.
    pub(super) fn rest(&self) -> Rest<'_> {
        let mut state = self.lock();
        let mut waiting: Vec<Vec<u8>> = Vec::new();
        if self.can_be_read_again() {
            self.counted.inspect(|intake| intake.start_again());
        } else {
            waiting.extend(std::mem::take(&mut state.returned).into_values());
            let returned = waiting.iter().map(Vec::len).sum();
            self.counted.inspect(|intake| intake.subtract_bytes(returned));
            waiting.push(std::mem::take(&mut state.buffer));
        }
        waiting.reverse();
        Rest { chunks: self, waiting, offset: 0, position: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_in_order(&self, state: &mut State, wanted: usize) -> io::Result<NextChunk> {
        let mut enough = wanted.max(1);
        let mut hold = Hold::of(&state.buffer);
        let place = loop {
            let pause = self.fill(state, enough, &mut hold)?;
            if self.is_stopped() || state.ended && state.buffer.is_empty() {
                return Ok(NextChunk::Eof);
            }
            if let Some(why) = self.lull(&state.buffer, pause, &hold) {
                return Ok(self.reject(state, why));
            }
            let State { scanner, buffer, .. } = state;
            let window = enough.min(buffer.len());
            // A small remainder becomes part of the last chunk.
            if state.ended && buffer.len() <= window + window / 4 {
                break buffer.len();
            }
            match scanner.last(&buffer[..window]) {
                Some(place) => break place,
                None if window >= self.longest.max(2 * wanted) => {
                    return Ok(self.reject(state, "its records are too long for chunks"));
                }
                None if pause != Pause::None && window == buffer.len() => {
                    hold.extend();
                    enough = window + 1;
                }
                None => enough = window * 2,
            }
        };
        if !self.guard.accepts(&state.buffer[..place]) {
            state.rejected = true;
            return Ok(NextChunk::Rejected);
        }
        let rest = state.buffer.split_off(place);
        state.scanner.note_removed(place);
        let bytes = std::mem::replace(&mut state.buffer, rest);
        state.next += 1;
        self.counted.inspect(|intake| intake.add_bytes(bytes.len() as u64));
        Ok(NextChunk::Chunk(Chunk { index: state.next - 1, data: ChunkData::Bytes(bytes) }))
    }

    /// Rejects the rest of the input for the given reason.
    fn reject(&self, state: &mut State, why: &str) -> NextChunk {
        self.guard.refuse(why);
        state.rejected = true;
        NextChunk::Rejected
    }
}

fn read_from(mut file: &File, space: &mut [u8]) -> io::Result<usize> {
    file.read(space)
}

/// Repeats a read while signals interrupt it.
fn retried(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

//! The parts of an input. Of files they are places, which commands read without a copy; what can be
//! read only once, or has to be read from its beginning to know where it may be cut, is read in
//! order.

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
pub(super) use files::Slice;
use guard::GuardState;
pub(super) use lull::{Answers, Lull};
pub use lull::{Beginning, read_beginning};
use lull::{Hold, MAX_RECORD_BYTES, Pause};
pub(super) use rest::Rest;
use stop::StopToken;

/// How much is read at a time.
const BLOCK_BYTES: usize = 256 << 10;
/// So much shows how long lines are, in bytes.
const LINE_SAMPLE_BYTES: usize = 2 << 10;

/// What a group reads.
#[derive(Debug)]
pub(super) enum Input {
    /// Files, one after the other.
    Files(Vec<Slice>),
    /// Something that can be read only once, with what has been read of it already.
    Stream(Vec<u8>, File),
}

/// A part of the input.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Its number, from 0.
    pub index: usize,
    /// What is in it.
    pub data: ChunkData,
}

/// What is in a part.
#[derive(Debug)]
pub(super) enum ChunkData {
    /// It was read.
    Bytes(Vec<u8>),
    /// It stands there in the files, and has not been looked at.
    FileRange(Range<u64>),
}

impl ChunkData {
    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::FileRange(range) => {
                usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
            }
        }
    }
}

/// What was got.
#[derive(Debug)]
pub(super) enum NextChunk {
    /// The next part.
    Chunk(Chunk),
    /// There is no more, or nobody is to take more.
    Eof,
    /// The guard does not let the next part through.
    Rejected,
}

/// The parts of an input, for several workers.
#[derive(Debug)]
pub(super) struct ChunkSource<'a> {
    source: Source,
    cut: Cut,
    guard: GuardState,
    state: Mutex<State>,
    stop: StopToken<'a>,
    /// Where it is counted what is taken, if it is.
    counted: Option<&'a Intake>,
    /// What happens when a stream falls silent.
    lull: Lull<'a>,
    /// How much is searched for a place for a cut, in bytes.
    longest: usize,
}

#[derive(Debug)]
enum Source {
    Files(Files),
    Stream(File),
}

impl Source {
    /// The files, if they are some.
    fn files(&self) -> Option<&Files> {
        match self {
            Self::Files(files) => Some(files),
            Self::Stream(_) => None,
        }
    }
}

#[derive(Debug)]
struct State {
    /// The number of the next part.
    next: usize,
    /// How far files have been taken or read.
    position: u64,
    /// What was read in order and not taken yet.
    buffer: Vec<u8>,
    scanner: Scanner,
    ended: bool,
    rejected: bool,
    /// Parts that were given back, by number.
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

    /// What is taken is counted here.
    pub(super) fn counted(self, intake: &'a Intake) -> Self {
        intake.set_size(self.size());
        Self { counted: Some(intake), ..self }
    }

    /// Whether all of it can be read again.
    pub(super) fn can_be_read_again(&self) -> bool {
        self.source.files().is_some()
    }

    /// The size of all of it in bytes, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        self.source.files().map(Files::size)
    }

    /// The mean length of its first lines, in bytes.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn line(&self) -> io::Result<f64> {
        Ok(Amount::of_bytes(&self.sample(LINE_SAMPLE_BYTES)?).line)
    }

    /// Some records from the middle of files, or from the beginning of a stream.
    ///
    /// # Errors
    /// When they cannot be read.
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

    /// Whether its parts are in memory before commands read them.
    pub(super) fn are_read_here(&self) -> bool {
        !(self.can_be_read_again() && self.cut.is_local())
    }

    /// Whether all of it is files whose names still mean them.
    pub(super) fn are_in_place(&self) -> bool {
        self.source.files().is_some_and(Files::are_in_place)
    }

    /// The one file that all of it is.
    pub(super) fn only_file(&self) -> Option<&File> {
        self.source.files().and_then(Files::only)
    }

    /// Counts all of the input: its commands have read it themselves.
    pub(super) fn count_as_read_by_commands(&self) {
        if let Some(intake) = self.counted {
            intake.start_again();
            intake.took(self.size().unwrap_or(0));
        }
    }

    /// Whether there was nothing to take.
    pub(super) fn none_was_taken(&self) -> bool {
        self.lock().next == 0
    }

    /// Whether something is left that the guard did not let through.
    pub(super) fn has_rest(&self) -> bool {
        self.lock().rejected
    }

    /// Why the guard did not let something through, if it did not.
    pub(super) fn refused(&self) -> Option<&str> {
        self.guard.refused()
    }

    /// While a stream is waited for, the reader of this pipe is watched.
    pub(super) fn watch(&self, pipe: Option<File>) {
        self.stop.watch(pipe);
    }

    /// Nobody gets anything any more.
    pub(super) fn stop(&self) {
        self.stop.stop();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// The next part, of about `wanted` bytes.
    ///
    /// # Errors
    /// When it cannot be read.
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

    /// Equal shares of files, each of whole records; `None` where they cannot be told.
    ///
    /// # Errors
    /// When they cannot be read.
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

    /// About so much of a share, from its beginning; the share becomes what is left of it.
    ///
    /// # Errors
    /// When it cannot be read.
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

    /// Nobody needs these bytes of a part any more: their memory may be used again.
    pub(super) fn used(&self, bytes: Vec<u8>) {
        if let Some(files) = self.source.files() {
            files.recycle(bytes);
        }
    }

    /// Finds out whether the guard accepts all of the files, once.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn look_through(&self) -> io::Result<()> {
        self.source.files().map_or(Ok(()), |files| self.guard.look_through(files))
    }

    /// Whether there are parts that were given back.
    pub(super) fn has_returned(&self) -> bool {
        !self.lock().returned.is_empty()
    }

    /// Gives back a part that was taken.
    pub(super) fn give_back(&self, chunk: Chunk) {
        if let ChunkData::Bytes(bytes) = chunk.data {
            self.lock().returned.insert(chunk.index, bytes);
        }
    }

    /// Everything that was given back or not taken, in order; of files everything from the
    /// beginning. Nobody may take parts any more.
    pub(super) fn rest(&self) -> Rest<'_> {
        let mut state = self.lock();
        let mut waiting: Vec<Vec<u8>> = Vec::new();
        if self.can_be_read_again() {
            self.counted.inspect(|intake| intake.start_again());
        } else {
            waiting.extend(std::mem::take(&mut state.returned).into_values());
            let returned = waiting.iter().map(Vec::len).sum();
            self.counted.inspect(|intake| intake.returned(returned));
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
            // What little is left belongs to it.
            if state.ended && buffer.len() <= window + window / 4 {
                break buffer.len();
            }
            match scanner.last(&buffer[..window]) {
                Some(place) => break place,
                None if window >= self.longest.max(2 * wanted) => {
                    return Ok(self.reject(state, "its records are too long for parts"));
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
        state.scanner.taken(place);
        let bytes = std::mem::replace(&mut state.buffer, rest);
        state.next += 1;
        self.counted.inspect(|intake| intake.took(bytes.len() as u64));
        Ok(NextChunk::Chunk(Chunk { index: state.next - 1, data: ChunkData::Bytes(bytes) }))
    }

    /// No part is made of what is left, for this reason.
    fn reject(&self, state: &mut State, why: &str) -> NextChunk {
        self.guard.refuse(why);
        state.rejected = true;
        NextChunk::Rejected
    }
}

fn read_from(mut file: &File, space: &mut [u8]) -> io::Result<usize> {
    file.read(space)
}

/// Does it again if a signal came.
fn retried(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

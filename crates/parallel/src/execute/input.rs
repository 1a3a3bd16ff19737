//! The parts of an input. Of files they are places, which commands read without a copy; what can be
//! read only once, or has to be read from its beginning to know where it may be cut, is read in
//! order.

mod feed;
mod lull;
mod rest;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use contend_record::run::{Cut, Guard};

use super::cut::{self, Scanner};
use super::launcher::Launcher;
use super::tally::Intake;
use crate::plan::flow::Amount;

pub(super) use feed::Fed;
pub(super) use lull::{Answers, Lull};
pub use lull::{Beginning, read_beginning};
use lull::{Hold, LONGEST_RECORD, Pause};
pub(super) use rest::Rest;

/// How much is read at a time.
const BLOCK: usize = 256 << 10;
/// How many parts' memory is kept to be used again.
const SPARE: usize = 4;
/// So much shows how long lines are, in bytes.
const FEW: usize = 2 << 10;
/// How far a place for a cut is looked for at first, and at most, at a time.
const GLIMPSE: u64 = 4 << 10;
const WINDOW: u64 = 64 << 10;

/// What a group reads.
#[derive(Debug)]
pub(super) enum Input {
    /// Files, one after the other.
    Files(Vec<Slice>),
    /// Something that can be read only once, with what has been read of it already.
    Stream(Vec<u8>, File),
}

/// A file from a place to its end.
#[derive(Debug)]
pub(super) struct Slice {
    file: File,
    start: u64,
    length: u64,
    /// What it was opened by.
    name: Option<String>,
}

/// A part of the input.
#[derive(Debug)]
pub(super) struct Part {
    /// Its number, from 0.
    pub index: usize,
    /// What is in it.
    pub content: Content,
}

/// What is in a part.
#[derive(Debug)]
pub(super) enum Content {
    /// It was read.
    Bytes(Vec<u8>),
    /// It stands there in the files, and has not been looked at.
    Place(Range<u64>),
}

impl Content {
    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Place(range) => usize::try_from(range.end - range.start).unwrap_or(usize::MAX),
        }
    }
}

/// What was got.
#[derive(Debug)]
pub(super) enum Taken {
    /// The next part.
    Part(Part),
    /// There is no more, or nobody is to take more.
    End,
    /// The guard does not let the next part through.
    Unfit,
}

impl Slice {
    /// A regular file from its current place on.
    pub(super) fn from_here(mut file: File) -> io::Result<Self> {
        let start = io::Seek::stream_position(&mut file)?;
        let length = file.metadata()?.len().saturating_sub(start);
        Ok(Self { file, start, length, name: None })
    }

    /// The same, of a file that was opened by this name.
    pub(super) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Whether its name still means this file.
    fn is_in_place(&self) -> bool {
        let Some(name) = &self.name else { return false };
        let same =
            |one: Metadata, other: Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        std::fs::metadata(name).is_ok_and(|now| self.file.metadata().is_ok_and(|it| same(now, it)))
    }
}

impl Input {
    /// Its size in bytes, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Files(slices) => Some(slices.iter().map(|slice| slice.length).sum()),
            Self::Stream(..) => None,
        }
    }
}

/// The parts of an input, for several workers.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    launcher: &'a Launcher,
    cut: Cut,
    guard: Guard,
    source: Source,
    state: Mutex<State>,
    stopped: AtomicBool,
    /// Where what comes of the parts goes: if its reader has gone, nobody needs more.
    watched: Mutex<Option<File>>,
    /// What the guard did not let through, for people.
    refused: OnceLock<String>,
    /// Where it is counted what is taken, if it is.
    counted: Option<&'a Intake>,
    /// Whether the guard lets everything through, once that had to be known.
    throughout: Mutex<Option<bool>>,
    /// Memory of parts of which nobody needs anything any more.
    spare: Mutex<Vec<Vec<u8>>>,
    /// What happens when a stream falls silent.
    lull: Lull<'a>,
    /// How much is searched for a place for a cut, in bytes.
    longest: usize,
}

#[derive(Debug)]
enum Source {
    Files { slices: Vec<Slice>, size: u64 },
    Stream(File),
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
    unfit: bool,
    /// Parts that were given back, by number.
    returned: BTreeMap<usize, Vec<u8>>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(launcher: &'a Launcher, input: Input, cut: &Cut, guard: &Guard) -> Self {
        let size = input.size().unwrap_or(0);
        let (buffer, source) = match input {
            Input::Files(slices) => (Vec::new(), Source::Files { slices, size }),
            Input::Stream(buffer, file) => (buffer, Source::Stream(file)),
        };
        let state = State {
            next: 0,
            position: 0,
            buffer,
            scanner: Scanner::new(cut),
            ended: false,
            unfit: false,
            returned: BTreeMap::new(),
        };
        Self {
            launcher,
            cut: cut.clone(),
            guard: guard.clone(),
            source,
            state: Mutex::new(state),
            stopped: AtomicBool::new(false),
            watched: Mutex::new(None),
            refused: OnceLock::new(),
            counted: None,
            throughout: Mutex::default(),
            spare: Mutex::default(),
            lull: Lull::default(),
            longest: LONGEST_RECORD,
        }
    }

    /// What is taken is counted here.
    pub(super) fn counted(self, intake: &'a Intake) -> Self {
        intake.set_size(self.size());
        Self { counted: Some(intake), ..self }
    }

    /// Whether all of it can be read again.
    pub(super) fn can_be_read_again(&self) -> bool {
        matches!(self.source, Source::Files { .. })
    }

    /// The size of all of it in bytes, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        match &self.source {
            Source::Files { size, .. } => Some(*size),
            Source::Stream(_) => None,
        }
    }

    /// The mean length of its first lines, in bytes.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn line(&self) -> io::Result<f64> {
        Ok(Amount::of_bytes(&self.sample(FEW)?).line)
    }

    /// Some records from the middle of files, or from the beginning of a stream.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn sample(&self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut sample = match &self.source {
            Source::Files { size, .. } => {
                let middle = (size / 2).saturating_sub(bytes as u64 / 2);
                let sample = self.read_range(middle..(middle + bytes as u64).min(*size))?;
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
        match &self.source {
            Source::Files { slices, .. } => slices.iter().all(Slice::is_in_place),
            Source::Stream(_) => false,
        }
    }

    /// The one file that all of it is.
    pub(super) fn only_file(&self) -> Option<&File> {
        match &self.source {
            Source::Files { slices, .. } => match slices.as_slice() {
                [slice] => Some(&slice.file),
                _ => None,
            },
            Source::Stream(_) => None,
        }
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
        self.lock().unfit
    }

    /// Why the guard did not let something through, if it did not.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Whether the guard lets this through.
    fn fits(&self, guard: &Guard, bytes: &[u8]) -> bool {
        let fits = cut::holds(guard, self.cut.records, bytes);
        if !fits {
            self.refused.get_or_init(|| cut::breach(guard, bytes));
        }
        fits
    }

    /// While a stream is waited for, the reader of this pipe is watched.
    pub(super) fn watch(&self, pipe: Option<File>) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = pipe;
    }

    /// Nobody gets anything any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.launcher.is_over()
    }

    /// The next part, of about `wanted` bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn take(&self, wanted: usize) -> io::Result<Taken> {
        let mut state = self.lock();
        if self.is_stopped() || state.unfit {
            return Ok(Taken::End);
        }
        let taken = match &self.source {
            Source::Files { size, .. } if self.cut.is_local() => {
                let mut left = state.position..*size;
                let Some(range) = self.first_of(&mut left, wanted)? else {
                    return Ok(Taken::End);
                };
                state.position = left.start;
                state.next += 1;
                let content = Content::Place(range);
                Taken::Part(Part { index: state.next - 1, content })
            }
            _ => self.take_in_order(&mut state, wanted)?,
        };
        if let (Taken::Part(_), Some(intake)) = (&taken, self.counted) {
            intake.took_part();
        }
        Ok(taken)
    }

    /// Equal shares of files, each of whole records; `None` where they cannot be told.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn shares(&self, count: usize) -> io::Result<Option<Vec<Range<u64>>>> {
        let Source::Files { size, .. } = &self.source else { return Ok(None) };
        if !self.cut.is_local() {
            return Ok(None);
        }
        let wanted = usize::try_from(size.div_ceil(count as u64)).unwrap_or(usize::MAX);
        let mut left = 0..*size;
        let mut shares = Vec::new();
        while let Some(range) = self.first_of(&mut left, wanted)? {
            shares.push(range);
        }
        self.lock().position = *size;
        Ok(Some(shares))
    }

    /// About so much of a share, from its beginning; the share becomes what is left of it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn take_of(&self, share: &mut Range<u64>, wanted: usize) -> io::Result<Taken> {
        if self.is_stopped() {
            return Ok(Taken::End);
        }
        let Some(range) = self.first_of(share, wanted)? else { return Ok(Taken::End) };
        self.counted.inspect(|intake| intake.took_part());
        Ok(Taken::Part(Part { index: 0, content: Content::Place(range) }))
    }

    /// Nobody needs these bytes of a part any more: their memory may be used again.
    pub(super) fn used(&self, bytes: Vec<u8>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE {
            spare.push(bytes);
        }
    }

    /// So many bytes, whatever is in them.
    fn space(&self, length: usize) -> Vec<u8> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        // What is far too large is for others.
        let fitting = spare.iter().position(|bytes| bytes.capacity() / 4 <= length);
        let mut bytes = fitting.map(|place| spare.swap_remove(place)).unwrap_or_default();
        drop(spare);
        bytes.resize(length, 0);
        bytes
    }

    /// Whether there are parts that were given back.
    pub(super) fn has_returned(&self) -> bool {
        !self.lock().returned.is_empty()
    }

    /// Gives back a part that was taken.
    pub(super) fn give_back(&self, part: Part) {
        if let Content::Bytes(bytes) = part.content {
            self.lock().returned.insert(part.index, bytes);
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
        Rest { parts: self, waiting, offset: 0, position: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// About so many bytes of files from the beginning of what is left of them, up to a place where
    /// they may be cut.
    fn first_of(&self, left: &mut Range<u64>, wanted: usize) -> io::Result<Option<Range<u64>>> {
        if left.is_empty() {
            return Ok(None);
        }
        let (start, size) = (left.start, left.end);
        // The window begins before the place that is wanted, so that a cut there is seen.
        let mut from = start.saturating_add(wanted as u64).saturating_sub(2).max(start);
        let mut length = GLIMPSE;
        let end = loop {
            if from >= size {
                break size;
            }
            let window = self.read_range(from..size.min(from + length))?;
            if let Some(place) = cut::first(&self.cut, &window) {
                break from + place as u64;
            }
            // The last bytes are looked at again, with what follows them.
            let step = window.len().saturating_sub(2);
            if step == 0 || from + window.len() as u64 >= size {
                break size;
            }
            from += step as u64;
            length = WINDOW.min(2 * length);
        };
        left.start = end;
        Ok(Some(start..end))
    }

    /// Bytes of the files as if they were one.
    fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = self.space(length);
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_at(&mut bytes[filled..], range.start + filled as u64)? {
                0 => break, // a file has become shorter
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        let Some((file, range)) = self.file_at(place) else { return Ok(0) };
        let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        retried(|| file.read_at(&mut buffer[..most], range.start))
    }

    /// The file that this place of all of them is in, and what of it is there from this place on.
    fn file_at(&self, mut place: u64) -> Option<(&File, Range<u64>)> {
        let Source::Files { slices, .. } = &self.source else { return None };
        for slice in slices {
            if place < slice.length {
                return Some((&slice.file, slice.start + place..slice.start + slice.length));
            }
            place -= slice.length;
        }
        None
    }

    fn take_in_order(&self, state: &mut State, wanted: usize) -> io::Result<Taken> {
        let mut enough = wanted.max(1);
        let mut hold = Hold::of(&state.buffer);
        let place = loop {
            let pause = self.fill(state, enough, &mut hold)?;
            if self.is_stopped() || state.ended && state.buffer.is_empty() {
                return Ok(Taken::End);
            }
            if let Some(why) = self.lull(&state.buffer, pause, &hold) {
                return Ok(self.unfit(state, why));
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
                    return Ok(self.unfit(state, "its records are too long for parts"));
                }
                None if pause != Pause::None && window == buffer.len() => {
                    hold.extend();
                    enough = window + 1;
                }
                None => enough = window * 2,
            }
        };
        if !self.fits(&self.guard, &state.buffer[..place]) {
            state.unfit = true;
            return Ok(Taken::Unfit);
        }
        let rest = state.buffer.split_off(place);
        state.scanner.taken(place);
        let bytes = std::mem::replace(&mut state.buffer, rest);
        state.next += 1;
        self.counted.inspect(|intake| intake.took(bytes.len() as u64));
        Ok(Taken::Part(Part { index: state.next - 1, content: Content::Bytes(bytes) }))
    }

    /// No part is made of what is left, for this reason.
    fn unfit(&self, state: &mut State, why: &str) -> Taken {
        self.refused.get_or_init(|| why.to_owned());
        state.unfit = true;
        Taken::Unfit
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

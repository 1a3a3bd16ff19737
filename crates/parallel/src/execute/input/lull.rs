//! Streams that fall silent, come slowly, or hold no place for a cut.
//!
//! Under a shell a stage sees each byte as soon as it is written. Over parts it sees a record only
//! once its part is complete. Whoever waits for an answer to a line before it writes the next one
//! would wait for ever, so a group whose output can be seen before the end of its input does not
//! hold back what has arrived: once its stream falls silent or is slow, its commands run plain and
//! get every byte as it comes. A stream that waits is not worth parts.
//!
//! Three limits apply. Nothing waits for more of its part while the stream is silent for
//! [`SILENCE_TIMEOUT`]; nothing waits for longer than [`MAX_HOLD`] although more comes (for [`MAX_HOLD_WITHOUT_CUT`],
//! if there is no place for a cut); and no more than [`MAX_RECORD_BYTES`] is searched for a cut.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BLOCK_BYTES, ChunkSource, Source, State, read_from, retried};
use crate::plan::ir::Records;

/// A stream that sends nothing for so long is silent.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(20);
/// What has arrived is not kept for longer than this, …
const MAX_HOLD: Duration = Duration::from_millis(50);
/// … or this, while no place for a cut is found.
const MAX_HOLD_WITHOUT_CUT: Duration = Duration::from_millis(200);
/// A stream of which less than this arrives within [`MAX_HOLD`] is slow, in bytes.
const SLOW_STREAM_BYTES: usize = 64 << 10;
/// A buffered command writes once it has so much output, in bytes.
const STDIO_BUFFER_BYTES: usize = 4096;
/// No more than this is searched for a place for a cut, in bytes.
pub(super) const MAX_RECORD_BYTES: usize = 16 << 20;
/// Why a group runs plain after a lull, for people.
const SLOW_INPUT: &str = "its input comes slowly or waits for an answer";

/// What happens when a stream falls silent or is slow.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) enum Lull<'a> {
    /// It is waited out: no output is seen before the end of the input.
    #[default]
    IsWaitedOut,
    /// The commands run plain from there on, unless one of these earlier steps still works on
    /// parts: its output comes in bursts.
    RunsPlain {
        /// Whether each of the earlier steps passes on what it gets as it comes.
        earlier: &'a [AtomicBool],
        /// When the commands may answer.
        answers: Answers,
    },
}

/// What a command that does not buffer its output answers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Answers {
    /// Whole lines only.
    Lines,
    /// Any piece of the input, as the words that `xargs` reads.
    Pieces,
}

/// How a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// It is over.
    Over,
    /// It falls silent or is slow.
    Slow,
    /// More comes.
    Flowing,
}

/// Why no more was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// There is enough, or no more.
    None,
    /// The stream is silent.
    Silence,
    /// What is there has waited for too long.
    Late,
}

/// How long the oldest byte that was read has been held back.
#[derive(Debug)]
pub(super) struct Hold {
    since: Option<Instant>,
    limit: Duration,
}

impl Hold {
    /// Nothing could be done with these bytes before now.
    pub(super) fn of(buffer: &[u8]) -> Self {
        Self { since: (!buffer.is_empty()).then(Instant::now), limit: MAX_HOLD }
    }

    fn is_over(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= self.limit)
    }

    /// There is no place for a cut: it goes on for longer.
    pub(super) fn extend(&mut self) {
        self.limit = MAX_HOLD_WITHOUT_CUT;
    }
}

impl<'a> ChunkSource<'a> {
    /// This happens when its stream falls silent or is slow.
    pub(in super::super) fn with_lulls(self, lull: Lull<'a>) -> Self {
        Self { lull, ..self }
    }

    /// No more than so many bytes are searched for a place for a cut.
    pub(in super::super) fn with_records_up_to(self, bytes: usize) -> Self {
        Self { longest: bytes.min(MAX_RECORD_BYTES), ..self }
    }

    /// How its stream begins, by its first `enough` bytes at most.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in super::super) fn begins(&self, enough: usize) -> io::Result<Beginning> {
        if self.can_be_read_again() {
            return Ok(Beginning::Flowing);
        }
        let mut state = self.lock();
        let mut hold = Hold::of(&state.buffer);
        loop {
            let pause = self.fill(&mut state, enough, &mut hold)?;
            let filled = state.buffer.len();
            match pause {
                Pause::None if state.ended && filled < enough => return Ok(Beginning::Over),
                Pause::Silence if self.heeds_lulls() => return Ok(Beginning::Slow),
                Pause::Late if filled < SLOW_STREAM_BYTES => return Ok(Beginning::Slow),
                Pause::Late if hold.limit < MAX_HOLD_WITHOUT_CUT => hold.extend(),
                Pause::None | Pause::Silence | Pause::Late => return Ok(Beginning::Flowing),
            }
        }
    }

    /// Whether silence of the stream is silence of whoever writes the input.
    fn heeds_lulls(&self) -> bool {
        match &self.lull {
            Lull::IsWaitedOut => false,
            Lull::RunsPlain { earlier, .. } => {
                earlier.iter().all(|is_plain| is_plain.load(Ordering::Relaxed))
            }
        }
    }

    /// Whether the commands are to run plain from here on, as the stream pauses. `None` if not,
    /// else the reason.
    pub(super) fn lull(&self, buffer: &[u8], pause: Pause, hold: &Hold) -> Option<&'static str> {
        let Lull::RunsPlain { answers, .. } = self.lull else { return None };
        let separator = self.cut.records.separator();
        let is_plain = match pause {
            Pause::None => false,
            Pause::Late => buffer.len() < SLOW_STREAM_BYTES || hold.limit == MAX_HOLD_WITHOUT_CUT,
            Pause::Silence => {
                let held = hold.since.is_some_and(|since| since.elapsed() >= MAX_HOLD_WITHOUT_CUT);
                let is_whole = buffer.last() == Some(&separator)
                    || [Records::Json, Records::Csv].contains(&self.cut.records);
                let would_show = buffer.len() >= STDIO_BUFFER_BYTES
                    && memchr::memchr(separator, buffer).is_none();
                held || is_whole || would_show || answers == Answers::Pieces
            }
        };
        (is_plain && self.heeds_lulls()).then_some(SLOW_INPUT)
    }

    /// Reads until so much is there, or the end is reached, or the stream pauses.
    pub(super) fn fill(
        &self,
        state: &mut State,
        enough: usize,
        hold: &mut Hold,
    ) -> io::Result<Pause> {
        while !state.ended && state.buffer.len() < enough {
            if let Source::Stream(file) = &self.source {
                match self.pause(file, &state.buffer, hold)? {
                    Pause::None => {}
                    pause => return Ok(pause),
                }
            }
            let filled = state.buffer.len();
            let more = BLOCK_BYTES.min(enough - filled).max(STDIO_BUFFER_BYTES);
            state.buffer.resize(filled + more, 0);
            let space = &mut state.buffer[filled..];
            let read = match &self.source {
                Source::Stream(file) => retried(|| read_from(file, space)),
                Source::Files(files) => files.read_at(space, state.position),
            };
            let read = read.inspect_err(|_| state.buffer.truncate(filled))?;
            state.buffer.truncate(filled + read);
            state.position += read as u64;
            state.ended = read == 0;
            hold.since.get_or_insert_with(Instant::now);
        }
        Ok(Pause::None)
    }

    /// Waits until the stream has something, or it is time to go on with what is there.
    fn pause(&self, file: &File, buffer: &[u8], hold: &Hold) -> io::Result<Pause> {
        if buffer.is_empty() {
            let goes_on = self.stop.wait_for(file, None)?;
            return Ok(if goes_on { Pause::None } else { Pause::Silence });
        }
        if self.stop.wait_for(file, Some(Duration::ZERO))? {
            return Ok(Pause::None);
        }
        if self.heeds_lulls() && hold.is_over() {
            return Ok(Pause::Late);
        }
        let goes_on = self.stop.wait_for(file, Some(SILENCE_TIMEOUT))?;
        Ok(if goes_on { Pause::None } else { Pause::Silence })
    }
}

/// The beginning of a stream: until there are `enough` bytes of it, or it is over, falls silent or
/// is slow.
///
/// # Errors
/// When it cannot be read.
pub fn read_beginning(mut file: &File, enough: usize) -> io::Result<(Vec<u8>, Beginning)> {
    let mut bytes = Vec::new();
    let mut block = vec![0; SLOW_STREAM_BYTES];
    let mut hold = Hold::of(&bytes);
    while bytes.len() < enough {
        let patience = if hold.is_over() { Duration::ZERO } else { SILENCE_TIMEOUT };
        if !bytes.is_empty() && !has_something(file, patience)? {
            if !hold.is_over() || bytes.len() < SLOW_STREAM_BYTES {
                return Ok((bytes, Beginning::Slow));
            }
            if hold.limit == MAX_HOLD_WITHOUT_CUT {
                break;
            }
            hold.extend();
            continue;
        }
        match file.read(&mut block) {
            Ok(0) => return Ok((bytes, Beginning::Over)),
            Ok(read) => bytes.extend_from_slice(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        hold.since.get_or_insert_with(Instant::now);
    }
    Ok((bytes, Beginning::Flowing))
}

/// Whether there is something to read, or the end, within this time.
fn has_something(file: &File, time: Duration) -> io::Result<bool> {
    let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&time)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

//! Handles streams that fall silent, are slow, or cannot be cut.
//!
//! Under a shell, a stage sees each byte as soon as it is written. Over chunks, it sees a record
//! only once its chunk is complete. A program that waits for an answer to each line would then wait
//! forever. So a group whose output can be seen before the end of its input does not hold back
//! input for long. Once its stream falls silent or is slow, its commands run plain and get every
//! byte when it arrives. Chunks would not pay off on such a stream anyway.
//!
//! Three limits apply. Reading pauses if the stream is silent for [`SILENCE_TIMEOUT`]. Bytes are
//! held for at most [`MAX_HOLD`] while more arrive, or [`MAX_HOLD_WITHOUT_CUT`] if they cannot be
//! cut. At most [`MAX_RECORD_BYTES`], or the size of two chunks if that is more, are searched for a
//! cut.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BLOCK_BYTES, ChunkSource, Source, State, read_from, retried};
use crate::plan::ir::Records;

/// Time without data after which a stream counts as silent.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(20);
/// Upper bound on the time for which bytes are held back.
const MAX_HOLD: Duration = Duration::from_millis(50);
/// Upper bound on the time for which bytes are held back while no cut is found.
const MAX_HOLD_WITHOUT_CUT: Duration = Duration::from_millis(200);
/// Number of bytes per [`MAX_HOLD`] below which a stream counts as slow.
const SLOW_STREAM_BYTES: usize = 64 << 10;
/// Size in bytes of the buffers of C's standard I/O. A command writes once its buffer is full.
const STDIO_BUFFER_BYTES: usize = 4096;
/// Maximum number of bytes that are searched for a cut, unless twice the wanted size of a chunk is
/// more.
pub(super) const MAX_RECORD_BYTES: usize = 16 << 20;
/// Reason for running a group plain after a lull, as shown to users.
const SLOW_INPUT: &str = "its input is slow, or waits for an answer";

/// How to proceed when a stream falls silent or is slow.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) enum Lull<'a> {
    /// The group waits: no output can be seen before the end of the input.
    #[default]
    Waits,
    /// The commands run plain from then on, unless an earlier step still works on chunks: the
    /// output of such a step comes in bursts.
    RunsPlain {
        /// For each earlier step, whether it runs plain: once, without chunks, on input as it
        /// arrives.
        earlier: &'a [AtomicBool],
        /// Input to which the commands may respond.
        answers: Answers,
    },
}

/// Input to which a command with unbuffered output responds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Answers {
    /// Complete lines.
    Lines,
    /// Any piece of the input, such as the words that `xargs` reads.
    Pieces,
}

/// The state of a stream after its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// The stream has ended before enough bytes arrived.
    Over,
    /// The stream has fallen silent or is slow.
    Slow,
    /// Enough bytes have arrived, the stream keeps flowing, or its pause does not matter.
    Flowing,
}

/// Whether reading paused, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Reading has not paused: enough has been read, the stream has ended, or more can be read.
    None,
    /// The stream is silent, or reading has been stopped.
    Silence,
    /// The bytes read so far have been held for too long, and no more can be read without waiting.
    Late,
}

/// A clock that shows whether the oldest byte has been held back for too long.
#[derive(Debug)]
pub(super) struct Hold {
    since: Option<Instant>,
    limit: Duration,
}

impl Hold {
    /// Creates a clock. It starts now if `buffer` has bytes, which could not be processed earlier,
    /// and otherwise with the next byte read.
    pub(super) fn of(buffer: &[u8]) -> Self {
        Self { since: (!buffer.is_empty()).then(Instant::now), limit: MAX_HOLD }
    }

    fn is_over(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= self.limit)
    }

    /// Extends the limit, because no cut has been found.
    pub(super) fn extend(&mut self) {
        self.limit = MAX_HOLD_WITHOUT_CUT;
    }
}

impl<'a> ChunkSource<'a> {
    /// Sets how to proceed when the stream falls silent or is slow.
    pub(in super::super) fn with_lulls(self, lull: Lull<'a>) -> Self {
        Self { lull, ..self }
    }

    /// Sets the maximum number of bytes that are searched for a cut, unless twice the wanted size
    /// of a chunk is more. Values above [`MAX_RECORD_BYTES`] count as that.
    pub(in super::super) fn with_records_up_to(self, bytes: usize) -> Self {
        Self { longest: bytes.min(MAX_RECORD_BYTES), ..self }
    }

    /// Reads the stream until at least `enough` bytes are buffered, or it ends or pauses. Returns
    /// whether it has ended, is slow, or keeps flowing. Files always count as flowing, and so does
    /// a silent stream whose lull does not matter.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be read.
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
                Pause::Silence if self.lull_matters() => return Ok(Beginning::Slow),
                Pause::Late if filled < SLOW_STREAM_BYTES => return Ok(Beginning::Slow),
                Pause::Late if hold.limit < MAX_HOLD_WITHOUT_CUT => hold.extend(),
                Pause::None | Pause::Silence | Pause::Late => return Ok(Beginning::Flowing),
            }
        }
    }

    /// Returns whether a lull matters and is caused by the program that writes the input, rather
    /// than by an earlier step that works on chunks.
    fn lull_matters(&self) -> bool {
        match &self.lull {
            Lull::Waits => false,
            Lull::RunsPlain { earlier, .. } => {
                earlier.iter().all(|is_plain| is_plain.load(Ordering::Relaxed))
            }
        }
    }

    /// Returns why the commands must run plain from here on, or `None` if they need not.
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
        (is_plain && self.lull_matters()).then_some(SLOW_INPUT)
    }

    /// Reads until the buffer has at least `enough` bytes, or the input ends or pauses. Files never
    /// pause. Returns whether and why reading paused.
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

    /// Waits until the stream is readable, or until reading has to pause. Returns why it pauses, or
    /// [`Pause::None`] if the stream is readable.
    fn pause(&self, file: &File, buffer: &[u8], hold: &Hold) -> io::Result<Pause> {
        if buffer.is_empty() {
            let goes_on = self.stop.wait_for(file, None)?;
            return Ok(if goes_on { Pause::None } else { Pause::Silence });
        }
        if self.stop.wait_for(file, Some(Duration::ZERO))? {
            return Ok(Pause::None);
        }
        if self.lull_matters() && hold.is_over() {
            return Ok(Pause::Late);
        }
        let goes_on = self.stop.wait_for(file, Some(SILENCE_TIMEOUT))?;
        Ok(if goes_on { Pause::None } else { Pause::Silence })
    }
}

/// Reads the beginning of a stream, until there are at least `enough` bytes, or the stream ends or
/// pauses. Returns the bytes read and the state of the stream.
///
/// # Errors
/// Returns an error if the stream cannot be read.
pub fn read_beginning(mut file: &File, enough: usize) -> io::Result<(Vec<u8>, Beginning)> {
    let mut bytes = Vec::new();
    let mut block = vec![0; SLOW_STREAM_BYTES];
    let mut hold = Hold::of(&bytes);
    while bytes.len() < enough {
        let timeout = if hold.is_over() { Duration::ZERO } else { SILENCE_TIMEOUT };
        if !bytes.is_empty() && !is_readable_within(file, timeout)? {
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

/// Waits until the file is readable or at its end, but for at most `time`, which must be less than
/// a second. Returns whether it is.
fn is_readable_within(file: &File, time: Duration) -> io::Result<bool> {
    let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&time)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

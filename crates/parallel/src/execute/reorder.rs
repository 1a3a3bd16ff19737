//! Puts the outputs of chunks in the order of the chunks.
//!
//! Workers finish chunks out of order. The worker whose chunk is next writes directly; the others
//! buffer their output, and block once the buffers reach a limit:
//!
//! ```text
//! chunk      state                            its output is
//! 0..turn    written                          passed to the combiner
//! turn       current, its worker has `writer` passed as it is produced
//! turn+1..   running or complete              held, up to `limit` bytes in all
//! ```
//!
//! When the current chunk completes, `turn` advances over all later chunks that are complete
//! already. A failed chunk stops the buffer once it becomes current; earlier output stays valid.

use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::GroupError;
use super::fallback::Fallback;
use super::input::Chunk;

/// A receiver of the outputs of chunks, in order.
pub(super) trait Combiner: Send {
    /// Receives a piece of the current chunk's output. Returns `Break` if the reader wants no more
    /// output.
    ///
    /// # Errors
    /// Returns an error if the piece cannot be written.
    fn piece(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError>;
    /// Ends the output of the current chunk. Returns `Break` if the reader wants no more output.
    ///
    /// # Errors
    /// Returns an error if output that was held back cannot be written.
    fn chunk_ended(&mut self) -> Result<ControlFlow<()>, GroupError>;
}

/// Why a buffer accepts no more output.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The reader wants no more output.
    Enough,
    /// The rest of the input must be processed by one run, for the given reason.
    FallBack(Fallback),
    /// A worker failed, or writing failed.
    Broken(GroupError),
}

/// A buffer that forwards the current chunk's output to a [`Combiner`], and holds the output of
/// later chunks, up to a limit.
pub(super) struct ReorderBuffer<J> {
    state: Mutex<State>,
    changed: Condvar,
    /// The destination of the outputs. Only the worker of the current chunk uses it.
    writer: Mutex<Writer<J>>,
    /// The maximum size of held outputs and kept chunks, in bytes.
    limit: usize,
    /// Whether chunks are kept until their output has been written, so that a fallback can read
    /// them again.
    keeps_chunks: bool,
}

struct State {
    /// The index of the current chunk.
    turn: usize,
    /// Size of the held outputs and kept chunks, in bytes.
    held: usize,
    complete: BTreeMap<usize, Complete>,
    stopped: Option<Stopped>,
}

struct Writer<J> {
    combiner: J,
    /// Number of bytes of the current chunk's output that have been forwarded.
    passed: u64,
}

struct Complete {
    output: Vec<u8>,
    chunk: Option<Chunk>,
    /// Why the output must not be used, or `None` if it is correct.
    failed: Option<Fallback>,
}

/// State of the buffer after all workers have ended.
pub(super) struct Left<J> {
    pub combiner: J,
    pub stopped: Option<Stopped>,
    /// The chunks whose output was not written completely, if chunks are kept.
    pub chunks: Vec<Chunk>,
    /// Number of bytes that were forwarded for the chunk that was current at the end.
    pub passed: u64,
}

/// A handle through which a worker writes the output of one chunk.
pub(super) struct ChunkOutput<'a, J: Combiner> {
    reorder: &'a ReorderBuffer<J>,
    index: usize,
    /// Output held until the chunk becomes current.
    waiting: Vec<u8>,
}

impl<J: Combiner> ReorderBuffer<J> {
    pub(super) fn new(combiner: J, limit: usize, keeps_chunks: bool) -> Self {
        let state = State { turn: 0, held: 0, complete: BTreeMap::new(), stopped: None };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            writer: Mutex::new(Writer { combiner, passed: 0 }),
            limit,
            keeps_chunks,
        }
    }

    /// Returns a handle for the output of the chunk at `index`.
    pub(super) fn output(&self, index: usize) -> ChunkOutput<'_, J> {
        ChunkOutput { reorder: self, index, waiting: Vec::new() }
    }

    /// Makes the buffer accept no more output, and wakes all blocked workers. Only the first reason
    /// counts.
    pub(super) fn stop(&self, why: Stopped) {
        self.lock().stopped.get_or_insert(why);
        self.changed.notify_all();
    }

    /// Returns the final state. All handles must have been dropped.
    pub(super) fn finish(self) -> Left<J> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        Left {
            combiner: writer.combiner,
            stopped: state.stopped,
            chunks: state.complete.into_values().filter_map(|complete| complete.chunk).collect(),
            passed: writer.passed,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer<J>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards output of the current chunk. Stops the buffer and returns `Break` if the reader
    /// wants no more output or writing failed.
    fn pass(&self, writer: &mut Writer<J>, bytes: &[u8]) -> ControlFlow<()> {
        let passed = if bytes.is_empty() { Ok(Continue(())) } else { writer.combiner.piece(bytes) };
        if matches!(passed, Ok(Continue(()))) {
            writer.passed += bytes.len() as u64;
        }
        self.stop_unless_wanted(passed)
    }

    /// Stops the buffer and returns `Break` if the reader wants no more output or if writing
    /// failed.
    fn stop_unless_wanted(&self, wanted: Result<ControlFlow<()>, GroupError>) -> ControlFlow<()> {
        match wanted {
            Ok(Continue(())) => Continue(()),
            Ok(Break(())) => {
                self.stop(Stopped::Enough);
                Break(())
            }
            Err(error) => {
                self.stop(Stopped::Broken(error));
                Break(())
            }
        }
    }

    /// Makes the next chunk current. While that chunk is already complete, forwards its output and
    /// advances again, or stops the buffer if the chunk failed.
    fn advance(&self, writer: &mut Writer<J>) {
        loop {
            let wanted = writer.combiner.chunk_ended();
            if self.stop_unless_wanted(wanted).is_break() {
                return;
            }
            writer.passed = 0;
            let mut state = self.lock();
            state.turn += 1;
            let turn = state.turn;
            let Some(next) = state.complete.get_mut(&turn) else { break };
            if let Some(why) = next.failed.take() {
                state.stopped.get_or_insert(Stopped::FallBack(why));
                break;
            }
            let output = std::mem::take(&mut next.output);
            state.held -= output.len();
            drop(state);
            if self.pass(writer, &output).is_break() {
                return;
            }
            let mut state = self.lock();
            let passed = state.complete.remove(&turn);
            state.held -= passed.and_then(|it| it.chunk).map_or(0, |chunk| chunk.data.size());
        }
        self.changed.notify_all();
    }
}

impl<J: Combiner> ChunkOutput<'_, J> {
    /// Forwards a piece of output if the chunk is current, and holds it otherwise. Blocks while
    /// holding it would exceed the limit. Returns `Break` if no more output is accepted.
    pub(super) fn take(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let mut state = self.reorder.lock();
        while state.stopped.is_none() && state.turn != self.index {
            if state.held + bytes.len() <= self.reorder.limit {
                state.held += bytes.len();
                self.waiting.extend_from_slice(bytes);
                return Continue(());
            }
            state = self.reorder.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped.is_some() {
            return Break(());
        }
        drop(state);
        let mut writer = self.reorder.writer();
        self.pass_waiting(&mut writer)?;
        self.reorder.pass(&mut writer, bytes)
    }

    fn pass_waiting(&mut self, writer: &mut Writer<J>) -> ControlFlow<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.reorder.lock().held -= waiting.len();
        self.reorder.changed.notify_all();
        self.reorder.pass(writer, &waiting)
    }

    /// Marks the chunk as complete. `failed` is the reason why its output must not be used, or
    /// `None` if it is correct. May block, as [`Self::take`] does.
    pub(super) fn complete(mut self, chunk: Chunk, failed: Option<Fallback>) {
        let kept = if self.reorder.keeps_chunks { chunk.data.size() } else { 0 };
        let mut state = self.reorder.lock();
        while state.stopped.is_none()
            && state.turn != self.index
            && state.held + kept > self.reorder.limit
        {
            state = self.reorder.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_turn = state.turn == self.index && state.stopped.is_none();
        if is_turn && failed.is_none() {
            drop(state);
            let mut writer = self.reorder.writer();
            if self.pass_waiting(&mut writer).is_continue() {
                self.reorder.advance(&mut writer);
            }
            return;
        }
        let failed = if is_turn {
            state.stopped = failed.map(Stopped::FallBack);
            None
        } else {
            failed
        };
        let output = std::mem::take(&mut self.waiting);
        let chunk = Some(chunk).filter(|_| self.reorder.keeps_chunks);
        state.held += kept;
        state.complete.insert(self.index, Complete { output, chunk, failed });
        drop(state);
        self.reorder.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::ChunkData;
    use super::*;

    #[derive(Default)]
    struct Text(String);

    impl Combiner for Text {
        fn piece(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
            self.0.push_str(&String::from_utf8_lossy(bytes));
            Ok(if self.0.contains("enough") { Break(()) } else { Continue(()) })
        }

        fn chunk_ended(&mut self) -> Result<ControlFlow<()>, GroupError> {
            self.0.push('|');
            Ok(Continue(()))
        }
    }

    fn chunk(index: usize) -> Chunk {
        Chunk { index, data: ChunkData::Bytes(vec![b'0' + u8::try_from(index).unwrap_or(0)]) }
    }

    #[test]
    fn outputs_come_in_the_order_of_the_chunks() {
        let reorder = ReorderBuffer::new(Text::default(), 100, false);
        let mut slots: Vec<_> = (0..4).map(|index| reorder.output(index)).collect();
        let mut third = slots.pop().expect("a slot");
        assert!(third.take(b"3").is_continue());
        third.complete(chunk(3), None);
        let mut second = slots.pop().expect("a slot");
        assert!(second.take(b"2").is_continue());
        let mut first = slots.pop().expect("a slot");
        assert!(first.take(b"1").is_continue());
        first.complete(chunk(1), None);
        let mut zeroth = slots.pop().expect("a slot");
        assert!(zeroth.take(b"0").is_continue());
        zeroth.complete(chunk(0), None);
        assert!(second.take(b"b").is_continue());
        second.complete(chunk(2), None);
        let left = reorder.finish();
        assert_eq!(left.combiner.0, "0|1|2b|3|");
        assert!(left.stopped.is_none() && left.chunks.is_empty());
    }

    #[test]
    fn chunks_are_kept_from_the_failed_one_on() {
        let reorder = ReorderBuffer::new(Text::default(), 100, true);
        let mut last = reorder.output(2);
        assert!(last.take(b"c").is_continue());
        last.complete(chunk(2), None);
        let mut failing = reorder.output(1);
        assert!(failing.take(b"b").is_continue());
        let mut first = reorder.output(0);
        assert!(first.take(b"a").is_continue());
        first.complete(chunk(0), None);
        assert!(failing.take(b"x").is_continue(), "it is its turn now");
        failing.complete(chunk(1), Some(Fallback::CommandFailed));
        let left = reorder.finish();
        assert_eq!((left.combiner.0.as_str(), left.passed), ("a|bx", 2));
        assert!(matches!(left.stopped, Some(Stopped::FallBack(Fallback::CommandFailed))));
        assert_eq!(left.chunks.iter().map(|chunk| chunk.index).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn chunks_that_are_kept_count_as_held() {
        let reorder = ReorderBuffer::new(Text::default(), 2, true);
        let mut first = reorder.output(0);
        assert!(first.take(b"a").is_continue());
        for index in [1, 2] {
            reorder.output(index).complete(chunk(index), None);
        }
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                reorder.output(3).complete(chunk(3), None);
                done.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!done.load(std::sync::atomic::Ordering::SeqCst), "two are held already");
            first.complete(chunk(0), None);
        });
        let left = reorder.finish();
        assert_eq!((left.combiner.0.as_str(), left.chunks.len()), ("a||||", 0));
    }

    #[test]
    fn a_reader_who_has_enough_stops_all() {
        let reorder = ReorderBuffer::new(Text::default(), 100, false);
        let (mut first, mut second) = (reorder.output(0), reorder.output(1));
        assert!(first.take(b"enough").is_break());
        assert!(second.take(b"x").is_break());
        assert!(matches!(reorder.finish().stopped, Some(Stopped::Enough)));
    }
}

//! Runs groups whose outputs are concatenated: every chunk has an instance of its own.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Instant;

use contend_record::run::WorkKind;

use super::Context;
use super::boundary_merger::BoundaryMerger;
use super::error::GroupError;
use super::fallback::Fallback;
use super::input::{Chunk, ChunkSource, Fed, NextChunk};
use super::instance::Instance;
use super::locale::LocaleVariants;
use super::reorder::{Left, ReorderBuffer, Stopped};
use super::sink::OutputSink;
use super::size::Sizes;
use super::threads::{self, RetryLimit, is_scarcity};
use crate::plan::ir::Group;

/// Time in seconds per byte above which commands are much slower than a scan of the input. The
/// guard is then checked over the whole input before the worker's next chunk, so that little work
/// is lost if it rejects the input.
const GUARD_FIRST_SECONDS_PER_BYTE: f64 = 10e-9;

/// The result of a run over chunks.
#[derive(Debug)]
pub(super) enum Ending<T> {
    /// All chunks are complete. The merger may still hold a line.
    Complete(T),
    /// The reader wants no more output.
    Enough,
    /// One run must process the rest of the input.
    FallBack {
        /// The destination for the run's output.
        merger: T,
        /// Number of bytes at the start of the run's output that have already been forwarded.
        passed: u64,
        /// Why the group falls back.
        why: Fallback,
    },
}

/// Runs a group's commands over chunks until the input ends, the group must fall back, or the
/// reader wants no more output.
///
/// # Errors
/// Returns an error if the input cannot be read, the output cannot be written, or a command cannot
/// be started.
pub(super) fn run<T: OutputSink + Send>(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    merger: BoundaryMerger<T>,
) -> Result<Ending<BoundaryMerger<T>>, GroupError> {
    let keeps_chunks = !chunks.can_be_read_again();
    let reorder = ReorderBuffer::new(merger, context.held_bytes(), keeps_chunks);
    let sizes = Sizes::new(context, chunks, &group.each);
    let variants = LocaleVariants::new(&group.each);
    threads::run_on_all(context.jobs, || {
        if let Err(error) = work(&variants, context, chunks, &reorder, &sizes) {
            reorder.stop(Stopped::Broken(error)); // stops the other workers, too
        }
    });
    let Left { combiner, stopped, chunks: unwritten, passed } = reorder.finish();
    for chunk in unwritten {
        chunks.give_back(chunk);
    }
    match stopped {
        Some(Stopped::Broken(error)) => Err(error),
        Some(Stopped::Enough) => Ok(Ending::Enough),
        Some(Stopped::FallBack(why)) => {
            Ok(Ending::FallBack { merger: combiner, passed, why: why.refined(chunks) })
        }
        // Without a chunk, the commands have not run.
        None if chunks.has_rest() || chunks.none_was_taken() => {
            let why = Fallback::EmptyInput.refined(chunks);
            Ok(Ending::FallBack { merger: combiner, passed: 0, why })
        }
        None => Ok(Ending::Complete(combiner)),
    }
}

fn work<T: OutputSink + Send>(
    variants: &LocaleVariants<'_>,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    reorder: &ReorderBuffer<BoundaryMerger<T>>,
    sizes: &Sizes,
) -> Result<(), GroupError> {
    loop {
        let chunk = match chunks.take(sizes.next())? {
            NextChunk::Chunk(chunk) => chunk,
            NextChunk::Eof => return Ok(()),
            NextChunk::Rejected => {
                // On a stream, the chunks before this one remain valid.
                if chunks.can_be_read_again() {
                    reorder.stop(Stopped::FallBack(Fallback::CommandFailed.refined(chunks)));
                    chunks.stop();
                }
                return Ok(());
            }
        };
        let begun = Instant::now();
        let size = chunk.data.size();
        if run_chunk(variants, context, chunks, chunk, reorder)?.is_break() {
            chunks.stop();
            return Ok(());
        }
        let time = begun.elapsed();
        sizes.took(size, time);
        if time.as_secs_f64() > GUARD_FIRST_SECONDS_PER_BYTE * size as f64 {
            chunks.check_guard()?;
        }
    }
}

/// Runs the commands over one chunk. Returns `Break` if no further chunk should run.
fn run_chunk<T: OutputSink + Send>(
    variants: &LocaleVariants<'_>,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    chunk: Chunk,
    reorder: &ReorderBuffer<BoundaryMerger<T>>,
) -> Result<ControlFlow<()>, GroupError> {
    let _work = context.begin(WorkKind::Chunk, chunk.data.size() as u64);
    let mut output = reorder.output(chunk.index);
    let commands = variants.commands(variants.use_c(chunks, &chunk.data)?);
    let mut instance = match Instance::start(context.launcher, commands, RetryLimit::Brief) {
        Ok(instance) => instance,
        // One run over the rest needs fewer processes.
        Err(error) if is_scarcity(&error) => {
            output.complete(chunk, Some(Fallback::Scarcity));
            return Ok(Break(()));
        }
        Err(error) => return Err(error.into()),
    };
    let mut take = |bytes: &[u8]| Ok(output.take(bytes));
    let fed = chunks.feed(&chunk.data, &mut instance, &mut take)?;
    let succeeded = if fed == Fed::All && instance.drain(&mut take)?.is_continue() {
        let ended = instance.end()?;
        context.tally.ended_over_chunk(commands, &ended);
        ended.succeeded
    } else {
        false
    };
    output.complete(chunk, (!succeeded).then_some(Fallback::CommandFailed));
    Ok(if succeeded { Continue(()) } else { Break(()) })
}

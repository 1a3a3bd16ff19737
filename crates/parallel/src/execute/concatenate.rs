//! Writes the outputs of chunks in order, directly or through one more command.

use std::fs::File;
use std::ops::ControlFlow::{self, Break, Continue};

use super::Context;
use super::boundary_merger::BoundaryMerger;
use super::ended::has_succeeded;
use super::error::GroupError;
use super::fallback::Fallback;
use super::filter::{Filter, FilterInput};
use super::input::ChunkSource;
use super::ordered::{self, Ending};
use super::progress::Progress;
use super::sink::Sink;
use super::threads::is_scarcity;
use super::whole::{self, LastChunk};
use crate::plan::ir::{Combine, Command, Group};

/// Runs a group over chunks, and writes their outputs in order, with equal lines at the boundaries
/// merged if the plan asks for it. If the group must fall back, its commands run once over the rest
/// of a stream; for files, the result is [`Progress::StartAgain`].
///
/// # Errors
/// Returns an error if the input cannot be read, a command cannot be started, or the output cannot
/// be written.
pub(super) fn run<'a>(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let merger = BoundaryMerger::new(sink, &group.combine);
    match ordered::run(group, context, chunks, merger)? {
        Ending::Complete(mut merger) => {
            let _ = merger.end()?; // nothing is left to write
            Ok(Progress::Done)
        }
        Ending::Enough => Ok(Progress::Done),
        Ending::FallBack { mut merger, why, .. } if chunks.can_be_read_again() => {
            merger.reset();
            Ok(Progress::StartAgain(merger.output, why))
        }
        Ending::FallBack { merger, passed, why } => {
            context.tally.note_fallback(group, &why);
            let mut last = LastChunk { merger, skipped: passed };
            whole::run(group, context, chunks, &mut last)?;
            let _ = last.merger.end()?; // nothing is left to write
            Ok(Progress::Done)
        }
    }
}

/// Runs a group over chunks, and passes their concatenated outputs through `command`. The result is
/// [`Progress::StartAgain`] in these cases:
///
/// - There are too few resources to start `command`.
/// - The input consists of files, and the group must fall back.
/// - The input consists of files, and `command` fails without output.
///
/// # Errors
/// Returns an error if the input cannot be read, a command cannot be started, or the output cannot
/// be written.
pub(super) fn through<'a>(
    group: &Group,
    command: &Command,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    mut sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let (filter, stdin, stdout) = match Filter::start(command, context) {
        // One run over the whole input needs fewer processes.
        Err(error) if is_scarcity(&error) => {
            return Ok(Progress::StartAgain(sink, Fallback::Scarcity));
        }
        started => started?,
    };
    let fed = filter.copy_while(stdout, &mut sink, Watch(chunks), |watch| {
        watch.begin(stdin.watched()?);
        feed(group, context, chunks, stdin)
    });
    let reaped = filter.wait()?;
    if let Break(why) = fed? {
        return Ok(Progress::StartAgain(sink, why));
    }
    context.tally.status(command, reaped.status);
    let tells_enough = has_succeeded(reaped.status, command.status);
    if !tells_enough && chunks.can_be_read_again() && sink.written() == 0 {
        return Ok(Progress::StartAgain(sink, Fallback::CommandFailed.refined(chunks)));
    }
    Ok(Progress::Done)
}

/// Runs a group over chunks, and writes their outputs to a command. If the group must fall back,
/// its commands run once over the rest of a stream; for files, returns `Break` with the reason.
fn feed(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    stdin: FilterInput,
) -> Result<ControlFlow<Fallback>, GroupError> {
    match ordered::run(group, context, chunks, BoundaryMerger::new(stdin, &Combine::Concatenate))? {
        Ending::Enough | Ending::Complete(_) => Ok(Continue(())),
        Ending::FallBack { why, .. } if chunks.can_be_read_again() => Ok(Break(why)),
        Ending::FallBack { merger, passed, why } => {
            context.tally.note_fallback(group, &why);
            whole::run(group, context, chunks, &mut LastChunk { merger, skipped: passed })?;
            Ok(Continue(()))
        }
    }
}

/// A watch on the pipe to the command's standard input. Until it is dropped, the pipe stays open,
/// and workers that wait for chunks notice if the command closes its end.
struct Watch<'p>(&'p ChunkSource<'p>);

impl Watch<'_> {
    fn begin(&self, pipe: File) {
        self.0.watch(Some(pipe));
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.watch(None);
    }
}

//! Runs a group's commands once, over the whole input or its rest.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::fd::AsFd as _;

use contend_record::run::WorkKind;

use super::boundary_merger::BoundaryMerger;
use super::chunk_input::ChunkInput;
use super::error::GroupError;
use super::input::{ChunkSource, Rest};
use super::instance::Instance;
use super::processes::{Awaited, BLOCK_BYTES, Processes};
use super::progress::Reader;
use super::reorder::Combiner as _;
use super::sink::{OutputSink, Sink};
use super::threads::RetryLimit;
use super::{Context, Plain, pipe};
use crate::plan::ir::{Command, Group};

/// Returns the group's commands and the standard input of the first one, or `None` if the commands
/// cannot read the whole input themselves.
fn reading(group: &Group, chunks: &ChunkSource<'_>) -> io::Result<Option<(Vec<Command>, File)>> {
    let Some(first) = group.opening.as_ref().filter(|_| chunks.are_in_place()) else {
        let file = chunks.only_file().map(File::try_clone).transpose()?;
        return Ok(file.map(|file| (group.serial.clone(), file)));
    };
    let stdin = match &first.input {
        Some(name) => File::open(name)?,
        None => File::from(io::stdin().as_fd().try_clone_to_owned()?),
    };
    let first = Command { input: None, ..first.clone() };
    let rest = group.serial.iter().skip(1).cloned();
    Ok(Some((std::iter::once(first).chain(rest).collect(), stdin)))
}

/// Runs the commands as the shell would, and returns the reader of the input. They read the input
/// themselves if they can; otherwise, contend copies it into a pipe.
pub(super) fn plain(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    sink: Sink<'_>,
) -> Result<Reader, GroupError> {
    let (launcher, tally) = (context.launcher, context.tally);
    let _work = context.begin(WorkKind::Whole, 0);
    context.mark_plain();
    if let Some((commands, stdin)) = reading(group, chunks)? {
        Plain::start(launcher, tally, &commands, Some(stdin), Some(sink.into_file()))?.wait()?;
        chunks.count_as_read_by_commands();
        return Ok(Reader::Commands);
    }
    let (stdin, writer) = pipe::wide()?;
    let commands =
        Plain::start(launcher, tally, &group.serial, Some(stdin), Some(sink.into_file()))?;
    chunks.rest().pour_into(writer)?;
    commands.wait()?;
    Ok(Reader::Contend)
}

/// Returns whether the commands succeed on empty input without writing to standard error. Commands
/// with invalid arguments do not.
pub(super) fn succeeds_on_empty_input(
    group: &Group,
    context: &Context<'_>,
) -> Result<bool, GroupError> {
    let mut instance = Instance::start(context.launcher, &group.each, RetryLimit::Long)?;
    let _ = instance.drain(&mut |_: &[u8]| Ok(Continue(())))?; // the closure never returns `Break`
    Ok(instance.end()?.succeeded)
}

/// Runs the commands once over the rest of the input, which is the whole input for files, and
/// forwards their output. Returns the reader of the input.
pub(super) fn run(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    output: &mut impl OutputSink,
) -> Result<Reader, GroupError> {
    let _work = context.begin(WorkKind::Whole, 0);
    context.mark_plain();
    let commands = &group.serial;
    // With a file as input, sort would use all available memory. That is right only if it has no
    // room for temporary files.
    let sorts = context.launcher.limits_sort_memory() && group.each.iter().any(|it| it.sorts);
    let reading = if sorts { None } else { reading(group, chunks)? };
    let (processes, wanted, reader) = if let Some((commands, stdin)) = reading {
        let mut processes = Processes::start_reading(context.launcher, &commands, stdin)?;
        let wanted = processes.drain(output)?;
        chunks.count_as_read_by_commands();
        (processes, wanted, Reader::Commands)
    } else {
        let mut processes = Processes::start_with_inherited_stderr(context.launcher, commands)?;
        let wanted = feed(&mut processes, chunks.rest(), output)?;
        (processes, wanted, Reader::Contend)
    };
    if wanted.is_continue() {
        context.tally.ended(commands, &processes.end()?);
    }
    Ok(reader)
}

/// Feeds commands with the rest of the input in order, and forwards their output. Returns `Break`
/// if the reader wants no more output.
fn feed(
    processes: &mut Processes<'_>,
    mut rest: Rest<'_>,
    output: &mut impl OutputSink,
) -> Result<ControlFlow<()>, GroupError> {
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        if let Some(source) = rest.source() {
            match processes.wait_for_source(source, output)? {
                Awaited::Source => {}
                Awaited::Gone => return processes.drain(output),
                Awaited::Unwanted => return Ok(Break(())),
            }
        }
        let read = rest.read(&mut block)?;
        if read == 0 {
            return processes.drain(output);
        }
        if processes.feed(&mut ChunkInput::Bytes(&block[..read]), output)?.is_break() {
            return Ok(Break(()));
        }
        if !processes.is_reading() {
            return processes.drain(output);
        }
    }
}

/// A sink that forwards the output for the rest of the input, as if that were one more chunk.
pub(super) struct LastChunk<T> {
    pub merger: BoundaryMerger<T>,
    /// Number of bytes still to be skipped, because they have already been forwarded.
    pub skipped: u64,
}

impl<T: OutputSink + Send> OutputSink for LastChunk<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(bytes.len());
        self.skipped -= skipped as u64;
        if skipped == bytes.len() { Ok(Continue(())) } else { self.merger.piece(&bytes[skipped..]) }
    }
}

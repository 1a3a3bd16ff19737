//! Runs groups whose outputs are combined after all input has been read: every worker runs one
//! instance over many chunks, or two instances one after the other.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow::{self, Continue};
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, Scope};

use contend_record::run::WorkKind;
use rustix::event::{PollFd, PollFlags, poll};

use super::ended::Ended;
use super::error::GroupError;
use super::input::{Chunk, ChunkData, ChunkSource, Fed, NextChunk, Rest};
use super::instance::Instance;
use super::locale::LocaleVariants;
use super::processes::BLOCK_BYTES;
use super::sink::OutputSink;
use super::threads::{self, RetryLimit, is_scarcity};
use super::{Context, filter, size};
use crate::plan::ir::{Combine, Command, Group};

/// The output of one instance of the group's commands.
pub(super) struct Output {
    stdout: io::Chain<Cursor<Vec<u8>>, File>,
    ended: Receiver<io::Result<Ended>>,
}

/// The result of running a group's commands in workers.
pub(super) enum Gathered {
    /// The outputs of the workers. If they had shares of the input, the outputs are in the order of
    /// the shares.
    Outputs(Vec<Output>),
    /// Workers stopped before the end of the input: input that can be read again was rejected, a
    /// worker could not be started, or the run is being ended.
    Unfit,
}

impl Output {
    /// Copies the whole output to `sink`, and waits until the commands end. If the reader wants no
    /// more output, returns `Break` without waiting.
    ///
    /// # Errors
    /// Returns an error if the output cannot be read or written, or if the commands failed.
    pub(super) fn copy_to(self, sink: &mut impl OutputSink) -> Result<ControlFlow<()>, GroupError> {
        let wanted = filter::copy(self.stdout, sink)?;
        if wanted.is_continue() {
            check(&self.ended)?;
        }
        Ok(wanted)
    }

    /// Reads the whole output, and waits until the commands end.
    ///
    /// # Errors
    /// Returns an error if the output cannot be read, or if the commands failed.
    pub(super) fn read_to_end(mut self) -> Result<Vec<u8>, GroupError> {
        let mut bytes = Vec::new();
        self.stdout.read_to_end(&mut bytes)?;
        check(&self.ended)?;
        Ok(bytes)
    }

    /// Waits until there is output to read, or until the commands have succeeded without output.
    ///
    /// # Errors
    /// Returns an error if there was output before the input ended, if the output cannot be
    /// examined, or if the commands failed without output.
    pub(super) fn ready(self) -> Result<Ready, GroupError> {
        let (early, pipe) = self.stdout.into_inner();
        if !early.into_inner().is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut polled = [PollFd::new(&pipe, PollFlags::IN)];
        while matches!(poll(&mut polled, None), Err(rustix::io::Errno::INTR)) {}
        if rustix::io::ioctl_fionread(&pipe).map_err(io::Error::from)? > 0 {
            return Ok(Ready { pipe, ended: Some(self.ended) });
        }
        check(&self.ended)?;
        Ok(Ready { pipe, ended: None })
    }
}

/// An output that another command can open and read.
pub(super) struct Ready {
    pipe: File,
    ended: Option<Receiver<io::Result<Ended>>>,
}

impl Ready {
    pub(super) fn pipe(&self) -> &File {
        &self.pipe
    }

    /// Closes the pipe, which the reading command must no longer use. `read` tells whether that
    /// command has read the whole output. If so, waits until the commands that wrote it end.
    ///
    /// # Errors
    /// Returns an error if `read` is true and the commands failed.
    pub(super) fn finish(self, read: bool) -> Result<(), GroupError> {
        drop(self.pipe);
        self.ended.filter(|_| read).map_or(Ok(()), |ended| check(&ended))
    }
}

/// Waits until the commands end, and returns an error if they failed or cannot be waited for.
fn check(ended: &Receiver<io::Result<Ended>>) -> Result<(), GroupError> {
    let ended = ended.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
    if ended.succeeded { Ok(()) } else { Err(GroupError::Failed(Box::new(ended))) }
}

/// The message of a worker that has read its input: the outputs of its instances, in order, or an
/// error.
type HandOver = Result<Vec<Output>, GroupError>;

/// The instances of one worker. Only one runs at a time.
#[derive(Default)]
struct Instances<'l> {
    /// The outputs of ended instances.
    outputs: Vec<Output>,
    running: Option<Instance<'l>>,
    /// The output of the running instance so far.
    early: Vec<u8>,
    /// Whether the commands run in the C locale: they have variants for it, and all input so far
    /// was ASCII.
    use_c: bool,
}

/// Returns the error for a worker that ended without sending a message.
fn lost() -> GroupError {
    io::ErrorKind::BrokenPipe.into()
}

/// Runs the group's commands over chunks, in threads of `scope`, until all input has been read.
/// Some commands may still run then.
///
/// # Errors
/// Returns an error if the input cannot be read, a command or the thread for the rest of the input
/// cannot be started, or commands fail before their output is handed over.
pub(super) fn run<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    group: &'env Group,
    context: &'env Context<'env>,
    chunks: &'env ChunkSource<'env>,
) -> Result<Gathered, GroupError> {
    let piece = size::piece(context, chunks);
    let shares = if group.any_order { None } else { chunks.shares(context.jobs)? };
    let shares: Vec<Option<Range<u64>>> = match shares {
        Some(shares) if !shares.is_empty() => shares.into_iter().map(Some).collect(),
        _ => vec![None; context.jobs],
    };
    let mut workers = Vec::new();
    for (index, share) in shares.into_iter().enumerate() {
        let (sender, receiver) = mpsc::channel();
        let always = index == 0;
        let has_share = share.is_some();
        let work = Work { group, context, chunks, piece, always, is_rest: false };
        match Builder::new().spawn_scoped(scope, move || work.run(share, &sender)) {
            Ok(_) => workers.push(receiver),
            // The other workers take the chunks of the missing one, unless it has a share of its
            // own.
            Err(_) if index > 0 && !has_share => break,
            Err(_) => {
                chunks.stop();
                break;
            }
        }
    }
    let mut outputs = Vec::new();
    let mut failed = None;
    for worker in workers {
        match worker.recv().unwrap_or_else(|_| Err(lost())) {
            Ok(output) => outputs.extend(output),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    if chunks.is_stopped() {
        return Ok(Gathered::Unfit);
    }
    if chunks.has_rest() || chunks.has_returned() {
        let (sender, receiver) = mpsc::channel();
        let work = Work { group, context, chunks, piece, always: true, is_rest: true };
        threads::spawn_scoped(scope, move || work.run_rest(chunks.rest(), &sender))?;
        let rest = receiver.recv().unwrap_or_else(|_| Err(lost()));
        outputs.extend(rest?);
    }
    Ok(Gathered::Outputs(outputs))
}

/// The parameters of one worker.
#[derive(Clone, Copy)]
struct Work<'env> {
    group: &'env Group,
    context: &'env Context<'env>,
    chunks: &'env ChunkSource<'env>,
    /// Intended size of the worker's chunks in bytes.
    piece: usize,
    /// Whether the commands are started even if there is no input.
    always: bool,
    /// Whether the worker processes the rest of the input as the plain pipeline would: standard
    /// error is not captured, and output written before a failure counts.
    is_rest: bool,
}

impl<'env> Work<'env> {
    fn run(self, mut share: Option<Range<u64>>, handed_over: &Sender<HandOver>) {
        let piece = self.piece;
        let next = || match &mut share {
            Some(share) => self.chunks.take_of(share, piece),
            None => self.chunks.take(piece),
        };
        self.work(next, handed_over);
    }

    /// Runs the commands over the rest of the input, and hands over their output.
    fn run_rest(self, mut rest: Rest<'_>, handed_over: &Sender<HandOver>) {
        let next = || {
            let mut bytes = vec![0; BLOCK_BYTES];
            let read = rest.read(&mut bytes)?;
            bytes.truncate(read);
            let chunk = Chunk { index: 0, data: ChunkData::Bytes(bytes) };
            Ok(if read == 0 { NextChunk::Eof } else { NextChunk::Chunk(chunk) })
        };
        self.work(next, handed_over);
    }

    fn work(self, next: impl FnMut() -> io::Result<NextChunk>, handed_over: &Sender<HandOver>) {
        let outputs = self.feed(next).and_then(|instances| {
            let _work = self.context.begin(WorkKind::Finish, 0);
            let Instances { mut outputs, running, early, .. } = instances;
            let last = running.map(|instance| self.open(instance, early)).transpose()?;
            let running = last.map(|(instance, output, ended)| {
                outputs.push(output);
                (instance, ended)
            });
            Ok((outputs, running))
        });
        match outputs {
            Ok((outputs, running)) => {
                let _ = handed_over.send(Ok(outputs)); // the receiver may have given up
                if let Some((instance, ended)) = running {
                    let _ = ended.send(self.end(instance));
                }
            }
            Err(error) => {
                self.chunks.stop();
                drop(handed_over.send(Err(error)));
            }
        }
    }

    /// Closes the input of an instance, and waits for those of its commands whose output must be
    /// complete. Returns an error if they failed, except over the rest of the input. Otherwise,
    /// returns the instance, its output, and a sender for the result of its end. The output can be
    /// read while the instance runs.
    fn open<'l>(
        &self,
        mut instance: Instance<'l>,
        mut early: Vec<u8>,
    ) -> Result<(Instance<'l>, Output, Sender<io::Result<Ended>>), GroupError> {
        let later = instance.hand_over(&mut early)?;
        let stdout = Cursor::new(early).chain(later);
        // The last command's output is valid only if its input was complete.
        let succeeded = instance.wait_for_first(self.first_commands())?;
        if !succeeded && !self.is_rest {
            drop(stdout); // closes the pipe, so that the last command ends
            return Err(GroupError::Failed(Box::new(instance.end()?)));
        }
        let (sender, ended) = mpsc::channel();
        Ok((instance, Output { stdout, ended }, sender))
    }

    /// Waits until an instance ends, and adds its exit statuses and costs to the tally. Over the
    /// rest of the input, it always counts as successful.
    fn end(&self, instance: Instance<'_>) -> io::Result<Ended> {
        let _work = self.context.begin(WorkKind::Finish, 0);
        let mut ended = instance.end()?;
        self.context.tally.ended(&self.group.each, &ended);
        ended.succeeded |= self.is_rest;
        Ok(ended)
    }

    /// Ends an instance that is not the worker's last one, and returns its output, which must fit
    /// into a pipe.
    fn finish(&self, instance: Instance<'_>, early: Vec<u8>) -> Result<Output, GroupError> {
        let (instance, output, sender) = self.open(instance, early)?;
        let _ = sender.send(self.end(instance)); // the receiver is in `output`
        Ok(output)
    }

    /// Returns the number of commands that must end before the output is handed over: those before
    /// the sort or, without a sort, all but the last command.
    fn first_commands(&self) -> usize {
        let each = &self.group.each;
        each.iter().position(|command| command.sorts).unwrap_or(each.len() - 1)
    }

    /// Returns the variants of the commands. The C locale is used only if outputs consist of a few
    /// numbers: at the first chunk that is not ASCII, the worker starts a second instance, and the
    /// output of the first one must fit into a pipe.
    fn variants(&self) -> LocaleVariants<'_> {
        match self.group.combine {
            Combine::Numbers(_) if !self.is_rest => LocaleVariants::new(&self.group.each),
            _ => LocaleVariants::without_c(&self.group.each),
        }
    }

    /// Feeds instances with chunks until there are no more, one is rejected, or resources are
    /// scarce. Returns the instances, of which the last one may still run.
    fn feed(
        &self,
        mut next: impl FnMut() -> io::Result<NextChunk>,
    ) -> Result<Instances<'env>, GroupError> {
        let variants = self.variants();
        let mut instances = Instances { use_c: variants.has_c(), ..Instances::default() };
        if self.always && !instances.use_c {
            instances.running = Some(self.start(variants.commands(false))?);
        }
        loop {
            let fed = match next()? {
                NextChunk::Chunk(chunk) => {
                    match self.feed_chunk(chunk, &variants, &mut instances)? {
                        Some(fed) => fed,
                        None => break,
                    }
                }
                NextChunk::Eof => break,
                NextChunk::Rejected => Fed::Rejected,
            };
            if fed == Fed::Rejected {
                if self.chunks.can_be_read_again() {
                    self.chunks.stop();
                }
                break;
            }
        }
        if self.always && instances.running.is_none() && instances.outputs.is_empty() {
            instances.running = Some(self.start(variants.commands(instances.use_c))?);
        }
        Ok(instances)
    }

    /// Feeds one chunk to the running instance, or to a new one if there is none or its locale does
    /// not fit the chunk. Returns `None` if resources are scarce and the chunk was given back.
    fn feed_chunk(
        &self,
        chunk: Chunk,
        variants: &LocaleVariants<'_>,
        instances: &mut Instances<'env>,
    ) -> Result<Option<Fed>, GroupError> {
        let _work = self.context.begin(WorkKind::Chunk, chunk.data.size() as u64);
        if instances.use_c && !variants.use_c(self.chunks, &chunk.data)? {
            instances.use_c = false; // never back to the C locale
            if let Some(instance) = instances.running.take() {
                let early = std::mem::take(&mut instances.early);
                instances.outputs.push(self.finish(instance, early)?);
            }
        }
        let instance = match &mut instances.running {
            Some(instance) => instance,
            none => match self.start(variants.commands(instances.use_c)) {
                Err(error) if is_scarcity(&error) && !self.chunks.can_be_read_again() => {
                    self.chunks.give_back(chunk);
                    return Ok(None);
                }
                started => none.insert(started?),
            },
        };
        let mut keep = |bytes: &[u8]| {
            instances.early.extend_from_slice(bytes);
            Ok(Continue(()))
        };
        Ok(Some(self.chunks.feed(&chunk.data, instance, &mut keep)?))
    }

    fn start(&self, commands: &[Command]) -> io::Result<Instance<'env>> {
        let launcher = self.context.launcher;
        if self.is_rest {
            return Instance::start_with_inherited_stderr(launcher, commands);
        }
        let limit = if self.always { RetryLimit::Long } else { RetryLimit::Brief };
        Ok(Instance::start(launcher, commands, limit)?.in_pieces(self.piece))
    }
}

#[cfg(test)]
mod tests {
    use contend_record::run::{Column, Numbers};

    use super::super::testing::{Setting, command, file_input, group, shell, stream_input};
    use super::*;
    use crate::execute::input::Input;

    const TEXT: &str = "a\nb\nc\nd\ne\nf\ng\nh\n";

    /// Returns the outputs of the workers that run `each`, in order, or none if the workers stopped
    /// early.
    fn outputs(each: Command, any_order: bool, input: Input) -> Result<Vec<String>, GroupError> {
        let mut group = group(each, Combine::Concatenate);
        group.any_order = any_order;
        outputs_of(&Setting::default(), &group, input)
    }

    fn outputs_of(
        setting: &Setting,
        group: &Group,
        input: Input,
    ) -> Result<Vec<String>, GroupError> {
        let found = setting.with(group, |context| {
            let chunks = ChunkSource::new(&setting.launcher, input, &group.cut, &group.guard);
            std::thread::scope(|scope| match run(scope, group, context, &chunks)? {
                Gathered::Outputs(outputs) => {
                    outputs.into_iter().map(Output::read_to_end).collect::<Result<Vec<_>, _>>()
                }
                Gathered::Unfit => Ok(Vec::new()),
            })
        })?;
        assert_eq!(setting.launcher.pids(), [], "nothing is left running");
        Ok(found.into_iter().map(|bytes| String::from_utf8(bytes).expect("text")).collect())
    }

    #[test]
    fn shares_are_in_the_order_of_the_input() {
        let found = outputs(command("cat", &[]), false, file_input(TEXT)).expect("outputs");
        assert_eq!(found, ["a\nb\nc\nd\n", "e\nf\ng\nh\n"]);
    }

    #[test]
    fn every_line_of_a_stream_reaches_one_worker() {
        let found = outputs(command("cat", &[]), true, stream_input(TEXT)).expect("outputs");
        let mut lines: Vec<&str> = found.iter().flat_map(|text| text.lines()).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "b", "c", "d", "e", "f", "g", "h"]);
    }

    #[test]
    fn a_worker_leaves_the_c_locale_at_the_first_chunk_that_is_not_ascii() {
        let setting = Setting { jobs: 1, chunk_bytes: Some(2), ..Setting::default() };
        let names_c = "[ \"$LC_ALL\" = C ] && echo in C; cat";
        let sums = Combine::Numbers(Numbers { columns: vec![Column::Sum], width: 0 });
        let each = Command { ascii_in_c: true, ..shell(names_c) };
        let group = group(each, sums);
        for (text, expected) in [
            ("a\nb\n", &["in C\na\nb\n"][..]),
            ("a\nb\n\u{e9}\nc\n", &["in C\na\nb\n", "\u{e9}\nc\n"]),
            ("\u{e9}\nc\n", &["\u{e9}\nc\n"]),
            ("", &["in C\n"]),
        ] {
            assert_eq!(outputs_of(&setting, &group, file_input(text)).expect("outputs"), expected);
        }
    }

    #[test]
    fn an_output_whose_commands_fail_at_its_end_is_an_error() {
        let fails = shell("cat; exit 3");
        let found = outputs(fails, false, file_input(TEXT));
        assert!(matches!(found, Err(GroupError::Failed(ended)) if !ended.succeeded));
    }
}

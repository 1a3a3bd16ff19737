//! One group from its input to its output, over parts or, where that turns out not to do, in one
//! piece.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};

use crate::plan::ir::{Combine, Command, Group, Merge};
use contend_commands::awk::sums::Totals;
use contend_sys::Pid;

use super::fallback::Fallback;
use super::gathered::{self, Failed, Gathered, Output};
use super::input::{Answers, Beginning, Input, Lull, Parts, Rest};
use super::instance::{Awaited, BLOCK, Ended, Fodder, Instance, Take, is_well};
use super::joint::Seam;
use super::numbers;
use super::ordered::{self, Ending};
use super::pilot::{self, Trial};
use super::pipe;
use super::sink::Sink;
use super::sorted;
use super::threads::{self, Patience, is_scarcity};
use super::{Context, GroupError, Plain};
use crate::plan::estimate;

/// No more of a stream than this is waited for to see whether it is worth the trouble, in bytes.
const SHORT: usize = 1 << 20;

/// Who has read the input of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Its commands themselves, as far as they needed it.
    Commands,
    /// It was read here, and handed to commands.
    Contend,
}

/// Runs a group.
///
/// # Errors
/// See [`GroupError`].
pub(super) fn run(
    group: &Group,
    context: &Context<'_>,
    input: Input,
    output: File,
) -> Result<Reader, GroupError> {
    let longest = usize::try_from(context.memory / 4).unwrap_or(usize::MAX);
    let mut parts = Parts::new(context.launcher, input, &group.cut, &group.guard)
        .with_lulls(lull(group, context))
        .with_records_up_to(longest);
    if context.is_first {
        parts = parts.counted(context.tally.input());
    }
    let told = Some(context.tally).filter(|_| context.is_last);
    let sink = Sink::new(output, told, context.launcher);
    let reader_left = sink.reader_left();
    let trial = judge(group, context, &parts, sink.is_file())?;
    let reader = if trial.is_worth_it {
        let context = Context { rate: trial.rate, ..*context };
        run_into(group, &context, &parts, sink)?
    } else {
        context.tally.in_one_piece(group, &Fallback::NotFaster);
        plain(group, context, &parts, sink)?
    };
    if reader_left.load(Ordering::Relaxed) {
        context.tally.cut_off(group);
    }
    Ok(reader)
}

/// What happens when the group's input falls silent.
fn lull<'a>(group: &Group, context: &Context<'a>) -> Lull<'a> {
    if !estimate::answers_early(&context.steps[context.at..]) {
        return Lull::IsWaitedOut;
    }
    let answers = if estimate::runs_others(group) { Answers::Pieces } else { Answers::Lines };
    Lull::RunsPlain { earlier: &context.plain[..context.at], answers }
}

/// Whether parts are worth it, by what can be known before.
fn judge(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    to_file: bool,
) -> io::Result<Trial> {
    if context.part_bytes.is_some() {
        return Ok(Trial { is_worth_it: true, rate: None });
    }
    if !parts.can_be_read_again() {
        let enough = estimate::enough(&context.steps[context.at], parts.line()?, context.jobs);
        let enough = usize::try_from(enough).map_or(SHORT, |it| it.min(SHORT));
        if parts.begins(enough)? != Beginning::Flowing {
            return Ok(Trial { is_worth_it: false, rate: None });
        }
    }
    pilot::judge(group, context, parts, to_file)
}

/// Runs it over parts, or in one piece if that turns out not to do.
fn run_into(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    mut sink: Sink<'_>,
) -> Result<Reader, GroupError> {
    let is_ordered = match &group.combine {
        Combine::Concatenate | Combine::Adjoin { .. } => true,
        Combine::Through(_) => !group.any_order,
        _ => false,
    };
    // Over a stream it has to be known before anything is read whether commands fail.
    if !is_ordered && !parts.can_be_read_again() && !accepts_its_commands(group, context)? {
        context.tally.in_one_piece(group, &Fallback::CommandsAlwaysFail);
        return in_one_piece(group, context, parts, &mut sink);
    }
    match over_parts(group, context, parts, sink)? {
        Progress::Done => Ok(Reader::Contend),
        Progress::StartAgain(mut sink, why) => {
            context.tally.in_one_piece(group, &why);
            sink.start_again();
            context.tally.start_again(group);
            in_one_piece(group, context, parts, &mut sink)
        }
    }
}

/// How far a group got over parts.
enum Progress<'a> {
    /// To its end, or its reader wants no more.
    Done,
    /// All has to be done again in one piece, into this sink.
    StartAgain(Sink<'a>, Fallback),
}

/// Runs it over parts, in the way that suits how outputs are combined.
fn over_parts<'a>(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    mut sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let sorting = sorted::task(group).filter(|_| group.any_order);
    let fallback = match &group.combine {
        _ if let Some(task) = &sorting => sorted::run(task, context, parts, &mut sink)?,
        Combine::Concatenate | Combine::Adjoin { .. } => {
            return in_order(group, context, parts, sink);
        }
        Combine::Through(command) if !group.any_order => {
            return through(group, command, context, parts, sink);
        }
        Combine::Totals(_) if !parts.can_be_read_again() => {
            Some(Fallback::TotalsOfStream.over(parts))
        }
        _ if !group.any_order && !parts.can_be_read_again() => {
            Some(Fallback::OrderOfStream.over(parts))
        }
        _ => match gather(group, context, parts, &mut sink) {
            Err(GroupError::Failed(_)) if parts.can_be_read_again() => {
                Some(Fallback::CommandFailed.over(parts))
            }
            Err(GroupError::Inexact) if parts.can_be_read_again() => Some(Fallback::InexactTotals),
            Err(GroupError::Transfer(error))
                if is_scarcity(&error) && (parts.can_be_read_again() || parts.none_was_taken()) =>
            {
                Some(Fallback::Scarcity)
            }
            gathered => gathered?,
        },
    };
    Ok(fallback.map_or(Progress::Done, |why| Progress::StartAgain(sink, why)))
}

/// A group's commands with what the first one's standard input is, if they are to read all of
/// their input themselves.
fn reading(group: &Group, parts: &Parts<'_>) -> io::Result<Option<(Vec<Command>, File)>> {
    let Some(first) = group.opening.as_ref().filter(|_| parts.are_in_place()) else {
        let file = parts.only_file().map(File::try_clone).transpose()?;
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

/// Runs the stages as they are, with as little between as can be.
fn plain(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    sink: Sink<'_>,
) -> Result<Reader, GroupError> {
    let (launcher, tally) = (context.launcher, context.tally);
    context.runs_plain();
    if let Some((commands, stdin)) = reading(group, parts)? {
        Plain::start(launcher, tally, &commands, Some(stdin), Some(sink.into_file()))?.wait()?;
        parts.count_as_read_by_commands();
        return Ok(Reader::Commands);
    }
    let (stdin, writer) = pipe::wide()?;
    let commands =
        Plain::start(launcher, tally, &group.serial, Some(stdin), Some(sink.into_file()))?;
    parts.rest().pour_into(writer)?;
    commands.wait()?;
    Ok(Reader::Contend)
}

/// Whether the commands accept their arguments: over nothing they end well.
fn accepts_its_commands(group: &Group, context: &Context<'_>) -> io::Result<bool> {
    let mut instance = Instance::start(context.launcher, &group.each, Patience::Long)?;
    instance.drain(&mut |_: &[u8]| Ok(true))?;
    Ok(instance.end()?.well)
}

/// Runs the commands once over all that is left, and passes on what they write.
fn in_one_piece(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    output: &mut impl Take,
) -> Result<Reader, GroupError> {
    context.runs_plain();
    let commands = &group.serial;
    // Of a file, a sort would take as much memory as there is, which is right only where it has no
    // room for files of its own.
    let sorts = context.launcher.bounds_sorting() && group.each.iter().any(|it| it.sorts);
    let reading = if sorts { None } else { reading(group, parts)? };
    let (instance, wanted, reader) = if let Some((commands, stdin)) = reading {
        let mut instance = Instance::start_reading(context.launcher, &commands, stdin)?;
        let wanted = instance.drain(output)?;
        parts.count_as_read_by_commands();
        (instance, wanted, Reader::Commands)
    } else {
        let mut instance = Instance::start_aloud(context.launcher, commands)?;
        let wanted = feed(&mut instance, parts.rest(), output)?;
        (instance, wanted, Reader::Contend)
    };
    if wanted {
        context.tally.ended(commands, &instance.end()?);
    }
    Ok(reader)
}

/// Feeds commands with all that is left, in order, and passes on what they write. `false` if nobody
/// wants that.
fn feed(
    instance: &mut Instance<'_>,
    mut rest: Rest<'_>,
    output: &mut impl Take,
) -> Result<bool, GroupError> {
    let mut block = vec![0; BLOCK];
    let wanted = loop {
        if let Some(source) = rest.source() {
            match instance.wait_for_source(source, output)? {
                Awaited::Source => {}
                Awaited::Gone => break instance.drain(output)?,
                Awaited::Unwanted => break false,
            }
        }
        let read = rest.read(&mut block)?;
        if read == 0 {
            break instance.drain(output)?;
        }
        if !instance.feed(&mut Fodder::Bytes(&block[..read]), output)? {
            break false;
        }
        if !instance.is_reading() {
            break instance.drain(output)?;
        }
    };
    Ok(wanted)
}

/// Outputs one behind the other.
fn in_order<'a>(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let seam = Seam::new(sink, &group.combine);
    match ordered::run(group, context, parts, seam)? {
        Ending::Complete(mut seam) => {
            seam.end()?;
            Ok(Progress::Done)
        }
        Ending::Enough => Ok(Progress::Done),
        Ending::InOnePiece { mut seam, why, .. } if parts.can_be_read_again() => {
            seam.forget();
            Ok(Progress::StartAgain(seam.output, why))
        }
        Ending::InOnePiece { seam, passed, why } => {
            context.tally.in_one_piece(group, &why);
            let mut last = LastPart { seam, skipped: passed };
            in_one_piece(group, context, parts, &mut last)?;
            last.seam.end()?;
            Ok(Progress::Done)
        }
    }
}

/// The output of all that is left, as if it were one more part.
struct LastPart<T> {
    seam: Seam<T>,
    skipped: u64,
}

impl<T: Take + Send> Take for LastPart<T> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        use super::sequence::Joint as _;
        let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(bytes.len());
        self.skipped -= skipped as u64;
        if skipped == bytes.len() { Ok(true) } else { self.seam.piece(&bytes[skipped..]) }
    }
}

/// The standard input of a command of ours.
struct Fed(File);

impl Take for Fed {
    fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        use std::io::Write as _;
        match self.0.write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            result => result.map(|()| true),
        }
    }
}

/// Outputs one behind the other, through one more command.
fn through<'a>(
    group: &Group,
    command: &Command,
    context: &Context<'_>,
    parts: &Parts<'_>,
    mut sink: Sink<'a>,
) -> Result<Progress<'a>, GroupError> {
    let (pid, stdin, stdout) = match start_between(command, context) {
        // All of it in one piece takes fewer processes.
        Err(error) if is_scarcity(&error) => {
            return Ok(Progress::StartAgain(sink, Fallback::Scarcity));
        }
        started => started?,
    };
    let in_parts = thread::scope(|scope| {
        let copy = || copy(stdout, &mut sink, None);
        let copied = match threads::spawn_scoped(scope, copy) {
            Ok(copied) => copied,
            Err(error) => {
                context.launcher.signal(&[pid], contend_sys::Signal::TERM);
                return Err(GroupError::Transfer(error));
            }
        };
        let watched = stdin.try_clone();
        let seam = Seam::new(Fed(stdin), &Combine::Concatenate);
        let ending = watched.map_err(GroupError::from).and_then(|watched| {
            parts.watch(Some(watched));
            ordered::run(group, context, parts, seam)
        });
        let fallback = match ending {
            Err(error) => Err(error),
            Ok(Ending::Enough) => Ok(None),
            Ok(Ending::Complete(seam)) => {
                drop(seam);
                Ok(None)
            }
            Ok(Ending::InOnePiece { seam, why, .. }) if parts.can_be_read_again() => {
                drop(seam);
                Ok(Some(why))
            }
            Ok(Ending::InOnePiece { seam, passed, why }) => {
                context.tally.in_one_piece(group, &why);
                let mut last = LastPart { seam, skipped: passed };
                in_one_piece(group, context, parts, &mut last).map(|_| None)
            }
        };
        // Who watches its input holds it open: it must not take this for its end.
        if !matches!(fallback, Ok(None)) {
            context.launcher.signal(&[pid], contend_sys::Signal::TERM);
        }
        parts.watch(None);
        let wanted = joined(copied);
        fallback.and_then(|fallback| Ok((fallback, wanted?)))
    });
    let reaped = context.launcher.wait(pid)?;
    let (fallback, _) = in_parts?;
    context.tally.used(command.stage, reaped.usage.cpu());
    if let Some(why) = fallback {
        return Ok(Progress::StartAgain(sink, why));
    }
    context.tally.status(command, reaped.status);
    let tells_enough = is_well(reaped.status, command.status);
    if !tells_enough && parts.can_be_read_again() && sink.written() == 0 {
        return Ok(Progress::StartAgain(sink, Fallback::CommandFailed.over(parts)));
    }
    Ok(Progress::Done)
}

/// What a thread that copies has to say at its end.
fn joined(copied: ScopedJoinHandle<'_, Option<io::Result<bool>>>) -> io::Result<bool> {
    let wanted = copied.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    wanted.unwrap_or(Ok(false))
}

/// Starts a command between two pipes.
fn start_between(command: &Command, context: &Context<'_>) -> io::Result<(Pid, File, File)> {
    let (reader, stdin) = pipe::wide()?;
    let (stdout, writer) = pipe::wide()?;
    let pid =
        context.launcher.start(command, [Some(&reader), Some(&writer), None], Patience::Long)?;
    Ok((pid, stdin, stdout))
}

/// Copies until the end, or until so many lines have been copied. `false` if no more is wanted.
fn copy(mut from: impl io::Read, to: &mut impl Take, lines: Option<u64>) -> io::Result<bool> {
    let mut block = vec![0; BLOCK];
    let mut left = lines;
    while left != Some(0) {
        let read = match from.read(&mut block) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if !to.take(first_lines(&block[..read], &mut left))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What of these bytes belongs to so many lines, if there is a limit, of which it is then less.
pub(super) fn first_lines<'b>(bytes: &'b [u8], left: &mut Option<u64>) -> &'b [u8] {
    let Some(left) = left else { return bytes };
    let mut end = 0;
    for at in memchr::memchr_iter(b'\n', bytes) {
        if *left == 0 {
            return &bytes[..end];
        }
        *left -= 1;
        end = at + 1;
    }
    if *left == 0 { &bytes[..end] } else { bytes }
}

/// Runs the commands over parts in any order, or over shares, and puts together what they wrote in
/// the end. Returns why all has to be done again, if it has to.
fn gather(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
    sink: &mut Sink<'_>,
) -> Result<Option<Fallback>, GroupError> {
    thread::scope(|scope| {
        let outputs = match gathered::run(scope, group, context, parts)? {
            Gathered::Outputs(outputs) => outputs,
            Gathered::Unfit => return Ok(Some(Fallback::CommandFailed.over(parts))),
        };
        let combined = match &group.combine {
            Combine::Merge(merge) => merged(merge, context, outputs, sink),
            Combine::Numbers(kinds) => {
                numbers::combine(kinds, outputs, sink).map_err(GroupError::from)
            }
            Combine::Through(command) => pass_through(command, context, outputs, sink),
            Combine::Totals(command) => totals(command, context, outputs, sink),
            // The one is done in order, the other sorts by itself.
            Combine::Concatenate | Combine::Adjoin { .. } | Combine::Counts { .. } => Ok(true),
        };
        combined.map(|_| None)
    })
}

fn merged(
    how: &Merge,
    context: &Context<'_>,
    outputs: Vec<Output>,
    sink: &mut Sink<'_>,
) -> Result<bool, GroupError> {
    let mut ready = Vec::new();
    for output in outputs {
        ready.push(output.ready()?);
    }
    let mut command = how.command.clone();
    let own = std::process::id();
    command.arguments.extend(ready.iter().map(|output| {
        // Opened anew through this link, the pipe need not be inherited by anyone.
        format!("/proc/{own}/fd/{}", output.pipe().as_raw_fd())
    }));
    let (stdout, writer) = pipe::wide()?;
    let nothing = File::open("/dev/null")?;
    let pid =
        context.launcher.start(&command, [Some(&nothing), Some(&writer), None], Patience::Long)?;
    drop(writer);
    let wanted = copy(stdout, sink, how.first);
    let reaped = context.launcher.wait(pid)?;
    context.tally.used(command.stage, reaped.usage.cpu());
    let wanted = wanted?;
    if wanted && how.first.is_none() {
        context.tally.status(&command, reaped.status);
    }
    for output in ready {
        output.finish(wanted && how.first.is_none())?;
    }
    Ok(wanted)
}

/// Passes totals through a command, if they are exact.
fn totals(
    command: &Command,
    context: &Context<'_>,
    outputs: Vec<Output>,
    sink: &mut Sink<'_>,
) -> Result<bool, GroupError> {
    let mut texts = Vec::new();
    for mut output in outputs {
        let mut text = Vec::new();
        output.read_to_end(&mut text)?;
        texts.push(text);
    }
    if !Totals::are_exact(texts.iter().map(Vec::as_slice)) {
        return Err(GroupError::Inexact);
    }
    let texts = texts.iter().map(Vec::as_slice).collect();
    pass_through(command, context, texts, sink)
}

/// Passes outputs, one behind the other, through a command.
fn pass_through<R: io::Read>(
    command: &Command,
    context: &Context<'_>,
    outputs: Vec<R>,
    sink: &mut Sink<'_>,
) -> Result<bool, GroupError> {
    let (pid, stdin, stdout) = start_between(command, context)?;
    let (fed, wanted) = thread::scope(|scope| {
        let copied = match threads::spawn_scoped(scope, || copy(stdout, sink, None)) {
            Ok(copied) => copied,
            Err(error) => {
                context.launcher.signal(&[pid], contend_sys::Signal::TERM);
                return (Err(error), Ok(false));
            }
        };
        let mut stdin = Fed(stdin);
        let fed: io::Result<Vec<bool>> =
            outputs.into_iter().map(|output| copy(output, &mut stdin, None)).collect();
        if fed.is_err() {
            context.launcher.signal(&[pid], contend_sys::Signal::TERM);
        }
        drop(stdin);
        (fed, joined(copied))
    });
    let reaped = context.launcher.wait(pid)?;
    context.tally.used(command.stage, reaped.usage.cpu());
    fed?;
    if !is_well(reaped.status, command.status) {
        let ended = Ended {
            statuses: vec![reaped.status],
            cpu: Vec::new(),
            well: false,
            remarks: Vec::new(),
        };
        return Err(GroupError::Failed(Box::new(ended)));
    }
    context.tally.status(command, reaped.status);
    Ok(wanted?)
}

impl From<io::Error> for GroupError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Failed>() {
            Ok(Failed(ended)) => Self::Failed(Box::new(ended)),
            Err(error) => Self::Transfer(error),
        }
    }
}

//! Combines the outputs of workers once all input has been read.

use std::fs::File;
use std::ops::ControlFlow::{self, Continue};
use std::os::fd::AsRawFd as _;
use std::thread;

use contend_commands::awk::sums::Totals;
use contend_record::run::WorkKind;
use contend_sys::child::ExitStatus;
use rustix::process::{Resource, getrlimit};

use super::ended::{Cost, Ended, has_succeeded};
use super::error::GroupError;
use super::fallback::Fallback;
use super::filter::{self, Filter, FilterInput};
use super::gathered::{self, Gathered, Output, Ready};
use super::input::ChunkSource;
use super::sink::{FirstLines, OutputSink as _, Sink};
use super::threads::RetryLimit;
use super::{Context, numbers, pipe};
use crate::plan::ir::{Combine, Command, Group, Merge};

/// Number of files that GNU sort merges at once by default. It merges more of them into temporary files first.
const DEFAULT_BATCH: usize = 16;
/// Number of files that it may need open besides those that it merges.
const OTHER_FILES: u64 = 8;

/// Runs the group's commands over chunks in any order, or over about equal shares of the files, and
/// combines the outputs. Returns the reason if the group must fall back, or `None` on success.
///
/// # Errors
/// Returns an error if the input cannot be read, a command cannot be started or fails, or outputs
/// cannot be read, combined or written.
pub(super) fn run(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    sink: &mut Sink<'_>,
) -> Result<Option<Fallback>, GroupError> {
    thread::scope(|scope| {
        let outputs = match gathered::run(scope, group, context, chunks)? {
            Gathered::Outputs(outputs) => outputs,
            Gathered::Unfit => return Ok(Some(Fallback::CommandFailed.refined(chunks))),
        };
        let _work = context.begin(WorkKind::Combine, 0);
        match &group.combine {
            Combine::Merge(how) => merge(how, context, outputs, sink)?,
            Combine::Numbers(kinds) => {
                let _ = numbers::combine(kinds, &texts(outputs)?, sink)?; // nothing is left to write
            }
            Combine::Through(command) => filter_outputs(command, context, outputs, sink)?,
            Combine::Totals(command) => return totals(command, context, outputs, sink),
            // `Concatenate` and `Adjoin` are handled by `ordered`, `Counts` by `sorted`.
            Combine::Concatenate | Combine::Adjoin { .. } | Combine::Counts { .. } => {}
        }
        Ok(None)
    })
}

/// Runs a command that opens the outputs by name and merges them. Copies the merged lines to
/// `sink`, or only the first `how.first` ones if that is set.
fn merge(
    how: &Merge,
    context: &Context<'_>,
    outputs: Vec<Output>,
    sink: &mut Sink<'_>,
) -> Result<(), GroupError> {
    let ready = outputs.into_iter().map(Output::ready).collect::<Result<Vec<_>, _>>()?;
    let pipes: Vec<&File> = ready.iter().map(Ready::pipe).collect();
    let was_read = merge_files(how, context, &pipes, sink)?;
    for output in ready {
        output.finish(was_read)?;
    }
    Ok(())
}

/// Runs a command that opens files or pipes by name and merges their lines. Copies the merged lines to `sink`, or
/// only the first `how.first` ones if that is set. Returns whether the command has read everything.
///
/// # Errors
/// Returns an error if the command cannot be started, or the output cannot be written.
pub(super) fn merge_files(
    how: &Merge,
    context: &Context<'_>,
    files: &[&File],
    sink: &mut Sink<'_>,
) -> Result<bool, GroupError> {
    let mut command = how.command.clone();
    let limit = getrlimit(Resource::Nofile).current;
    command.arguments.extend(batch_size(&command.arguments, files.len(), limit));
    let own = std::process::id();
    // The command opens each file through this link, so no process has to inherit it.
    let link = |file: &&File| format!("/proc/{own}/fd/{}", file.as_raw_fd());
    command.arguments.extend(files.iter().map(link));
    let (stdout, writer) = pipe::wide()?;
    let nothing = File::open("/dev/null")?;
    let streams = [Some(&nothing), Some(&writer), None];
    let pid = context.launcher.start(&command, streams, RetryLimit::Long)?;
    drop(writer);
    let wanted = filter::copy(stdout, &mut FirstLines::new(sink, how.first));
    let reaped = context.launcher.wait(pid)?;
    context.tally.used(command.stage, Cost::of_process(reaped.usage.cpu()));
    // If more lines were wanted, its output has ended before.
    let was_read = wanted?.is_continue();
    if was_read {
        context.tally.status(&command, reaped.status);
    }
    Ok(was_read)
}

/// Returns an option by which `sort` merges that many files at once, if it needs one to do so. `limit` is that of open
/// files; `None` if there is none.
fn batch_size(arguments: &[String], files: usize, limit: Option<u64>) -> Option<String> {
    let is_given = arguments.iter().any(|argument| argument.starts_with("--batch-size"));
    let is_possible = limit.is_none_or(|limit| files as u64 + OTHER_FILES <= limit);
    (files > DEFAULT_BATCH && !is_given && is_possible).then(|| format!("--batch-size={files}"))
}

/// Passes the workers' totals to a command that adds them up, and copies its output to `sink`.
/// Returns the reason to fall back if the sums would not be exact, and `None` otherwise.
fn totals(
    command: &Command,
    context: &Context<'_>,
    outputs: Vec<Output>,
    sink: &mut Sink<'_>,
) -> Result<Option<Fallback>, GroupError> {
    let texts = texts(outputs)?;
    if !Totals::are_exact(texts.iter().map(Vec::as_slice)) {
        return Ok(Some(Fallback::InexactTotals));
    }
    pass_through(command, context, sink, |stdin| {
        for text in &texts {
            let _ = stdin.write(text)?; // the exit status shows whether the command has read enough
        }
        Ok(Continue(()))
    })?;
    Ok(None)
}

fn texts(outputs: Vec<Output>) -> Result<Vec<Vec<u8>>, GroupError> {
    outputs.into_iter().map(Output::read_to_end).collect()
}

/// Passes the concatenated outputs through a command to `sink`.
fn filter_outputs(
    command: &Command,
    context: &Context<'_>,
    outputs: Vec<Output>,
    sink: &mut Sink<'_>,
) -> Result<(), GroupError> {
    pass_through(command, context, sink, |stdin| {
        for output in outputs {
            let _ = output.copy_to(stdin)?; // the exit status shows whether the command has read enough
        }
        Ok(Continue(()))
    })
}

/// Runs a command, lets `feed` write its standard input, and copies its output to `sink`.
///
/// # Errors
/// Returns an error if the command cannot be started or fails, or the output cannot be written.
fn pass_through(
    command: &Command,
    context: &Context<'_>,
    sink: &mut Sink<'_>,
    feed: impl FnOnce(&mut FilterInput) -> Result<ControlFlow<()>, GroupError>,
) -> Result<(), GroupError> {
    let status = run_filter(command, context, sink, feed)?;
    if !has_succeeded(status, command.status) {
        let statuses = vec![status];
        let ended = Ended { statuses, costs: Vec::new(), succeeded: false, stderr: Vec::new() };
        return Err(GroupError::Failed(Box::new(ended)));
    }
    context.tally.status(command, status);
    Ok(())
}

/// Runs a command, lets `feed` write its standard input, and copies its output to `sink`. Returns how the command
/// ended.
///
/// # Errors
/// Returns an error if the command cannot be started, or the output cannot be written.
pub(super) fn run_filter(
    command: &Command,
    context: &Context<'_>,
    sink: &mut Sink<'_>,
    feed: impl FnOnce(&mut FilterInput) -> Result<ControlFlow<()>, GroupError>,
) -> Result<ExitStatus, GroupError> {
    let (filter, stdin, stdout) = Filter::start(command, context)?;
    let fed = filter.copy_while(stdout, sink, stdin, feed);
    let reaped = filter.wait()?;
    let _ = fed?; // `feed` never returns `Break`
    Ok(reaped.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_merged_at_once() {
        let size = |arguments: &[&str], files, limit| {
            let arguments: Vec<String> = arguments.iter().map(|&it| it.to_owned()).collect();
            batch_size(&arguments, files, limit)
        };
        assert_eq!(size(&["-m", "-r"], 16, None), None, "the default of sort is enough");
        assert_eq!(size(&["-m", "-r"], 17, None), Some("--batch-size=17".to_owned()));
        assert_eq!(size(&["-m"], 64, Some(72)), Some("--batch-size=64".to_owned()));
        assert_eq!(size(&["-m"], 64, Some(71)), None, "sort would refuse the option");
        assert_eq!(size(&["-m", "--batch-size=8"], 64, None), None, "the given option is kept");
    }
}

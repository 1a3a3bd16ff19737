//! Runs groups that end in a sort inside contend.

use std::fs::File;
use std::io;
use std::ops::ControlFlow::{self, Continue};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use contend_record::run::WorkKind;

use super::chunk_input::ChunkInput;
use super::ended::Ended;
use super::entry::Entry;
use super::error::GroupError;
use super::fallback::Fallback;
use super::input::{Chunk, ChunkData, ChunkSource, Fed, NextChunk, Rest};
use super::instance::Instance;
use super::locale::LocaleVariants;
use super::merge::merge;
use super::order::{BYTES, Equal, Kind};
use super::processes::{BLOCK_BYTES, Processes};
use super::reorder::{Combiner, ReorderBuffer, Stopped};
use super::sink::{FirstLines, OutputSink};
use super::sorter::{Sorted, Sorter, write};
use super::threads::{self, RetryLimit, is_scarcity};
use super::{Context, size};
use crate::plan::ir::{Combine, Command, Group, LineOrder};

/// The approximate size in bytes of a range, which one thread merges at a time.
const RANGE_BYTES: usize = 1 << 20;

/// A sort inside contend, and the commands before it.
#[derive(Debug)]
pub(super) struct Task<'g> {
    /// The commands before the sort.
    before: &'g [Command],
    sort: &'g Command,
    order: LineOrder,
    equal: Equal,
    /// Number of lines to write from the beginning, or `None` for all.
    first: Option<u64>,
    /// The directory for lines that do not fit into memory, if the pipeline names one.
    folder: Option<&'g str>,
}

/// Returns the task of a group that ends in a sort inside contend, or `None` for other groups.
pub(super) fn task(group: &Group) -> Option<Task<'_>> {
    let (order, equal, first, folder) = match &group.combine {
        Combine::Merge(merge) => {
            let order = merge.lines.clone()?;
            let equal = if order.unique { Equal::One } else { Equal::Kept };
            (order, equal, merge.first, &merge.folder)
        }
        Combine::Counts { reverse, folder } => {
            let order = LineOrder { reverse: *reverse, ..BYTES };
            (order, Equal::Counted, None, folder)
        }
        _ => return None,
    };
    let at = group.each.iter().rposition(|command| command.sorts)?;
    let (before, sort) = (&group.each[..at], &group.each[at]);
    Some(Task { before, sort, order, equal, first, folder: folder.as_deref() })
}

impl Task<'_> {
    /// Returns the order of the output.
    pub(super) fn kind(&self) -> Kind<'_> {
        Kind { order: &self.order, equal: self.equal }
    }

    /// Returns the number of lines to write from the beginning, or `None` for all.
    pub(super) fn first(&self) -> Option<u64> {
        self.first
    }
}

/// Runs the commands before the sort over chunks, and writes their sorted output. Returns the
/// reason if the group must fall back, or `None` on success.
///
/// # Errors
/// Returns an error in these cases:
///
/// - The input cannot be read, or the output cannot be written.
/// - A command cannot be started, or fails over chunks of a stream.
/// - Lines fit neither into memory nor on disk.
pub(super) fn run(
    task: &Task<'_>,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    output: &mut (impl OutputSink + Send),
) -> Result<Option<Fallback>, GroupError> {
    let sorted = threads::run_on_all(context.jobs, || gather(task, context, chunks));
    let sorted = sorted.into_iter().collect::<Result<Vec<_>, _>>();
    let mut sorted: Vec<Sorted> = match sorted {
        Err(GroupError::Failed(_)) if chunks.can_be_read_again() => {
            return Ok(Some(Fallback::CommandFailed.refined(chunks)));
        }
        Err(GroupError::Transfer(error)) if is_scarcity(&error) && chunks.can_be_read_again() => {
            return Ok(Some(Fallback::Scarcity));
        }
        sorted => sorted?,
    };
    // Without a chunk, the commands have not run.
    if chunks.is_stopped() || chunks.none_was_taken() && !chunks.has_rest() {
        return Ok(Some(Fallback::EmptyInput.refined(chunks)));
    }
    if chunks.has_rest() || chunks.has_returned() {
        sorted.push(gather_rest(task, context, chunks)?);
    }
    if sorted.iter().any(|sorted| sorted.has_doubtful_numbers) {
        if chunks.can_be_read_again() {
            return Ok(Some(Fallback::DoubtfulNumbers));
        }
        sort_elsewhere(task, context, sorted, output)?;
        return Ok(None);
    }
    context.tally.done_here(task.sort);
    if sorted.iter().all(|sorted| sorted.spilled.is_empty()) && task.first.is_none() {
        merge_ranges(task.kind(), context, &sorted, output)?;
    } else {
        let _work = context.begin(WorkKind::Merge, 0);
        merge_runs(task, sorted, output)?;
    }
    Ok(None)
}

/// Takes chunks until there are no more, and sorts the output of the commands over them. Stops the
/// other workers on an error, which includes a failure of the commands.
fn gather(
    task: &Task<'_>,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
) -> Result<Sorted, GroupError> {
    let piece = size::piece(context, chunks);
    let variants = LocaleVariants::new(task.before);
    let start = |commands: &_| {
        let instance = Instance::start(context.launcher, commands, RetryLimit::Brief)?;
        Ok(instance.in_pieces(piece))
    };
    fill(task, context, chunks, (&variants, start), || match chunks.take(piece)? {
        NextChunk::Rejected => {
            stop_if_rereadable(chunks);
            Ok(None)
        }
        NextChunk::Chunk(chunk) => Ok(Some(chunk)),
        NextChunk::Eof => Ok(None),
    })
    .and_then(|(sorted, ended)| match ended {
        Some(ended) if !ended.succeeded => Err(GroupError::Failed(Box::new(ended))),
        _ => Ok(sorted),
    })
    .inspect_err(|_| chunks.stop())
}

/// Stops handing out chunks after the guard has rejected one, if the whole input can be read again.
fn stop_if_rereadable(chunks: &ChunkSource<'_>) {
    if chunks.can_be_read_again() {
        chunks.stop();
    }
}

/// Sorts the output of the commands over the rest of the input. They run as in the plain pipeline:
/// standard error is not captured, and their output is sorted even if they fail.
fn gather_rest(
    task: &Task<'_>,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
) -> Result<Sorted, GroupError> {
    let mut rest: Rest<'_> = chunks.rest();
    let variants = LocaleVariants::without_c(task.before);
    let start = |commands: &_| Instance::start_with_inherited_stderr(context.launcher, commands);
    let filled = fill(task, context, chunks, (&variants, start), || {
        let mut bytes = vec![0; BLOCK_BYTES];
        let read = io::Read::read(&mut rest, &mut bytes)?;
        bytes.truncate(read);
        let data = Some(bytes).filter(|bytes| !bytes.is_empty()).map(ChunkData::Bytes);
        Ok(data.map(|data| Chunk { index: 0, data }))
    });
    filled.map(|(sorted, _)| sorted)
}

/// Runs the commands before the sort over the chunks that `next` returns, and sorts their output.
/// Also returns how the commands ended, or `None` if none ran.
fn fill<'l>(
    task: &Task<'_>,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    (variants, start): (&LocaleVariants<'_>, impl Fn(&[Command]) -> io::Result<Instance<'l>>),
    mut next: impl FnMut() -> io::Result<Option<Chunk>>,
) -> Result<(Sorted, Option<Ended>), GroupError> {
    let folder = task.folder.map_or(context.folder, Path::new);
    let mut sorter = Sorter::new(task.kind(), context.sorting_bytes(), folder);
    if task.before.is_empty() {
        while let Some(chunk) = next()? {
            let _work = context.begin(WorkKind::Chunk, chunk.data.size() as u64);
            let Some(bytes) = chunks.bytes(chunk.data)? else {
                stop_if_rereadable(chunks);
                break;
            };
            sorter.push(&bytes)?;
            chunks.recycle(bytes);
        }
        let _work = context.begin(WorkKind::Sort, 0);
        return Ok((sorter.finish()?, None));
    }
    let finish = |mut instance: Instance<'_>, sorter: &mut Sorter<'_>| {
        let _ = instance.drain(&mut |bytes: &[u8]| Ok(Continue(sorter.push(bytes)?)))?; // the sorter never returns `Break`
        let ended = instance.end()?;
        context.tally.ended(task.before, &ended);
        Ok::<_, GroupError>(ended)
    };
    let (mut running, mut ended) = (None, None);
    let mut use_c = true;
    while let Some(chunk) = next()? {
        let _work = context.begin(WorkKind::Chunk, chunk.data.size() as u64);
        use_c = use_c && variants.use_c(chunks, &chunk.data)?; // never back to the C locale
        let started = match running.take() {
            Some((instance, was_for_c)) if was_for_c == use_c => Ok(instance),
            Some((instance, _)) => {
                let before = finish(instance, &mut sorter)?;
                if !before.succeeded {
                    ended = Some(before);
                    break;
                }
                start(variants.commands(use_c))
            }
            None => start(variants.commands(use_c)),
        };
        let instance = match started {
            // Another worker may have resources for this chunk.
            Err(error) if is_scarcity(&error) && !chunks.can_be_read_again() => {
                chunks.give_back(chunk);
                break;
            }
            started => started?,
        };
        let (instance, _) = running.insert((instance, use_c));
        let mut take = |bytes: &[u8]| Ok(Continue(sorter.push(bytes)?));
        if chunks.feed(&chunk.data, instance, &mut take)? == Fed::Rejected {
            stop_if_rereadable(chunks);
            break;
        }
    }
    if let Some((instance, _)) = running {
        let _work = context.begin(WorkKind::Finish, 0);
        ended = Some(finish(instance, &mut sorter)?);
    }
    let _work = context.begin(WorkKind::Sort, 0);
    Ok((sorter.finish()?, ended))
}

/// Passes the sorted lines to the sort command, which knows the order of their doubtful numbers,
/// and forwards its output.
fn sort_elsewhere(
    task: &Task<'_>,
    context: &Context<'_>,
    sorted: Vec<Sorted>,
    output: &mut impl OutputSink,
) -> Result<(), GroupError> {
    let commands = std::slice::from_ref(task.sort);
    let mut processes = Processes::start_with_inherited_stderr(context.launcher, commands)?;
    let mut first = FirstLines::new(output, task.first);
    let mut feed = |bytes: &[u8]| processes.feed(&mut ChunkInput::Bytes(bytes), &mut first);
    let fed = merge(runs(task, sorted), task.kind(), None, &mut feed)?;
    if fed.is_continue() && processes.drain(&mut first)?.is_continue() {
        context.tally.ended(commands, &processes.end()?);
    }
    Ok(())
}

/// Merges runs in one thread, because some are on disk or only the first lines are wanted.
fn merge_runs(
    task: &Task<'_>,
    sorted: Vec<Sorted>,
    output: &mut impl OutputSink,
) -> Result<(), GroupError> {
    let _ = merge(runs(task, sorted), task.kind(), task.first, output)?; // nothing is left to write
    Ok(())
}

fn runs<'o>(task: &'o Task<'_>, sorted: Vec<Sorted>) -> Vec<Run<'o>> {
    let kind = task.kind();
    let mut runs: Vec<Run<'_>> = Vec::new();
    for Sorted { text, entries, spilled, .. } in sorted {
        runs.extend(spilled.into_iter().map(Run::Disk));
        if !entries.is_empty() {
            let unread = Vec::new();
            runs.push(Run::Memory { kind, text, entries: entries.into_iter(), unread });
        }
    }
    runs
}

/// A source of sorted lines, as bytes.
enum Run<'o> {
    Disk(File),
    Memory { kind: Kind<'o>, text: Vec<u8>, entries: std::vec::IntoIter<Entry>, unread: Vec<u8> },
}

impl io::Read for Run<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Disk(file) => file.read(buffer),
            Self::Memory { kind, text, entries, unread } => {
                while unread.len() < buffer.len() {
                    let Some(entry) = entries.next() else { break };
                    write(unread, *kind, entry.line(text), || entry.count(text));
                }
                let read = unread.len().min(buffer.len());
                buffer[..read].copy_from_slice(&unread[..read]);
                unread.drain(..read);
                Ok(read)
            }
        }
    }
}

/// A combiner that writes merged ranges in order.
struct Merged<'a, T>(&'a mut T);

impl<T: OutputSink + Send> Combiner for Merged<'_, T> {
    fn piece(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, GroupError> {
        self.0.write(bytes)
    }

    fn chunk_ended(&mut self) -> Result<ControlFlow<()>, GroupError> {
        Ok(Continue(()))
    }
}

/// Merges runs in memory, in ranges that several threads process.
fn merge_ranges(
    kind: Kind<'_>,
    context: &Context<'_>,
    sorted: &[Sorted],
    output: &mut (impl OutputSink + Send),
) -> Result<(), GroupError> {
    let ranges = ranges(kind, sorted, context.jobs);
    let next = AtomicUsize::new(0);
    let reorder = ReorderBuffer::new(Merged(output), context.held_bytes(), false);
    let merge_some = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = ranges.get(index) else { return };
            let _work = context.begin(WorkKind::Merge, 0);
            let mut output = reorder.output(index);
            let runs = sorted.iter().zip(range);
            let runs =
                runs.map(|(run, &(start, end))| (&run.entries[start..end], run.text.as_slice()));
            let merged = merge_range(kind, runs.collect());
            if output.take(&merged).is_break() {
                return;
            }
            output.complete(Chunk { index, data: ChunkData::Bytes(Vec::new()) }, None);
        }
    };
    threads::run_on_all(context.jobs.min(ranges.len()), merge_some);
    match reorder.finish().stopped {
        Some(Stopped::Broken(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Divides all runs in memory at the same lines into ranges of about equal size, so that all lines
/// of a range come before those of the next one. Returns, for each range, the index of its first
/// line in each run, and the index after its last one.
fn ranges(kind: Kind<'_>, sorted: &[Sorted], jobs: usize) -> Vec<Vec<(usize, usize)>> {
    let bytes: usize = sorted.iter().map(|run| run.text.len() + run.entries.len()).sum();
    let count = (bytes / RANGE_BYTES).max(jobs);
    let Some(longest) = sorted.iter().max_by_key(|run| run.entries.len()) else {
        return Vec::new();
    };
    let step = longest.entries.len().div_ceil(count).max(1);
    let borders = longest.entries.iter().step_by(step).skip(1).map(|border| {
        let place = |run: &Sorted| {
            run.entries.partition_point(|entry| {
                entry.compare(&run.text, border, &longest.text, kind).is_lt()
            })
        };
        sorted.iter().map(place).collect::<Vec<_>>()
    });
    let ends = sorted.iter().map(|run| run.entries.len()).collect();
    let borders: Vec<Vec<usize>> =
        std::iter::once(vec![0; sorted.len()]).chain(borders).chain([ends]).collect();
    let ranges = borders.windows(2);
    ranges.map(|pair| pair[0].iter().copied().zip(pair[1].iter().copied()).collect()).collect()
}

/// Returns the merged lines of one range of the runs.
fn merge_range(kind: Kind<'_>, mut runs: Vec<(&[Entry], &[u8])>) -> Vec<u8> {
    let mut merged = Vec::with_capacity(RANGE_BYTES + RANGE_BYTES / 4);
    // The previous line and its number of occurrences, if equal lines are merged.
    let mut last: Option<(&[u8], u64)> = None;
    loop {
        let mut best: Option<usize> = None;
        for (index, (entries, text)) in runs.iter().enumerate() {
            let Some(entry) = entries.first() else { continue };
            let is_before = best.is_none_or(|best| {
                entry.compare(text, &runs[best].0[0], runs[best].1, kind).is_lt()
            });
            if is_before {
                best = Some(index);
            }
        }
        let Some(best) = best else { break };
        let (entries, text) = &mut runs[best];
        let (entry, text) = (entries[0], *text);
        *entries = &entries[1..];
        let line = entry.line(text);
        match kind.equal {
            Equal::Kept => write(&mut merged, kind, line, || 1),
            Equal::One | Equal::Counted => match &mut last {
                Some((before, count)) if *before == line => *count += entry.count(text),
                _ => {
                    if let Some((before, count)) = last.replace((line, entry.count(text))) {
                        write(&mut merged, kind, before, || count);
                    }
                }
            },
        }
    }
    if let Some((line, count)) = last {
        write(&mut merged, kind, line, || count);
    }
    merged
}

#[cfg(test)]
mod tests {
    use crate::plan::ir::Merge;

    use super::super::testing::{Ran, Setting, command, file_input, group, shell, stream_input};
    use super::*;

    /// Returns a group that runs `sort`, with `-u` if `unique` is true, after the commands in
    /// `before`. If `first` is given, only that many lines are wanted.
    fn sort(before: &[Command], unique: bool, first: Option<u64>) -> Group {
        let mut arguments = if unique { vec!["-u"] } else { Vec::new() };
        let mut sort = command("sort", &arguments);
        sort.sorts = true;
        sort.variables = vec![("LC_ALL".to_owned(), "C".to_owned())];
        arguments.push("-m");
        let lines = Some(LineOrder { unique, ..BYTES });
        let merge = Merge { command: command("sort", &arguments), lines, first, folder: None };
        let mut group = group(sort.clone(), Combine::Merge(merge));
        group.any_order = true;
        group.each = before.iter().cloned().chain([sort]).collect();
        group.serial.clone_from(&group.each);
        if let Some(first) = first {
            group.serial.push(command("head", &["-n", &first.to_string()]));
        }
        group
    }

    fn text() -> String {
        let numbers = (0..2000_u32).map(|number| (number.wrapping_mul(7919) % 1009).to_string());
        numbers.flat_map(|number| [number, "\n".to_owned()]).collect()
    }

    fn sorted_lines(text: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn chunks_are_sorted_and_merged_here() {
        let text = text();
        for before in [vec![], vec![command("cat", &[])]] {
            for input in [file_input(&text), stream_input(&text)] {
                let setting = Setting { chunk_bytes: Some(999), ..Setting::default() };
                let Ran { result, output, notes, .. } =
                    setting.run(&sort(&before, false, None), input);
                assert!(result.is_ok() && notes.is_empty(), "{notes:?}");
                assert!(output.lines().eq(sorted_lines(&text)));
            }
        }
    }

    #[test]
    fn lines_beyond_the_memory_limit_are_spilled_and_merged() {
        let text = text();
        let setting = Setting { memory: 16 << 10, chunk_bytes: Some(999), ..Setting::default() };
        let Ran { result, output, .. } = setting.run(&sort(&[], false, None), file_input(&text));
        assert!(result.is_ok());
        assert!(output.lines().eq(sorted_lines(&text)));
        let left = std::fs::read_dir(setting.folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "temporary files have no names");
    }

    #[test]
    fn unique_lines_and_the_first_ones() {
        let text = text();
        let mut unique = sorted_lines(&text);
        unique.dedup();
        let Ran { output, .. } = Setting::default().run(&sort(&[], true, None), file_input(&text));
        assert!(output.lines().eq(unique.iter().copied()));
        let Ran { output, .. } =
            Setting::default().run(&sort(&[], false, Some(3)), file_input(&text));
        assert!(output.lines().eq(sorted_lines(&text).into_iter().take(3)));
    }

    #[test]
    fn commands_that_fail_before_the_sort_are_run_over_all() {
        let text = text();
        let before = [shell("cat; exit 3")];
        let Ran { result, output, notes, .. } =
            Setting::default().run(&sort(&before, false, None), file_input(&text));
        assert!(result.is_ok());
        assert!(output.lines().eq(sorted_lines(&text)));
        let why = Fallback::CommandFailed.to_string();
        assert!(notes.iter().any(|note| note.ends_with(&why)), "{notes:?}");
    }

    #[test]
    fn nothing_to_sort_runs_the_command_once() {
        let Ran { result, output, notes, .. } =
            Setting::default().run(&sort(&[], false, None), file_input(""));
        assert!(result.is_ok() && output.is_empty());
        let why = Fallback::EmptyInput.to_string();
        assert!(notes.iter().any(|note| note.ends_with(&why)), "{notes:?}");
    }

    #[test]
    fn ranges_hold_every_line_once() {
        let kind = Kind { order: &BYTES, equal: Equal::Kept };
        let sorted: Vec<Sorted> = ["b\nd\nf\n", "a\nd\nz\n", ""]
            .iter()
            .map(|text| {
                let mut sorter = Sorter::new(kind, 1 << 20, Path::new("/tmp"));
                sorter.push(text.as_bytes()).expect("memory");
                sorter.finish().expect("memory")
            })
            .collect();
        for jobs in 1..5 {
            let ranges = ranges(kind, &sorted, jobs);
            for (run, sorted) in sorted.iter().enumerate() {
                let mut at = 0;
                for range in &ranges {
                    assert_eq!(range[run].0, at);
                    at = range[run].1;
                }
                assert_eq!(at, sorted.entries.len());
            }
        }
    }
}

//! Runs a group over a part of its files, and combines the outputs of all parts. The parts may run on different
//! machines that read the same files.
//!
//! ```text
//! files ── part 0 ── run ── output 0 ─┐
//!       ── part 1 ── run ── output 1 ─┼─ combine ── output of the group
//!       ── part 2 ── run ── output 2 ─┘
//! ```
//!
//! A part is a range of the concatenated files, and owns the records that begin in it: it runs from the first
//! position at or after the start of the range where the input may be cut, to the first one at or after its end. So the
//! ranges can be chosen from the size of the files alone, and a worker reads only a little beyond its own.
//!
//! A part runs as any group does, over chunks on all CPUs of its machine, but it cannot fall back to one run
//! over the whole input: it is [refused](PartEnd::Refused) instead.

use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::ops::ControlFlow::Continue;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::boundary_merger::BoundaryMerger;
use super::combine::{merge_files, run_filter};
use super::error::GroupError;
use super::fallback::Fallback;
use super::group::over_chunks;
use super::input::{ChunkSource, Input, LOOK_BACK_BYTES, Slice, range_of};
use super::merge::merge;
use super::progress::Progress;
use super::reorder::Combiner as _;
use super::sink::Sink;
use super::{Context, filter, numbers, sorted};
use crate::plan::ir::{Combine, Cut, Group, Merge};

/// How a part ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartEnd {
    /// Its output is complete.
    Complete,
    /// No record begins in its range, so that no command has run, and it has no output.
    NoRecord,
    /// The group cannot run at present, for the given reason. Another attempt may succeed.
    Failed(String),
    /// A command failed, for the given reason. That may be due to the input, so that the group must run once over all of it,
    /// or to the machine.
    CommandFailed(String),
    /// The group must run once over its whole input, for the given reason.
    Refused(String),
}

/// Returns the group that runs over each part.
///
/// # Errors
/// Returns the reason if the group cannot run over parts.
pub fn of_part(group: &Group) -> Result<Group, &'static str> {
    if !group.cut.is_local() {
        return Err("where its input may be cut depends on all bytes before");
    }
    match &group.combine {
        Combine::Totals(_) => Err("its totals may be rounded"),
        // The command gets the outputs of all parts.
        Combine::Through(_) => Ok(Group { combine: Combine::Concatenate, ..group.clone() }),
        Combine::Concatenate
        | Combine::Adjoin { .. }
        | Combine::Merge(_)
        | Combine::Counts { .. }
        | Combine::Numbers(_) => Ok(group.clone()),
    }
}

/// Divides `bytes` bytes into at most `count` ranges of about equal size, none of which is empty.
pub fn ranges(bytes: u64, count: u64) -> Vec<Range<u64>> {
    let count = count.clamp(1, bytes.max(1));
    let border = |index: u64| {
        let place = u128::from(bytes) * u128::from(index) / u128::from(count);
        u64::try_from(place).unwrap_or(bytes)
    };
    (0..count).map(|index| border(index)..border(index + 1)).filter(|it| !it.is_empty()).collect()
}

/// Returns the slices of the records that belong to a part, which is a range of the concatenated files. `sizes` are the sizes
/// of all files. Only the files that the part needs are opened, by `open`, which gets the range of their indices.
///
/// # Errors
/// Returns an error if the files cannot be opened or read.
pub(super) fn slices_of<E: From<io::Error>>(
    cut: &Cut,
    sizes: &[u64],
    part: Range<u64>,
    open: impl Fn(Range<usize>) -> Result<Vec<Slice>, E>,
) -> Result<Vec<Slice>, E> {
    let ends: Vec<u64> = sizes
        .iter()
        .scan(0, |end, size| {
            *end += size;
            Some(*end)
        })
        .collect();
    let from = part.start.saturating_sub(LOOK_BACK_BYTES);
    let first = ends.partition_point(|&end| end <= from).min(ends.len().saturating_sub(1));
    let before = first.checked_sub(1).map_or(0, |index| ends[index]);
    let mut count = ends[first..].partition_point(|&end| end < part.end) + 1;
    loop {
        let last = ends.len().min(first + count);
        let range = part.start - before..part.end - before;
        let (slices, is_at_end) = range_of(open(first..last)?, cut, range)?;
        // The last record may go on in the next file.
        if !is_at_end || last == ends.len() {
            return Ok(slices.into_iter().map(Slice::complete).collect::<Result<_, _>>()?);
        }
        count *= 2;
    }
}

/// Runs a group over the slices of a part, as [`of_part`] returns it.
///
/// # Errors
/// Returns an error if the files cannot be read, a command cannot be started, or the output cannot be written.
pub(super) fn run(
    group: &Group,
    context: &Context<'_>,
    slices: Vec<Slice>,
    output: File,
) -> Result<PartEnd, GroupError> {
    if slices.is_empty() {
        return Ok(PartEnd::NoRecord);
    }
    let input = Input::Files(slices);
    let longest = usize::try_from(context.memory / 4).unwrap_or(usize::MAX);
    let chunks = ChunkSource::new(context.launcher, input, &group.cut, &group.guard)
        .with_records_up_to(longest)
        .counted(context.tally.input());
    let sink = Sink::new(output, None, context.launcher);
    Ok(match over_chunks(group, context, &chunks, sink)? {
        Progress::Done => PartEnd::Complete,
        Progress::StartAgain(_, why @ Fallback::Scarcity) => PartEnd::Failed(why.to_string()),
        Progress::StartAgain(_, why @ Fallback::CommandFailed) => {
            PartEnd::CommandFailed(why.to_string())
        }
        Progress::StartAgain(_, why) => PartEnd::Refused(why.to_string()),
    })
}

/// Largest number of files that are merged at once, so that a process may open them.
const MAX_MERGED: usize = 128;

/// Combines the outputs of all parts, whose paths are in order, into the output of the group.
///
/// # Errors
/// Returns an error if an output is not one of the group's, a command cannot be started or fails, or the
/// output cannot be written.
pub(super) fn combine(
    group: &Group,
    context: &Context<'_>,
    outputs: &[PathBuf],
    output: File,
) -> Result<(), GroupError> {
    let sink = Sink::for_group(output, context);
    let reader_left = sink.reader_left();
    combine_into(group, context, outputs, sink)?;
    if reader_left.load(Ordering::Relaxed) {
        context.tally.cut_off(group);
    }
    Ok(())
}

fn combine_into(
    group: &Group,
    context: &Context<'_>,
    outputs: &[PathBuf],
    mut sink: Sink<'_>,
) -> Result<(), GroupError> {
    let opened = || outputs.iter().map(File::open);
    let folder = match &group.combine {
        Combine::Merge(Merge { folder: Some(folder), .. })
        | Combine::Counts { folder: Some(folder), .. } => Path::new(folder),
        _ => context.folder,
    };
    if let Some(task) = sorted::task(group).filter(|_| group.any_order) {
        return in_rounds((context, folder), opened(), &mut sink, |files, sink| {
            let _ = merge(files, task.kind(), task.first(), sink)?; // nothing is left to write
            Ok(())
        });
    }
    match &group.combine {
        Combine::Concatenate | Combine::Adjoin { .. } | Combine::Counts { .. } => {
            let mut merger = BoundaryMerger::new(sink, &group.combine);
            for output in opened() {
                let copied = filter::copy(output?, &mut |bytes: &[u8]| merger.piece(bytes))?;
                if copied.is_break() || merger.chunk_ended()?.is_break() {
                    return Ok(());
                }
            }
            let _ = merger.end()?; // nothing is left to write
        }
        Combine::Merge(how) => {
            in_rounds((context, folder), opened(), &mut sink, |files, sink| {
                merge_files(how, context, &files.iter().collect::<Vec<_>>(), sink)?;
                Ok(())
            })?;
        }
        Combine::Numbers(kinds) => {
            let texts: Vec<_> = outputs.iter().map(fs::read).collect::<Result<_, _>>()?;
            let _ = numbers::combine(kinds, &texts, &mut sink)?; // nothing is left to write
        }
        Combine::Through(command) | Combine::Totals(command) => {
            let status = run_filter(command, context, &mut sink, |stdin| {
                for output in opened() {
                    let _ = filter::copy(output?, stdin)?; // the exit status shows whether it has read enough
                }
                Ok(Continue(()))
            })?;
            // As in a shell, it may fail because its reader has had enough.
            context.tally.status(command, status);
        }
    }
    Ok(())
}

/// Merges files into `sink` with `merge`, at most [`MAX_MERGED`] at once: more of them in several rounds, by way of
/// temporary files in a folder. Files next to each other are merged first, so that equal lines keep their order.
fn in_rounds(
    (context, folder): (&Context<'_>, &Path),
    files: impl Iterator<Item = io::Result<File>>,
    sink: &mut Sink<'_>,
    merge: impl Fn(Vec<File>, &mut Sink<'_>) -> Result<(), GroupError>,
) -> Result<(), GroupError> {
    let mut files = files.peekable();
    let mut merged = Vec::new();
    loop {
        let batch: Vec<File> = files.by_ref().take(MAX_MERGED).collect::<Result<_, _>>()?;
        if merged.is_empty() && files.peek().is_none() {
            return merge(batch, sink);
        }
        let mut file = tempfile::tempfile_in(folder)?;
        merge(batch, &mut Sink::new(file.try_clone()?, None, context.launcher))?;
        file.rewind()?;
        merged.push(Ok(file));
        if files.peek().is_none() {
            return in_rounds((context, folder), merged.into_iter(), sink, merge);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use std::cell::Cell;

    use super::super::input::NextChunk;
    use super::super::testing::{self, Setting, file, read};
    use super::*;
    use crate::plan::ir::{Guard, Plan, Records, Step};
    use crate::plan::testing::planned;

    /// Pipelines whose plan consists of one group, with every kind of combination that parts can have.
    const PIPELINES: &[&str] = &[
        "tr a-z A-Z",
        "grep -v a | cut -c1-3",
        "grep -c b",
        "wc -l",
        "wc -lwc",
        "uniq",
        "uniq -c",
        "sort",
        "sort -u",
        "sort -k1,1",
        "sort -h",
        "sort -rn | head -n 3",
        "tr a b | sort | uniq -c",
        "grep a | head -n 2",
        "grep x",
    ];

    fn group_of(text: &str) -> Group {
        let Plan { steps, .. } = planned(text);
        match <[Step; 1]>::try_from(steps) {
            Ok([Step::Parallel(group)]) => group,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Returns the output of a pipeline in a shell, from a pipe: `wc` pads its numbers there.
    fn expected(pipeline: &str, input: &str) -> String {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("cat | {pipeline}")]).env("LC_ALL", "C");
        let output = command.stdin(Stdio::from(file(input))).output().expect("it starts");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Returns the combined output of parts of files with the given texts; `None` if a part is refused.
    fn over_parts(group: &Group, texts: &[&str], count: u64) -> Option<String> {
        let setting = Setting::default();
        let part = of_part(group).expect("a group that runs over parts");
        let sizes: Vec<u64> = texts.iter().map(|text| text.len() as u64).collect();
        let bytes: u64 = sizes.iter().sum();
        let folder = tempfile::tempdir().expect("a folder");
        let mut outputs = Vec::new();
        for (index, range) in ranges(bytes, count).into_iter().enumerate() {
            let open = |range: Range<usize>| {
                let slice = |text: &&str| Slice::from_here(file(text));
                texts[range].iter().map(slice).collect::<io::Result<Vec<_>>>()
            };
            let slices = slices_of(&group.cut, &sizes, range, open).expect("readable files");
            let path = folder.path().join(index.to_string());
            let output = File::create(&path).expect("a file");
            let end = setting.with(&part, |context| run(&part, context, slices, output));
            match end.expect("the part runs") {
                PartEnd::Complete => outputs.push(path),
                PartEnd::NoRecord => {}
                PartEnd::Refused(_) | PartEnd::CommandFailed(_) | PartEnd::Failed(_) => {
                    return None;
                }
            }
        }
        let output = tempfile::tempfile().expect("a file");
        let again = output.try_clone().expect("a descriptor");
        let combined = setting.with(group, |context| combine(group, context, &outputs, output));
        combined.expect("the outputs can be combined");
        Some(read(again))
    }

    #[test]
    fn parts_have_the_output_of_the_pipeline() {
        let mut random = fastrand::Rng::with_seed(1);
        for pipeline in PIPELINES {
            let group = group_of(pipeline);
            let mut complete = 0;
            for _ in 0..15 {
                let line = |random: &mut fastrand::Rng| {
                    let words =
                        ["a", "b", "ab", "a b", "3 a", "12 b", "-1", "", "x y z", "bbbbbbbb"];
                    words[random.usize(..words.len())].to_owned() + "\n"
                };
                let mut texts: Vec<String> = Vec::new();
                for _ in 0..random.usize(1..4) {
                    let lines = random.usize(0..12);
                    texts.push((0..lines).map(|_| line(&mut random)).collect());
                }
                if random.bool() {
                    let last = texts.last_mut().expect("a text");
                    last.truncate(last.len().saturating_sub(1));
                }
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                if texts.concat().is_empty() {
                    continue;
                }
                let count = random.u64(1..7);
                if let Some(output) = over_parts(&group, &texts, count) {
                    let whole = expected(pipeline, &texts.concat());
                    assert_eq!(output, whole, "{pipeline}: {count} parts of {texts:?}");
                    complete += 1;
                }
            }
            assert!(complete >= 5, "{pipeline}: {complete} runs over parts");
        }
    }

    #[test]
    fn more_outputs_than_can_be_merged_at_once_are_merged_in_rounds() {
        let lines: Vec<String> = (0..700).map(|number| format!("{}\n", number * 7 % 700)).collect();
        let input = lines.concat();
        for pipeline in ["sort -n", "sort -k1,1", "sort -h"] {
            let group = group_of(pipeline);
            let output = over_parts(&group, &[&input], MAX_MERGED as u64 * 2 + 10);
            assert_eq!(output.expect("it is complete"), expected(pipeline, &input), "{pipeline}");
        }
    }

    #[test]
    fn only_the_files_of_a_part_are_opened() {
        let cut = Cut::between(Records::Lines);
        let texts = ["a\nb\n", "", "c\n", "d", "e", "f\ng\n", "h\n"];
        let sizes = texts.map(|text| text.len() as u64);
        for (part, opened, expected) in [
            (0..2, 0..1, "a\n"),
            (2..4, 0..4, "b\n"),
            (4..6, 0..6, "c\n"),
            (6..7, 2..6, "def\n"),
            (7..9, 2..6, ""),
            (9..13, 4..7, "g\nh\n"),
        ] {
            let found = Cell::new(0..0);
            let open = |range: Range<usize>| {
                found.set(range.clone());
                texts[range]
                    .iter()
                    .map(|text| Slice::from_here(file(text)))
                    .collect::<io::Result<_>>()
            };
            let slices = slices_of(&cut, &sizes, part.clone(), open).expect("readable files");
            let launcher = testing::launcher();
            let chunks = ChunkSource::new(&launcher, Input::Files(slices), &cut, &Guard::NONE);
            let text = match chunks.take(100).expect("readable") {
                NextChunk::Chunk(chunk) => {
                    chunks.bytes(chunk.data).expect("readable").unwrap_or_default()
                }
                _ => Vec::new(),
            };
            assert_eq!(String::from_utf8_lossy(&text), expected, "{part:?}");
            assert_eq!(found.take(), opened, "{part:?}");
        }
    }

    #[test]
    fn a_part_that_would_fall_back_is_refused() {
        let group = Group {
            guard: crate::plan::ir::Guard { terminated: true, ..crate::plan::ir::Guard::NONE },
            ..group_of("tr a-z A-Z")
        };
        assert_eq!(over_parts(&group, &["a\nb\nc"], 2), None);
        assert_eq!(over_parts(&group, &["a\nb\nc\n"], 2).as_deref(), Some("A\nB\nC\n"));
    }

    #[test]
    fn some_groups_have_no_parts() {
        assert!(of_part(&group_of("awk '{ s += $1 } END { print s }' /etc/passwd")).is_err());
        let mut group = group_of("tr a b");
        group.cut.differ = Some(crate::plan::ir::Key::Whole);
        assert!(of_part(&group).is_err());
    }

    #[test]
    fn ranges_cover_all_bytes() {
        for (bytes, count) in [(0, 3), (1, 3), (10, 3), (10, 0), (u64::MAX, 7)] {
            let ranges = ranges(bytes, count);
            assert_eq!(ranges.iter().map(|it| it.end - it.start).sum::<u64>(), bytes);
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
            assert!(ranges.len() as u64 <= count.max(1));
        }
    }
}

//! Determines the number of bytes that passed through each pipe.
//!
//! The kernel counts the bytes that a process reads and writes on all descriptors, so both sides of
//! each pipe are compared: a reader cannot have read more from the pipe than its writer has
//! written, and bytes that it has not read are still in the pipe. If a count was not read at the
//! stage's end, the neighbour's count completes it.

use std::time::Duration;

use contend_commands::behaviour;
use contend_record::pipe::{Boundary, Figure, Stage, WaitingSide};
use contend_sys::child::ExitStatus;
use contend_sys::procfs::Io;

use super::exactness;
use crate::observe::Wait;
use crate::pipeline::raw::FillSamples;
use crate::pipeline::stage::{MAX_STARTUP_READ_BYTES, RawStage};

/// Default capacity of a pipe, in bytes.
pub(super) const DEFAULT_PIPE_CAPACITY_BYTES: u64 = 64 * 1024;

/// Sets the bytes and calls of all stages, reconciles both sides of each pipe, and marks unproved
/// counts as approximate.
pub(super) fn reconcile(stages: &mut [Stage], raw: &[RawStage], fills: &[FillSamples]) {
    let mut supplied_bytes = None;
    for (stage, raw) in stages.iter_mut().zip(raw) {
        count(stage, raw, supplied_bytes);
        let alone = !raw.has_files || behaviour::writes_output_alone(&stage.command);
        supplied_bytes = stage.bytes_out.filter(|_| raw.io_exact && alone);
    }
    if let (Some(first), Some(raw)) = (stages.first_mut(), raw.first()) {
        drop_startup_reads(first, raw);
    }
    let counted: Vec<_> = stages.iter().map(|stage| (stage.bytes_in, stage.bytes_out)).collect();
    let mut writes_files = false;
    for index in (1..stages.len()).rev() {
        let (left, right) = stages.split_at_mut(index);
        let fills = fills.get(index - 1).copied().unwrap_or_default();
        let pipe = Pipe { writer: &raw[index - 1], reader: &raw[index], fills };
        writes_files = pipe.reconcile(&mut left[index - 1], &mut right[0], writes_files);
    }
    exactness::mark_unproved(stages, raw, &counted);
    // No reader's count could confirm the last stage's output.
    if let (Some(last), Some(raw)) = (stages.last_mut(), raw.last())
        && raw.has_files
        && raw.io_exact
        && !(behaviour::keeps_size(&last.command) && last.bytes_in == last.bytes_out)
    {
        last.mark_approximate(Figure::BytesOut);
    }
    if let (Some(last), Some(raw)) = (stages.last_mut(), raw.last())
        && mixes_output_with_files(last, raw)
    {
        last.bytes_out = None;
    }
}

/// Returns whether the count of a stage's writes says nothing about its output. That of a sort that
/// contend was attached to includes temporary files, and the size of its input is unknown.
fn mixes_output_with_files(stage: &Stage, raw: &RawStage) -> bool {
    raw.is_attached && raw.has_files && behaviour::sorts(&stage.command)
}

/// Sets a stage's counts from the kernel's, without the start-up reads and the temporary files of a
/// sort. `supplied_bytes` is the number of bytes written by the stage before, if known.
fn count(stage: &mut Stage, raw: &RawStage, supplied_bytes: Option<u64>) {
    // If the stage has read its named files completely, its input is their size. A sort also reads
    // its temporary files.
    let input = raw.io.and_then(|io| {
        let more = io.read_bytes.checked_sub(raw.named_bytes?)?;
        let all = more <= MAX_STARTUP_READ_BYTES || behaviour::sorts(&stage.command);
        raw.named_bytes.filter(|_| all)
    });
    let supplied_bytes = supplied_bytes.or(input);
    let temporary = raw.io.map_or(raw.temporary, |io| temporary(stage, raw, io, supplied_bytes));
    let io = raw.io.map(|io| Io {
        write_bytes: io.write_bytes.saturating_sub(temporary.write_bytes),
        writes: io.writes.saturating_sub(temporary.writes),
        ..io
    });
    let read = |io: Io| io.read_bytes.saturating_sub(raw.startup_reads.unwrap_or(0));
    stage.bytes_in = input.or(io.map(read));
    let all = behaviour::reads_all(&stage.command) && raw.status == Some(ExitStatus::Exited(0));
    if input.is_some() && !all {
        stage.mark_approximate(Figure::BytesIn);
    }
    stage.bytes_out = io.map(|io| io.write_bytes);
    stage.reads = io.map(|io| io.reads);
    stage.writes = io.map(|io| io.writes);
    let mean = |bytes: u64, calls: u64| (calls > 0).then(|| bytes as f64 / calls as f64);
    stage.mean_read_bytes = io.and_then(|io| mean(io.read_bytes, io.reads));
    stage.mean_write_bytes = io.and_then(|io| mean(io.write_bytes, io.writes));
    if !raw.io_exact {
        for figure in [Figure::BytesIn, Figure::BytesOut, Figure::Reads, Figure::Writes] {
            stage.mark_approximate(figure);
        }
    }
    // A shell reads a full buffer from a file, then seeks back to the end of the line.
    if let Some(size) = raw.input_file_bytes
        && !raw.has_files
        && stage.bytes_in > Some(size + MAX_STARTUP_READ_BYTES)
    {
        stage.bytes_in = Some(size);
        stage.mark_approximate(Figure::BytesIn);
    }
}

/// Returns the bytes and calls of a sort's temporary files. They were counted when the end of the
/// sort's input was noticed. If the sort had little left to do, that was too late, and the count
/// includes output. Therefore, the count is corrected by the size of the input, if that is known.
fn temporary(stage: &Stage, raw: &RawStage, io: Io, supplied_bytes: Option<u64>) -> Io {
    let Some(supplied_bytes) = supplied_bytes.filter(|_| behaviour::sorts(&stage.command)) else {
        return raw.temporary;
    };
    // The sort wrote no more than its input and a newline after the last line, so there are no
    // temporary files.
    if io.write_bytes <= supplied_bytes + 1 && !raw.has_files {
        Io::default()
    } else if raw.status == Some(ExitStatus::Exited(0)) && behaviour::keeps_size(&stage.command) {
        Io { write_bytes: io.write_bytes.saturating_sub(supplied_bytes), ..raw.temporary }
    } else {
        raw.temporary
    }
}

/// The observations of both sides of a pipe.
struct Pipe<'a> {
    writer: &'a RawStage,
    reader: &'a RawStage,
    fills: FillSamples,
}

impl Pipe<'_> {
    /// Reconciles the counts of the two sides. `reader_writes_files` is whether the reader is known
    /// to write to files as well. Returns whether the writer is known to write to files as well.
    fn reconcile(&self, from: &mut Stage, to: &mut Stage, reader_writes_files: bool) -> bool {
        if mixes_output_with_files(from, self.writer) {
            from.bytes_out = to.bytes_in;
        }
        if !self.writer.io_exact && self.reader.io_exact {
            from.bytes_out = from.bytes_out.max(to.bytes_in);
        }
        // The counts of an attached reader lack little, and its writer may write elsewhere as well.
        let may_lack_reads = !self.reader.io_exact && !self.reader.is_attached;
        if may_lack_reads && self.reader.ended >= self.writer.ended {
            to.bytes_in = to.bytes_in.max(from.bytes_out);
        }
        let (Some(written), Some(read)) = (from.bytes_out, to.bytes_in) else { return false };
        // The pipe held more bytes at once than the writer has written, so they came by splice, or
        // were written before contend attached.
        let spliced = self.fills.most > written && !self.writer.is_attached;
        if written > read {
            self.reconcile_unread(from, to);
        }
        let (Some(written), Some(read)) = (from.bytes_out, to.bytes_in) else { return false };
        if read > written && !spliced {
            let within_startup = read - written <= MAX_STARTUP_READ_BYTES;
            let other_sources = self.reader.has_files
                || reader_writes_files
                || to.children_cpu_seconds > 0.0
                || behaviour::sorts(&to.command);
            if within_startup || other_sources {
                to.bytes_in = Some(written);
                // The true count may be even lower, if the writer also wrote to standard error.
                let silent = behaviour::writes_output_alone(&from.command)
                    && !(written < MAX_MESSAGE_BYTES && behaviour::may_warn(&from.command))
                    && !self.writer_failed();
                if !silent && self.reader.startup_reads.is_none() {
                    from.mark_approximate(Figure::BytesOut);
                    to.mark_approximate(Figure::BytesIn);
                }
            }
            return false;
        }
        let capacity = self.fills.capacity.max(DEFAULT_PIPE_CAPACITY_BYTES);
        // A reader that makes no read calls moves its input by splice.
        let never_filled = self.fills.samples >= 3 && self.fills.most == 0;
        let reads = match self.reader.startup_reads {
            _ if never_filled => true,
            Some(_) => read > 0,
            None => read > MAX_STARTUP_READ_BYTES,
        };
        let is_complete = if self.reader.is_attached {
            !behaviour::writes_output_alone(&from.command)
        } else {
            self.reader.io_exact
        };
        let elsewhere = is_complete && reads && written > read + capacity;
        if elsewhere {
            from.bytes_out = Some(read);
            if self.reader.startup_reads.is_none() {
                from.mark_approximate(Figure::BytesOut);
                to.mark_approximate(Figure::BytesIn);
            }
        }
        elsewhere
    }

    fn writer_failed(&self) -> bool {
        !matches!(self.writer.status, Some(ExitStatus::Exited(0) | ExitStatus::Signaled(_)))
    }

    /// Reconciles the counts of a pipe if more was written than read. The reader may have ended
    /// early, and its count includes its libraries. The writer may have written less to the pipe
    /// than its count says, because it also writes to standard error or to files.
    fn reconcile_unread(&self, from: &mut Stage, to: &mut Stage) {
        let began_known = self.reader.startup_reads.is_some();
        let all_read =
            behaviour::reads_all(&to.command) && self.reader.status == Some(ExitStatus::Exited(0));
        if all_read && began_known && self.reader.io_exact {
            from.bytes_out = to.bytes_in;
            return;
        }
        if all_read || self.writer_failed() || !behaviour::writes_output_alone(&from.command) {
            from.mark_approximate(Figure::BytesOut);
        }
        if !began_known {
            to.mark_approximate(Figure::BytesIn);
        }
    }
}

/// Output size in bytes above which messages on standard error are negligible.
const MAX_MESSAGE_BYTES: u64 = 4096;

/// Upper bound of the number of bytes that a program typically reads from its libraries.
const LIBRARY_READ_BYTES: u64 = MAX_STARTUP_READ_BYTES / 4;

/// Removes start-up reads from the first stage's count. If the stage copied its input, it has read
/// as much as it wrote. Otherwise, unless the count is known to exclude libraries, marks the count
/// as approximate, and sets it to 0 if the stage has probably read only its libraries.
fn drop_startup_reads(stage: &mut Stage, raw: &RawStage) {
    let copied = behaviour::keeps_size(&stage.command) && raw.status == Some(ExitStatus::Exited(0));
    if let (true, Some(written), Some(read)) = (copied, stage.bytes_out, stage.bytes_in)
        && (written..=written + MAX_STARTUP_READ_BYTES).contains(&read)
        && raw.io_exact
    {
        stage.bytes_in = Some(written);
        return;
    }
    let is_known = raw.startup_reads.is_some() || raw.named_bytes == stage.bytes_in;
    if is_known {
        return;
    }
    let may_have_read = raw.input_is_file
        || raw.seen.waited(Wait::Starved) > Duration::ZERO
        || stage.bytes_in > Some(LIBRARY_READ_BYTES);
    if stage.bytes_in.is_some() {
        if !may_have_read {
            stage.bytes_in = Some(0);
        }
        stage.mark_approximate(Figure::BytesIn);
    }
    // Programs started by the stage also read their libraries.
    if stage.children_cpu_seconds > 0.0 || raw.several_processes {
        stage.mark_approximate(Figure::BytesIn);
        stage.mark_approximate(Figure::Reads);
    }
}

/// Returns the pipes between the stages, with their bytes, their fill, and the side that waited.
pub fn boundaries(stages: &[Stage], fills: &[FillSamples], wall: Duration) -> Vec<Boundary> {
    stages
        .windows(2)
        .zip(fills)
        .map(|(pair, fills)| {
            let (from, to) = (&pair[0], &pair[1]);
            let (bytes, bytes_approximate) = transferred_bytes(from, to, fills);
            Boundary {
                from: from.index,
                to: to.index,
                bytes,
                bytes_approximate,
                bytes_per_second: bytes
                    .filter(|_| !wall.is_zero())
                    .map(|bytes| bytes as f64 / wall.as_secs_f64()),
                mean_fill_bytes: fills.mean(),
                most_fill_bytes: (fills.samples > 0).then_some(fills.most),
                capacity_bytes: (fills.samples > 0).then_some(fills.capacity),
                writer_blocked_seconds: from.blocked_seconds,
                reader_starved_seconds: to.starved_seconds,
                waiting_side: waiting_side(from.blocked_seconds, to.starved_seconds, wall),
            }
        })
        .collect()
}

/// Returns the number of bytes that passed through the pipe between two stages, and whether the
/// number is approximate. The number is `None` if the counts of both sides are unknown. A proved
/// count takes precedence over an unproved one.
fn transferred_bytes(from: &Stage, to: &Stage, fills: &FillSamples) -> (Option<u64>, bool) {
    let (Some(written), Some(read)) = (from.bytes_out, to.bytes_in) else {
        let unproved = match from.bytes_out {
            Some(_) => from.is_approximate(Figure::BytesOut),
            None => to.is_approximate(Figure::BytesIn),
        };
        return (from.bytes_out.or(to.bytes_in), unproved);
    };
    // If the difference exceeds the pipe's capacity, one side moves bytes that the kernel does not
    // count.
    let uncounted = written.abs_diff(read) > fills.capacity.max(DEFAULT_PIPE_CAPACITY_BYTES);
    let likely = if uncounted { written.max(read) } else { written.min(read) };
    match [from.is_approximate(Figure::BytesOut), to.is_approximate(Figure::BytesIn)] {
        [false, false] => (Some(likely), uncounted),
        [false, true] => (Some(written), false),
        [true, false] => (Some(read), false),
        [true, true] => (Some(likely), true),
    }
}

/// Returns the side that waited more than 1.5 times as long as the other and for more than a
/// twentieth of the run, or [`WaitingSide::Neither`].
fn waiting_side(blocked: f64, starved: f64, wall: Duration) -> WaitingSide {
    let min_seconds = wall.as_secs_f64() / 20.0;
    if blocked > min_seconds && blocked > 1.5 * starved {
        WaitingSide::Writer
    } else if starved > min_seconds && starved > 1.5 * blocked {
        WaitingSide::Reader
    } else {
        WaitingSide::Neither
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::stage;
    use super::super::tests::raw_stage;
    use super::super::time::Pressure;
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the field has this type")]
    pub(in crate::pipeline::account) fn io(read_bytes: u64, write_bytes: u64) -> Option<Io> {
        Some(Io { read_bytes, write_bytes, reads: 1, writes: 1 })
    }

    fn bytes(raw: &[RawStage]) -> Vec<(Option<u64>, Option<u64>)> {
        let stages = named(&vec!["x"; raw.len()], raw);
        stages.iter().map(|s| (s.bytes_in, s.bytes_out)).collect()
    }

    pub(in crate::pipeline::account) fn named(commands: &[&str], raw: &[RawStage]) -> Vec<Stage> {
        let staged = commands.iter().zip(raw);
        let mut stages: Vec<_> =
            staged.map(|(command, raw)| stage(1, command, raw, Pressure::default())).collect();
        reconcile(&mut stages, raw, &[]);
        stages
    }

    #[test]
    fn a_sort_writes_as_many_bytes_as_it_reads() {
        let writer = RawStage { io: io(0, 1_000_000), ..raw_stage() };
        // The end of the sort's input was noticed when the sort had written all of its output, or a
        // part.
        for noted in [1_000_001, 400_000] {
            let temporary = Io { write_bytes: noted, writes: 1, ..Io::default() };
            let sort = RawStage { io: io(1_003_000, 1_000_001), temporary, ..raw_stage() };
            let stages = named(&["x", "sort -n"], &[writer.clone(), sort]);
            assert_eq!(
                (stages[1].bytes_in, stages[1].bytes_out),
                (Some(1_000_000), Some(1_000_001))
            );
        }
        let late = Io { write_bytes: 1_700_000, writes: 9, ..Io::default() };
        let spilled = RawStage { io: io(2_003_000, 2_000_000), temporary: late, ..raw_stage() };
        let unique = named(&["x", "sort -u"], &[writer.clone(), spilled.clone()]);
        assert_eq!(unique[1].bytes_out, Some(300_000), "what it has dropped is not known");
        let stages = named(&["x", "sort"], &[writer, spilled]);
        assert_eq!((stages[1].bytes_in, stages[1].bytes_out), (Some(1_000_000), Some(1_000_000)));
    }

    #[test]
    fn a_first_stage_has_read_the_files_that_it_names() {
        let stage = RawStage { io: io(8_000, 5), named_bytes: Some(1_000), ..raw_stage() };
        let known = &named(&["grep -c x f"], std::slice::from_ref(&stage))[0];
        assert_eq!((known.bytes_in, known.approximate.len()), (Some(1_000), 1), "the peak memory");
        let may_end_early = &named(&["head -n 1 f"], std::slice::from_ref(&stage))[0];
        assert!(may_end_early.is_approximate(Figure::BytesIn));
        let early = RawStage { named_bytes: Some(1_000_000), ..stage };
        assert!(named(&["head -n 1 f"], &[early])[0].is_approximate(Figure::BytesIn));
        let copy = RawStage { io: io(8_000, 5), ..raw_stage() };
        assert_eq!(named(&["cat"], &[copy])[0].bytes_in, Some(5));
    }

    #[test]
    fn a_neighbour_s_exact_count_completes_a_last_sample() {
        let sampled = RawStage { io: io(0, 900_000), io_exact: false, ..raw_stage() };
        let exact = RawStage { io: io(1_003_000, 5), ..raw_stage() };
        let last = RawStage { io: io(3, 3), io_exact: false, ..raw_stage() };
        let counted = bytes(&[sampled, exact, last]);
        assert_eq!(counted[0].1, Some(1_003_000));
        assert_eq!(counted[1], (Some(1_003_000), Some(5)));
        assert_eq!(counted[2].0, Some(5));
    }

    #[test]
    fn bytes_read_from_libraries_are_not_input() {
        let writer = RawStage { io: io(4_000, 1_000_000), ..raw_stage() };
        let reader = RawStage { io: io(1_004_000, 10), ..raw_stage() };
        let counted = bytes(&[writer.clone(), reader]);
        assert_eq!(counted[0].0, Some(0));
        assert_eq!(counted[1].0, Some(1_000_000));
        let reads_files_too = RawStage { io: io(9_000_000, 10), ..raw_stage() };
        assert_eq!(bytes(&[writer.clone(), reads_files_too.clone()])[1].0, Some(9_000_000));
        let seen_with_files = RawStage { has_files: true, ..reads_files_too };
        assert_eq!(bytes(&[writer.clone(), seen_with_files])[1].0, Some(1_000_000));
        let exactly = RawStage { io: io(1_004_000, 10), startup_reads: Some(4_100), ..raw_stage() };
        assert_eq!(bytes(&[writer, exactly])[1].0, Some(999_900));
    }

    /// Creates a stage with the given counts, of which those in `unproved` are marked as
    /// approximate.
    fn counted(bytes_in: u64, bytes_out: u64, unproved: &[Figure]) -> Stage {
        Stage {
            bytes_in: Some(bytes_in),
            bytes_out: Some(bytes_out),
            approximate: unproved.to_vec(),
            ..Stage::default()
        }
    }

    fn pipe_between(from: Stage, to: Stage) -> (Option<u64>, bool) {
        let pipes = boundaries(&[from, to], &[FillSamples::default()], Duration::from_secs(1));
        (pipes[0].bytes, pipes[0].bytes_approximate)
    }

    #[test]
    fn a_pipe_s_count_is_exact_only_if_one_side_proves_it() {
        let (input, output) = (&[Figure::BytesIn][..], &[Figure::BytesOut][..]);
        let cases: [(&[Figure], &[Figure], _); 4] = [
            (output, input, (Some(33), true)),
            (output, &[], (Some(33), false)),
            (&[], input, (Some(39), false)),
            (&[], &[], (Some(33), false)),
        ];
        for (from, to, wanted) in cases {
            let found = pipe_between(counted(0, 39, from), counted(33, 0, to));
            assert_eq!(found, wanted, "{from:?} {to:?}");
        }
        // Approximate marks on other counts do not matter.
        let found = pipe_between(counted(0, 39, input), counted(33, 0, output));
        assert_eq!(found, (Some(33), false));
        // The unproved side is ignored, even where it is the smaller one.
        let found = pipe_between(counted(0, 39, &[]), counted(2, 0, input));
        assert_eq!(found, (Some(39), false));
    }

    #[test]
    fn counts_that_differ_by_more_than_the_pipe_capacity_are_approximate() {
        let found = pipe_between(counted(0, 30_000_000, &[]), counted(500, 0, &[]));
        assert_eq!(found, (Some(30_000_000), true));
        let found = pipe_between(counted(0, 65_536, &[]), counted(8_192, 0, &[]));
        assert_eq!(found, (Some(8_192), false), "the reader ended early");
    }

    #[test]
    fn an_unknown_count_keeps_the_mark_of_the_other_side() {
        let unknown = Stage::default;
        let marked = counted(5, 5, &[Figure::BytesIn, Figure::BytesOut]);
        assert_eq!(pipe_between(marked.clone(), unknown()), (Some(5), true));
        assert_eq!(pipe_between(unknown(), marked), (Some(5), true));
        assert_eq!(pipe_between(unknown(), counted(5, 5, &[])), (Some(5), false));
        assert_eq!(pipe_between(unknown(), unknown()), (None, false));
    }

    #[test]
    fn writes_to_temporary_files_are_not_output() {
        // A sort that spills to temporary files writes and reads all of its input twice.
        let writer = RawStage { io: io(0, 1_000_000), ..raw_stage() };
        let sort = RawStage { io: io(2_003_000, 2_000_000), ..raw_stage() };
        let reader = RawStage { io: io(1_003_000, 0), startup_reads: Some(3_000), ..raw_stage() };
        let counted = bytes(&[writer, sort, reader]);
        assert_eq!(counted[1], (Some(1_000_000), Some(1_000_000)));
        assert_eq!(counted[2].0, Some(1_000_000));
    }
}

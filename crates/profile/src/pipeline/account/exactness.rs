//! Determines which byte counts are proved to include only the pipes' data, and marks all others as
//! approximate.
//!
//! The kernel counts the bytes that a process reads and writes on all descriptors: standard error,
//! files, the pipes of command substitutions. A count is exact only if it cannot include any of
//! these.

use contend_commands::behaviour;
use contend_record::pipe::{Figure, Stage};
use contend_sys::child::ExitStatus;

use crate::pipeline::stage::RawStage;

/// A stage's bytes in and out before reconciliation: the kernel's counts, as far as possible
/// without start-up reads and temporary files.
pub(super) type ByteCounts = (Option<u64>, Option<u64>);

/// Marks unproved counts as approximate. `counted` has each stage's counts before reconciliation.
pub(super) fn mark_unproved(stages: &mut [Stage], raw: &[RawStage], counted: &[ByteCounts]) {
    let observations = Observations { raw, counted };
    let outputs: Vec<bool> =
        (0..stages.len()).map(|index| observations.output_is_proved(stages, index)).collect();
    let inputs: Vec<bool> = (0..stages.len())
        .map(|index| observations.input_is_proved(stages, &outputs, index))
        .collect();
    for ((stage, output), input) in stages.iter_mut().zip(outputs).zip(inputs) {
        if !output {
            stage.mark_approximate(Figure::BytesOut);
        }
        if !input {
            stage.mark_approximate(Figure::BytesIn);
        }
    }
}

/// The observations on which proofs are based.
struct Observations<'a> {
    raw: &'a [RawStage],
    counted: &'a [ByteCounts],
}

impl Observations<'_> {
    fn output_is_proved(&self, stages: &[Stage], index: usize) -> bool {
        let (stage, raw) = (&stages[index], &self.raw[index]);
        stage.bytes_out.is_none()
            || writes_only_output(stage, raw)
            || self.is_read_whole(stages, index)
    }

    /// Returns whether the reader confirms the stage's output. The reader's own count must be exact
    /// and without start-up reads. In addition, either the reader has read until EOF, or the counts
    /// of both sides are equal: they would differ if one of them included other bytes.
    fn is_read_whole(&self, stages: &[Stage], index: usize) -> bool {
        let (Some(reader), Some(raw)) = (stages.get(index + 1), self.raw.get(index + 1)) else {
            return false;
        };
        let read = self.counted[index + 1].0;
        let own_count = raw.io_exact && raw.startup_reads.is_some() && read.is_some();
        let to_the_end = behaviour::drains(&reader.command)
            && raw.status == Some(ExitStatus::Exited(0))
            && !raw.several_processes
            && !behaviour::sorts(&reader.command)
            && read == stages[index].bytes_out;
        // If the reader may have pipes of its own, it may have counted all bytes twice, and so may
        // the writer.
        let both_agree = self.raw[index].io_exact
            && behaviour::writes_output_alone(&reader.command)
            && read == self.counted[index].1;
        own_count && (to_the_end || both_agree)
    }

    fn input_is_proved(&self, stages: &[Stage], outputs: &[bool], index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else { return true };
        let (stage, raw) = (&stages[index], &self.raw[index]);
        let read = self.counted[index].0;
        let all_of_it = outputs[before]
            && behaviour::drains(&stage.command)
            && raw.status == Some(ExitStatus::Exited(0))
            && stage.bytes_in == stages[before].bytes_out;
        let own_count = raw.io_exact
            && raw.startup_reads.is_some()
            && behaviour::writes_output_alone(&stage.command)
            && !behaviour::sorts(&stage.command)
            && !raw.several_processes
            && !raw.has_files
            && stage.bytes_in == read;
        stage.bytes_in.is_none() || all_of_it || own_count || self.is_read_whole(stages, before)
    }
}

/// Returns whether the count of the bytes that the stage has written is exact and includes only its
/// output: no messages and no files.
fn writes_only_output(stage: &Stage, raw: &RawStage) -> bool {
    let content = match raw.status {
        Some(ExitStatus::Exited(0) | ExitStatus::Signaled(_)) => true,
        // No line was selected.
        Some(ExitStatus::Exited(1)) => behaviour::fails_without_match(&stage.command),
        Some(ExitStatus::Exited(_)) | None => false,
    };
    let sorted = !behaviour::sorts(&stage.command)
        || behaviour::keeps_size(&stage.command)
        || stage.bytes_in <= Some(MIN_SORT_BUFFER_BYTES) && !raw.has_files;
    raw.io_exact
        && content
        && sorted
        && behaviour::writes_output_alone(&stage.command)
        && !behaviour::may_warn(&stage.command)
}

/// Size in bytes of the smallest buffer of a sort: a smaller input needs no temporary files.
const MIN_SORT_BUFFER_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::super::bytes::tests::{io, named};
    use super::super::tests::raw_stage;
    use super::*;

    fn marked(stage: &Stage) -> (bool, bool) {
        (stage.is_approximate(Figure::BytesIn), stage.is_approximate(Figure::BytesOut))
    }

    fn started(read: u64, write: u64) -> RawStage {
        RawStage { io: io(3_000 + read, write), startup_reads: Some(3_000), ..raw_stage() }
    }

    #[test]
    fn bytes_that_may_have_gone_to_standard_error_are_marked() {
        let of = |command: &str, status: i32| {
            let raw = RawStage { status: Some(ExitStatus::Exited(status)), ..started(0, 43) };
            marked(&named(&[command], &[raw])[0]).1
        };
        assert!(of("nosuchcmd", 127));
        assert!(of("cat >/nonexistent/x", 1));
        assert!(of("python3 x.py", 0));
        assert!(of("for i in $(seq 3); do date +%s; done", 0));
        assert!(of("sed s/a/b/", 2) && of("grep x", 0) && of("grep -a x", 2));
        assert!(!of("sed s/a/b/", 0) && !of("grep -a x", 1) && !of("echo x", 0));
    }

    #[test]
    fn a_reader_that_read_to_the_end_proves_what_was_written() {
        // 51 kB of python's output went to standard error.
        let raw = [started(0, 640_000), started(589_000, 7)];
        let stages = named(&["python3 x.py", "wc -l"], &raw);
        assert_eq!(stages[0].bytes_out, Some(589_000));
        assert_eq!(stages[1].bytes_in, Some(589_000));
        assert_eq!((marked(&stages[0]).1, marked(&stages[1]).0), (false, false));
        // A reader that may end early proves nothing.
        let stages = named(&["python3 x.py", "python3 y.py"], &raw);
        assert_eq!((marked(&stages[0]).1, marked(&stages[1]).0), (true, true));
        // Nor does a reader whose start-up reads are unknown.
        let late = RawStage { startup_reads: None, ..raw[1].clone() };
        let stages = named(&["python3 x.py", "wc -l"], &[raw[0].clone(), late]);
        assert_eq!((marked(&stages[0]).1, marked(&stages[1]).0), (true, true));
    }

    #[test]
    fn bytes_of_a_command_substitution_are_not_output() {
        // 6 of the 39 bytes went through the pipe of `$(seq 3)`, to the loop itself.
        let raw = [started(6, 39), started(36, 39)];
        let stages = named(&["for i in $(seq 3); do date +%s; done", "python3 x.py"], &raw);
        assert_eq!((marked(&stages[0]).1, marked(&stages[1]).0), (true, true));
        // If both sides have counted the same number, no other bytes were counted.
        let stages = named(&["f", "head"], &[started(6, 39), started(39, 39)]);
        assert_eq!((marked(&stages[0]).1, marked(&stages[1]).0), (false, false));
        // A reader with a pipe of its own counts bytes twice, as does a writer to standard error.
        let stages = named(&["f", "{ head | tail; }"], &[started(6, 78), started(78, 39)]);
        assert_eq!((marked(&stages[0]).1, marked(&stages[1]).0), (true, true));
    }

    #[test]
    fn a_reader_that_may_end_early_counts_its_own_input() {
        let stages = named(&["yes", "head -n 1"], &[started(0, 65_536), started(8_192, 2)]);
        assert_eq!(stages[1].bytes_in, Some(8_192));
        assert!(!marked(&stages[1]).0, "{:?}", stages[1].approximate);
    }
}

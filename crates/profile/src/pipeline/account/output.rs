//! Determines when each stage's first output appeared, and whether the stage is a barrier that held
//! its output back.

use std::time::Duration;

use contend_commands::behaviour;
use contend_record::pipe::Stage;
use contend_sys::child::ExitStatus;

use super::bytes::DEFAULT_PIPE_CAPACITY_BYTES;
use crate::pipeline::raw::MAX_SAMPLING_INTERVAL;
use crate::pipeline::stage::{MAX_STARTUP_READ_BYTES, RawStage};

/// Returns the time from the opening of the gate to a stage's first output, or `None` if no output
/// was noticed. It is the earlier of two observations: bytes in the pipe after the stage, and the
/// first input of the reader. The latter excludes the stage's writes to temporary files, but is
/// known only if the reader was seen waiting for its input. Otherwise, the stage's first write
/// takes its place or, for a sort without one, the end of the sort's input.
pub(super) fn first_output(raw: &[RawStage], stages: &[Stage], index: usize) -> Option<Duration> {
    let stage = &raw[index];
    let noticed = match raw.get(index + 1) {
        Some(reader) if reader.startup_reads.is_some() => reader.first_read,
        _ => stage.first_write.or_else(|| written_at_once(raw, stages, index)),
    };
    let noticed = noticed.into_iter().chain(stage.first_in_pipe).min();
    // The first write may not be noticed until the stage has ended.
    noticed.map(|time| time.min(stage.ended))
}

/// Returns the time at which a sort's input ended, if the sort has written any output. The sort may
/// have written all of its output before the end of its input was noticed, and its earlier writes
/// may have been to temporary files.
fn written_at_once(raw: &[RawStage], stages: &[Stage], index: usize) -> Option<Duration> {
    let stage = stages.get(index)?;
    let writer = raw.get(index.checked_sub(1)?)?;
    (behaviour::sorts(&stage.command) && stage.bytes_out > Some(0)).then_some(writer.ended)
}

/// Returns whether a stage wrote nothing until its input had ended, although input had been
/// available for a while. For the first stage, this means that it had read all of its input. For
/// another stage, its writer had been writing, and the stage had been reading. Returns `false` if
/// no output was noticed, and for a first stage that was killed by a signal.
pub(super) fn holds_output(raw: &[RawStage], stages: &[Stage], index: usize) -> bool {
    let Some(written) = first_output(raw, stages, index) else { return false };
    // The order of two events is known only if they are further apart than the sampling interval.
    let sampling_interval = (written / 32).clamp(Duration::from_millis(6), MAX_SAMPLING_INTERVAL);
    let min_input_time = 3 * sampling_interval;
    let Some(before) = index.checked_sub(1) else {
        // A stage killed by a signal has not read until EOF.
        let to_the_end = matches!(raw[index].status, Some(ExitStatus::Exited(_)));
        return to_the_end
            && written >= min_input_time
            && had_read_all(&raw[index], &stages[index]);
    };
    let Some(arrived) = first_output(raw, stages, before) else { return false };
    if raw[before].still_running {
        return false; // its output has not ended, only the observation
    }
    let writer_ended = raw[before].ended;
    let input = stages.get(index).and_then(|stage| stage.bytes_in).unwrap_or(0);
    let began_reading = match raw[index].first_read {
        Some(time) => time.max(arrived),
        // The time of the first read is unknown, but it suffices that most of the input was read
        // before the first output.
        None if raw[index].read_before_output >= input / 2 => arrived,
        None => return false,
    };
    let had_input_for = writer_ended.min(written).saturating_sub(began_reading);
    written + sampling_interval >= writer_ended && had_input_for >= min_input_time
}

/// Returns whether the first stage had read all of its input before its first output. A stage that
/// uses temporary files reads them later, so it must have read at least as much as its final
/// output.
fn had_read_all(raw: &RawStage, stage: &Stage) -> bool {
    let before = raw.read_before_output;
    let (read, written) = raw.io.map_or((0, 0), |io| (io.read_bytes, io.write_bytes));
    let output = stage.bytes_out.unwrap_or(written);
    let uses_files = written > output + DEFAULT_PIPE_CAPACITY_BYTES;
    let all = before as f64 >= 0.99 * read as f64;
    before > MAX_STARTUP_READ_BYTES && (all || (uses_files && before >= output))
}

#[cfg(test)]
mod tests {
    use super::super::tests::raw_stage;
    use super::*;
    use contend_sys::procfs::Io;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_holder_reads_before_and_writes_after_the_end_of_input() {
        let writer = RawStage {
            first_write: Some(5 * MILLISECOND),
            ended: 500 * MILLISECOND,
            ..raw_stage()
        };
        let holder = RawStage { first_write: Some(510 * MILLISECOND), ..raw_stage() };
        let streamer = RawStage { first_write: Some(20 * MILLISECOND), ..raw_stage() };
        let silent = RawStage { first_write: None, ..raw_stage() };
        let holds = |raw: &[RawStage]| holds_output(raw, &[], raw.len() - 1);
        assert!(holds(&[writer.clone(), holder.clone()]));
        assert!(!holds(&[writer.clone(), streamer.clone()]));
        assert!(!holds(&[writer.clone(), silent]));
        let quick = RawStage { ended: 10 * MILLISECOND, ..writer.clone() };
        assert!(!holds(&[quick, holder]), "there was hardly any time to hold it");
        // The stage writes to a temporary file at once, but its reader gets no bytes for a long
        // time.
        let reader = RawStage {
            startup_reads: Some(3_000),
            first_read: Some(505 * MILLISECOND),
            ..raw_stage()
        };
        assert!(holds_output(&[writer, streamer, reader], &[], 1));
    }

    #[test]
    fn a_writer_blocked_in_its_first_write_does_not_hold_its_output() {
        // `cat` writes 128 kB at once; the pipe takes 64 kB, and its reader sleeps.
        let read = Some(Io { read_bytes: 131_072 + 3_000, write_bytes: 65_536, ..Io::default() });
        let blocked = RawStage {
            io: read,
            read_before_output: 134_072,
            first_write: Some(990 * MILLISECOND),
            first_in_pipe: Some(4 * MILLISECOND),
            ..raw_stage()
        };
        let reader = raw_stage();
        let stages = [Stage::default(), Stage::default()];
        let raw = [blocked.clone(), reader.clone()];
        assert_eq!(first_output(&raw, &stages, 0), Some(4 * MILLISECOND));
        assert!(!holds_output(&raw, &stages, 0));
        let unseen = RawStage { first_in_pipe: None, ..blocked };
        assert!(holds_output(&[unseen.clone(), reader.clone()], &stages, 0));
        let killed = RawStage { status: Some(ExitStatus::Signaled(13)), ..unseen };
        assert!(!holds_output(&[killed, reader], &stages, 0), "its input had not ended");
    }

    #[test]
    fn a_sort_that_writes_everything_after_its_input_holds_its_output() {
        let writer = RawStage {
            first_write: Some(5 * MILLISECOND),
            ended: 500 * MILLISECOND,
            ..raw_stage()
        };
        let sort = RawStage {
            ended: 501 * MILLISECOND,
            startup_reads: Some(3_000),
            first_read: Some(6 * MILLISECOND),
            ..raw_stage()
        };
        let named = |command: &str, bytes_out| Stage {
            command: command.to_owned(),
            bytes_out: Some(bytes_out),
            ..Stage::default()
        };
        let raw = [writer, sort];
        let stages = [named("x", 16), named("sort", 16)];
        assert_eq!(first_output(&raw, &stages, 1), Some(500 * MILLISECOND));
        assert!(holds_output(&raw, &stages, 1));
        assert_eq!(first_output(&raw, &[named("x", 0), named("sort", 0)], 1), None);
    }
}

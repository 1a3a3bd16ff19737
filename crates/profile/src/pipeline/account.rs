//! From what was observed to where each stage's time and bytes went.
//!
//! Exact figures come first: the kernel's CPU time and run-queue time, the clock's
//! lifetime. What is left of the lifetime was spent waiting; what for, the looks tell.
//! They are a sample of moments, so their shares are scaled to the exact remainder. How
//! far depends on their number: what few looks do not cover stays unexplained.

use std::time::Duration;

use contend_record::pipe::{Boundary, OtherWaits, Outcome, Stage, Total, WaitingSide};
use contend_sys::child::ExitStatus;

use super::run::{Fills, LONGEST, RawRun};
use super::stage::{RawStage, STARTUP_READS};
use crate::observe::Wait;

/// The looks that found a stage waiting may fall short of its waiting time by this factor
/// before the rest counts as unexplained: at first, for each such look, and at most. With
/// some dozen the shares of the waits are good to some percent, and they then hold for all
/// of the waiting time, though looking itself hides some waits: on a busy machine a stage
/// that is woken while we look has to wait for our CPU.
const SCALING: (f64, f64, f64) = (1.25, 1.0 / 16.0, 4.0);

/// Bytes that a pipe holds unless it was told otherwise.
const PIPE_CAPACITY: u64 = 64 * 1024;

/// Where the stages' time went, first to last. `texts` are the stages' commands.
pub fn stages(run: &RawRun, texts: &[String]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = run
        .stages
        .iter()
        .zip(texts)
        .enumerate()
        .map(|(index, (raw, text))| stage(index + 1, text, raw))
        .collect();
    reconcile_bytes(&mut stages, &run.stages, &run.fills);
    for index in 0..stages.len() {
        let first_output = first_output(&run.stages, index);
        stages[index].first_output_seconds = first_output.map(|time| time.as_secs_f64());
        stages[index].holds_output = holds_output(&run.stages, &stages, index);
    }
    stages
}

fn stage(index: usize, text: &str, raw: &RawStage) -> Stage {
    let times = Times::of(raw);
    let waits = times.waits;
    let waited = |wait: Wait| waits[wait as usize].as_secs_f64();
    let other_waits = OtherWaits {
        sleep: waited(Wait::Sleep),
        lock: waited(Wait::Lock),
        disk: waited(Wait::Disk),
        child: waited(Wait::Child),
        poll: waited(Wait::Poll),
        network: waited(Wait::Network),
        pipe: waited(Wait::Pipe),
        terminal: waited(Wait::Terminal),
        stopped: waited(Wait::Stopped),
        other: waited(Wait::Other),
    };
    let cpu = (raw.usage.user + raw.usage.system).as_secs_f64();
    let wall = raw.ended.as_secs_f64();
    let (max_rss_bytes, rss_exact) = max_rss(raw);
    let mut approximate = Vec::new();
    if !rss_exact {
        approximate.push("max_rss_bytes".to_owned());
    }
    Stage {
        index,
        command: text.to_owned(),
        exit_code: raw.status.shell_code(),
        outcome: outcome(raw),
        wall_seconds: wall,
        user_seconds: raw.usage.user.as_secs_f64(),
        system_seconds: raw.usage.system.as_secs_f64(),
        cpu_percent: if wall > 0.0 { 100.0 * cpu / wall } else { 0.0 },
        on_cpu_seconds: times.on_cpu.as_secs_f64(),
        run_queue_seconds: times.run_queue.as_secs_f64(),
        starved_seconds: waited(Wait::Starved),
        blocked_seconds: waited(Wait::Blocked),
        other_wait_seconds: other_waits.named().iter().map(|(_, seconds)| seconds).sum(),
        other_waits,
        unexplained_seconds: times.unexplained.as_secs_f64(),
        voluntary_switches: raw
            .usage
            .voluntary_switches
            .saturating_sub(raw.status_before.voluntary_switches),
        involuntary_switches: raw
            .usage
            .involuntary_switches
            .saturating_sub(raw.status_before.involuntary_switches),
        max_rss_bytes,
        children_cpu_seconds: children_cpu(raw).as_secs_f64(),
        samples: raw.seen.looks,
        approximate,
        ..Stage::default()
    }
}

/// A lifetime, divided.
struct Times {
    on_cpu: Duration,
    run_queue: Duration,
    waits: [Duration; Wait::COUNT],
    unexplained: Duration,
}

impl Times {
    fn of(raw: &RawStage) -> Self {
        let lifetime = raw.ended;
        // Tasks that were active at the same time count once for the stage.
        let overlap = if raw.several_tasks && !raw.seen.active.is_zero() {
            raw.seen.active_tasks.as_secs_f64() / raw.seen.active.as_secs_f64()
        } else {
            1.0
        };
        let before = Duration::from_nanos(raw.sched_before.on_cpu);
        let cpu = (raw.usage.user + raw.usage.system).saturating_sub(before);
        let queue = raw.run_queue.saturating_sub(Duration::from_nanos(raw.sched_before.run_queue));
        let on_cpu = cpu.div_f64(overlap).min(lifetime);
        let run_queue = queue.div_f64(overlap).min(lifetime.saturating_sub(on_cpu));
        let waited = lifetime.saturating_sub(on_cpu + run_queue);

        let mut seen = raw.seen.waiting;
        // A child too short-lived to be seen was at work while its parent was seen
        // waiting for it.
        let unseen_work = (on_cpu + run_queue).saturating_sub(raw.seen.active);
        let child = &mut seen[Wait::Child as usize];
        *child = child.saturating_sub(unseen_work);

        let (first, each, last) = SCALING;
        let most = (first + each * raw.seen.waiting_looks as f64).min(last);
        let waits = scale(seen, waited, most);
        let known: Duration = Wait::known().map(|wait| waits[wait as usize]).sum();
        Self { on_cpu, run_queue, waits, unexplained: waited.saturating_sub(known) }
    }
}

/// Scales what was seen to the time that was spent waiting, by `most` at most.
fn scale(seen: [Duration; Wait::COUNT], waited: Duration, most: f64) -> [Duration; Wait::COUNT] {
    let total: Duration = seen.iter().sum();
    if total.is_zero() {
        return seen;
    }
    let factor = (waited.as_secs_f64() / total.as_secs_f64()).min(most);
    seen.map(|time| time.mul_f64(factor))
}

/// CPU time of waited-for children: what the kernel charges the stage beyond its main
/// thread, where there are no further threads.
fn children_cpu(raw: &RawStage) -> Duration {
    if !raw.several_processes && raw.seen.waited(Wait::Child).is_zero() {
        return Duration::ZERO;
    }
    let own = Duration::from_nanos(raw.sched_after.on_cpu);
    (raw.usage.user + raw.usage.system).saturating_sub(own)
}

/// A process's `ru_maxrss` starts with its spawner's, here a shell's of a few megabytes.
/// `VmHWM` starts afresh with each program, but is gone when the process is.
fn max_rss(raw: &RawStage) -> (u64, bool) {
    let spawner = raw.status_before.peak_rss;
    // The kernel batches its counts of pages, so two readings may differ by some.
    let slack = 256 * 1024;
    if raw.usage.max_rss > spawner + slack {
        (raw.usage.max_rss, true)
    } else if raw.peak_rss > 0 {
        (raw.peak_rss, raw.peak_rss_exact)
    } else {
        (raw.usage.max_rss, false)
    }
}

fn outcome(raw: &RawStage) -> Outcome {
    match raw.status {
        ExitStatus::Signaled(signal) if raw.asked_to_end.is_some() => Outcome::Interrupted(signal),
        ExitStatus::Signaled(signal) => Outcome::Killed(signal),
        ExitStatus::Exited(127) => Outcome::NotFound,
        ExitStatus::Exited(126) => Outcome::NotExecutable,
        ExitStatus::Exited(_) => Outcome::Exited,
    }
}

/// Fills in bytes and calls. The kernel counts what a process reads and writes wherever
/// that is, so the two sides of each pipe are held against each other: what one has not
/// written the other has not read from it, and the other way round but for what the pipe
/// holds. A count that was not read at the stage's end is completed by its neighbour's.
fn reconcile_bytes(stages: &mut [Stage], raw: &[RawStage], fills: &[Fills]) {
    for (stage, raw) in stages.iter_mut().zip(raw) {
        let startup = raw.startup_reads.unwrap_or(0);
        stage.bytes_in = raw.io.map(|io| io.read_bytes.saturating_sub(startup));
        stage.bytes_out = raw.io.map(|io| io.write_bytes);
        stage.reads = raw.io.map(|io| io.reads);
        stage.writes = raw.io.map(|io| io.writes);
        let mean = |bytes: u64, calls: u64| (calls > 0).then(|| bytes as f64 / calls as f64);
        stage.mean_read_bytes = raw.io.and_then(|io| mean(io.read_bytes, io.reads));
        stage.mean_write_bytes = raw.io.and_then(|io| mean(io.write_bytes, io.writes));
        if !raw.io_exact {
            let fields = ["bytes_in", "bytes_out", "reads", "writes"];
            stage.approximate.extend(fields.map(str::to_owned));
        }
    }
    if let (Some(first), Some(raw)) = (stages.first_mut(), raw.first()) {
        drop_startup_reads(first, raw);
    }
    let mut writes_files = false;
    for index in (1..stages.len()).rev() {
        let (left, right) = stages.split_at_mut(index);
        let fills = fills.get(index - 1).copied().unwrap_or_default();
        let pipe = Pipe { writer: &raw[index - 1], reader: &raw[index], fills };
        writes_files = pipe.reconcile(&mut left[index - 1], &mut right[0], writes_files);
    }
    // Nobody counts what the last stage has written to its output.
    if let (Some(last), Some(raw)) = (stages.last_mut(), raw.last())
        && raw.has_files
        && raw.io_exact
    {
        last.approximate.push("bytes_out".to_owned());
    }
}

/// The two sides of a pipe.
struct Pipe<'a> {
    writer: &'a RawStage,
    reader: &'a RawStage,
    fills: Fills,
}

impl Pipe<'_> {
    /// Makes the counts agree. `reader_writes_files`: the reader was found to write
    /// elsewhere too. Returns whether the writer does.
    fn reconcile(&self, from: &mut Stage, to: &mut Stage, reader_writes_files: bool) -> bool {
        if !self.writer.io_exact && self.reader.io_exact {
            from.bytes_out = from.bytes_out.max(to.bytes_in);
        }
        if !self.reader.io_exact && self.reader.ended >= self.writer.ended {
            to.bytes_in = to.bytes_in.max(from.bytes_out);
        }
        let (Some(written), Some(read)) = (from.bytes_out, to.bytes_in) else { return false };
        // More was inside at once than was written: it came by splice.
        let spliced = self.fills.most > written;
        if read > written && !spliced {
            let little = read - written <= STARTUP_READS;
            let other_sources =
                self.reader.has_files || reader_writes_files || to.children_cpu_seconds > 0.0;
            if little || other_sources {
                to.bytes_in = Some(written);
            }
            return false;
        }
        let capacity = self.fills.capacity.max(PIPE_CAPACITY);
        // One that reads nothing by read calls moves its input by splice instead.
        let reads = match self.reader.startup_reads {
            Some(_) => read > 0,
            None => read > STARTUP_READS,
        };
        let elsewhere = self.reader.io_exact && reads && written > read + capacity;
        if elsewhere {
            from.bytes_out = Some(read);
            if self.reader.startup_reads.is_none() && self.writer.io_exact {
                from.approximate.push("bytes_out".to_owned());
            }
        }
        elsewhere
    }
}

/// A first stage that cannot have read any input has only read its libraries.
fn drop_startup_reads(stage: &mut Stage, raw: &RawStage) {
    let may_have_read = raw.input_is_file
        || raw.seen.waited(Wait::Starved) > Duration::ZERO
        || stage.bytes_in > Some(STARTUP_READS / 4);
    if !may_have_read && stage.bytes_in.is_some() {
        stage.bytes_in = Some(0);
        if raw.io_exact {
            stage.approximate.push("bytes_in".to_owned());
        }
    }
}

/// When its output first arrived: at its reader, which does not see what the stage writes
/// to temporary files, if the reader was seen waiting for it; else its first write.
fn first_output(raw: &[RawStage], index: usize) -> Option<Duration> {
    let stage = &raw[index];
    let noticed = match raw.get(index + 1) {
        Some(reader) if reader.startup_reads.is_some() => reader.first_read,
        _ => stage.first_write,
    };
    // It may be noticed only after the stage has ended.
    noticed.map(|time| time.min(stage.ended))
}

/// Whether a stage wrote nothing until its input had ended, though it had input well
/// before. That it had: its writer had been writing for a while, or, at the head of the
/// pipeline, it had read everything that it ever read from its file.
fn holds_output(raw: &[RawStage], stages: &[Stage], index: usize) -> bool {
    let Some(first_output) = first_output(raw, index) else { return false };
    // What comes first of two events is only known to the time between two looks.
    let between_looks = (first_output / 32).clamp(Duration::from_millis(6), LONGEST);
    let while_long = 3 * between_looks;
    let Some(before) = index.checked_sub(1) else {
        return first_output >= while_long && had_read_all(&raw[index], &stages[index]);
    };
    let Some(first_input) = self::first_output(raw, before) else { return false };
    let writer_ended = raw[before].ended;
    let had_input_for = writer_ended.saturating_sub(first_input);
    first_output + between_looks >= writer_ended && had_input_for >= while_long
}

/// Whether a first stage had read all that it read before its first output. One that uses
/// temporary files reads those later: it must have read what it wrote in the end.
fn had_read_all(raw: &RawStage, stage: &Stage) -> bool {
    let before = raw.read_before_output;
    let (read, written) = raw.io.map_or((0, 0), |io| (io.read_bytes, io.write_bytes));
    let output = stage.bytes_out.unwrap_or(written);
    let uses_files = written > output + PIPE_CAPACITY;
    let all = before as f64 >= 0.99 * read as f64;
    before > STARTUP_READS && (all || (uses_files && before >= output))
}

/// The pipes between the stages.
pub fn boundaries(stages: &[Stage], fills: &[Fills], wall: Duration) -> Vec<Boundary> {
    stages
        .windows(2)
        .zip(fills)
        .map(|(pair, fills)| {
            let (from, to) = (&pair[0], &pair[1]);
            let bytes = match (from.bytes_out, to.bytes_in) {
                // Further apart than a pipe holds, one side moves bytes uncounted.
                (Some(written), Some(read)) if written.abs_diff(read) > PIPE_CAPACITY => {
                    Some(written.max(read))
                }
                (Some(written), Some(read)) => Some(written.min(read)),
                (written, read) => written.or(read),
            };
            Boundary {
                from: from.index,
                to: to.index,
                bytes,
                bytes_per_second: bytes
                    .filter(|_| !wall.is_zero())
                    .map(|bytes| bytes as f64 / wall.as_secs_f64()),
                mean_fill_bytes: fills.mean(),
                most_fill_bytes: (fills.looks > 0).then_some(fills.most),
                capacity_bytes: (fills.looks > 0).then_some(fills.capacity),
                writer_blocked_seconds: from.blocked_seconds,
                reader_starved_seconds: to.starved_seconds,
                waiting_side: waiting_side(from.blocked_seconds, to.starved_seconds, wall),
            }
        })
        .collect()
}

/// The side that waited clearly more, if either waited for a twentieth of the run.
fn waiting_side(blocked: f64, starved: f64, wall: Duration) -> WaitingSide {
    let much = wall.as_secs_f64() / 20.0;
    if blocked > much && blocked > 1.5 * starved {
        WaitingSide::Writer
    } else if starved > much && starved > 1.5 * blocked {
        WaitingSide::Reader
    } else {
        WaitingSide::Neither
    }
}

/// All stages together.
pub fn total(stages: &[Stage], run: &RawRun) -> Total {
    let sum = |field: fn(&Stage) -> f64| stages.iter().map(field).sum::<f64>();
    let cpu = sum(Stage::cpu_seconds);
    let wall = run.wall.as_secs_f64();
    let bytes = stages.iter().flat_map(|stage| [stage.bytes_in, stage.bytes_out]).flatten().max();
    Total {
        user_seconds: sum(|stage| stage.user_seconds),
        system_seconds: sum(|stage| stage.system_seconds),
        cpu_percent: if wall > 0.0 { 100.0 * cpu / wall } else { 0.0 },
        bytes,
        cpu_seconds_per_gigabyte: bytes
            .filter(|&bytes| bytes > 0)
            .map(|bytes| cpu / (bytes as f64 / 1e9)),
        run_queue_seconds: sum(|stage| stage.run_queue_seconds),
        runnable_mean: run.runnable_mean,
        switches: stages.iter().map(|s| s.voluntary_switches + s.involuntary_switches).sum(),
    }
}

/// The pipeline's status as the shell would return it.
pub fn exit_code(run: &RawRun, inverted: bool) -> i32 {
    let mut codes = run.stages.iter().rev().map(|stage| stage.status.shell_code());
    let code = if run.pipefail {
        codes.find(|&code| code != 0).unwrap_or(0)
    } else {
        codes.next().unwrap_or(0)
    };
    if inverted { i32::from(code == 0) } else { code }
}

impl Wait {
    /// Every wait whose cause could be seen.
    fn known() -> impl Iterator<Item = Self> {
        [
            Self::Starved,
            Self::Blocked,
            Self::Sleep,
            Self::Lock,
            Self::Disk,
            Self::Child,
            Self::Poll,
            Self::Network,
            Self::Pipe,
            Self::Terminal,
            Self::Stopped,
            Self::Other,
        ]
        .into_iter()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::observe::tree::Seen;
    use contend_sys::child::Usage;
    use contend_sys::procfs::{Io, SchedStat, Status};
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// A stage that lived 1 s, was on a CPU for 400 ms and waited for one for 100 ms.
    pub(crate) fn raw_stage() -> RawStage {
        RawStage {
            status: ExitStatus::Exited(0),
            ended: 1000 * MS,
            usage: Usage { user: 300 * MS, system: 100 * MS, ..Usage::default() },
            sched_before: SchedStat::default(),
            sched_after: SchedStat { on_cpu: 400_000_000, ..SchedStat::default() },
            run_queue: 100 * MS,
            status_before: Status::default(),
            seen: Seen { active: 500 * MS, active_tasks: 500 * MS, ..Seen::default() },
            several_tasks: false,
            several_processes: false,
            unreadable: false,
            io: Some(Io::default()),
            io_exact: true,
            peak_rss: 0,
            peak_rss_exact: false,
            first_write: None,
            read_before_output: 0,
            startup_reads: None,
            first_read: None,
            has_files: false,
            input_is_stream: true,
            input_is_file: false,
            asked_to_end: None,
        }
    }

    fn seen(waits: &[(Wait, u32)]) -> Seen {
        let mut seen = raw_stage().seen;
        for &(wait, ms) in waits {
            seen.waiting[wait as usize] = MS * ms;
        }
        seen
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn waits_are_scaled_to_the_exact_remainder() {
        let raw =
            RawStage { seen: seen(&[(Wait::Starved, 300), (Wait::Sleep, 150)]), ..raw_stage() };
        let stage = stage(1, "x", &raw);
        assert!(close(stage.on_cpu_seconds, 0.4) && close(stage.run_queue_seconds, 0.1));
        assert!(close(stage.starved_seconds, 500e-3 * 2.0 / 3.0), "{stage:?}");
        assert!(close(stage.other_waits.sleep, 500e-3 / 3.0));
        assert!(close(stage.unexplained_seconds, 0.0));
    }

    #[test]
    fn what_no_look_covers_stays_unexplained() {
        let raw = RawStage { seen: seen(&[(Wait::Blocked, 100)]), ..raw_stage() };
        let stage = stage(1, "x", &raw);
        assert!(close(stage.blocked_seconds, 0.125));
        assert!(close(stage.unexplained_seconds, 0.375));
        let raw = RawStage { seen: seen(&[(Wait::Unknown, 500)]), ..raw_stage() };
        assert!(close(super::stage(1, "x", &raw).unexplained_seconds, 0.5));
        let mut many = RawStage { seen: seen(&[(Wait::Blocked, 300)]), ..raw_stage() };
        many.seen.waiting_looks = 30;
        assert!(close(super::stage(1, "x", &many).blocked_seconds, 0.5));
    }

    #[test]
    fn unseen_children_at_work_are_not_a_wait() {
        let mut raw =
            RawStage { seen: seen(&[(Wait::Child, 600), (Wait::Starved, 300)]), ..raw_stage() };
        // 400 ms of CPU time and 100 ms of queueing, but seen active for 100 ms alone.
        raw.seen.active = 100 * MS;
        let stage = stage(1, "x", &raw);
        assert!(close(stage.other_waits.child, 500e-3 * 200.0 / 500.0), "{stage:?}");
        assert!(close(stage.starved_seconds, 500e-3 * 300.0 / 500.0));
    }

    #[test]
    fn tasks_at_work_at_once_count_once() {
        let mut raw = RawStage { seen: seen(&[]), several_tasks: true, ..raw_stage() };
        raw.usage.user = 1700 * MS;
        raw.run_queue = Duration::ZERO;
        raw.seen.active = 900 * MS;
        raw.seen.active_tasks = 1800 * MS;
        let stage = stage(1, "x", &raw);
        assert!(close(stage.on_cpu_seconds, 0.9), "{stage:?}");
        assert!(close(stage.cpu_percent, 180.0));
    }

    proptest! {
        #[test]
        fn a_lifetime_is_the_sum_of_its_parts(
            lifetime in 1..5_000_u32, user in 0..6_000_u32, queue in 0..3_000_u32,
            active in 0..5_000_u32, overlap in 1.0..4.0_f64, several: bool,
            waits in prop::collection::vec(0..3_000_u32, Wait::COUNT),
        ) {
            let mut raw = raw_stage();
            raw.ended = MS * lifetime;
            raw.usage.user = MS * user;
            raw.run_queue = MS * queue;
            raw.several_tasks = several;
            raw.seen.active = MS * active;
            raw.seen.active_tasks = (MS * active).mul_f64(overlap);
            for (slot, ms) in raw.seen.waiting.iter_mut().zip(waits) {
                *slot = MS * ms;
            }
            let s = stage(1, "x", &raw);
            let parts = [s.on_cpu_seconds, s.run_queue_seconds, s.starved_seconds,
                s.blocked_seconds, s.other_wait_seconds, s.unexplained_seconds];
            prop_assert!(parts.iter().all(|&part| part >= 0.0), "{parts:?}");
            prop_assert!((parts.iter().sum::<f64>() - s.wall_seconds).abs() < 1e-6, "{parts:?}");
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is what the field takes")]
    fn io(read_bytes: u64, write_bytes: u64) -> Option<Io> {
        Some(Io { read_bytes, write_bytes, reads: 1, writes: 1 })
    }

    fn bytes(raw: &[RawStage]) -> Vec<(Option<u64>, Option<u64>)> {
        let mut stages: Vec<_> = raw.iter().map(|raw| stage(1, "x", raw)).collect();
        reconcile_bytes(&mut stages, raw, &[]);
        stages.iter().map(|s| (s.bytes_in, s.bytes_out)).collect()
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
    fn libraries_read_at_the_start_are_no_input() {
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

    #[test]
    fn temporary_files_are_no_output() {
        // As a sort that spills: it writes and reads everything twice.
        let writer = RawStage { io: io(0, 1_000_000), ..raw_stage() };
        let sort = RawStage { io: io(2_003_000, 2_000_000), ..raw_stage() };
        let reader = RawStage { io: io(1_003_000, 0), startup_reads: Some(3_000), ..raw_stage() };
        let counted = bytes(&[writer, sort, reader]);
        assert_eq!(counted[1], (Some(1_000_000), Some(1_000_000)));
        assert_eq!(counted[2].0, Some(1_000_000));
    }

    #[test]
    fn holding_needs_input_before_and_output_after_the_end_of_input() {
        let writer = RawStage { first_write: Some(5 * MS), ended: 500 * MS, ..raw_stage() };
        let holder = RawStage { first_write: Some(510 * MS), ..raw_stage() };
        let streamer = RawStage { first_write: Some(20 * MS), ..raw_stage() };
        let silent = RawStage { first_write: None, ..raw_stage() };
        let holds = |raw: &[RawStage]| holds_output(raw, &[], raw.len() - 1);
        assert!(holds(&[writer.clone(), holder.clone()]));
        assert!(!holds(&[writer.clone(), streamer.clone()]));
        assert!(!holds(&[writer.clone(), silent]));
        let quick = RawStage { ended: 10 * MS, ..writer.clone() };
        assert!(!holds(&[quick, holder]), "there was hardly any time to hold it");
        // It writes to a temporary file at once, but its reader gets nothing for long.
        let reader =
            RawStage { startup_reads: Some(3_000), first_read: Some(505 * MS), ..raw_stage() };
        assert!(holds_output(&[writer, streamer, reader], &[], 1));
    }

    fn run_of(codes: &[i32], pipefail: bool) -> RawRun {
        let stages = codes
            .iter()
            .map(|&code| RawStage { status: ExitStatus::Exited(code), ..raw_stage() })
            .collect();
        RawRun {
            stages,
            fills: Vec::new(),
            input_fill: Fills::default(),
            wall: 1000 * MS,
            pipefail,
            interrupted: None,
            ticks: 1,
            own_cpu: Duration::ZERO,
            own_peak_rss: 0,
            runnable_mean: 1.0,
        }
    }

    #[test]
    fn the_status_is_the_shell_s() {
        assert_eq!(exit_code(&run_of(&[1, 0], false), false), 0);
        assert_eq!(exit_code(&run_of(&[1, 0], false), true), 1);
        assert_eq!(exit_code(&run_of(&[3, 4, 0], true), false), 4);
        assert_eq!(exit_code(&run_of(&[0, 0], true), false), 0);
        assert_eq!(exit_code(&run_of(&[0, 7], false), true), 0);
    }
}

//! Accounts for each stage's time and bytes, based on the observations of a run.
//!
//! ```text
//! RawRun ─┬─ time ──────── lifetime = on CPU + run queue + waits + unexplained
//!         ├─ bytes ─────── counts of both sides of each pipe, reconciled
//!         ├─ exactness ─── counts that are not proved, marked as approximate
//!         └─ output ────── first output, and whether it was held back
//!                  │
//!                  ▼
//!          Stage, Boundary, Total
//! ```

mod bytes;
mod exactness;
mod output;
mod phases;
mod time;
mod time_series;

pub use bytes::boundaries;
pub use phases::{PhaseAccount, phases};
pub use time_series::time_series;

use std::time::Duration;

use contend_record::pipe::{Figure, OtherWaits, Outcome, Stage, Total};
use contend_sys::child::ExitStatus;

use super::raw::RawRun;
use super::stage::RawStage;
use crate::observe::Wait;
use time::{Period, Pressure, Times};

/// Returns the accounts of the stages, first to last. `texts` has the source text of each stage's
/// command.
pub fn stages(run: &RawRun, texts: &[String]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = run
        .stages
        .iter()
        .zip(texts)
        .enumerate()
        .map(|(index, (raw, text))| stage(index + 1, text, raw, Pressure::of(run, index)))
        .collect();
    bytes::reconcile(&mut stages, &run.stages, &run.fills);
    for index in 0..stages.len() {
        let first_output = output::first_output(&run.stages, &stages, index);
        stages[index].first_output_seconds = first_output.map(|time| time.as_secs_f64());
        stages[index].holds_output = output::holds_output(&run.stages, &stages, index);
    }
    stages
}

fn stage(index: usize, text: &str, raw: &RawStage, pressure: Pressure) -> Stage {
    let (user, system) = cpu_since_gate(raw);
    let (max_rss_bytes, rss_exact) = max_rss(raw);
    let mut approximate = Vec::new();
    if !rss_exact {
        approximate.push(Figure::MaxRssBytes);
    }
    Stage {
        index,
        command: text.to_owned(),
        exit_code: raw.shell_code(),
        outcome: outcome(raw),
        user_seconds: user.as_secs_f64(),
        system_seconds: system.as_secs_f64(),
        voluntary_switches: raw
            .usage
            .voluntary_switches
            .saturating_sub(raw.status_before.voluntary_switches),
        involuntary_switches: raw
            .usage
            .involuntary_switches
            .saturating_sub(raw.status_before.involuntary_switches),
        max_rss_bytes,
        children_seen: raw.children_seen,
        children_cpu_seconds: children_cpu(raw).as_secs_f64(),
        samples: raw.seen.samples,
        approximate,
        ..period(&Period::lifetime(raw), pressure)
    }
}

/// Returns the account of a period of a stage's life: all times, with the CPU time as system time.
fn period(period: &Period, pressure: Pressure) -> Stage {
    let times = Times::of(period, pressure);
    let waited = |wait: Wait| times.waits[wait as usize].as_secs_f64();
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
    let (cpu, wall) = (period.cpu.as_secs_f64(), period.length.as_secs_f64());
    let mut stage = Stage {
        wall_seconds: wall,
        system_seconds: cpu,
        cpu_percent: if wall > 0.0 { 100.0 * cpu / wall } else { 0.0 },
        on_cpu_seconds: times.on_cpu.as_secs_f64(),
        run_queue_seconds: times.run_queue.as_secs_f64(),
        starved_seconds: waited(Wait::Starved),
        blocked_seconds: waited(Wait::Blocked),
        other_wait_seconds: other_waits.named().iter().map(|(_, seconds)| seconds).sum(),
        other_waits,
        unexplained_seconds: times.unexplained.as_secs_f64(),
        samples: period.seen.samples,
        ..Stage::default()
    };
    stage.service_seconds = stage.service_seconds();
    stage
}

/// Returns user and system time since the gate opened. Before that, the process was a copy of the
/// shell. The CPU time until then was mostly system time for starting the process, so it is
/// subtracted from system time first.
fn cpu_since_gate(raw: &RawStage) -> (Duration, Duration) {
    let before = Duration::from_nanos(raw.sched_before.on_cpu);
    let system = raw.usage.system.saturating_sub(before);
    let user = raw.usage.user.saturating_sub(before.saturating_sub(raw.usage.system));
    (user, system)
}

/// Returns the CPU time of children that the stage has waited for: the stage's CPU time minus that
/// of its main thread. The result includes other threads and the orphans of the stage, if there are
/// any. It is 0 if no child was seen and the stage was not seen waiting for one.
fn children_cpu(raw: &RawStage) -> Duration {
    if !raw.several_processes && raw.seen.waited(Wait::Child).is_zero() {
        return Duration::ZERO;
    }
    let own = Duration::from_nanos(raw.sched_after.on_cpu);
    raw.usage.cpu().saturating_sub(own)
}

/// Returns peak memory in bytes, and whether the value is exact. `ru_maxrss` of a process starts
/// with the value of its parent, here a few megabytes of a shell. `VmHWM` is reset when a process
/// executes a program, but is lost when the process ends.
fn max_rss(raw: &RawStage) -> (u64, bool) {
    let spawner = raw.status_before.peak_rss;
    // The kernel updates page counts in batches, so two readings may differ by up to this.
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
        Some(ExitStatus::Signaled(signal)) if raw.asked_to_end.is_some() => {
            Outcome::Interrupted(signal)
        }
        Some(ExitStatus::Signaled(signal)) => Outcome::Killed(signal),
        Some(ExitStatus::Exited(127)) => Outcome::NotFound,
        Some(ExitStatus::Exited(126)) => Outcome::NotExecutable,
        Some(ExitStatus::Exited(_)) => Outcome::Exited,
        None if raw.still_running => Outcome::Running,
        None if raw.is_attached => Outcome::Unobserved,
        None => Outcome::Unknown,
    }
}

/// Returns the totals over all stages.
pub fn total(stages: &[Stage], run: &RawRun) -> Total {
    let sum = |field: fn(&Stage) -> f64| stages.iter().map(field).sum::<f64>();
    let cpu = sum(Stage::cpu_seconds);
    let wall = run.wall.as_secs_f64();
    let (bytes, bytes_approximate) = widest(stages);
    Total {
        user_seconds: sum(|stage| stage.user_seconds),
        system_seconds: sum(|stage| stage.system_seconds),
        cpu_percent: if wall > 0.0 { 100.0 * cpu / wall } else { 0.0 },
        bytes,
        bytes_approximate,
        cpu_seconds_per_gigabyte: bytes
            .filter(|&bytes| bytes > 0)
            .map(|bytes| cpu / (bytes as f64 / 1e9)),
        run_queue_seconds: sum(|stage| stage.run_queue_seconds),
        runnable_mean: run.runnable_mean,
        switches: stages.iter().map(|s| s.voluntary_switches + s.involuntary_switches).sum(),
    }
}

/// Returns the largest number of bytes that entered or left any stage, and whether the number is
/// approximate. The number is `None` if no bytes did. An exact count takes precedence; the result
/// is approximate if there is no exact count, or if an approximate one is larger.
fn widest(stages: &[Stage]) -> (Option<u64>, bool) {
    let most = |approximate: bool| {
        let sides = stages.iter().flat_map(|stage| {
            let counts = [(Figure::BytesIn, stage.bytes_in), (Figure::BytesOut, stage.bytes_out)];
            counts.map(|(figure, bytes)| {
                bytes.filter(|_| stage.is_approximate(figure) == approximate)
            })
        });
        sides.flatten().max().filter(|&bytes| bytes > 0)
    };
    let (exact, unproved) = (most(false), most(true));
    (exact.or(unproved), unproved > exact)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::observe::tree::SampledTime;
    use crate::pipeline::critical::CriticalTime;
    use crate::pipeline::raw::FillSamples;
    use crate::pipeline::raw::tests::raw_run;
    use crate::pipeline::timeline::{Counters, FillSum, Timeline};
    use contend_sys::child::Usage;
    use contend_sys::procfs::{Io, SchedStat};

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Returns a stage that lived for 1 s, ran on a CPU for 400 ms and was queued for 100 ms.
    pub(crate) fn raw_stage() -> RawStage {
        RawStage {
            status: Some(ExitStatus::Exited(0)),
            ended: 1000 * MILLISECOND,
            usage: Usage { user: 300 * MILLISECOND, system: 100 * MILLISECOND, ..Usage::default() },
            sched_after: SchedStat { on_cpu: 400_000_000, ..SchedStat::default() },
            run_queue: 100 * MILLISECOND,
            seen: SampledTime {
                active: 500 * MILLISECOND,
                active_tasks: 500 * MILLISECOND,
                ..SampledTime::default()
            },
            io: Some(Io::default()),
            io_exact: true,
            input_is_stream: true,
            ..RawStage::default()
        }
    }

    /// Returns a run of 1 s: the first stage works for 400 ms, then the second one for 600 ms. The pipe
    /// between them has 1,000 bytes at first, and 3,000 after that.
    pub(crate) fn two_halves() -> RawRun {
        let mut timeline = Timeline::default();
        let critical = CriticalTime::new(2);
        for ms in 0..=1000_u32 {
            let (first, second) = (ms.min(400), ms.saturating_sub(400));
            let fill = FillSum {
                bytes: 1000 * u64::from(first) + 3000 * u64::from(second),
                samples: u64::from(ms),
            };
            let counters =
                [(first, fill), (second, FillSum::default())].map(|(ran, output_fill)| {
                    let mut counters = Counters { output_fill, ..Counters::default() };
                    counters.sched.on_cpu = u64::from(ran) * 1_000_000;
                    counters.seen.active = MILLISECOND * ran;
                    counters
                });
            timeline.sample(MILLISECOND * ms, &critical, counters.into_iter());
        }
        let stage = |ended: Duration, user: Duration| RawStage {
            ended,
            usage: Usage { user, ..Usage::default() },
            run_queue: Duration::ZERO,
            ..raw_stage()
        };
        let stages = vec![
            stage(400 * MILLISECOND, 400 * MILLISECOND),
            stage(1000 * MILLISECOND, 700 * MILLISECOND),
        ];
        let fills = vec![FillSamples::default()];
        RawRun { fills, timeline, ..raw_run(stages) }
    }

    #[test]
    fn the_widest_stage_is_marked_where_an_unproved_count_may_be_wider() {
        let stage = |bytes_in: u64, bytes_out: u64, approximate: &[Figure]| Stage {
            bytes_in: Some(bytes_in),
            bytes_out: Some(bytes_out),
            approximate: approximate.to_vec(),
            ..Stage::default()
        };
        let (input, output) = (&[Figure::BytesIn][..], &[Figure::BytesOut][..]);
        assert_eq!(widest(&[stage(0, 43, output)]), (Some(43), true));
        assert_eq!(widest(&[stage(7, 43, input)]), (Some(43), false));
        assert_eq!(widest(&[stage(7, 43, output)]), (Some(7), true));
        assert_eq!(widest(&[stage(0, 0, &[]), Stage::default()]), (None, false));
    }
}

//! Divides a stage's lifetime into CPU time, run-queue time, waits and unexplained time.
//!
//! CPU time, run-queue time and the lifetime are exact. The stage waited for the rest of the
//! lifetime, and samples show for what. The waits seen by samples are scaled to this exact
//! remainder, by a factor that is limited if there are few samples; time beyond the limit stays
//! unexplained.

use std::time::Duration;

use crate::observe::Wait;
use crate::observe::tree::SampledTime;
use crate::pipeline::raw::RawRun;
use crate::pipeline::stage::RawStage;

/// Base of the largest factor by which sampled waiting time is scaled to the exact remainder.
/// `SCALE_PER_SAMPLE` is added to it for each sample that found the stage waiting. With a few dozen
/// such samples, the shares of the waits are accurate to a few percent. They then apply to all of
/// the waiting time, although sampling hides some waits: on a busy machine, a stage that is woken
/// during a sample has to wait for contend's CPU.
const BASE_SCALE: f64 = 1.25;
/// Increase of the largest scaling factor for each sample that found the stage waiting.
const SCALE_PER_SAMPLE: f64 = 1.0 / 16.0;
/// Upper limit of the largest scaling factor, unless the unseen waiting time is a small share of
/// the lifetime.
const MAX_SCALE: f64 = 4.0;

/// Share of the lifetime below which `MIN_SAMPLES` samples are enough to distribute unseen waiting
/// time: even if all of it were attributed to the wrong waits, the error would be small.
const MAX_UNSEEN_SHARE: f64 = 0.10;
/// Minimum number of samples that found the stage waiting, for distributing a small share of unseen
/// waiting time.
const MIN_SAMPLES: u64 = 3;

/// Minimum share of pipe samples that must have found a stage's input empty or its output full for
/// its pipes to explain its unseen waits.
const MIN_AGREEING_SHARE: f64 = 0.75;

/// Shares of pipe samples, from 0 to 1, in which a stage's pipes kept it from continuing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pressure {
    /// Share of samples that found the stage's input empty or nearly so; 0 without samples.
    pub input_empty: f64,
    /// Share of samples that found the stage's output full or nearly so; 0 without samples.
    pub output_full: f64,
}

impl Pressure {
    pub fn of(run: &RawRun, index: usize) -> Self {
        let input = index.checked_sub(1).map_or(Some(&run.input_fill), |i| run.fills.get(i));
        let output = run.fills.get(index);
        Self {
            input_empty: input.map_or(0.0, |fills| fills.share(fills.empty)),
            output_full: output.map_or(0.0, |fills| fills.share(fills.full)),
        }
    }
}

/// The components of a period of a stage's life.
pub(super) struct Times {
    pub on_cpu: Duration,
    pub run_queue: Duration,
    pub waits: [Duration; Wait::COUNT],
    pub unexplained: Duration,
}

/// A period of a stage's life, with the observations in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    /// Length of the period.
    pub length: Duration,
    /// CPU time of all tasks.
    pub cpu: Duration,
    /// Time queued for a CPU, summed over the tasks.
    pub run_queue: Duration,
    /// Time by state, as found by samples.
    pub seen: SampledTime,
    /// Whether the stage was ever seen with several processes or threads.
    pub several_tasks: bool,
}

impl Period {
    /// Returns the stage's whole lifetime.
    pub fn lifetime(raw: &RawStage) -> Self {
        let (cpu_before, queued_before) = (raw.sched_before.on_cpu, raw.sched_before.run_queue);
        Self {
            length: raw.ended,
            cpu: raw.usage.cpu().saturating_sub(Duration::from_nanos(cpu_before)),
            run_queue: raw.run_queue.saturating_sub(Duration::from_nanos(queued_before)),
            seen: raw.seen,
            several_tasks: raw.several_tasks,
        }
    }
}

impl Times {
    pub fn of(period: &Period, pressure: Pressure) -> Self {
        let Period { length, cpu, run_queue, seen: sampled, several_tasks } = *period;
        // Tasks active at the same time count once for the stage.
        let overlap = if several_tasks && !sampled.active.is_zero() {
            sampled.active_tasks.as_secs_f64() / sampled.active.as_secs_f64()
        } else {
            1.0
        };
        let on_cpu = cpu.div_f64(overlap).min(length);
        let run_queue = run_queue.div_f64(overlap).min(length.saturating_sub(on_cpu));
        let waited = length.saturating_sub(on_cpu + run_queue);

        let mut seen = sampled.waiting;
        // A child too short-lived to be sampled ran while its parent was seen waiting for it, or at
        // a pipe that leads to it.
        let mut unseen_work = (on_cpu + run_queue).saturating_sub(sampled.active);
        for wait in [Wait::Child, Wait::Pipe] {
            let seen = &mut seen[wait as usize];
            let work = unseen_work.min(*seen);
            *seen -= work;
            unseen_work -= work;
        }

        let samples = sampled.waiting_samples;
        let total: Duration = seen.iter().sum();
        let is_small = waited.saturating_sub(total) < length.mul_f64(MAX_UNSEEN_SHARE);
        let max_scale = if is_small && samples >= MIN_SAMPLES {
            f64::INFINITY
        } else {
            (BASE_SCALE + SCALE_PER_SAMPLE * samples as f64).min(MAX_SCALE)
        };
        let mut waits = scale(seen, waited, max_scale);
        let total: Duration = waits.iter().sum();
        let (starved, blocked) = from_pipes(&waits, waited.saturating_sub(total), pressure);
        waits[Wait::Starved as usize] += starved;
        waits[Wait::Blocked as usize] += blocked;
        let known: Duration = Wait::known().map(|wait| waits[wait as usize]).sum();
        Self { on_cpu, run_queue, waits, unexplained: waited.saturating_sub(known) }
    }
}

/// Divides `unseen`, the waiting time that samples have missed, into starved and blocked time. Both
/// are 0 if the stage waits for more than its pipes, or if the shares of pipe samples that find its
/// input empty or its output full add up to less than `MIN_AGREEING_SHARE`. A stage that is woken
/// for every few bytes waits so briefly that samples, which take a CPU themselves, almost always
/// find it ready to run. Its pipes then show the cause of its waits.
fn from_pipes(
    waits: &[Duration; Wait::COUNT],
    unseen: Duration,
    pressure: Pressure,
) -> (Duration, Duration) {
    let pipes = waits[Wait::Starved as usize] + waits[Wait::Blocked as usize];
    let others = waits.iter().sum::<Duration>().saturating_sub(pipes);
    let either = pressure.input_empty + pressure.output_full;
    if others > unseen / 20 || either < MIN_AGREEING_SHARE {
        return (Duration::ZERO, Duration::ZERO);
    }
    let starved = unseen.mul_f64(pressure.input_empty / either);
    (starved, unseen.saturating_sub(starved))
}

/// Scales sampled waits to the total waiting time, by a factor of at most `max_scale`.
fn scale(
    seen: [Duration; Wait::COUNT],
    waited: Duration,
    max_scale: f64,
) -> [Duration; Wait::COUNT] {
    let total: Duration = seen.iter().sum();
    if total.is_zero() {
        return seen;
    }
    let factor = (waited.as_secs_f64() / total.as_secs_f64()).min(max_scale);
    seen.map(|time| time.mul_f64(factor))
}

impl Wait {
    /// Returns all waits with a known cause.
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
mod tests {
    use super::super::stage;
    use super::super::tests::raw_stage;
    use super::*;
    use contend_record::pipe::Stage;
    use proptest::prelude::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn account(raw: &RawStage) -> Stage {
        stage(1, "x", raw, Pressure::default())
    }

    fn seen(waits: &[(Wait, u32)]) -> SampledTime {
        let mut seen = raw_stage().seen;
        for &(wait, ms) in waits {
            seen.waiting[wait as usize] = MILLISECOND * ms;
        }
        seen
    }

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn waits_are_scaled_to_the_exact_remainder() {
        let raw =
            RawStage { seen: seen(&[(Wait::Starved, 300), (Wait::Sleep, 150)]), ..raw_stage() };
        let stage = account(&raw);
        assert!(is_close(stage.on_cpu_seconds, 0.4) && is_close(stage.run_queue_seconds, 0.1));
        assert!(is_close(stage.starved_seconds, 500e-3 * 2.0 / 3.0), "{stage:?}");
        assert!(is_close(stage.other_waits.sleep, 500e-3 / 3.0));
        assert!(is_close(stage.unexplained_seconds, 0.0));
    }

    #[test]
    fn time_without_samples_stays_unexplained() {
        let raw = RawStage { seen: seen(&[(Wait::Blocked, 100)]), ..raw_stage() };
        let stage = account(&raw);
        assert!(is_close(stage.blocked_seconds, 0.125));
        assert!(is_close(stage.unexplained_seconds, 0.375));
        let raw = RawStage { seen: seen(&[(Wait::Unknown, 500)]), ..raw_stage() };
        assert!(is_close(account(&raw).unexplained_seconds, 0.5));
        let mut many = RawStage { seen: seen(&[(Wait::Blocked, 300)]), ..raw_stage() };
        many.seen.waiting_samples = 30;
        assert!(is_close(account(&many).blocked_seconds, 0.5));
        let mut little = RawStage { seen: seen(&[(Wait::Blocked, 20)]), ..raw_stage() };
        little.usage.user = 700 * MILLISECOND;
        little.seen.waiting_samples = 3;
        assert!(is_close(account(&little).blocked_seconds, 0.1));
        little.seen.waiting_samples = 2;
        assert!(is_close(account(&little).unexplained_seconds, 0.1 - 0.02 * (1.25 + 2.0 / 16.0)));
    }

    #[test]
    fn short_waits_are_inferred_from_the_fill_of_pipes() {
        let few = RawStage { seen: seen(&[(Wait::Starved, 20)]), ..raw_stage() };
        let empty = Pressure { input_empty: 0.9, output_full: 0.0 };
        let stage = super::super::stage(1, "x", &few, empty);
        assert!(is_close(stage.starved_seconds, 0.5) && is_close(stage.unexplained_seconds, 0.0));
        let unclear = Pressure { input_empty: 0.4, output_full: 0.1 };
        let stage = super::super::stage(1, "x", &few, unclear);
        assert!(is_close(stage.starved_seconds, 0.025));
        let sleeps = RawStage { seen: seen(&[(Wait::Sleep, 40)]), ..raw_stage() };
        let stage = super::super::stage(1, "x", &sleeps, empty);
        assert!(is_close(stage.starved_seconds, 0.0), "its waits are of another kind");
    }

    #[test]
    fn unseen_running_children_are_not_a_wait() {
        let mut raw =
            RawStage { seen: seen(&[(Wait::Child, 600), (Wait::Starved, 300)]), ..raw_stage() };
        // The stage has 400 ms of CPU time and 100 ms in the queue, but samples found it active for
        // only 100 ms.
        raw.seen.active = 100 * MILLISECOND;
        let stage = account(&raw);
        assert!(is_close(stage.other_waits.child, 500e-3 * 200.0 / 500.0), "{stage:?}");
        assert!(is_close(stage.starved_seconds, 500e-3 * 300.0 / 500.0));
        // The same holds for waits at a pipe that leads to a child, as those of `xargs` and of
        // `$(…)`.
        raw.seen = seen(&[(Wait::Pipe, 600), (Wait::Starved, 300)]);
        raw.seen.active = 100 * MILLISECOND;
        let stage = account(&raw);
        assert!(is_close(stage.other_waits.pipe, 500e-3 * 200.0 / 500.0), "{stage:?}");
    }

    #[test]
    fn tasks_active_at_the_same_time_count_once() {
        let mut raw = RawStage { seen: seen(&[]), several_tasks: true, ..raw_stage() };
        raw.usage.user = 1700 * MILLISECOND;
        raw.run_queue = Duration::ZERO;
        raw.seen.active = 900 * MILLISECOND;
        raw.seen.active_tasks = 1800 * MILLISECOND;
        let stage = account(&raw);
        assert!(is_close(stage.on_cpu_seconds, 0.9), "{stage:?}");
        assert!(is_close(stage.cpu_percent, 180.0));
    }

    proptest! {
        #[test]
        fn the_lifetime_equals_the_sum_of_its_parts(
            lifetime in 1..5_000_u32, user in 0..6_000_u32, queue in 0..3_000_u32,
            active in 0..5_000_u32, overlap in 1.0..4.0_f64, several: bool,
            waits in prop::collection::vec(0..3_000_u32, Wait::COUNT),
        ) {
            let mut raw = raw_stage();
            raw.ended = MILLISECOND * lifetime;
            raw.usage.user = MILLISECOND * user;
            raw.run_queue = MILLISECOND * queue;
            raw.several_tasks = several;
            raw.seen.active = MILLISECOND * active;
            raw.seen.active_tasks = (MILLISECOND * active).mul_f64(overlap);
            for (slot, ms) in raw.seen.waiting.iter_mut().zip(waits) {
                *slot = MILLISECOND * ms;
            }
            let s = account(&raw);
            let parts = [s.on_cpu_seconds, s.run_queue_seconds, s.starved_seconds,
                s.blocked_seconds, s.other_wait_seconds, s.unexplained_seconds];
            prop_assert!(parts.iter().all(|&part| part >= 0.0), "{parts:?}");
            prop_assert!((parts.iter().sum::<f64>() - s.wall_seconds).abs() < 1e-6, "{parts:?}");
        }
    }
}

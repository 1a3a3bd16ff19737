//! Divides a run into phases at its barriers, and accounts for the stages in each.
//!
//! A barrier writes nothing until its input has ended, so the stages before it and after it do not
//! work at the same time. It has two events at which a phase ends: the end of its input, which is
//! the end of the stage before it, and its first output. Between the two it works alone.

use std::time::Duration;

use contend_record::pipe::Stage;
use contend_sys::procfs::SchedStat;

use super::time::{Period, Pressure};
use crate::observe::Wait;
use crate::pipeline::critical::CriticalTime;
use crate::pipeline::raw::RawRun;
use crate::pipeline::timeline::Counters;

/// Minimum length of a phase as a share of the run. A shorter one becomes part of a neighbour.
const MIN_PHASE_SHARE: f64 = 0.05;

/// The accounts of a phase.
#[derive(Debug, Clone)]
pub struct PhaseAccount {
    /// Begin, since the gate opened.
    pub begin: Duration,
    /// End, since the gate opened.
    pub end: Duration,
    /// The stages in the phase. Their `wall_seconds` is the part of their lifetime in the phase,
    /// and their CPU time is all system time. Counts of bytes, calls and context switches, peak
    /// memory and first output are not set.
    pub stages: Vec<Stage>,
    /// The time for which each stage held up the pipeline in the phase, as found by samples.
    pub critical: CriticalTime,
}

impl PhaseAccount {
    /// Returns the length of the phase in seconds.
    pub fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.begin).as_secs_f64()
    }

    /// Returns this phase and the next one as one phase.
    #[must_use]
    pub fn joined(&self, next: &Self) -> Self {
        let joined = |(one, other): (&Stage, &Stage)| Stage {
            wall_seconds: one.wall_seconds + other.wall_seconds,
            system_seconds: one.system_seconds + other.system_seconds,
            on_cpu_seconds: one.on_cpu_seconds + other.on_cpu_seconds,
            run_queue_seconds: one.run_queue_seconds + other.run_queue_seconds,
            starved_seconds: one.starved_seconds + other.starved_seconds,
            blocked_seconds: one.blocked_seconds + other.blocked_seconds,
            other_wait_seconds: one.other_wait_seconds + other.other_wait_seconds,
            service_seconds: one.service_seconds + other.service_seconds,
            other_waits: one.other_waits + other.other_waits,
            unexplained_seconds: one.unexplained_seconds + other.unexplained_seconds,
            samples: one.samples + other.samples,
            ..one.clone()
        };
        Self {
            begin: self.begin,
            end: next.end,
            stages: self.stages.iter().zip(&next.stages).map(joined).collect(),
            critical: self.critical.plus(&next.critical),
        }
    }
}

/// Returns the phases of a run, in order; a single one without barriers. `stages` are the accounts
/// of the whole run.
pub fn phases(run: &RawRun, stages: &[Stage]) -> Vec<PhaseAccount> {
    let mut times = vec![Duration::ZERO];
    times.extend(cuts(run, stages));
    times.push(run.wall);
    let periods: Vec<_> = (0..run.stages.len()).map(|index| StagePeriods::of(run, index)).collect();
    times
        .windows(2)
        .map(|pair| {
            let (begin, end) = (pair[0], pair[1]);
            let parts = periods.iter().zip(stages).map(|(periods, whole)| Stage {
                index: whole.index,
                command: whole.command.clone(),
                exit_code: whole.exit_code,
                ..periods.account(begin, end)
            });
            PhaseAccount {
                begin,
                end,
                stages: parts.collect(),
                critical: run
                    .timeline
                    .critical_between(begin, end)
                    .unwrap_or_else(|| CriticalTime::new(stages.len())),
            }
        })
        .collect()
}

/// Returns the times at which one phase ends and the next begins, earliest first. Of two events
/// that are close together, the later one counts. Events close to the start or the end of the run
/// are ignored.
fn cuts(run: &RawRun, stages: &[Stage]) -> Vec<Duration> {
    let barriers = stages.iter().enumerate().filter(|(_, stage)| stage.holds_output);
    let events = barriers.flat_map(|(index, stage)| {
        let end_of_input = index.checked_sub(1).map(|before| run.stages[before].ended);
        let first_output = stage.first_output_seconds.map(Duration::from_secs_f64);
        [end_of_input, first_output]
    });
    let mut events: Vec<_> = events.flatten().collect();
    events.sort_unstable();
    let min_length = run.wall.mul_f64(MIN_PHASE_SHARE);
    let mut cuts = Vec::new();
    let mut end = run.wall;
    for event in events.into_iter().rev() {
        if event >= min_length && end.saturating_sub(event) >= min_length {
            cuts.push(event);
            end = event;
        }
    }
    cuts.reverse();
    cuts
}

/// Accounts for periods of a stage's life.
pub(super) struct StagePeriods<'a> {
    run: &'a RawRun,
    /// Position of the stage, from 0.
    index: usize,
    /// The stage's whole lifetime, whose CPU and queueing times are exact, unlike those in `seen`.
    period: Period,
    /// The counters of the tasks that samples have found.
    seen: Counters,
}

impl<'a> StagePeriods<'a> {
    /// Returns the periods of the stage at a position, from 0.
    pub(super) fn of(run: &'a RawRun, index: usize) -> Self {
        let period = Period::lifetime(&run.stages[index]);
        let seen = run.timeline.between(index, Duration::ZERO, run.wall);
        Self { run, index, period, seen }
    }

    /// Returns the account of the period between two times since the gate opened.
    pub(super) fn account(&self, begin: Duration, end: Duration) -> Stage {
        let seen = self.run.timeline.between(self.index, begin, end);
        let period = self.part(&seen, begin, end);
        super::period(&period, Pressure::of(self.run, self.index))
    }

    /// Returns the period from `begin` to `end`, in which the counters increased by `seen`. The
    /// periods of a run add up to the exact totals. CPU time of tasks that no sample has found is
    /// divided like the time in which the stage was active or waited for other processes.
    fn part(&self, seen: &Counters, begin: Duration, end: Duration) -> Period {
        let share = |part: f64, total: f64| if total > 0.0 { part / total } else { 0.0 };
        let counted = |part: &dyn Fn(&SchedStat) -> u64| {
            share(part(&seen.sched) as f64, part(&self.seen.sched) as f64)
        };
        let may_run = |counters: &Counters| {
            let seen = &counters.seen;
            (seen.active + seen.waited(Wait::Child) + seen.waited(Wait::Pipe)).as_secs_f64()
        };
        let seen_cpu = Duration::from_nanos(self.seen.sched.on_cpu).min(self.period.cpu);
        let unseen_cpu = self.period.cpu.saturating_sub(seen_cpu);
        Period {
            length: end.min(self.period.length).saturating_sub(begin),
            cpu: seen_cpu.mul_f64(counted(&|sched| sched.on_cpu))
                + unseen_cpu.mul_f64(share(may_run(seen), may_run(&self.seen))),
            run_queue: self.period.run_queue.mul_f64(counted(&|sched| sched.run_queue)),
            seen: seen.seen,
            several_tasks: self.period.several_tasks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::two_halves;
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn barrier(first_output_seconds: f64) -> Vec<Stage> {
        let first = Stage { index: 1, ..Stage::default() };
        let first_output_seconds = Some(first_output_seconds);
        vec![
            first,
            Stage { index: 2, holds_output: true, first_output_seconds, ..Stage::default() },
        ]
    }

    #[test]
    fn a_barrier_divides_the_run() {
        let phases = phases(&two_halves(), &barrier(0.41));
        assert_eq!(phases.len(), 2);
        assert_eq!(phases[0].end, 410 * MILLISECOND, "the end of the input is as good as then");
        let cpu = |phase: usize, stage: usize| phases[phase].stages[stage].cpu_seconds();
        assert!((cpu(0, 0) - 0.4).abs() < 2e-3, "{}", cpu(0, 0));
        assert!(cpu(1, 0).abs() < 1e-3);
        // The barrier used 0.7 s, of which samples found only 0.6 s.
        assert!((cpu(0, 1) + cpu(1, 1) - 0.7).abs() < 1e-6);
        assert!((cpu(0, 1) - 0.7 / 60.0).abs() < 2e-3, "{}", cpu(0, 1));
        assert!((phases[1].stages[0].wall_seconds).abs() < 1e-9, "it has ended");
    }

    #[test]
    fn a_barrier_that_works_alone_has_a_phase_of_its_own() {
        let ends = |first_output: f64| -> Vec<_> {
            phases(&two_halves(), &barrier(first_output)).iter().map(|phase| phase.end).collect()
        };
        assert_eq!(ends(0.7), [400 * MILLISECOND, 700 * MILLISECOND, 1000 * MILLISECOND]);
        assert_eq!(
            ends(0.99),
            [400 * MILLISECOND, 1000 * MILLISECOND],
            "the last one is too short"
        );
        let mut streaming = barrier(0.7);
        streaming[1].holds_output = false;
        assert_eq!(phases(&two_halves(), &streaming).len(), 1);
    }
}

//! Records context switches for a part of the time only, if there are very many of them.
//!
//! The kernel takes about a microsecond for each record, on the CPU of the observed thread. A program
//! that switches 100,000 times per second would become slower by a tenth. Its switches are therefore
//! recorded in bursts, with gaps between them. The more often the program switches, the shorter is the time in
//! which enough is recorded, and the longer are the gaps:
//!
//! ```text
//! many records per second
//!   │
//!   ├ burst ┤      gap      ├ burst ┤      gap      ├ burst ┤
//! ```
//!
//! In a gap, the events are closed, because even those that are disabled slow down each switch. Threads
//! are sampled as they are where context switches cannot be recorded. The gap counts as the burst
//! before it ([`crate::timeline::Timeline::pause`]).
//!
//! While samples show that the program uses all CPUs, contend takes its time from the program. The gaps
//! then become longer, the samples fewer, and contend stays on its CPU. Measurements of a saturated server led to that
//! (`docs/measurements/doctor.md`); what exactly slows it down is not known.

use super::switches::record_switches;
use super::{Observer, UPDATE_TICKS, now};
use crate::descriptors::Budget;
use crate::processes::Observed;

/// Number of records per second up to which context switches are recorded all the time. With `n` times as many,
/// about the part 1/`n`² of the time is recorded.
const MAX_RECORDS_PER_SECOND: f64 = 10_000.0;
/// Number of intervals after which the rate is determined while switches are recorded all the time.
const WATCHED_TICKS: u64 = 4;
/// Number of intervals of a burst, unless it has enough records before.
const BURST_TICKS: u64 = 3;
/// Number of records that are enough for a burst.
const ENOUGH_RECORDS: u64 = 1000;
/// Largest number of intervals of a gap in which the program leaves CPUs idle.
const MAX_GAP_TICKS: u64 = 50;
/// Largest number of intervals of a gap in which it uses all CPUs. Gaps become twice as long up to then.
const MAX_BUSY_GAP_TICKS: u64 = 200;
/// Share of the CPUs from which all are in use. Interrupts and contend itself take some time, too.
const ALL_CPUS: f64 = 0.8;
/// Number of intervals between two samples in a gap in which all CPUs are in use. It divides
/// `UPDATE_TICKS`, so that no interval is skipped in which more is done.
const BUSY_STRIDE: u32 = 5;
/// The same in other gaps.
const STRIDE: u32 = 2;
/// Number of started threads and processes per second from which there are no gaps: what lives for a
/// short time is only in the records.
const MAX_STARTS_PER_SECOND: f64 = 20.0;

/// When context switches are recorded.
#[derive(Debug, Default)]
pub(super) struct DutyCycle {
    phase: Phase,
    /// Interval in which the phase began.
    since: u64,
    /// Number of records, and of those about started threads, since then.
    records: u64,
    starts: u64,
    /// Number of intervals that the last gap could take.
    longest_gap: u64,
    /// Interval of the last samples in this gap, and whether they have shown that the program uses all CPUs.
    sampled: u64,
    uses_all_cpus: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// They are recorded all the time.
    #[default]
    Continuous,
    /// They are recorded until a gap may begin.
    Burst,
    /// They are not recorded before this interval.
    Gap { until: u64 },
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// A burst begins. Switches are recorded already.
    BeginBurst,
    /// A gap begins.
    BeginGap,
    /// A gap ends, and a burst begins.
    EndGap,
}

impl DutyCycle {
    /// Counts a record.
    pub(super) fn note(&mut self, is_start: bool) {
        self.records += 1;
        self.starts += u64::from(is_start);
    }

    /// Notes the CPU time, in intervals, that the threads sampled in interval `tick` have used of `cpus` CPUs
    /// since the samples before.
    pub(super) fn note_use(&mut self, tick: u64, used: f64, cpus: f64) {
        let Phase::Gap { until } = self.phase else { return };
        let ticks = tick.saturating_sub(self.sampled.max(self.since));
        if ticks == 0 {
            return; // the time for which they have run began before the gap
        }
        self.sampled = tick;
        self.uses_all_cpus = used >= ALL_CPUS * cpus * ticks as f64;
        if !self.uses_all_cpus {
            let until = until.min(self.since + MAX_GAP_TICKS);
            self.longest_gap = MAX_GAP_TICKS;
            self.phase = Phase::Gap { until };
        }
    }

    /// Returns whether the program uses all CPUs, as samples in this gap have shown; `None` if there are none.
    pub(super) fn uses_all_cpus(&self) -> Option<bool> {
        (self.sampled > 0).then_some(self.uses_all_cpus)
    }

    /// Returns the number of intervals until the next samples in a gap, after those in interval `tick`.
    pub(super) fn stride(&self, tick: u64) -> u32 {
        let stride = if self.uses_all_cpus { BUSY_STRIDE } else { STRIDE };
        if tick.is_multiple_of(u64::from(stride)) { stride } else { 1 }
    }

    /// Returns what changes in interval `tick`, if anything. An interval takes `seconds`.
    fn next(&mut self, tick: u64, seconds: f64) -> Option<Change> {
        let ticks = tick.saturating_sub(self.since);
        let length = ticks as f64 * seconds;
        let ratio = self.records as f64 / (MAX_RECORDS_PER_SECOND * length);
        let is_busy = ratio > 1.0 && self.starts as f64 <= MAX_STARTS_PER_SECOND * length;
        match self.phase {
            Phase::Continuous if ticks < WATCHED_TICKS => None,
            Phase::Burst if ticks < BURST_TICKS && self.records < ENOUGH_RECORDS => None,
            Phase::Gap { until } if tick < until => None,
            Phase::Continuous if is_busy => {
                self.begin(Phase::Burst, tick);
                Some(Change::BeginBurst)
            }
            Phase::Burst if is_busy => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small"
                )]
                let gap = ((ratio * ratio - 1.0) * ticks as f64).ceil() as u64;
                let longest = (2 * self.longest_gap).clamp(MAX_GAP_TICKS, MAX_BUSY_GAP_TICKS);
                self.begin(Phase::Gap { until: tick + gap.min(longest) }, tick);
                self.longest_gap = longest;
                Some(Change::BeginGap)
            }
            Phase::Continuous | Phase::Burst => {
                self.begin(Phase::Continuous, tick);
                None
            }
            Phase::Gap { .. } => {
                self.begin(Phase::Burst, tick);
                Some(Change::EndGap)
            }
        }
    }

    /// Begins a gap again, because recording could not begin.
    fn retry_later(&mut self, tick: u64) {
        self.begin(Phase::Gap { until: tick + MAX_GAP_TICKS }, tick);
    }

    fn begin(&mut self, phase: Phase, tick: u64) {
        let longest_gap = self.longest_gap;
        *self = Self { phase, since: tick, longest_gap, ..Self::default() };
    }
}

impl Observer<'_> {
    /// Begins or ends a gap in the records of context switches, if it is time. A trace has no gaps.
    pub(super) fn cycle(&mut self) {
        if !self.timeline.has_switches() || self.trace.is_some() {
            return;
        }
        match self.duty_cycle.next(self.tick, self.config.interval.as_secs_f64()) {
            Some(Change::BeginBurst) => self.timeline.begin_burst(),
            Some(Change::BeginGap) => {
                self.timeline.pause(now());
                // The kernel may take some 10 ms to remove the tracepoint for wake-ups.
                self.recorder = None;
                self.budget = Budget::new();
                for (id, sampler) in &mut self.samplers {
                    sampler.due = self.tick;
                    self.deadlines.enter(*id, self.tick);
                }
            }
            Some(Change::EndGap) => self.end_gap(),
            None => {}
        }
    }

    /// Starts to record again. If that fails, as it does after the program's end, the gap continues, and
    /// the next attempt follows later.
    fn end_gap(&mut self) {
        self.pinned = None;
        // A thread that is found later would be followed twice.
        self.search();
        let living = self.processes.values().filter(|process| !process.has_ended());
        let living: Vec<_> =
            living.map(|Observed { pid, relation, .. }| (*pid, *relation)).collect();
        let (recorder, _) = record_switches(self.config, &living, self.waking);
        let Some(recorder) = recorder else {
            self.duty_cycle.retry_later(self.tick);
            return;
        };
        let begun = now();
        self.sample_all();
        self.timeline.resume(begun);
        self.recorder = Some(recorder);
        self.budget = Budget::new();
        self.continue_sampling();
        // Bursts are short, so that hardly any is in an interval in which it is done otherwise.
        if self.tick - self.examined_at >= UPDATE_TICKS {
            self.examine_busy_threads();
        }
    }

    /// Samples the stacks of threads again of which too few are known.
    fn continue_sampling(&mut self) {
        let Some(recorder) = &mut self.recorder else { return };
        for (thread, runs) in self.stacks.unfinished() {
            let count = recorder.descriptors();
            if self.budget.take(count) && recorder.sample(thread, runs.period()).is_err() {
                self.budget.give_back(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: f64 = 0.01;

    /// Returns the changes in `ticks` intervals with `records` records in each that has no gap.
    fn changes(
        cycle: &mut DutyCycle,
        ticks: std::ops::RangeInclusive<u64>,
        records: u64,
        is_start: bool,
    ) -> Vec<(u64, Change)> {
        let step = |tick: u64| {
            if !matches!(cycle.phase, Phase::Gap { .. }) {
                (0..records).for_each(|_| cycle.note(is_start));
            }
            cycle.next(tick, INTERVAL).map(|change| (tick, change))
        };
        ticks.filter_map(step).collect()
    }

    #[test]
    fn many_records_are_limited_by_gaps() {
        let mut cycle = DutyCycle::default();
        let expected = [
            (4, Change::BeginBurst),
            (6, Change::BeginGap),
            (54, Change::EndGap),
            (56, Change::BeginGap),
        ];
        // 50,000 per second: a twenty-fifth of the time is recorded, at least 1,000 at a time.
        assert_eq!(changes(&mut cycle, 1..=60, 500, false), expected);
    }

    #[test]
    fn a_gap_has_a_largest_length() {
        let mut cycle = DutyCycle::default();
        let found = changes(&mut cycle, 1..=5 + MAX_GAP_TICKS, 100_000, false);
        assert_eq!(found.last(), Some(&(5 + MAX_GAP_TICKS, Change::EndGap)));
    }

    #[test]
    fn gaps_become_longer_while_all_cpus_are_in_use() {
        let mut cycle = DutyCycle::default();
        changes(&mut cycle, 1..=5, 10_000, false);
        let mut tick = 5;
        let mut lengths = Vec::new();
        for _ in 0..4 {
            let begun = tick;
            assert_eq!(cycle.stride(tick), if tick.is_multiple_of(2) { STRIDE } else { 1 });
            cycle.note_use(begun, 100.0, 2.0);
            while cycle.next(tick, INTERVAL).is_none() {
                tick += 1;
                cycle.note_use(tick, 1.7, 2.0);
            }
            lengths.push(tick - begun);
            tick += 1;
            (0..10_000).for_each(|_| cycle.note(false));
            assert_eq!(cycle.next(tick, INTERVAL), Some(Change::BeginGap));
        }
        assert_eq!(lengths, [50, 100, 200, 200]);
        cycle.note_use(tick + 5, 10.0 * 0.7, 2.0);
        assert_eq!(cycle.phase, Phase::Gap { until: tick + MAX_GAP_TICKS }, "a CPU is idle");
        assert_eq!(
            changes(&mut cycle, tick + 6..=tick + 50, 0, false),
            [(tick + 50, Change::EndGap)]
        );
    }

    #[test]
    fn samples_are_rarer_while_all_cpus_are_in_use() {
        let mut cycle = DutyCycle::default();
        changes(&mut cycle, 1..=5, 10_000, false);
        cycle.note_use(5, 0.0, 2.0);
        cycle.note_use(7, 3.5, 2.0);
        assert_eq!((8..=11).map(|tick| cycle.stride(tick)).collect::<Vec<_>>(), [1, 1, 5, 1]);
        cycle.note_use(8, 1.5, 2.0);
        assert_eq!((8..=11).map(|tick| cycle.stride(tick)).collect::<Vec<_>>(), [2, 1, 2, 1]);
    }

    #[test]
    fn few_records_and_many_starts_have_no_gaps() {
        assert_eq!(changes(&mut DutyCycle::default(), 1..=1000, 100, false), []);
        assert_eq!(changes(&mut DutyCycle::default(), 1..=1000, 500, true), []);
    }

    #[test]
    fn recording_is_continuous_again_after_a_quiet_burst() {
        let mut cycle = DutyCycle::default();
        changes(&mut cycle, 1..=54, 500, false);
        assert_eq!(changes(&mut cycle, 55..=1000, 10, false), []);
        assert_eq!(cycle.phase, Phase::Continuous);
    }

    #[test]
    fn recording_that_could_not_begin_is_tried_again() {
        let mut cycle = DutyCycle::default();
        changes(&mut cycle, 1..=25, 500, false);
        cycle.retry_later(25);
        let found = changes(&mut cycle, 26..=25 + MAX_GAP_TICKS, 0, false);
        assert_eq!(found, [(25 + MAX_GAP_TICKS, Change::EndGap)]);
    }
}

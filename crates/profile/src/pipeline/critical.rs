//! Finds the critical stage of each sample: the one for which the others wait.
//!
//! A stage works if it waits for neither of its neighbours. If only one stage works, it is
//! critical. If several do, two kinds of stages are not critical: a stage before a blocked one is
//! ahead, and a stage after a starved one still has input. The remaining stages pass data on chunk
//! by chunk, and the slowest of them is critical: the one that has worked for longest recently. If
//! none remains, this is the slowest of all stages that work. If no stage works, the pipeline's
//! input or output is critical.
//!
//! The time for which a stage is critical is what can be saved by making it faster, as far as no
//! other stage works during that time. All states must be from one sample.

use std::time::Duration;

use crate::observe::{State, Wait};

/// What holds up the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Critical {
    /// The process that feeds the first stage.
    Input,
    /// The stage with this index, from 0.
    Stage(usize),
    /// The process that reads from the last stage.
    Output,
}

/// The time for which each stage worked recently: earlier work counts less.
#[derive(Debug, Clone, Default)]
pub struct RecentWork {
    /// Weighted times in seconds.
    seconds: Vec<f64>,
}

/// Lower bound on the elapsed time from which the decay is derived: the weight of earlier work decays
/// with a time constant of one seventh of the time since the start of the pipeline, or of this if
/// that is longer.
const MIN_MEMORY: Duration = Duration::from_millis(700);

impl RecentWork {
    /// Returns zeros for a pipeline of `stages` stages.
    pub fn new(stages: usize) -> Self {
        Self { seconds: vec![0.0; stages] }
    }

    /// Adds `time` to the stages that work. `elapsed` is the time since the start of the pipeline.
    /// Work counts half as much after about a tenth of that time, or after 70 ms if that is longer.
    pub fn add(&mut self, states: &[Option<State>], time: Duration, elapsed: Duration) {
        let memory = elapsed.max(MIN_MEMORY).as_secs_f64() / 7.0;
        let decay = (-time.as_secs_f64() / memory).exp();
        for (seconds, state) in self.seconds.iter_mut().zip(states) {
            let added = if works(*state) { time.as_secs_f64() } else { 0.0 };
            *seconds = *seconds * decay + added;
        }
    }

    fn of(&self, stage: usize) -> f64 {
        self.seconds.get(stage).copied().unwrap_or(0.0)
    }
}

/// The times for which each stage, the input and the output were critical, and for which each stage
/// worked during these times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalTime {
    stages: usize,
    /// A row for the input, each stage and the output. The first column contains the time for which
    /// it was critical, the others the time for which each stage worked during that time.
    times: Vec<Duration>,
}

impl CriticalTime {
    /// Returns zeros for a pipeline of `stages` stages.
    pub fn new(stages: usize) -> Self {
        Self { stages, times: vec![Duration::ZERO; (stages + 2) * (stages + 1)] }
    }

    /// Adds `time` to the critical stage, input or output, and to the stages that work. Does
    /// nothing if none is critical. `states` are the states of the stages, first to last; `None`
    /// for a stage that has ended. `work` is the work of the stages until now.
    pub fn add(&mut self, states: &[Option<State>], work: &RecentWork, time: Duration) {
        let Some(critical) = critical(states, work) else { return };
        let row = self.row(critical);
        self.times[row] += time;
        let worked = self.times[row + 1..=row + self.stages].iter_mut();
        for (worked, state) in worked.zip(states) {
            if works(*state) {
                *worked += time;
            }
        }
    }

    /// Returns the time for which `critical` was critical.
    ///
    /// # Panics
    /// May panic if the pipeline has no such stage.
    pub fn of(&self, critical: Critical) -> Duration {
        self.times[self.row(critical)]
    }

    /// Returns the time for which `stage`, from 0, worked while `critical` was critical.
    ///
    /// # Panics
    /// Panics if the pipeline has no stage `stage`, and may panic if it has no stage `critical`.
    pub fn worked(&self, critical: Critical, stage: usize) -> Duration {
        self.times[self.row(critical)..][..=self.stages][stage + 1]
    }

    /// Interpolates linearly from `before`, which is `share` 0, to `after`, which is `share` 1.
    pub fn interpolate(before: &Self, after: &Self, share: f64) -> Self {
        let pairs = before.times.iter().zip(&after.times);
        let times = pairs.map(|(&a, &b)| a + b.saturating_sub(a).mul_f64(share)).collect();
        Self { stages: before.stages, times }
    }

    /// Returns the sums of the times and those in `other`.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let pairs = self.times.iter().zip(&other.times);
        Self { stages: self.stages, times: pairs.map(|(&a, &b)| a + b).collect() }
    }

    /// Returns by how much each time exceeds that in `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.times.iter().zip(&before.times);
        let times = pairs.map(|(&a, &b)| a.saturating_sub(b)).collect();
        Self { stages: self.stages, times }
    }

    /// Returns the index in `times` at which the row of `critical` begins.
    fn row(&self, critical: Critical) -> usize {
        let row = match critical {
            Critical::Input => 0,
            Critical::Stage(index) => 1 + index,
            Critical::Output => 1 + self.stages,
        };
        row * (self.stages + 1)
    }
}

fn works(state: Option<State>) -> bool {
    state.is_some_and(|state| !matches!(state, STARVED | BLOCKED))
}

const STARVED: State = State::Waiting(Wait::Starved);
const BLOCKED: State = State::Waiting(Wait::Blocked);

/// Returns the critical stage, input or output. Returns `None` if no stage works, and neither the
/// first stage waits for input nor the last one for its reader: all stages have ended, or one is
/// about to continue.
fn critical(states: &[Option<State>], work: &RecentWork) -> Option<Critical> {
    let last_blocked = states.iter().rposition(|state| *state == Some(BLOCKED));
    let first_starved = states.iter().position(|state| *state == Some(STARVED));
    let working = || (0..states.len()).filter(|&stage| works(states[stage]));
    let holds_up = |stage: &usize| {
        last_blocked.is_none_or(|blocked| blocked < *stage)
            && first_starved.is_none_or(|starved| *stage < starved)
    };
    let slowest = |a: &usize, b: &usize| work.of(*a).total_cmp(&work.of(*b));
    let stage = working().filter(holds_up).max_by(slowest).or_else(|| working().max_by(slowest));
    let at_an_end = || match (*states.first()?, *states.last()?) {
        (Some(STARVED), _) => Some(Critical::Input),
        (_, Some(BLOCKED)) => Some(Critical::Output),
        _ => None,
    };
    stage.map(Critical::Stage).or_else(at_an_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Option<State> = Some(State::Active);
    const S: Option<State> = Some(STARVED);
    const B: Option<State> = Some(BLOCKED);
    const SLEEPS: Option<State> = Some(State::Waiting(Wait::Sleep));
    const ENDED: Option<State> = None;

    fn stage(states: &[Option<State>], work: &RecentWork) -> Option<usize> {
        match critical(states, work)? {
            Critical::Stage(stage) => Some(stage),
            Critical::Input | Critical::Output => None,
        }
    }

    #[test]
    fn the_only_stage_that_works_is_critical() {
        let work = RecentWork::default();
        assert_eq!(stage(&[B, B, A, S, S], &work), Some(2));
        assert_eq!(stage(&[SLEEPS, S], &work), Some(0));
        assert_eq!(stage(&[ENDED, B, A], &work), Some(2));
        assert_eq!(stage(&[B, S], &work), None, "one of them is about to continue");
    }

    #[test]
    fn without_work_an_end_of_the_pipeline_is_critical() {
        let work = RecentWork::default();
        assert_eq!(critical(&[S, S], &work), Some(Critical::Input));
        assert_eq!(critical(&[B, B], &work), Some(Critical::Output));
        assert_eq!(critical(&[ENDED, S], &work), None, "it will see the end of its input");
        assert_eq!(critical(&[B, ENDED], &work), None, "it will get a signal");
        assert_eq!(critical(&[ENDED, ENDED], &work), None);
    }

    #[test]
    fn of_several_working_stages_the_slowest_is_critical_unless_it_is_ahead() {
        let mut work = RecentWork::new(4);
        let step = Duration::from_millis(10);
        for tick in 1..200 {
            // The second stage is the slowest at first, and the first one later.
            let second = if tick < 80 { A } else { S };
            let first = if tick < 40 { B } else { A };
            work.add(&[first, second, B, S], step, step * tick);
            if tick == 50 {
                assert_eq!(stage(&[A, A, A, S], &work), Some(1));
            }
        }
        assert_eq!(stage(&[A, A, A, S], &work), Some(0));
        assert_eq!(stage(&[A, B, A, S], &work), Some(2), "the first one is ahead");
        assert_eq!(stage(&[A, S, A, S], &work), Some(0), "the third one still has input");
        assert_eq!(stage(&[A, B, B, S], &work), Some(0), "there is no other one");
    }

    #[test]
    fn times_add_up_with_the_work_of_the_others() {
        let mut time = CriticalTime::new(2);
        let work = RecentWork::default();
        let ms = Duration::from_millis;
        time.add(&[A, S], &work, ms(3));
        let before = time.clone();
        time.add(&[A, A], &work, ms(4));
        time.add(&[B, A], &work, ms(5));
        time.add(&[S, S], &work, ms(7));
        assert_eq!(time.of(Critical::Stage(0)), ms(3));
        assert_eq!(time.worked(Critical::Stage(0), 0), ms(3));
        assert_eq!(time.worked(Critical::Stage(0), 1), ms(0));
        assert_eq!(time.of(Critical::Stage(1)), ms(9), "of two equal ones, the last");
        assert_eq!(time.worked(Critical::Stage(1), 0), ms(4));
        assert_eq!(time.of(Critical::Input), ms(7));
        assert_eq!(time.since(&before).of(Critical::Stage(0)), ms(0));
        assert_eq!(time.plus(&before).of(Critical::Stage(0)), ms(6));
        let half = CriticalTime::interpolate(&before, &time, 0.5);
        assert_eq!(half.worked(Critical::Stage(1), 0), ms(2));
    }
}

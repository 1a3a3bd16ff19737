//! Attributes the waits of a stage for its neighbours to the stage that causes them.
//!
//! If a stage is starved, the stage before it is slower, or is starved itself; if it is blocked,
//! the same holds for the stage after it. Following these waits leads to a stage that waits for
//! neither, which is the cause, or to an end of the pipeline. All states must be from one sample.

use std::time::Duration;

use crate::observe::{State, Wait};

/// What a stage waits for, if it waits for a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The process that feeds the first stage.
    Input,
    /// The stage with this index, from 0.
    Stage(usize),
    /// The process that reads from the last stage.
    Output,
}

/// Time for which each stage of a pipeline waited for its neighbours, by cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    stages: usize,
    /// A row for each waiting stage, with the input, the stages and the output as columns.
    waited: Vec<Duration>,
}

impl Blame {
    /// Returns zeros for a pipeline of `stages` stages.
    pub fn new(stages: usize) -> Self {
        Self { stages, waited: vec![Duration::ZERO; stages * (stages + 2)] }
    }

    /// Adds `time` to the causes of the current waits. `states` are the states of the stages, first
    /// to last; `None` for a stage that has ended.
    pub fn add(&mut self, states: &[Option<State>], time: Duration) {
        for stage in 0..states.len().min(self.stages) {
            if let Some(cause) = cause(states, stage) {
                let place = self.place(stage, cause);
                self.waited[place] += time;
            }
        }
    }

    /// Returns for how long `stage`, from 0, waited because of `cause`.
    ///
    /// # Panics
    /// Panics if the pipeline has no such stages.
    pub fn of(&self, stage: usize, cause: Cause) -> Duration {
        self.waited[self.place(stage, cause)]
    }

    /// Returns for how long `stage`, from 0, waited for its neighbours.
    ///
    /// # Panics
    /// Panics if the pipeline has no such stage.
    pub fn total(&self, stage: usize) -> Duration {
        let columns = self.stages + 2;
        self.waited[stage * columns..(stage + 1) * columns].iter().sum()
    }

    /// Returns the sum of `before` and `share`, from 0 to 1, of the difference to `after`.
    pub fn interpolate(before: &Self, after: &Self, share: f64) -> Self {
        let pairs = before.waited.iter().zip(&after.waited);
        let waited = pairs.map(|(&a, &b)| a + b.saturating_sub(a).mul_f64(share)).collect();
        Self { stages: before.stages, waited }
    }

    /// Returns by how much each time exceeds that in `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let pairs = self.waited.iter().zip(&before.waited);
        let waited = pairs.map(|(&a, &b)| a.saturating_sub(b)).collect();
        Self { stages: self.stages, waited }
    }

    fn place(&self, stage: usize, cause: Cause) -> usize {
        let column = match cause {
            Cause::Input => 0,
            Cause::Stage(index) => 1 + index,
            Cause::Output => 1 + self.stages,
        };
        stage * (self.stages + 2) + column
    }
}

/// Returns why `stage`, from 0, waits for a neighbour, or `None` if it does not. Also returns `None`
/// if the cause has ended: the wait is then about to end, too.
fn cause(states: &[Option<State>], stage: usize) -> Option<Cause> {
    let starved = State::Waiting(Wait::Starved);
    let blocked = State::Waiting(Wait::Blocked);
    let step: isize = match states.get(stage).copied().flatten()? {
        state if state == starved => -1,
        state if state == blocked => 1,
        _ => return None,
    };
    let same = if step < 0 { starved } else { blocked };
    let mut place = stage;
    loop {
        place = match place.checked_add_signed(step) {
            None => return Some(Cause::Input),
            Some(next) if next == states.len() => return Some(Cause::Output),
            Some(next) => next,
        };
        if states[place]? != same {
            return Some(Cause::Stage(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: Option<State> = Some(State::Active);
    const STARVED: Option<State> = Some(State::Waiting(Wait::Starved));
    const BLOCKED: Option<State> = Some(State::Waiting(Wait::Blocked));
    const SLEEPING: Option<State> = Some(State::Waiting(Wait::Sleep));

    #[test]
    fn waits_lead_to_the_stage_that_waits_for_no_neighbour() {
        let states = [BLOCKED, BLOCKED, ACTIVE, STARVED, STARVED];
        for stage in [0, 1, 3, 4] {
            assert_eq!(cause(&states, stage), Some(Cause::Stage(2)), "{stage}");
        }
        assert_eq!(cause(&states, 2), None);
        assert_eq!(cause(&[SLEEPING, STARVED], 1), Some(Cause::Stage(0)));
        assert_eq!(cause(&[SLEEPING, STARVED], 0), None);
    }

    #[test]
    fn waits_may_lead_out_of_the_pipeline() {
        assert_eq!(cause(&[STARVED, STARVED], 1), Some(Cause::Input));
        assert_eq!(cause(&[BLOCKED, BLOCKED], 0), Some(Cause::Output));
        assert_eq!(cause(&[None, STARVED], 1), None, "the stage will see the end of its input");
        assert_eq!(cause(&[BLOCKED, None], 0), None, "the stage will get a signal");
    }

    #[test]
    fn times_add_up_by_cause() {
        let mut blame = Blame::new(2);
        blame.add(&[ACTIVE, STARVED], Duration::from_millis(3));
        let before = blame.clone();
        blame.add(&[BLOCKED, SLEEPING], Duration::from_millis(4));
        blame.add(&[STARVED, STARVED], Duration::from_millis(5));
        assert_eq!(blame.of(1, Cause::Stage(0)), Duration::from_millis(3));
        assert_eq!(blame.of(1, Cause::Input), Duration::from_millis(5));
        assert_eq!(blame.total(1), Duration::from_millis(8));
        assert_eq!(blame.of(0, Cause::Stage(1)), Duration::from_millis(4));
        assert_eq!(blame.since(&before).total(1), Duration::from_millis(5));
        let half = Blame::interpolate(&before, &blame, 0.5);
        assert_eq!(half.of(0, Cause::Stage(1)), Duration::from_millis(2));
    }
}

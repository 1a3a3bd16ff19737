//! The engine of a trial: runs the original and the candidates in turn, and compares their times and
//! outputs. It does not know what runs.
//!
//! ```text
//! original ─▶ begin ─▶ repeat ─▶ round ─▶ round ─▶ … ─▶ measurements, verdicts
//!               │        │         │
//!           reference    └─────────┴─ every output is compared with the reference
//! ```

use std::fmt;
use std::fs::File;
use std::time::{Duration, Instant};

use contend_record::advice::Measurement;
use contend_shell::runner::{RunError, Timed};

use super::candidate_run::CandidateRun;
use crate::sample::{Difference, difference, has_room, temporary};

/// How many rounds run, and what is compared.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When the rounds end.
    pub effort: Effort,
    /// What happens if the output of the original differs from run to run.
    pub unstable: Unstable,
    /// Approximate size of an output, in bytes.
    pub output_bytes: u64,
    /// Seed of the order of runs and of the resampling.
    pub seed: u64,
}

/// When the rounds end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// When every candidate is decided, or when a wall time is over.
    Budget {
        /// Wall time after which no further round begins, from the start of the trial.
        time: Duration,
        /// Number of rounds that take place even if the time is over.
        min_rounds: usize,
    },
    /// After a number of rounds.
    Rounds(usize),
}

/// What happens if the output of the original differs from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstable {
    /// The trial fails, because no output can be compared.
    Refuse,
    /// Only exit codes are compared.
    CompareStatus,
}

/// An error that prevents or ends the rounds.
#[derive(Debug, thiserror::Error)]
pub enum RoundsError {
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The original's output or exit code differs between runs.
    #[error("the command is not deterministic ({0}), so there is nothing to compare it with")]
    NotRepeatable(String),
    /// There is not enough space for the outputs.
    #[error("not enough space for the outputs in TMPDIR")]
    NoRoom,
}

/// How an output with its exit code differs from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The output is different.
    Output(Difference),
    /// The output is the same, but the exit code is different.
    Status {
        /// The exit code.
        found: i32,
        /// The exit code of the other.
        expected: i32,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(difference) => difference.fmt(f),
            Self::Status { found, expected } => {
                write!(f, "status {found} instead of {expected}, with the same output")
            }
        }
    }
}

/// Returns how the output and exit code in `theirs` differ from those in `ours`, or `None` if they are
/// equal.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn mismatch(ours: (&File, i32), theirs: (&File, i32)) -> Result<Option<Mismatch>, RunError> {
    let found = difference(ours.0, theirs.0).map_err(RunError::io("compare outputs"))?;
    let status = Mismatch::Status { found: theirs.1, expected: ours.1 };
    Ok(found.map(Mismatch::Output).or((ours.1 != theirs.1).then_some(status)))
}

/// Checks that there is space for `more` further outputs of the size of `output`, and a reserve.
///
/// # Errors
/// Returns [`RoundsError::NoRoom`] without such space, and an error if it cannot be determined.
pub fn check_room(output: &File, more: u64) -> Result<(), RoundsError> {
    let has_room = has_room(output, more).map_err(RunError::io("stat a temporary file"))?;
    if has_room { Ok(()) } else { Err(RoundsError::NoRoom) }
}

/// A function that runs what it is given once: standard output goes to the file, and a run that takes
/// longer than the time limit fails with [`RunError::TooLong`].
pub type Run<'a, T> = dyn Fn(&T, &File, Duration) -> Result<Timed, RunError> + 'a;

/// A function that may add a candidate to those that were tried, and returns it.
pub type Add<'a, T> =
    dyn FnMut(&[CandidateRun<T>]) -> Result<Option<CandidateRun<T>>, RoundsError> + 'a;

/// Time limit of the runs of the original before the first round.
const NO_LIMIT: Duration = Duration::from_hours(24);
/// Share of the budget, from 0 to 1, after which a candidate is added even if some are undecided.
const ADD_AFTER_SHARE: f64 = 0.75;
/// Number of times the slowest run of the original after which a run of a candidate is ended.
const MAX_SLOWDOWN: f64 = 5.0;
/// Number of rounds in which the original has to repeat its output before a different one counts, where
/// outputs need not be compared.
const MIN_REPEATS: usize = 3;
/// Shortest time limit of a run in a round.
const MIN_LIMIT: Duration = Duration::from_secs(2);

/// How the rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Number of complete rounds.
    pub rounds: usize,
    /// Whether every candidate was decided.
    pub settled: bool,
}

/// The runs of a trial so far. `T` describes what runs: the original or a candidate.
pub struct Rounds<'a, T> {
    rules: Rules,
    run: &'a Run<'a, T>,
    original: &'a T,
    /// Output and exit code of the original's first run.
    reference: (File, i32),
    output: File,
    /// Whether outputs are compared, rather than only exit codes.
    compares_output: bool,
    /// Wall times of the original, in seconds.
    walls: Vec<f64>,
    /// CPU times of the original, in seconds.
    cpus: Vec<f64>,
    /// Longest wall time of the original.
    slowest: Duration,
    /// Wall and CPU time in seconds that are subtracted from the times of each run.
    overhead: (f64, f64),
    random: fastrand::Rng,
    begun: Instant,
}

impl<'a, T> Rounds<'a, T> {
    /// Runs the original for the first time; its output is the reference for all other runs. `overhead`
    /// is the wall and CPU time in seconds that is subtracted from each run's.
    ///
    /// # Errors
    /// Returns an error if the run fails, there is no space for the outputs, or a temporary file cannot
    /// be created.
    pub fn begin(
        original: &'a T,
        run: &'a Run<'a, T>,
        rules: Rules,
        overhead: (f64, f64),
    ) -> Result<Self, RoundsError> {
        let begun = Instant::now();
        let file = || temporary(rules.output_bytes).map_err(RunError::io(MAKE_FILE));
        let (reference, output) = (file()?, file()?);
        let timed = run(original, &reference, NO_LIMIT)?;
        check_room(&reference, 1)?;
        Ok(Self {
            run,
            original,
            reference: (reference, timed.status.shell_code()),
            output,
            compares_output: true,
            walls: Vec::new(),
            cpus: Vec::new(),
            slowest: timed.wall,
            overhead,
            random: fastrand::Rng::with_seed(rules.seed),
            begun,
            rules,
        })
    }

    /// Runs the original again, and compares its output and exit code with those of the first run.
    ///
    /// # Errors
    /// Returns an error if the run fails, or if the rules do not permit the difference.
    pub fn repeat(&mut self) -> Result<(), RoundsError> {
        let timed = (self.run)(self.original, &self.output, NO_LIMIT)?;
        self.slowest = self.slowest.max(timed.wall);
        match self.mismatch(timed.status.shell_code())? {
            Some(found) => self.cope_with(found),
            None => Ok(()),
        }
    }

    /// Returns the output and the exit code of the original's first run.
    pub fn reference(&self) -> (&File, i32) {
        (&self.reference.0, self.reference.1)
    }

    /// Returns whether outputs are compared. If not, the original's differ from run to run.
    pub fn compares_output(&self) -> bool {
        self.compares_output
    }

    /// Returns the wall and CPU times of the original, in seconds.
    pub fn original_times(&self) -> (&[f64], &[f64]) {
        (&self.walls, &self.cpus)
    }

    /// Returns the longest wall time of a run of the original so far.
    pub fn longest_run(&self) -> Duration {
        self.slowest
    }

    /// Returns the wall time since the start of the trial.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Runs rounds until the rules end them, a run of the original takes too long, or a signal asks
    /// contend to end. Once all candidates are decided or most of the budget is used, `add` may add
    /// another one. After each round, `on_round` receives the number of rounds and the share of the
    /// effort that is used. Then every candidate that ran has a verdict.
    ///
    /// # Errors
    /// Returns an error if a run or `add` fails, or if the original's output or exit code differs and
    /// the rules do not permit that.
    pub fn run_all(
        &mut self,
        candidates: &mut Vec<CandidateRun<T>>,
        add: &mut Add<'_, T>,
        on_round: &mut dyn FnMut(usize, f64),
    ) -> Result<Ended, RoundsError> {
        let mut rounds = 0;
        let mut has_added = false;
        loop {
            let share = self.share(rounds);
            let is_open = candidates.iter().any(CandidateRun::in_question)
                || rounds < MIN_REPEATS && self.may_readmit(candidates);
            if !has_added && (!is_open || share > ADD_AFTER_SHARE) {
                has_added = true;
                if let Some(candidate) = add(candidates)? {
                    candidates.push(candidate);
                    continue;
                }
            }
            if !is_open || share >= 1.0 && rounds >= self.min_rounds() {
                break;
            }
            match self.round(candidates) {
                Ok(()) => rounds += 1,
                // Keep the samples taken so far.
                Err(RoundsError::Run(RunError::TooLong(_) | RunError::Interrupted(_))) => break,
                Err(error) => return Err(error),
            }
            if !self.has_fixed_rounds() {
                for one in candidates.iter_mut() {
                    one.judge(self.rules.seed);
                }
            }
            on_round(rounds, self.share(rounds));
        }
        let settled = !candidates.iter().any(CandidateRun::in_question);
        for candidate in candidates.iter_mut() {
            if self.has_fixed_rounds() {
                candidate.judge_at_end(self.rules.seed);
            }
            candidate.finish();
        }
        Ok(Ended { rounds, settled })
    }

    /// Returns what was measured of a candidate so far.
    pub fn measurement(&self, candidate: &CandidateRun<T>) -> Measurement {
        let mut measurement = candidate.measurement(self.rules.seed);
        if !self.compares_output && measurement.output_equal == Some(true) {
            measurement.output_equal = None;
        }
        measurement
    }

    /// Returns whether a candidate was rejected that a later difference of the original would readmit.
    fn may_readmit(&self, candidates: &[CandidateRun<T>]) -> bool {
        self.rules.unstable == Unstable::CompareStatus
            && candidates.iter().any(CandidateRun::is_rejected_for_output)
    }

    /// Returns the used share of the budget or of the number of rounds. It may exceed 1.
    fn share(&self, rounds: usize) -> f64 {
        match self.rules.effort {
            Effort::Budget { time, .. } => self.elapsed().as_secs_f64() / time.as_secs_f64(),
            Effort::Rounds(all) => rounds as f64 / all.max(1) as f64,
        }
    }

    fn min_rounds(&self) -> usize {
        match self.rules.effort {
            Effort::Budget { min_rounds, .. } => min_rounds,
            Effort::Rounds(all) => all,
        }
    }

    fn has_fixed_rounds(&self) -> bool {
        matches!(self.rules.effort, Effort::Rounds(_))
    }

    /// Returns how the last output, with the given exit code, differs from the reference.
    fn mismatch(&self, status: i32) -> Result<Option<Mismatch>, RunError> {
        if self.compares_output {
            return mismatch(self.reference(), (&self.output, status));
        }
        let expected = self.reference.1;
        Ok((status != expected).then_some(Mismatch::Status { found: status, expected }))
    }

    /// Handles a run of the original that differs from its first one.
    fn cope_with(&mut self, found: Mismatch) -> Result<(), RoundsError> {
        match (found, self.rules.unstable) {
            (Mismatch::Output(_), Unstable::CompareStatus) => {
                self.compares_output = false;
                Ok(())
            }
            (found, _) => Err(RoundsError::NotRepeatable(found.to_string())),
        }
    }

    /// Runs the original and every undecided candidate once, in random order, and adds their times
    /// to the samples. Rejects a candidate whose output or exit code differs, and counts one that
    /// takes too long as slower.
    fn round(&mut self, candidates: &mut [CandidateRun<T>]) -> Result<(), RoundsError> {
        let mut order: Vec<Option<usize>> =
            (0..candidates.len()).filter(|&i| candidates[i].in_question()).map(Some).collect();
        order.push(None);
        self.random.shuffle(&mut order);
        let mut taken = vec![None; candidates.len()];
        let mut own = None;
        let limit = self.run_limit();
        for who in order {
            let what = who.map_or(self.original, |index| &candidates[index].what);
            let timed = match ((self.run)(what, &self.output, limit), who) {
                (Err(RunError::TooLong(limit)), Some(index)) => {
                    candidates[index].give_up(limit);
                    continue;
                }
                (timed, _) => timed?,
            };
            let found = self.mismatch(timed.status.shell_code())?;
            let less = |time: f64, overhead: f64| (time - overhead).max(0.0);
            let figures = (
                less(timed.wall.as_secs_f64(), self.overhead.0),
                less(timed.cpu().as_secs_f64(), self.overhead.1),
            );
            match (who, found) {
                (None, found) => {
                    if let Some(found) = found {
                        self.cope_with(found)?;
                        // The outputs of rejected candidates may be as good as the original's.
                        candidates.iter_mut().for_each(CandidateRun::readmit);
                    }
                    self.slowest = self.slowest.max(timed.wall);
                    own = Some(figures);
                }
                (Some(index), Some(found)) => candidates[index].reject(&found),
                (Some(index), None) => taken[index] = Some(figures),
            }
        }
        let Some(own) = own else { return Ok(()) };
        self.walls.push(own.0);
        self.cpus.push(own.1);
        for (candidate, figures) in candidates.iter_mut().zip(taken) {
            if let Some(figures) = figures {
                candidate.add(figures, own);
            }
        }
        Ok(())
    }

    /// Returns the time limit of a run: a candidate that exceeds it counts as slower. It may exceed the
    /// remaining budget, so that a round can complete.
    fn run_limit(&self) -> Duration {
        let rest = match self.rules.effort {
            Effort::Budget { time, .. } => time.saturating_sub(self.elapsed()),
            Effort::Rounds(_) => Duration::ZERO,
        };
        rest.max(MIN_LIMIT).max(self.slowest.mul_f64(MAX_SLOWDOWN))
    }
}

const MAKE_FILE: &str = "create a temporary file";

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use contend_record::advice::Verdict;
    use contend_sys::child::ExitStatus;

    use super::*;

    /// What a simulated run does: its output, its exit code and its wall time in milliseconds.
    type Simulated = (&'static str, u8, u64);

    fn simulate(&(text, code, wall): &Simulated, mut output: &File) -> Timed {
        output.set_len(0).expect("a file");
        std::io::Seek::rewind(&mut output).expect("a file");
        output.write_all(text.as_bytes()).expect("room");
        let wall = Duration::from_millis(wall);
        let status = ExitStatus::Exited(i32::from(code));
        Timed { wall, user: wall, system: Duration::ZERO, status }
    }

    fn rules(effort: Effort, unstable: Unstable) -> Rules {
        Rules { effort, unstable, output_bytes: 100, seed: 1 }
    }

    /// Runs candidates with the run function and the rules, and returns the verdicts and whether
    /// outputs were compared.
    fn verdicts(
        run: &Run<'_, Simulated>,
        rules: Rules,
        candidates: &[Simulated],
    ) -> Result<(Vec<Measurement>, Ended), RoundsError> {
        let original = ("a\n", 0, 100);
        let mut rounds = Rounds::begin(&original, run, rules, (0.0, 0.0))?;
        rounds.repeat()?;
        let candidates = candidates.iter().enumerate();
        let mut runs: Vec<_> =
            candidates.map(|(place, one)| CandidateRun::new(place, *one)).collect();
        let ended = rounds.run_all(&mut runs, &mut |_| Ok(None), &mut |_, _| {})?;
        Ok((runs.iter().map(|run| rounds.measurement(run)).collect(), ended))
    }

    #[test]
    fn a_number_of_rounds_is_kept_even_if_the_result_is_clear() {
        let runs = Cell::new(0);
        let run = |one: &Simulated, output: &File, _: Duration| {
            runs.set(runs.get() + 1);
            Ok(simulate(one, output))
        };
        let rules = rules(Effort::Rounds(7), Unstable::Refuse);
        let candidates = [("a\n", 0, 50), ("a\n", 0, 100), ("b\n", 0, 50), ("a\n", 3, 50)];
        let (measured, ended) = verdicts(&run, rules, &candidates).expect("it runs");
        let found: Vec<Verdict> = measured.iter().map(|one| one.verdict).collect();
        let expected = [Verdict::Faster, Verdict::NoDifference, Verdict::Wrong, Verdict::Wrong];
        assert_eq!(found, expected);
        assert_eq!(measured[0].wall_ratio.as_ref().map(|ratio| ratio.samples.len()), Some(7));
        assert_eq!(measured[0].output_equal, Some(true));
        let difference = measured[3].difference.as_deref();
        assert_eq!(difference, Some("status 3 instead of 0, with the same output"));
        assert_eq!(ended.rounds, 7);
        // The original: twice, and in every round. A candidate with another output runs once.
        assert_eq!(runs.get(), 2 + 7 + 2 * 7 + 2);
    }

    #[test]
    fn a_minimum_of_rounds_takes_place_without_a_budget() {
        let run = |one: &Simulated, output: &File, _: Duration| Ok(simulate(one, output));
        let effort = Effort::Budget { time: Duration::ZERO, min_rounds: 3 };
        let rules = rules(effort, Unstable::Refuse);
        let (measured, ended) = verdicts(&run, rules, &[("a\n", 0, 50)]).expect("it runs");
        assert_eq!((ended.rounds, ended.settled), (3, false));
        assert_eq!(measured[0].verdict, Verdict::Faster, "all three agree");
    }

    #[test]
    fn an_output_that_differs_from_run_to_run_is_refused_or_not_compared() {
        // The original changes its output in the fourth run, after a candidate was rejected.
        let of_original = Cell::new(0);
        let run = |one: &Simulated, output: &File, _: Duration| {
            let is_original = one.2 == 100;
            of_original.set(of_original.get() + i32::from(is_original));
            let text = if is_original && of_original.get() == 4 { "c\n" } else { one.0 };
            Ok(simulate(&(text, one.1, one.2), output))
        };
        let candidates = [("b\n", 0, 50), ("a\n", 1, 50), ("a\n", 0, 90)];
        let refused = verdicts(&run, rules(Effort::Rounds(9), Unstable::Refuse), &candidates);
        assert!(matches!(refused, Err(RoundsError::NotRepeatable(_))));
        of_original.set(0);
        let rules = rules(Effort::Rounds(9), Unstable::CompareStatus);
        let (measured, _) = verdicts(&run, rules.clone(), &candidates).expect("it runs");
        assert_eq!((measured[0].verdict, measured[0].output_equal), (Verdict::Faster, None));
        assert_eq!(measured[1].verdict, Verdict::Wrong, "the exit code differs");
        of_original.set(0);
        let (measured, ended) = verdicts(&run, rules, &candidates[..1]).expect("it runs");
        assert_eq!((measured[0].verdict, ended.rounds), (Verdict::Faster, 9), "it is repeated");
    }
}

//! Measures candidates against the original: all of them on the same input, in turn, until it is
//! clear which are faster. Every byte of every output is compared.
//!
//! In each round, every undecided candidate runs once, in random order, and is compared with the
//! original's run of the same round. A disturbance that lasts longer than a round then affects
//! both. A candidate is decided when the interval of its wall-time ratio to the original lies on
//! one side of 1, or is so narrow that no relevant difference is possible. Fresh runs have to
//! confirm that a candidate is better.

mod candidate_run;
pub mod load;

use std::fs::File;
use std::time::{Duration, Instant};

use contend_commands::purity::{Source, from_standard_input, source};
use contend_record::advice::{Trial, TrialInput, Verdict};
use contend_record::stats::{Estimate, median};
use contend_shell::runner::{RunError, Runner};

use crate::predict::advise::Prepared;
use crate::rewrite::draft::Draft;
use crate::sample::{difference, has_room, temporary};
use candidate_run::CandidateRun;

/// Parameters of a trial.
#[derive(Debug)]
pub struct TrialConfig<'a> {
    /// Runner that executes the pipelines.
    pub runner: Runner<'a>,
    /// Standard input of every run.
    pub input: Input,
    /// Description of the input, for the record.
    pub what: TrialInput,
    /// Standard input for a final check on the whole input, or `None` if the trial does not use a
    /// sample. An inner `None` stands for `/dev/null`.
    pub whole: Option<Option<File>>,
    /// The outcome of the profiled run; `None` if the trial has another input.
    pub expected: Option<Expected>,
    /// Whether the caller measures concurrent copies after the trial. If so, the trial also
    /// includes candidates that are slower on an idle machine but save CPU time.
    pub under_load: bool,
    /// Wall time after which no further round begins. The final check on the whole input may exceed
    /// it.
    pub budget: Duration,
    /// Approximate size of an output, in bytes.
    pub output_bytes: u64,
    /// Seed of the run order and of the resampling.
    pub seed: u64,
}

/// Standard input of every run, and how the first stage uses it.
#[derive(Debug)]
pub struct Input {
    /// Standard input; `/dev/null` if `None`.
    pub stdin: Option<File>,
    /// Whether standard input replaces the file that the first stage names.
    pub in_place_of_file: bool,
}

/// The outcome of the profiled run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The exit code of the pipeline, as a shell reports it.
    pub status: i32,
    /// The size of the output in bytes; `None` if it is not known exactly.
    pub bytes: Option<u64>,
}

/// An error that prevents or ends a trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The original's output or exit code differs between runs, or from the profiled run.
    #[error(
        "the pipeline's output is not deterministic ({0}), so there is nothing to compare it with"
    )]
    NotRepeatable(String),
    /// There is not enough space for the outputs.
    #[error("not enough space for the pipeline's outputs in TMPDIR: use a smaller --sample")]
    NoRoom,
    /// The sample cannot replace the input.
    #[error("cannot replace the input of the first stage by a sample")]
    NoPlaceForSample,
}

/// Share of the budget, from 0 to 1, after which the faster changes are combined, even if some
/// candidates are undecided.
const COMBINE_AFTER_SHARE: f64 = 0.75;

/// A function that combines the changes of the recommended candidates into a new candidate, or
/// returns `None` if there is no new combination.
pub type Together<'a> = dyn FnMut(&[Prepared]) -> Result<Option<Prepared>, RunError> + 'a;

/// Runs a trial, adds the measurements to the candidates, and sorts them: the winner comes first.
/// Once all are decided or most of the budget is used, `together` may add one candidate that
/// combines the faster ones. After each round, `on_round` receives the number of rounds and the
/// share of the budget used. If a signal interrupts the rounds, the samples so far are kept. Runs
/// nothing if there are no candidates.
///
/// # Errors
/// Returns an error in these cases:
/// - a run or `together` fails, or a signal interrupts the preparation;
/// - the original is not deterministic;
/// - there is not enough space for the outputs;
/// - a sample cannot replace the input of the first stage.
pub fn run(
    config: &TrialConfig<'_>,
    original: &Draft,
    candidates: &mut Vec<Prepared>,
    together: &mut Together<'_>,
    on_round: &mut dyn FnMut(usize, f64),
) -> Result<Trial, TrialError> {
    let begun = Instant::now();
    if candidates.is_empty() {
        return Ok(Trial::without_candidates(config.what.clone(), config.budget.as_secs_f64()));
    }
    let mut trial_runner = TrialRunner::new(config, original)?;
    let (rounds, settled) = run_rounds(&mut trial_runner, candidates, begun, together, on_round)?;
    let seconds = begun.elapsed().as_secs_f64();
    let (winner, confirmed) = confirmed_winner(config, original, candidates)?;
    let winner = rank(candidates, winner);
    Ok(Trial {
        input: config.what.clone(),
        rounds,
        seconds,
        budget_seconds: config.budget.as_secs_f64(),
        settled,
        interrupted: config.runner.signals.interrupted().is_some(),
        original_wall_seconds: Estimate::from_samples(trial_runner.walls.clone(), config.seed),
        original_cpu_seconds: Estimate::from_samples(trial_runner.cpus.clone(), config.seed),
        winner,
        confirmed_on_whole_input: confirmed.as_ref().map(|confirmed| confirmed.same),
        whole_wall_seconds: confirmed.map(|confirmed| confirmed.walls),
        load: Vec::new(),
    })
}

/// Runs rounds until every candidate is decided, the budget is used up, the original takes too
/// long, or a signal asks contend to end. Returns the number of complete rounds, and whether all
/// candidates were decided.
fn run_rounds(
    trial_runner: &mut TrialRunner<'_>,
    candidates: &mut Vec<Prepared>,
    begun: Instant,
    together: &mut Together<'_>,
    on_round: &mut dyn FnMut(usize, f64),
) -> Result<(usize, bool), TrialError> {
    let config = trial_runner.config;
    let mut candidate_runs: Vec<CandidateRun> = candidates
        .iter()
        .enumerate()
        .filter(|(_, one)| one.is_worth_trying(config.under_load))
        .filter_map(|(place, one)| {
            Some(CandidateRun::new(place, text_of(&one.draft, &config.input)?))
        })
        .collect();
    let mut rounds = 0;
    let mut alone = true;
    loop {
        let share = begun.elapsed().as_secs_f64() / config.budget.as_secs_f64();
        let open = candidate_runs.iter().any(CandidateRun::in_question);
        if alone && (!open || share > COMBINE_AFTER_SHARE) {
            alone = false;
            report(&candidate_runs, candidates, config.seed);
            if let Some(one) = together(candidates)? {
                let text = text_of(&one.draft, &config.input);
                if let Some(text) = text.filter(|_| one.candidate.verdict == Verdict::NotTried) {
                    candidate_runs.push(CandidateRun::new(candidates.len(), text));
                }
                candidates.push(one);
                continue;
            }
        }
        if !open || share >= 1.0 {
            break;
        }
        match trial_runner.round(&mut candidate_runs, config.budget.saturating_sub(begun.elapsed()))
        {
            Ok(()) => rounds += 1,
            // Keep the samples taken so far.
            Err(TrialError::Run(RunError::TooLong(_) | RunError::Interrupted(_))) => break,
            Err(error) => return Err(error),
        }
        for one in &mut candidate_runs {
            one.judge(config.seed);
        }
        on_round(rounds, begun.elapsed().as_secs_f64() / config.budget.as_secs_f64());
    }
    let settled = !candidate_runs.iter().any(CandidateRun::in_question);
    for candidate_run in &mut candidate_runs {
        candidate_run.finish();
    }
    report(&candidate_runs, candidates, config.seed);
    Ok((rounds, settled))
}

/// Returns the index of the best candidate that is also better on the whole input, and the result
/// of that check. The index is `None` if no candidate is better. The result is `None` if the check
/// was not needed or was interrupted. Corrects the verdicts of candidates that fail the check.
fn confirmed_winner(
    config: &TrialConfig<'_>,
    original: &Draft,
    candidates: &mut [Prepared],
) -> Result<(Option<usize>, Option<Confirmed>), TrialError> {
    while let Some(place) = winner(candidates) {
        let confirmed = match confirm(config, original, &mut candidates[place]) {
            Err(TrialError::Run(RunError::Interrupted(_))) => None,
            confirmed => confirmed?,
        };
        if candidates[place].candidate.verdict.recommends() {
            return Ok((Some(place), confirmed));
        }
    }
    Ok((None, None))
}

/// Moves the winner to the front, and sorts the other candidates: recommended ones, those without a
/// gain, wrong ones, and finally those without measurements. Candidates of a group are in ascending
/// order of wall time, or keep their order if they have none. Returns the new index of the winner.
fn rank(candidates: &mut [Prepared], winner: Option<usize>) -> Option<usize> {
    let mut others = &mut *candidates;
    if let Some(place) = winner {
        others[..=place].rotate_right(1);
        others = &mut others[1..];
    }
    let wall = |one: &Prepared| one.candidate.wall_ratio.as_ref().map_or(f64::MAX, |of| of.median);
    let group = |one: &Prepared| match one.candidate.verdict {
        verdict if verdict.recommends() => 0,
        Verdict::Wrong => 2,
        _ if one.candidate.wall_ratio.is_some() => 1,
        _ => 3,
    };
    others.sort_by(|a, b| group(a).cmp(&group(b)).then(wall(a).total_cmp(&wall(b))));
    winner.map(|_| 0)
}

/// Copies the measurements so far into the candidates' records.
fn report(candidate_runs: &[CandidateRun], candidates: &mut [Prepared], seed: u64) {
    for candidate_run in candidate_runs {
        candidate_run.report(&mut candidates[candidate_run.place].candidate, seed);
    }
}

/// Returns the index of the best recommended candidate, or `None` if none is recommended. A
/// candidate that is faster is better than one that saves only CPU time. Among several of the same
/// kind, the one with the lowest ratio of its wall time to the original's is best.
fn winner(candidates: &[Prepared]) -> Option<usize> {
    let ratio = |place: &usize| {
        let candidate = &candidates[*place].candidate;
        let of = |estimate: &Option<Estimate>| estimate.as_ref().map_or(1.0, |e| e.median);
        (candidate.verdict != Verdict::Faster, of(&candidate.wall_ratio), of(&candidate.cpu_ratio))
    };
    (0..candidates.len()).filter(|&place| candidates[place].candidate.verdict.recommends()).min_by(
        |a, b| {
            let (a, b) = (ratio(a), ratio(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
        },
    )
}

/// The result of the check on the whole input.
struct Confirmed {
    /// Whether the winner's output and exit code equal the original's.
    same: bool,
    /// Median wall times of the original and the winner, in seconds; both are 0 if `same` is
    /// `false`.
    walls: [f64; 2],
}

/// Relative increase in wall time that is attributed to chance in a few runs, if a candidate saves
/// only CPU time.
const MAX_SLOWDOWN: f64 = 0.1;

/// Runs the original and the winner on the whole input, and corrects the winner's verdict. Repeats
/// that twice if the winner was not better. The winner runs first, except in the second round,
/// because the second run benefits from caches. Returns `None` if the trial does not use a sample.
fn confirm(
    config: &TrialConfig<'_>,
    original: &Draft,
    winner: &mut Prepared,
) -> Result<Option<Confirmed>, TrialError> {
    let Some(stdin) = &config.whole else { return Ok(None) };
    let file = || temporary(config.output_bytes).map_err(RunError::io("create a temporary file"));
    let (ours, theirs) = (file()?, file()?);
    let limit = Duration::from_hours(24);
    let run = |draft: &Draft, to: &File| {
        config.runner.run(&draft.text_with_output(), stdin.as_ref(), to, limit)
    };
    let (mut walls, mut cpus) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let faster = winner.candidate.verdict == Verdict::Faster;
    let keeps = |walls: &[Vec<f64>; 2], cpus: &[Vec<f64>; 2]| {
        let of = |samples: &[Vec<f64>; 2]| {
            median(&samples[1]).unwrap_or(0.0) / median(&samples[0]).unwrap_or(0.0).max(1e-9)
        };
        // A cheaper candidate takes about the same wall time, so it would appear slower half of the
        // time.
        if faster { of(walls) < 1.0 } else { of(cpus) < 1.0 && of(walls) < 1.0 + MAX_SLOWDOWN }
    };
    for round in 0..3 {
        let before = (round == 1).then(|| run(original, &ours)).transpose()?;
        let timed = run(&winner.draft, &theirs)?;
        check_room(&theirs, 1)?;
        let reference = before.map_or_else(|| run(original, &ours), Ok)?;
        check_room(&ours, 0)?;
        for (samples, value) in walls.iter_mut().zip([reference.wall, timed.wall]) {
            samples.push(value.as_secs_f64());
        }
        for (samples, value) in cpus.iter_mut().zip([reference.cpu(), timed.cpu()]) {
            samples.push(value.as_secs_f64());
        }
        let (own, other) = (reference.status.shell_code(), timed.status.shell_code());
        if let Some(found) = found_difference((&ours, own), (&theirs, other))? {
            let candidate = &mut winner.candidate;
            candidate.output_equal = Some(false);
            candidate.difference = Some(format!("on the whole input: {found}"));
            candidate.verdict = Verdict::Wrong;
            return Ok(Some(Confirmed { same: false, walls: [0.0, 0.0] }));
        }
        if round == 0 && keeps(&walls, &cpus) {
            break;
        }
    }
    let kept = keeps(&walls, &cpus);
    let walls = walls.map(|walls| median(&walls).unwrap_or(0.0));
    if !kept {
        winner.candidate.verdict = Verdict::Unclear; // faster only on the sample
    }
    Ok(Some(Confirmed { same: true, walls }))
}

/// Returns `TrialError::NoRoom` unless there is space for `more` further outputs of the size of
/// `output`, and a reserve.
fn check_room(output: &File, more: u64) -> Result<(), TrialError> {
    let has_room = has_room(output, more).map_err(RunError::io("stat a temporary file"))?;
    if has_room { Ok(()) } else { Err(TrialError::NoRoom) }
}

/// Returns a description of how the output and exit code in `theirs` differ from those in `ours`,
/// or `None` if they are equal.
fn found_difference(ours: (&File, i32), theirs: (&File, i32)) -> Result<Option<String>, RunError> {
    let found = difference(ours.0, theirs.0).map_err(RunError::io("compare outputs"))?;
    Ok(match found {
        Some(found) => Some(found.to_string()),
        None if ours.1 != theirs.1 => {
            Some(format!("status {} instead of {}, with the same output", theirs.1, ours.1))
        }
        None => None,
    })
}

/// Measures the setup without the start of the shell: the difference between the minima of several
/// runs with and without the setup. Returns wall and CPU time in seconds; both are 0 if there is no
/// setup.
fn setup_time(runner: &Runner<'_>) -> Result<(f64, f64), RunError> {
    let nowhere = temporary(0).map_err(RunError::io("create a temporary file"))?;
    let least = |runner: &Runner<'_>| -> Result<(f64, f64), RunError> {
        let mut least = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            let timed = runner.run(":", None, &nowhere, Duration::from_hours(1))?;
            least.0 = least.0.min(timed.wall.as_secs_f64());
            least.1 = least.1.min(timed.cpu().as_secs_f64());
        }
        Ok(least)
    };
    if runner.setup.is_none() {
        return Ok((0.0, 0.0));
    }
    let with = least(runner)?;
    let without = least(&Runner { setup: None, ..*runner })?;
    Ok(((with.0 - without.0).max(0.0), (with.1 - without.1).max(0.0)))
}

/// The state of a trial between rounds.
struct TrialRunner<'a> {
    config: &'a TrialConfig<'a>,
    original: String,
    /// Output and exit code of the original's first run.
    reference: (File, i32),
    output: File,
    walls: Vec<f64>,
    cpus: Vec<f64>,
    /// Wall and CPU time of the setup, in seconds. They are subtracted from the times of each run,
    /// because the setup is not part of the pipeline.
    setup: (f64, f64),
    random: fastrand::Rng,
}

impl<'a> TrialRunner<'a> {
    /// Prepares a trial. Runs the original twice: its first output is the reference for all
    /// candidates, and the second one must equal it.
    fn new(config: &'a TrialConfig<'a>, original: &Draft) -> Result<Self, TrialError> {
        let file =
            || temporary(config.output_bytes).map_err(RunError::io("create a temporary file"));
        let mut trial_runner = Self {
            config,
            original: text_of(original, &config.input).ok_or(TrialError::NoPlaceForSample)?,
            reference: (file()?, 0),
            output: file()?,
            walls: Vec::new(),
            cpus: Vec::new(),
            setup: setup_time(&config.runner)?,
            random: fastrand::Rng::with_seed(config.seed),
        };
        let (runner, limit) = (&config.runner, Duration::from_hours(24));
        let text = trial_runner.original.clone();
        let first = runner.run(&text, trial_runner.stdin(), &trial_runner.reference.0, limit)?;
        trial_runner.reference.1 = first.status.shell_code();
        check_room(&trial_runner.reference.0, 1)?;
        trial_runner.check_expected()?;
        let second = runner.run(&text, trial_runner.stdin(), &trial_runner.output, limit)?;
        match trial_runner.difference(second.status.shell_code())? {
            Some(found) => Err(TrialError::NotRepeatable(found)),
            None => Ok(trial_runner),
        }
    }

    fn stdin(&self) -> Option<&'a File> {
        self.config.input.stdin.as_ref()
    }

    /// Checks that the original's exit code and output size are those of the profiled run, as far
    /// as these are known.
    fn check_expected(&self) -> Result<(), TrialError> {
        let Some(expected) = self.config.expected else { return Ok(()) };
        let written = self.reference.0.metadata().map_err(RunError::io("stat a file"))?.len();
        let differs = |what: &str, then: u64, now: u64| {
            Err(TrialError::NotRepeatable(format!("{what} {then} when profiled, {now} when tried")))
        };
        let status = |status: i32| u64::from(status.unsigned_abs());
        if expected.status != self.reference.1 {
            return differs("status", status(expected.status), status(self.reference.1));
        }
        match expected.bytes {
            Some(bytes) if bytes != written => differs("bytes of output:", bytes, written),
            _ => Ok(()),
        }
    }

    fn difference(&self, status: i32) -> Result<Option<String>, RunError> {
        found_difference((&self.reference.0, self.reference.1), (&self.output, status))
    }

    /// Runs the original and every undecided candidate once, in random order, and adds their times
    /// to the samples. Rejects a candidate whose output or exit code differs, and counts one that
    /// takes too long as slower. `rest` is the remaining part of the budget.
    fn round(
        &mut self,
        candidate_runs: &mut [CandidateRun],
        rest: Duration,
    ) -> Result<(), TrialError> {
        let mut order: Vec<Option<usize>> = (0..candidate_runs.len())
            .filter(|&i| candidate_runs[i].in_question())
            .map(Some)
            .collect();
        order.push(None);
        self.random.shuffle(&mut order);
        let mut taken = vec![None; candidate_runs.len()];
        let mut own = None;
        // A candidate that exceeds the limit counts as slower. The limit may exceed the remaining
        // budget, so that a round can complete.
        let slowest = self.walls.iter().copied().fold(0.0, f64::max).max(0.1);
        let limit = rest.max(Duration::from_secs_f64(20.0 * slowest));
        for who in order {
            let text = who.map_or(&self.original, |index| &candidate_runs[index].text);
            let timed = match (self.config.runner.run(text, self.stdin(), &self.output, limit), who)
            {
                (Err(RunError::TooLong(limit)), Some(index)) => {
                    candidate_runs[index].give_up(limit);
                    continue;
                }
                (timed, _) => timed?,
            };
            let found = self.difference(timed.status.shell_code())?;
            let less = |time: f64, setup: f64| (time - setup).max(0.0);
            let figures = (
                less(timed.wall.as_secs_f64(), self.setup.0),
                less(timed.cpu().as_secs_f64(), self.setup.1),
            );
            match (who, found) {
                (None, Some(found)) => return Err(TrialError::NotRepeatable(found)),
                (None, None) => own = Some(figures),
                (Some(index), Some(found)) => candidate_runs[index].reject(found),
                (Some(index), None) => taken[index] = Some(figures),
            }
        }
        let Some(own) = own else { return Ok(()) };
        self.walls.push(own.0);
        self.cpus.push(own.1);
        for (candidate_run, figures) in candidate_runs.iter_mut().zip(taken) {
            if let Some(figures) = figures {
                candidate_run.add(figures, own);
            }
        }
        Ok(())
    }
}

/// Returns the shell text of a pipeline that reads `input`. With `in_place_of_file`, the first
/// stage reads standard input instead of the file that it names. Returns `None` if it names no file
/// that can be replaced.
fn text_of(draft: &Draft, input: &Input) -> Option<String> {
    let first = draft.stages.first()?.simple.as_ref();
    let names_file = first.is_some_and(|simple| matches!(source(simple), Source::File(_)));
    if !input.in_place_of_file {
        return Some(draft.text_with_output());
    }
    if !names_file {
        return None; // the stage would not read the sample
    }
    let mut changed = draft.clone();
    changed.stages[0].text = from_standard_input(first?)?.text();
    Some(changed.text_with_output())
}

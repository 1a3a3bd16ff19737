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
pub mod ranking;
pub mod rounds;

use std::fs::File;
use std::time::{Duration, Instant};

use contend_commands::purity::{Source, from_standard_input, source};
use contend_record::advice::{Trial, TrialInput, Verdict};
use contend_record::stats::{Estimate, median};
use contend_shell::runner::{RunError, Runner};

use crate::predict::advise::Prepared;
use crate::rewrite::draft::Draft;
use crate::sample::temporary;
use rounds::{Effort, Ended, Rounds, RoundsError, Rules, Unstable, check_room, mismatch};

pub use candidate_run::CandidateRun;

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

impl From<RoundsError> for TrialError {
    fn from(error: RoundsError) -> Self {
        match error {
            RoundsError::Run(error) => Self::Run(error),
            RoundsError::NotRepeatable(found) => Self::NotRepeatable(found),
            RoundsError::NoRoom => Self::NoRoom,
        }
    }
}

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
    let text = text_of(original, &config.input).ok_or(TrialError::NoPlaceForSample)?;
    let setup = setup_time(&config.runner)?;
    let run = |text: &String, output: &File, limit: Duration| {
        config.runner.run(text, config.input.stdin.as_ref(), output, limit)
    };
    let rules = Rules {
        effort: Effort::Budget {
            time: config.budget.saturating_sub(begun.elapsed()),
            min_rounds: 0,
        },
        unstable: Unstable::Refuse,
        output_bytes: config.output_bytes,
        seed: config.seed,
    };
    // The setup is not part of the pipeline.
    let mut rounds = Rounds::begin(&text, &run, rules, setup)?;
    check_expected(config, rounds.reference())?;
    rounds.repeat()?;
    let ended = run_rounds(&mut rounds, config, candidates, together, on_round)?;
    let seconds = begun.elapsed().as_secs_f64();
    let (walls, cpus) = rounds.original_times();
    let [original_wall_seconds, original_cpu_seconds] =
        [walls, cpus].map(|samples| Estimate::from_samples(samples.to_vec(), config.seed));
    let (winner, confirmed) = confirmed_winner(config, original, candidates)?;
    let winner = ranking::sort(candidates, winner, |one| &one.candidate.measured);
    Ok(Trial {
        input: config.what.clone(),
        rounds: ended.rounds,
        seconds,
        budget_seconds: config.budget.as_secs_f64(),
        settled: ended.settled,
        interrupted: config.runner.signals.interrupted().is_some(),
        original_wall_seconds,
        original_cpu_seconds,
        winner,
        confirmed_on_whole_input: confirmed.as_ref().map(|confirmed| confirmed.same),
        whole_wall_seconds: confirmed.map(|confirmed| confirmed.walls),
        load: Vec::new(),
    })
}

/// Runs the rounds of the candidates that are worth trying and, once, of the one that `together` adds,
/// and adds the measurements to the candidates.
fn run_rounds(
    rounds: &mut Rounds<'_, String>,
    config: &TrialConfig<'_>,
    candidates: &mut Vec<Prepared>,
    together: &mut Together<'_>,
    on_round: &mut dyn FnMut(usize, f64),
) -> Result<Ended, TrialError> {
    let mut candidate_runs: Vec<CandidateRun<String>> = candidates
        .iter()
        .enumerate()
        .filter(|(_, one)| one.is_worth_trying(config.under_load))
        .filter_map(|(place, one)| {
            Some(CandidateRun::new(place, text_of(&one.draft, &config.input)?))
        })
        .collect();
    let mut add = |runs: &[CandidateRun<String>]| {
        for run in runs {
            candidates[run.place].candidate.measured = run.measurement(config.seed);
        }
        let Some(one) = together(candidates)? else { return Ok(None) };
        let is_untried = one.candidate.measured.verdict == Verdict::NotTried;
        let text = text_of(&one.draft, &config.input).filter(|_| is_untried);
        let run = text.map(|text| CandidateRun::new(candidates.len(), text));
        candidates.push(one);
        Ok(run)
    };
    let ended = rounds.run_all(&mut candidate_runs, &mut add, on_round)?;
    for run in &candidate_runs {
        candidates[run.place].candidate.measured = rounds.measurement(run);
    }
    Ok(ended)
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
        if candidates[place].candidate.measured.verdict.recommends() {
            return Ok((Some(place), confirmed));
        }
    }
    Ok((None, None))
}

/// Returns the index of the best recommended candidate, or `None` if none is recommended. A
/// candidate that is faster is better than one that saves only CPU time. Among several of the same
/// kind, the one with the lowest ratio of its wall time to the original's is best.
fn winner(candidates: &[Prepared]) -> Option<usize> {
    ranking::best(candidates, |one| &one.candidate.measured)
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
    let faster = winner.candidate.measured.verdict == Verdict::Faster;
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
        if let Some(found) = mismatch((&ours, own), (&theirs, other))? {
            let measured = &mut winner.candidate.measured;
            measured.output_equal = Some(false);
            measured.difference = Some(format!("on the whole input: {found}"));
            measured.verdict = Verdict::Wrong;
            return Ok(Some(Confirmed { same: false, walls: [0.0, 0.0] }));
        }
        if round == 0 && keeps(&walls, &cpus) {
            break;
        }
    }
    let kept = keeps(&walls, &cpus);
    let walls = walls.map(|walls| median(&walls).unwrap_or(0.0));
    if !kept {
        winner.candidate.measured.verdict = Verdict::Unclear; // faster only on the sample
    }
    Ok(Some(Confirmed { same: true, walls }))
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

/// Checks that the original's exit code and output size in the trial are those of the profiled run, as
/// far as these are known.
fn check_expected(
    config: &TrialConfig<'_>,
    (output, status): (&File, i32),
) -> Result<(), TrialError> {
    let Some(expected) = config.expected else { return Ok(()) };
    let written = output.metadata().map_err(RunError::io("stat a file"))?.len();
    let differs = |what: &str, then: u64, now: u64| {
        Err(TrialError::NotRepeatable(format!("{what} {then} when profiled, {now} when tried")))
    };
    let number = |status: i32| u64::from(status.unsigned_abs());
    if expected.status != status {
        return differs("status", number(expected.status), number(status));
    }
    match expected.bytes {
        Some(bytes) if bytes != written => differs("bytes of output:", bytes, written),
        _ => Ok(()),
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

//! Measures pipelines while several copies of each run concurrently. A candidate that is faster
//! alone because it uses idle CPUs may be slower without idle CPUs.

use std::fs::File;
use std::time::{Duration, Instant};

use contend_record::advice::{LoadFigures, LoadPoint, Verdict};
use contend_record::stats::{Estimate, median};
use contend_shell::runner::{RunError, Timed};

use super::{TrialConfig, TrialError, text_of};
use crate::predict::advise::Prepared;
use crate::rewrite::draft::Draft;
use crate::sample::temporary;

/// Maximum number of candidates that run under load.
const MAX_CANDIDATES: usize = 3;
/// Maximum number of rounds for each number of copies.
const ROUNDS: usize = 7;

/// The samples under load of the original (`candidate` is `None`) or of the candidate with this
/// index.
struct Loaded {
    candidate: Option<usize>,
    text: String,
    walls: Vec<f64>,
    copies: Vec<Timed>,
}

/// Measures the original and the best candidates with each of the given numbers of copies. Each
/// number may use an equal share of the budget, but gets at least three rounds. If a signal
/// interrupts the measurement, returns the points that are complete.
///
/// # Errors
/// Returns an error in these cases:
/// - a sample cannot replace the input of the original's first stage;
/// - a run fails;
/// - a temporary file cannot be created.
pub fn sweep(
    config: &TrialConfig<'_>,
    original: &Draft,
    candidates: &[Prepared],
    copies: &[usize],
) -> Result<Vec<LoadPoint>, TrialError> {
    let own = text_of(original, &config.input).ok_or(TrialError::NoPlaceForSample)?;
    let mut texts = vec![(None, own)];
    for place in fittest(candidates) {
        texts.extend(text_of(&candidates[place].draft, &config.input).map(|t| (Some(place), t)));
    }
    let share = config.budget / u32::try_from(copies.len().max(1)).unwrap_or(1);
    let mut points = Vec::new();
    for &copies in copies {
        match point(config, &texts, copies, share) {
            Ok(point) => points.push(point),
            // Keep the points that are complete.
            Err(TrialError::Run(RunError::Interrupted(_))) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(points)
}

/// Returns the indices of up to [`MAX_CANDIDATES`] candidates with the right output, least CPU time
/// first: without idle CPUs, these should be fastest.
fn fittest(candidates: &[Prepared]) -> Vec<usize> {
    let equal = |one: &Prepared| {
        one.candidate.measured.output_equal == Some(true)
            && one.candidate.measured.verdict != Verdict::Wrong
    };
    let mut places: Vec<usize> = (0..candidates.len()).filter(|&i| equal(&candidates[i])).collect();
    let cpu = |place: usize| {
        let ratio = candidates[place].candidate.measured.cpu_ratio.as_ref();
        ratio.map_or(f64::INFINITY, |ratio| ratio.median)
    };
    places.sort_by(|&a, &b| cpu(a).total_cmp(&cpu(b)));
    places.truncate(MAX_CANDIDATES);
    places
}

fn point(
    config: &TrialConfig<'_>,
    texts: &[(Option<usize>, String)],
    copies: usize,
    budget: Duration,
) -> Result<LoadPoint, TrialError> {
    let outputs: Vec<File> = (0..copies)
        .map(|_| temporary(config.output_bytes.saturating_mul(copies as u64)))
        .collect::<Result<_, _>>()
        .map_err(RunError::io("create a temporary file"))?;
    let outputs: Vec<&File> = outputs.iter().collect();
    let mut loaded: Vec<Loaded> = texts
        .iter()
        .map(|(candidate, text)| Loaded {
            candidate: *candidate,
            text: text.clone(),
            walls: Vec::new(),
            copies: Vec::new(),
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(config.seed);
    let begun = Instant::now();
    for round in 0..ROUNDS {
        // At least three rounds run: a median of fewer is meaningless.
        if round >= 3 && begun.elapsed() >= budget {
            break;
        }
        random.shuffle(&mut loaded);
        for one in &mut loaded {
            let stdin = config.input.stdin.as_ref();
            let limit = Duration::from_hours(24);
            let started = Instant::now();
            let runs = config.runner.run_copies(&one.text, copies, stdin, &outputs, limit)?;
            one.walls.push(started.elapsed().as_secs_f64());
            one.copies.extend(runs);
        }
    }
    loaded.sort_by_key(|one| one.candidate.map_or(0, |place| place + 1));
    Ok(LoadPoint {
        copies,
        figures: loaded.iter().filter_map(|one| figures(one, copies)).collect(),
    })
}

fn figures(one: &Loaded, copies: usize) -> Option<LoadFigures> {
    let wall_seconds = Estimate::from_samples(one.walls.clone(), 0)?;
    let over = |value: fn(&Timed) -> Duration| {
        median(&one.copies.iter().map(|run| value(run).as_secs_f64()).collect::<Vec<_>>())
    };
    Some(LoadFigures {
        candidate: one.candidate,
        copy_wall_seconds: over(|run| run.wall)?,
        user_seconds: copies as f64 * over(|run| run.user)?,
        system_seconds: copies as f64 * over(|run| run.system)?,
        copies_per_second: copies as f64 / wall_seconds.median.max(1e-9),
        wall_seconds,
    })
}

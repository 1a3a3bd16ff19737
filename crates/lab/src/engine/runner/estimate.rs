//! How long a run will go on.
//!
//! A case with a set number of samples gets the first one whatever it takes, so the budget alone says little:
//! what such cases take is known once one of the same experiment has been measured.

use std::collections::BTreeMap;
use std::time::Duration;

use super::track::Track;
use super::world::Left;
use crate::engine::experiment::Sampling;

/// What is left for these cases when so much of the budget is left.
pub(super) fn left(tracks: &[Track<'_>], budget: Duration) -> Left {
    let first_rounds = first_rounds(tracks);
    let (mut first, mut more, mut unknown) = (Duration::ZERO, Duration::ZERO, 0);
    let mut open_ended = false;
    for track in tracks.iter().filter(|track| !track.is_done()) {
        if track.visits == 0 {
            match first_rounds.get(track.planned.experiment.name) {
                Some(&mean) => first += mean,
                None => unknown += 1,
            }
        }
        match track.planned.sampling {
            Sampling::Adaptive => open_ended = true,
            Sampling::Fixed(count) => more += mean(track) * missing(track, count),
        }
    }
    let wanted = if open_ended { budget } else { budget.min(first + more) };
    let time = first.max(wanted);
    match unknown {
        0 => Left::About(time),
        cases => Left::Partly { time, cases },
    }
}

/// What the first visit of a case takes on average, by experiment.
fn first_rounds(tracks: &[Track<'_>]) -> BTreeMap<&'static str, Duration> {
    let mut sums: BTreeMap<&'static str, (Duration, u32)> = BTreeMap::new();
    for track in tracks.iter().filter(|track| track.visits > 0) {
        let (sum, count) = sums.entry(track.planned.experiment.name).or_default();
        (*sum, *count) = (*sum + track.first_visit, *count + 1);
    }
    sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect()
}

/// How many samples a case still wants after its first one.
fn missing(track: &Track<'_>, count: usize) -> u32 {
    let taken = track.samples.count().max(1);
    u32::try_from(count.saturating_sub(taken)).unwrap_or(u32::MAX)
}

/// What one visit of a case has taken on average; nothing before the first one.
fn mean(track: &Track<'_>) -> Duration {
    track.visited.checked_div(track.visits).unwrap_or_default()
}

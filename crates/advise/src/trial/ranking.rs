//! The best of several tried candidates, and their order.

use contend_record::advice::{Measurement, Verdict};
use contend_record::stats::Estimate;

/// Returns the index of the best recommended candidate, or `None` if none is recommended. A candidate
/// that is faster is better than one that saves only CPU time. Among several of the same kind, the one
/// with the lowest ratio of its wall time to the original's is best.
pub fn best<T>(candidates: &[T], measured: impl Fn(&T) -> &Measurement) -> Option<usize> {
    let ratio = |place: &usize| {
        let measured = measured(&candidates[*place]);
        let of = |estimate: &Option<Estimate>| estimate.as_ref().map_or(1.0, |e| e.median);
        (measured.verdict != Verdict::Faster, of(&measured.wall_ratio), of(&measured.cpu_ratio))
    };
    let is_recommended = |place: &usize| measured(&candidates[*place]).verdict.recommends();
    (0..candidates.len()).filter(is_recommended).min_by(|a, b| {
        let (a, b) = (ratio(a), ratio(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    })
}

/// Moves the winner to the front, and sorts the other candidates: recommended ones, those without a
/// gain, wrong ones, and finally those without measurements. Candidates of a group are in ascending
/// order of wall time, or keep their order if they have none. Returns the new index of the winner.
pub fn sort<T>(
    candidates: &mut [T],
    winner: Option<usize>,
    measured: impl Fn(&T) -> &Measurement,
) -> Option<usize> {
    let mut others = &mut *candidates;
    if let Some(place) = winner {
        others[..=place].rotate_right(1);
        others = &mut others[1..];
    }
    let wall = |one: &T| measured(one).wall_ratio.as_ref().map_or(f64::MAX, |of| of.median);
    let group = |one: &T| match measured(one).verdict {
        verdict if verdict.recommends() => 0,
        Verdict::Wrong => 2,
        _ if measured(one).wall_ratio.is_some() => 1,
        _ => 3,
    };
    others.sort_by(|a, b| group(a).cmp(&group(b)).then(wall(a).total_cmp(&wall(b))));
    winner.map(|_| 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_precedes_recommended_useless_wrong_and_untried_candidates() {
        let one = |verdict, wall: Option<f64>| Measurement {
            verdict,
            wall_ratio: wall.and_then(|wall| Estimate::from_samples(vec![wall], 1)),
            ..Measurement::default()
        };
        let mut all = [
            one(Verdict::NotTried, None),
            one(Verdict::Wrong, Some(0.1)),
            one(Verdict::Slower, Some(2.0)),
            one(Verdict::Cheaper, Some(0.7)),
            one(Verdict::NoDifference, Some(1.0)),
            one(Verdict::Faster, Some(0.8)),
        ];
        let winner = best(&all, |one| one);
        assert_eq!(winner, Some(5), "faster beats cheaper");
        assert_eq!(sort(&mut all, winner, |one| one), Some(0));
        let verdicts = all.map(|one| one.verdict);
        let expected = [
            Verdict::Faster,
            Verdict::Cheaper,
            Verdict::NoDifference,
            Verdict::Slower,
            Verdict::Wrong,
            Verdict::NotTried,
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(best(&[one(Verdict::Slower, Some(1.2))], |one| one), None);
    }
}

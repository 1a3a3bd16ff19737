//! Renders how the pipelines of a trial compare with each other when several copies of each run at
//! once, and between which numbers of copies the ranking changes.

use std::fmt::Write as _;

use comfy_table::Cell;
use contend_record::advice::{LoadPoint, Trial};
use contend_record::pipe::PipeRecord;
use contend_record::stats::Estimate;

use super::super::layout::{BOLD, aligned_left, dimmed, paragraph, plain_table, styled_lines};
use super::super::units::seconds;
use super::{change, pasted};

/// Maximum width of the bars, in columns. The columns to their left take `TABLE_COLUMNS`.
const BAR_COLUMNS: usize = 24;
const TABLE_COLUMNS: usize = 68;

/// Writes the section about runs of several copies at once: the measurements of the original and of
/// the candidates, and how the ranking depends on the number of copies. Writes nothing if the trial
/// has no such measurements.
pub(super) fn section(out: &mut String, record: &PipeRecord, trial: &Trial, width: usize) {
    if trial.load.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}Under load{BOLD:#}");
    let mut table = plain_table();
    let headings = ["copies", "pipeline", "wall", "per copy", "user", "sys", "copies/s", ""];
    table.set_header(headings.iter().enumerate().map(|(i, h)| cell(i, (*h).to_owned())));
    for point in &trial.load {
        for row in rows(point, width) {
            table.add_row(row.into_iter().enumerate().map(|(i, text)| cell(i, text)));
        }
    }
    out.push_str(&styled_lines(table, None, width));
    let numbered = trial.load.iter().flat_map(|p| &p.figures).filter_map(|f| f.candidate);
    let mut named: Vec<usize> = numbered.collect();
    named.sort_unstable();
    named.dedup();
    for place in named {
        if let Some(candidate) = record.candidates.get(place) {
            let _ = writeln!(out, "{}: {}", place + 1, pasted(&candidate.command));
        }
    }
    if trial.load.len() > 1 {
        crossing(out, trial, width);
    }
    paragraph(out, "", &ranking(trial), width);
    for line in changing_sides(trial) {
        paragraph(out, "", &line, width);
    }
}

/// The median ratio of two pipelines' wall times in the same round, at one number of copies, with
/// its 95 % interval (or the range of the ratios, with fewer than six rounds).
struct Ratio {
    median: f64,
    range: [f64; 2],
}

impl Ratio {
    fn of(point: &LoadPoint, one: Option<usize>, by: Option<usize>) -> Option<Self> {
        let walls = |candidate| {
            let figures = point.figures.iter().find(|figures| figures.candidate == candidate)?;
            Some(figures.wall_seconds.samples.iter())
        };
        let ratios: Vec<f64> = walls(one)?.zip(walls(by)?).map(|(one, by)| one / by).collect();
        let least = ratios.iter().copied().reduce(f64::min)?;
        let most = ratios.iter().copied().reduce(f64::max)?;
        let all = Estimate::from_samples(ratios, 0)?;
        // With few samples, only their range is meaningful.
        let range = if all.samples.len() < 6 { [least, most] } else { all.ci95 };
        Some(Self { median: all.median, range })
    }

    fn is_faster(&self) -> bool {
        self.range[1] < 1.0 - MIN_DIFFERENCE
    }

    fn is_slower(&self) -> bool {
        self.range[0] > 1.0 + MIN_DIFFERENCE
    }
}

/// Minimum distance between 1 and the interval of a ratio for the ratio to count as different from
/// 1.
const MIN_DIFFERENCE: f64 = 0.01;

/// Returns a sentence for each candidate that is clearly slower than the original with few copies
/// and clearly faster with more, or the reverse. The trial must have figures under load.
fn changing_sides(trial: &Trial) -> Vec<String> {
    let places = trial.load[0].figures.iter().filter_map(|figures| figures.candidate);
    let sides = places.filter_map(|place| {
        let mut clear = trial.load.iter().filter_map(|point| {
            let ratio = Ratio::of(point, Some(place), None)?;
            (ratio.is_faster() || ratio.is_slower()).then(|| (point.copies, ratio.is_slower()))
        });
        let (first, was_slower) = clear.next()?;
        let (turned, _) = clear.find(|(_, slower)| *slower != was_slower)?;
        let (before, after) = if was_slower { ("slower", "faster") } else { ("faster", "slower") };
        Some(format!(
            "Rewrite {} is {before} than the original with {}, but {after} with {turned}.",
            place + 1,
            copies(first),
        ))
    });
    sides.collect()
}

fn copies(number: usize) -> String {
    format!("{number} cop{}", if number == 1 { "y" } else { "ies" })
}

/// Writes a table of the ratio of each candidate's wall time to the original's, with a column for
/// each number of copies. A mark shows that the candidate is faster or slower beyond noise, so the
/// ranking changes where the mark changes.
fn crossing(out: &mut String, trial: &Trial, width: usize) {
    let mut table = plain_table();
    let counts = trial.load.iter().map(|point| format!("{}×", point.copies));
    let heading = ["wall, relative to the original".to_owned()].into_iter().chain(counts);
    table.set_header(heading.enumerate().map(|(i, text)| aligned_left(i, 1, text)));
    let places = trial.load[0].figures.iter().filter_map(|figures| figures.candidate);
    for place in places {
        let ratios = trial.load.iter().map(|point| match Ratio::of(point, Some(place), None) {
            Some(ratio) => {
                let mark = match (ratio.is_faster(), ratio.is_slower()) {
                    (true, _) => "▼",
                    (_, true) => "▲",
                    _ => " ",
                };
                format!("{} {mark}", change(ratio.median))
            }
            None => String::new(),
        });
        let row = [format!("rewrite {}", place + 1)].into_iter().chain(ratios);
        table.add_row(row.enumerate().map(|(i, text)| aligned_left(i, 1, text)));
    }
    out.push('\n');
    out.push_str(&styled_lines(table, None, width));
    dimmed(out, "▼ faster, ▲ slower than the original beyond noise", width);
}

fn cell(position: usize, text: String) -> Cell {
    let left = position == 1 || position == 7;
    if left { Cell::new(text) } else { aligned_left(position, 0, text) }
}

fn rows(point: &LoadPoint, width: usize) -> Vec<Vec<String>> {
    let most = point.figures.iter().map(|f| f.copies_per_second).fold(0.0, f64::max);
    let bar = width.saturating_sub(TABLE_COLUMNS).min(BAR_COLUMNS);
    point
        .figures
        .iter()
        .enumerate()
        .map(|(number, figures)| {
            // The value is at most `BAR_COLUMNS`.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "see above"
            )]
            let long = (bar as f64 * figures.copies_per_second / most.max(1e-9)).round() as usize;
            vec![
                if number == 0 { point.copies.to_string() } else { String::new() },
                figures.candidate.map_or("original".to_owned(), |place| (place + 1).to_string()),
                seconds(figures.wall_seconds.median),
                seconds(figures.copy_wall_seconds),
                seconds(figures.user_seconds),
                seconds(figures.system_seconds),
                format!("{:.2}", figures.copies_per_second),
                "█".repeat(long),
            ]
        })
        .collect()
}

/// Returns a sentence about which pipeline is fastest, and between which numbers of copies that
/// changes; empty without figures under load.
fn ranking(trial: &Trial) -> String {
    let Some((first, last)) = trial.load.first().zip(trial.load.last()) else {
        return String::new();
    };
    let best = |point: &LoadPoint| {
        let fastest = point
            .figures
            .iter()
            .min_by(|a, b| a.wall_seconds.median.total_cmp(&b.wall_seconds.median));
        fastest.and_then(|figures| figures.candidate)
    };
    let name = |candidate: Option<usize>| {
        candidate.map_or("the original".to_owned(), |place| format!("rewrite {}", place + 1))
    };
    let beats = |point, one, other| Ratio::of(point, one, other).is_some_and(|r| r.is_faster());
    // Prefers a change between adjacent numbers of copies to one between distant ones.
    let count = trial.load.len();
    let pairs = (1..count).flat_map(|gap| (gap..count).map(move |after| (after - gap, after)));
    let pairs = pairs.map(|(before, after)| (&trial.load[before], &trial.load[after]));
    let turn = pairs.map(|(before, after)| (before, best(before), after, best(after))).find(
        |(before, one, after, other)| beats(before, *one, *other) && beats(after, *other, *one),
    );
    let fastest = name(best(first));
    if let Some((before, one, after, other)) = turn {
        format!(
            "The winner changes between {} and {} copies, from {} to {}.",
            before.copies,
            after.copies,
            name(one),
            name(other),
        )
    } else if trial.load.len() == 1 {
        let others = first.figures.iter().map(|figures| figures.candidate);
        let mut others = others.filter(|other| *other != best(first));
        let clear = others.all(|other| beats(first, best(first), other));
        let doubt = if clear { "" } else { ", but within noise of another" };
        format!("With {} {fastest} is fastest{doubt}.", copies(first.copies))
    } else if trial.load.iter().all(|point| best(point) == best(first)) {
        format!(
            "The winner is the same from {} to {} copies: {fastest}.",
            first.copies, last.copies
        )
    } else {
        format!(
            "The winner differs between {} and {} copies, but within noise.",
            first.copies, last.copies
        )
    }
}

#[cfg(test)]
mod tests {
    use contend_record::advice::TrialInput;

    use super::super::super::testing::plain_output;
    use super::*;

    fn point(copies: usize, walls: [f64; 3]) -> LoadPoint {
        let figures = [None, Some(0), Some(1)].into_iter().zip(walls).map(|(candidate, wall)| {
            contend_record::advice::LoadFigures {
                candidate,
                wall_seconds: Estimate::from_samples(vec![wall; 3], 1).expect("samples"),
                copy_wall_seconds: wall,
                user_seconds: wall,
                system_seconds: 0.0,
                copies_per_second: copies as f64 / wall,
            }
        });
        LoadPoint { copies, figures: figures.collect() }
    }

    #[test]
    fn the_number_of_copies_at_which_the_winner_changes_is_reported() {
        let mut trial = Trial::without_candidates(TrialInput::Own, 1.0);
        trial.load =
            vec![point(1, [1.0, 0.7, 1.2]), point(2, [1.5, 1.4, 1.51]), point(8, [8.0, 8.4, 6.0])];
        assert!(
            ranking(&trial).contains("between 2 and 8 copies, from rewrite 1 to rewrite 2"),
            "{}",
            ranking(&trial)
        );
        assert_eq!(
            changing_sides(&trial),
            [
                "Rewrite 1 is faster than the original with 1 copy, but slower with 8.",
                "Rewrite 2 is slower than the original with 1 copy, but faster with 8.",
            ]
        );
        let plain = plain_output(|out| crossing(out, &trial, 80));
        assert!(plain.contains("−30 % ▼") && plain.contains("+5 % ▲"), "{plain}");
        trial.load.truncate(1);
        assert!(changing_sides(&trial).is_empty());
        assert_eq!(ranking(&trial), "With 1 copy rewrite 1 is fastest.");
    }

    #[test]
    fn a_difference_within_noise_changes_no_winner() {
        let mut trial = Trial::without_candidates(TrialInput::Own, 1.0);
        trial.load = vec![point(1, [1.0, 0.97, 1.2]), point(2, [1.5, 1.55, 1.6])];
        for figures in trial.load.iter_mut().flat_map(|point| &mut point.figures) {
            let wall = figures.wall_seconds.median;
            let spread =
                if figures.candidate.is_some() { [1.1, 1.0, 0.9] } else { [0.9, 1.0, 1.1] };
            let walls = spread.map(|factor| factor * wall).to_vec();
            figures.wall_seconds = Estimate::from_samples(walls, 1).expect("samples");
        }
        assert!(ranking(&trial).contains("within noise"), "{}", ranking(&trial));
        assert!(changing_sides(&trial).is_empty());
    }
}

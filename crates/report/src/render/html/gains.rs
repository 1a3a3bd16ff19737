//! What changes brought: the measured change of time of each, and the predicted one.

use contend_record::advice::{Candidate, Measurement, Verdict};
use contend_record::pipe::PipeRecord;
use contend_record::remedy::RemedyTrial;
use contend_record::stats::Estimate;

use super::chart::Colour;
use super::chart::rows::{self, Row};
use super::frame::Figure;
use super::label;
use super::table::{Cell, Table};
use crate::render::advice::{candidate_name, change, change_with_interval, verdict_name};
use crate::render::text::printable;
use crate::render::units::{counted, ratio};

/// A change with its results.
struct Tried<'a> {
    name: String,
    command: &'a str,
    measured: &'a Measurement,
    /// Predicted wall time, as a ratio to the unchanged one.
    predicted: Option<f64>,
}

/// Returns the figure of the remedies of a diagnosis that were tried.
pub(super) fn remedies(trial: &RemedyTrial) -> Figure {
    let tried = trial.remedies.iter().map(|remedy| Tried {
        name: remedy.change.clone(),
        command: &remedy.command,
        measured: &remedy.measured,
        predicted: None,
    });
    figure("Wall time with each remedy", &tried.collect::<Vec<_>>(), trial.trial.rounds)
}

/// Returns the figure of the rewrites of a pipeline; `None` without rewrites.
pub(super) fn rewrites(record: &PipeRecord) -> Option<Figure> {
    let unchanged = record
        .predicted_unchanged
        .as_ref()
        .and_then(|unchanged| unchanged.wall_seconds)
        .unwrap_or(record.wall_seconds);
    let ratio = |candidate: &Candidate| Some(candidate.predicted_wall_seconds? / unchanged);
    let tried = record.candidates.iter().map(|candidate| Tried {
        name: candidate_name(candidate),
        command: &candidate.command,
        measured: &candidate.measured,
        predicted: ratio(candidate),
    });
    let tried: Vec<Tried<'_>> = tried.collect();
    let rounds = record.trial.as_ref().map_or(0, |trial| trial.rounds);
    (!tried.is_empty()).then(|| figure("Wall time with each change", &tried, rounds))
}

fn figure(title: &str, tried: &[Tried<'_>], rounds: usize) -> Figure {
    let mut bars = vec![Row::bar("unchanged", 1.0, "1.00", Colour::NEUTRAL)];
    let headings =
        ["change", "#wall time", "#CPU time", "#predicted wall time", "result", "command"];
    let mut table = Table::new(&headings);
    for change in tried {
        bars.push(row(change));
        table.push(vec![
            printable(&change.name).into(),
            estimate(change.measured.wall_ratio.as_ref()),
            estimate(change.measured.cpu_ratio.as_ref()),
            change.predicted.map_or_else(Cell::default, |predicted| {
                Cell::number(self::change(predicted), predicted)
            }),
            verdict_name(change.measured.verdict).into(),
            printable(change.command).into(),
        ]);
    }
    let best = tried
        .iter()
        .filter_map(|one| Some((one, one.measured.wall_ratio.as_ref()?.median)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let alternative = match best {
        Some((best, median)) => format!(
            "Bars of wall time as a ratio to the unchanged command. The shortest is {} at {}.",
            printable(&best.name),
            self::ratio(median)
        ),
        None => "Bars of predicted wall time as a ratio to the unchanged command.".to_owned(),
    };
    let method = match rounds {
        0 => "Predicted from the profile, not measured: --try measures them.".to_owned(),
        _ => format!(
            "Ratio of wall times to those of the unchanged command, which ran in turn with each change: median \
             and 95 % interval of {}.",
            counted(rounds as u64, "round")
        ),
    };
    let scale = rows::scale(&bars);
    Figure {
        title: title.to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, self::ratio, &[1.0], &alternative),
        table,
        method,
    }
}

fn row(tried: &Tried<'_>) -> Row {
    let name = label(&tried.name);
    let measured = tried.measured.wall_ratio.as_ref();
    let predicted = tried
        .predicted
        .map(|predicted| (predicted, format!("{name}: predicted {}", change(predicted))));
    match (measured, predicted) {
        (Some(ratio), reference) => Row {
            interval: (ratio.samples.len() > 2).then_some(ratio.ci95),
            reference,
            ..Row::bar(
                name,
                ratio.median,
                change_with_interval(ratio),
                colour(tried.measured.verdict),
            )
        },
        (None, Some((predicted, _))) => {
            let value = format!("predicted {}", change(predicted));
            Row::bar(name, predicted, value, Colour(2))
        }
        (None, None) => Row { label: name, value: "not predicted".to_owned(), ..Row::default() },
    }
}

fn estimate(ratio: Option<&Estimate>) -> Cell {
    ratio
        .map_or_else(Cell::default, |ratio| Cell::number(change_with_interval(ratio), ratio.median))
}

fn colour(verdict: Verdict) -> Colour {
    match verdict {
        Verdict::Faster | Verdict::Cheaper => Colour(4),
        Verdict::Slower | Verdict::Wrong => Colour(3),
        Verdict::NoDifference | Verdict::Unclear | Verdict::NotTried => Colour(2),
    }
}

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
use crate::render::advice::{
    basis_of_predictions, brackets, candidate_name, change, change_with_interval, ends, unchanged,
    verdict_name, why_no_wall_times,
};
use crate::render::text::printable;
use crate::render::units::{counted, ratio};

/// A change with its results.
struct Tried<'a> {
    name: String,
    command: &'a str,
    measured: &'a Measurement,
    /// Predicted time, as a ratio to the unchanged one.
    predicted: Option<f64>,
}

/// A time that changes of a pipeline save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    WallTime,
    /// It is predicted even on a busy machine, on which wall times are not.
    CpuTime,
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            Self::WallTime => "wall time",
            Self::CpuTime => "CPU time",
        }
    }
}

/// Returns the figure of the remedies of a diagnosis that were tried.
pub(super) fn remedies(trial: &RemedyTrial) -> Figure {
    let tried = trial.remedies.iter().map(|remedy| Tried {
        name: remedy.change.clone(),
        command: &remedy.command,
        measured: &remedy.measured,
        predicted: None,
    });
    let tried: Vec<Tried<'_>> = tried.collect();
    let title = "Wall time with each remedy";
    figure(title, Quantity::WallTime, &tried, trial.trial.rounds)
}

/// Returns the figure of the rewrites of a pipeline; `None` without rewrites.
pub(super) fn rewrites(record: &PipeRecord) -> Option<Figure> {
    if record.candidates.is_empty() {
        return None;
    }
    let quantity = quantity(record);
    let unchanged = unchanged(record);
    let ratio = |candidate: &Candidate| match quantity {
        Quantity::WallTime => Some(candidate.predicted_wall_seconds? / unchanged.wall_seconds?),
        Quantity::CpuTime => Some(candidate.predicted_cpu_seconds? / unchanged.cpu_seconds),
    };
    let tried = record.candidates.iter().map(|candidate| Tried {
        name: candidate_name(candidate),
        command: &candidate.command,
        measured: &candidate.measured,
        predicted: ratio(candidate).filter(|ratio| ratio.is_finite()),
    });
    let tried: Vec<Tried<'_>> = tried.collect();
    let rounds = match quantity {
        Quantity::WallTime => record.trial.as_ref().map_or(0, |trial| trial.rounds),
        Quantity::CpuTime => 0,
    };
    let title = match quantity {
        Quantity::WallTime => "Wall time with each change",
        Quantity::CpuTime => "CPU time with each change",
    };
    let figure = figure(title, quantity, &tried, rounds);
    let why = why_no_wall_times(record).filter(|_| quantity == Quantity::CpuTime);
    let notes = why.into_iter().chain(basis_of_predictions(record));
    let method = [figure.method].into_iter().chain(notes).collect::<Vec<_>>().join(" ");
    Some(Figure { method, ..figure })
}

/// Returns the time that the figure of the rewrites shows: CPU time if only that is known.
fn quantity(record: &PipeRecord) -> Quantity {
    let candidates = || record.candidates.iter();
    let has_wall = unchanged(record).wall_seconds.is_some()
        && candidates().any(|one| one.predicted_wall_seconds.is_some());
    let is_measured = candidates().any(|one| one.measured.wall_ratio.is_some());
    let has_cpu = candidates().any(|one| one.predicted_cpu_seconds.is_some());
    if has_cpu && !has_wall && !is_measured { Quantity::CpuTime } else { Quantity::WallTime }
}

fn figure(title: &str, quantity: Quantity, tried: &[Tried<'_>], rounds: usize) -> Figure {
    let mut bars = vec![Row::bar("unchanged", 1.0, "1.00", Colour::NEUTRAL)];
    let predicted = format!("#predicted {}", quantity.name());
    let headings = ["change", "#wall time", "#CPU time", &predicted, "result", "command"];
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
    let scale = rows::scale(&bars);
    Figure {
        title: title.to_owned(),
        legend: Vec::new(),
        chart: rows::draw(&bars, &scale, self::ratio, &[1.0], &alternative(quantity, tried)),
        table,
        method: method(tried, rounds),
    }
}

/// Describes the chart in a sentence or two. A change with another output is not praised, however fast it is.
fn alternative(quantity: Quantity, tried: &[Tried<'_>]) -> String {
    let ratio_of = |one: &Tried<'_>| Some(one.measured.wall_ratio.as_ref()?.median);
    if tried.iter().all(|one| ratio_of(one).is_none()) {
        let time = quantity.name();
        return format!("Bars of predicted {time} as a ratio to the unchanged command.");
    }
    let has_same_output = |one: &&Tried<'_>| one.measured.verdict != Verdict::Wrong;
    let best = tried
        .iter()
        .filter(has_same_output)
        .filter_map(|one| Some((one, ratio_of(one)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let best = match best {
        Some((best, median)) if median < 1.0 => {
            format!("The shortest is {} at {}.", printable(&best.name), ratio(median))
        }
        _ => "None with the same output is shorter than that of the unchanged command.".to_owned(),
    };
    format!("Bars of wall time as a ratio to the unchanged command. {best}")
}

/// Says how the ratios were measured, and what the lines at the ends of the bars are.
fn method(tried: &[Tried<'_>], rounds: usize) -> String {
    if rounds == 0 {
        return "Predicted from the profile, not measured: --try measures them.".to_owned();
    }
    let brackets = brackets(tried.iter().filter_map(|one| one.measured.wall_ratio.as_ref()));
    format!(
        "Ratio of wall times to those of the unchanged command, which ran in turn with each change: median{} of {}.",
        brackets.map_or_else(String::new, |words| format!(" [{words}]")),
        counted(rounds as u64, "round")
    )
}

fn row(tried: &Tried<'_>) -> Row {
    let name = label(&tried.name);
    let measured = tried.measured.wall_ratio.as_ref();
    let predicted = tried
        .predicted
        .map(|predicted| (predicted, format!("{name}: predicted {}", change(predicted))));
    match (measured, predicted) {
        (Some(ratio), reference) => {
            let verdict = tried.measured.verdict;
            let mut value = change_with_interval(ratio);
            if verdict == Verdict::Wrong {
                value = format!("{value}, {}", verdict_name(verdict));
            }
            let bar = Row::bar(name, ratio.median, value, colour(verdict));
            Row { interval: ends(ratio), reference, ..bar }
        }
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

#[cfg(test)]
mod tests {
    use contend_record::advice::{Prediction, RewriteId, Safety};

    use super::*;

    fn measured(median: f64, samples: usize, verdict: Verdict) -> Measurement {
        let ratios = [0.98, 1.0, 1.02].into_iter().cycle().take(samples).map(|one| one * median);
        Measurement {
            wall_ratio: Estimate::from_samples(ratios.collect(), 1),
            verdict,
            ..Measurement::default()
        }
    }

    fn tried(measured: &Measurement) -> Tried<'_> {
        Tried { name: format!("{:?}", measured.verdict), command: "", measured, predicted: None }
    }

    #[test]
    fn a_change_with_another_output_is_not_praised() {
        let wrong = measured(0.5, 6, Verdict::Wrong);
        let faster = measured(0.8, 6, Verdict::Faster);
        let text = alternative(Quantity::WallTime, &[tried(&wrong), tried(&faster)]);
        assert!(text.ends_with("The shortest is Faster at 0.80."), "{text}");
        let text = alternative(Quantity::WallTime, &[tried(&wrong)]);
        assert!(
            text.ends_with(
                "None with the same output is shorter than that of the unchanged command."
            ),
            "{text}"
        );
        assert!(row(&tried(&wrong)).value.ends_with(", WRONG OUTPUT"));
        let slower = measured(1.2, 6, Verdict::Slower);
        assert!(
            alternative(Quantity::WallTime, &[tried(&slower)])
                .contains("None with the same output")
        );
        let untried = Measurement::default();
        assert!(
            alternative(Quantity::WallTime, &[tried(&untried)])
                .starts_with("Bars of predicted wall time")
        );
    }

    #[test]
    fn a_few_rounds_have_no_interval() {
        for (rounds, words) in [
            (1, "median of 1 round."),
            (3, "median [minimum and maximum] of 3 rounds."),
            (5, "median [minimum and maximum] of 5 rounds."),
            (6, "median [95 % interval] of 6 rounds."),
        ] {
            let measured = measured(0.5, rounds, Verdict::Faster);
            let tried = tried(&measured);
            assert_eq!(row(&tried).interval.is_some(), rounds > 1, "{rounds}");
            let method = method(&[tried], rounds);
            assert!(method.ends_with(words), "{method}");
        }
    }

    /// Returns the record of a pipeline with a change. `wall` is the wall time, in seconds, that the model predicts for
    /// the unchanged pipeline.
    fn predicted(wall: Option<f64>) -> PipeRecord {
        let candidate = Candidate {
            rewrite: RewriteId::DropCat,
            rewrites: Vec::new(),
            variant: None,
            stages: vec![1],
            command: "sort <f".to_owned(),
            safety: Safety::Always,
            reason: String::new(),
            predicted_wall_seconds: wall.map(|wall| wall / 2.0),
            predicted_interval: None,
            predicted_cpu_seconds: Some(4.0),
            predicted_cpu_interval: None,
            basis: None,
            measured: Measurement::default(),
        };
        let mut record = PipeRecord {
            candidates: vec![candidate],
            predicted_unchanged: Some(Prediction { wall_seconds: wall, cpu_seconds: 5.0 }),
            ..PipeRecord::default()
        };
        record.observation.others_cpu_share = Some(0.74);
        record
    }

    #[test]
    fn without_wall_times_the_cpu_times_are_shown_with_the_reason() {
        let figure = |wall| rewrites(&predicted(wall)).expect("a change").markup().into_string();
        let busy = figure(None);
        for expected in [
            "<figcaption>CPU time with each change</figcaption>",
            ">predicted −20 %</text>",
            "Wall times are not predicted, because other programs used 74 % of the CPU time",
            "predicted CPU time",
        ] {
            assert!(busy.contains(expected), "{expected}: {busy}");
        }
        assert_eq!(busy.matches("<rect").count(), 2, "{busy}");
        let quiet = figure(Some(3.0));
        assert!(quiet.contains("<figcaption>Wall time with each change</figcaption>"), "{quiet}");
        assert!(quiet.contains(">predicted −50 %</text>"), "{quiet}");
        assert!(!quiet.contains("are not predicted"), "{quiet}");
    }
}

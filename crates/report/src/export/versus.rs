//! The tables of a comparison of pipelines: its variants.

use std::collections::BTreeSet;

use contend_record::stats::Estimate;
use contend_record::versus::{Ratios, Variant, VersusRecord};

use super::sheet::{Field, Quantity, Sheet, Workbook};
use super::{Spread, estimate, origin, pipe};

/// Returns the tables of a comparison of pipelines.
pub fn workbook(record: &VersusRecord) -> Workbook {
    let sheet = Sheet::new("variant", "Pipelines", &record.variants, variant(record));
    Workbook::new("versus", title(record), record, whole(), vec![sheet])
}

/// Returns the commands of all pipelines.
fn title(record: &VersusRecord) -> String {
    let commands: Vec<&str> =
        record.variants.iter().map(|variant| variant.command.as_str()).collect();
    commands.join(" vs ")
}

fn whole() -> Vec<Field<'static, VersusRecord>> {
    type Whole<'a> = Field<'a, VersusRecord>;
    let mut fields = vec![
        // They distinguish comparisons of different pipelines.
        Whole::label("pipelines", title).for_people(),
        Whole::figure(
            "rounds",
            Quantity::Count,
            "Number of rounds that were measured.",
            |record| record.rounds,
        ),
        Whole::detail("in_turn", |record| record.in_turn),
        Whole::detail("interrupted", |record| record.interrupted),
    ];
    fields.extend(origin(
        |record: &VersusRecord| &record.host,
        |record| record.contend.as_ref(),
        |record| &record.started_at,
    ));
    fields
}

fn variant(record: &VersusRecord) -> Vec<Field<'static, Variant>> {
    type OfVariant<'a> = Field<'a, Variant>;
    let mut fields = vec![
        OfVariant::label("variant", |variant| variant.name.clone()),
        OfVariant::label("command", |variant| variant.command.clone()),
        OfVariant::detail("origin", |variant| variant.origin.clone()),
    ];
    let parameters: BTreeSet<&String> =
        record.variants.iter().flat_map(|variant| variant.parameters.keys()).collect();
    fields.extend(parameters.into_iter().map(|name| {
        let key = name.clone();
        OfVariant::detail(format!("parameter_{name}"), move |variant| {
            variant.parameters.get(&key).cloned()
        })
    }));
    fields.push(OfVariant::figure("runs", Quantity::Count, "Number of runs.", |variant| {
        variant.wall_seconds.samples.len()
    }));
    fields.extend(figures(record));
    fields.extend([
        OfVariant::figure(
            "exit_code",
            Quantity::Plain,
            "Exit status of the last run that failed, or 0.",
            // That of a saved pipeline is unknown if contend was attached to it.
            |variant| pipe::exit_code(&variant.profile).map(|_| variant.exit_code),
        ),
        OfVariant::detail("output_equal", |variant| variant.output_equal),
        OfVariant::detail("difference", |variant| variant.difference.clone()),
    ]);
    fields
}

fn figures(record: &VersusRecord) -> impl Iterator<Item = Field<'static, Variant>> {
    let all = times(record.rounds).into_iter().chain(ratios(record.rounds, record.in_turn));
    // Wall times and their ratios have their intervals in tables for people, too.
    all.enumerate().flat_map(|(number, fields)| {
        let is_of_wall = number.is_multiple_of(3);
        fields.into_iter().enumerate().map(move |(place, field)| {
            if is_of_wall || place == 0 { field } else { field.for_programs() }
        })
    })
}

fn times(rounds: usize) -> [[Field<'static, Variant>; 5]; 3] {
    [
        estimate(
            ("wall", Quantity::Seconds),
            [
                "Median wall time.",
                "Lower end of the 95 % interval of the wall time.",
                "Upper end of the 95 % interval of the wall time.",
                "Shortest wall time.",
                "Longest wall time.",
            ],
            rounds,
            |variant: &Variant| Some((&variant.wall_seconds).into()),
        ),
        estimate(
            ("cpu", Quantity::Seconds),
            [
                "Median user and system time of all stages.",
                "Lower end of the 95 % interval of the CPU time.",
                "Upper end of the 95 % interval of the CPU time.",
                "Shortest CPU time.",
                "Longest CPU time.",
            ],
            rounds,
            |variant: &Variant| Some((&variant.cpu_seconds).into()),
        ),
        estimate(
            ("max_rss", Quantity::Bytes),
            [
                "Median of the largest resident set size of any one process.",
                "Lower end of the 95 % interval of the largest resident set size.",
                "Upper end of the 95 % interval of the largest resident set size.",
                "Largest resident set size in the run in which it was smallest.",
                "Largest resident set size in the run in which it was largest.",
            ],
            rounds,
            |variant: &Variant| Some((&variant.max_rss_bytes).into()),
        ),
    ]
}

fn ratios(rounds: usize, in_turn: bool) -> [[Field<'static, Variant>; 5]; 3] {
    let spread = move |variant: &Variant, of: fn(&Ratios) -> &Estimate| {
        variant.ratios.as_ref().map(|ratios| ratio(of(ratios), in_turn))
    };
    [
        estimate(
            ("wall", Quantity::Ratio),
            [
                "Wall time as a ratio to that of the first pipeline.",
                "Lower end of the 95 % interval of the ratio of wall times.",
                "Upper end of the 95 % interval of the ratio of wall times.",
                "Smallest ratio of wall times.",
                "Largest ratio of wall times.",
            ],
            rounds,
            move |variant: &Variant| spread(variant, |ratios| &ratios.wall),
        ),
        estimate(
            ("cpu", Quantity::Ratio),
            [
                "CPU time as a ratio to that of the first pipeline.",
                "Lower end of the 95 % interval of the ratio of CPU times.",
                "Upper end of the 95 % interval of the ratio of CPU times.",
                "Smallest ratio of CPU times.",
                "Largest ratio of CPU times.",
            ],
            rounds,
            move |variant: &Variant| spread(variant, |ratios| &ratios.cpu),
        ),
        estimate(
            ("max_rss", Quantity::Ratio),
            [
                "Largest resident set size as a ratio to that of the first pipeline.",
                "Lower end of the 95 % interval of the ratio of resident set sizes.",
                "Upper end of the 95 % interval of the ratio of resident set sizes.",
                "Smallest ratio of resident set sizes.",
                "Largest ratio of resident set sizes.",
            ],
            rounds,
            move |variant: &Variant| spread(variant, |ratios| &ratios.memory),
        ),
    ]
}

/// Returns the spread of a ratio. Saved runs have samples for only some pairs of runs. The range over all pairs is known
/// only with too few runs for an interval: the record then has the range in its place.
fn ratio(estimate: &Estimate, in_turn: bool) -> Spread {
    let spread = Spread::from(estimate);
    let range = match spread.ci95 {
        _ if in_turn => spread.range,
        None => spread.range.map(|_| estimate.ci95),
        Some(_) => None,
    };
    Spread { range, ..spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(samples: &[f64]) -> Estimate {
        Estimate { median: samples[0], ci95: [0.4, 0.6], samples: samples.to_vec() }
    }

    #[test]
    fn a_few_samples_have_a_range_instead_of_an_interval() {
        let few = Spread::from(&estimate(&[3.0, 2.0, 4.0]));
        assert_eq!((few.ci95, few.range), (None, Some([2.0, 4.0])));
        let many = Spread::from(&estimate(&[3.0, 2.0, 4.0, 1.0, 5.0, 3.0]));
        assert_eq!((many.ci95, many.range), (Some([0.4, 0.6]), Some([1.0, 5.0])));
        assert_eq!(Spread::from(&Estimate { samples: Vec::new(), ..estimate(&[1.0]) }).range, None);
    }

    #[test]
    fn the_range_of_a_ratio_of_saved_runs_is_that_of_all_pairs() {
        let few = ratio(&estimate(&[0.5, 0.5]), false);
        assert_eq!((few.ci95, few.range), (None, Some([0.4, 0.6])));
        let many = ratio(&estimate(&[0.5; 6]), false);
        assert_eq!((many.ci95, many.range), (Some([0.4, 0.6]), None));
        assert_eq!(ratio(&estimate(&[0.5, 0.5]), true).range, Some([0.5, 0.5]));
    }
}

//! The tables of a comparison of pipelines: its variants.

use std::collections::BTreeSet;

use contend_record::versus::{Variant, VersusRecord};

use super::sheet::{Field, Quantity, Sheet, Workbook};
use super::{estimate, origin};

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
        // Two comparisons of different pipelines are told apart by them.
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
    fields.extend(figures());
    fields.extend([
        OfVariant::figure(
            "exit_code",
            Quantity::Plain,
            "Exit status of the last run that failed, or 0.",
            |variant| variant.exit_code,
        ),
        OfVariant::detail("output_equal", |variant| variant.output_equal),
        OfVariant::detail("difference", |variant| variant.difference.clone()),
    ]);
    fields
}

fn figures() -> impl Iterator<Item = Field<'static, Variant>> {
    let times = [
        estimate(
            ("wall", Quantity::Seconds),
            [
                "Median wall time.",
                "Lower end of the 95 % interval of the wall time.",
                "Upper end of the 95 % interval of the wall time.",
            ],
            |variant: &Variant| Some(&variant.wall_seconds),
        ),
        estimate(
            ("cpu", Quantity::Seconds),
            [
                "Median user and system time of all stages.",
                "Lower end of the 95 % interval of the CPU time.",
                "Upper end of the 95 % interval of the CPU time.",
            ],
            |variant: &Variant| Some(&variant.cpu_seconds),
        ),
        estimate(
            ("max_rss", Quantity::Bytes),
            [
                "Median of the largest resident set size of any one process.",
                "Lower end of the 95 % interval of the largest resident set size.",
                "Upper end of the 95 % interval of the largest resident set size.",
            ],
            |variant: &Variant| Some(&variant.max_rss_bytes),
        ),
    ];
    let ratios = [
        estimate(
            ("wall", Quantity::Ratio),
            [
                "Wall time as a ratio to that of the first pipeline.",
                "Lower end of the 95 % interval of the ratio of wall times.",
                "Upper end of the 95 % interval of the ratio of wall times.",
            ],
            |variant: &Variant| variant.ratios.as_ref().map(|ratios| &ratios.wall),
        ),
        estimate(
            ("cpu", Quantity::Ratio),
            [
                "CPU time as a ratio to that of the first pipeline.",
                "Lower end of the 95 % interval of the ratio of CPU times.",
                "Upper end of the 95 % interval of the ratio of CPU times.",
            ],
            |variant: &Variant| variant.ratios.as_ref().map(|ratios| &ratios.cpu),
        ),
        estimate(
            ("max_rss", Quantity::Ratio),
            [
                "Largest resident set size as a ratio to that of the first pipeline.",
                "Lower end of the 95 % interval of the ratio of resident set sizes.",
                "Upper end of the 95 % interval of the ratio of resident set sizes.",
            ],
            |variant: &Variant| variant.ratios.as_ref().map(|ratios| &ratios.memory),
        ),
    ];
    let all = times.into_iter().chain(ratios).enumerate();
    // Wall times and their ratios have their intervals in tables for people, too.
    all.flat_map(|(number, fields)| {
        let is_of_wall = number.is_multiple_of(3);
        fields.into_iter().enumerate().map(move |(place, field)| {
            if is_of_wall || place == 0 { field } else { field.for_programs() }
        })
    })
}

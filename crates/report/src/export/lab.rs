//! The tables of a run of the lab: the cases of each experiment.

use contend_record::lab::{Case, RunRecord};

use super::parameters::{self, distinct, heading, in_base_unit, quantity};
use super::sheet::{Field, Notation, Quantity, Sheet, Workbook};
use super::{name, origin};

/// Returns the tables of a run of the lab.
pub fn workbook(record: &RunRecord) -> Workbook {
    let sheet = |experiment: &str| {
        let cases: Vec<&Case> =
            record.cases.iter().filter(|case| case.experiment == experiment).collect();
        let fields = fields(&cases);
        Sheet::new("case", experiment, cases, fields)
    };
    let mut sheets: Vec<Sheet> = record.experiments().into_iter().map(sheet).collect();
    if sheets.is_empty() {
        sheets.push(sheet(""));
    }
    let subject = match &record.suite {
        Some(suite) => format!("suite {suite}"),
        None => record.experiments().join(" "),
    };
    Workbook::new("lab", subject, record, whole(), sheets)
}

fn whole() -> Vec<Field<'static, RunRecord>> {
    type Whole<'a> = Field<'a, RunRecord>;
    let mut fields = vec![
        Whole::label("suite", |record| record.suite.clone()),
        // They distinguish runs of different experiments.
        Whole::label("experiments", |record| {
            record.suite.is_none().then(|| record.experiments().join(" "))
        })
        .for_people(),
        Whole::figure(
            "wall_seconds",
            Quantity::Seconds,
            "Wall time from the start of the run to the end of its last sample.",
            |record| record.wall_seconds,
        ),
        Whole::detail("ending", |record| name(&record.ending)),
        Whole::detail("quick", |record| record.quick),
    ];
    fields.extend(origin(
        |record: &RunRecord| &record.host,
        |record| record.contend.as_ref(),
        |record| &record.started_at,
    ));
    fields
}

/// Returns the columns for the cases of an experiment.
fn fields(cases: &[&Case]) -> Vec<Field<'static, Case>> {
    type OfCase<'a> = Field<'a, Case>;
    let mut fields = vec![
        // For people, each experiment has a table of its own, and each parameter a column.
        OfCase::label("experiment", |case| case.experiment.clone()).for_programs(),
        OfCase::label("case", |case| case.parameters.to_string()).for_programs(),
    ];
    let all = cases.iter().map(|case| &case.parameters);
    fields.extend(parameters::columns(all, |case: &Case| &case.parameters));
    for unit in distinct(cases.iter().map(|case| case.unit)) {
        let column = |statistic: &str, help, value: fn(&Case) -> Option<f64>| {
            OfCase::figure(heading(statistic, unit), quantity(unit), help, move |case| {
                value(case).filter(|_| case.unit == unit).map(|value| in_base_unit(value, unit))
            })
            .with_notation(Notation::Lab)
        };
        fields.extend([
            column("median", "Median of the samples.", |case| case.median),
            column("ci95_low", "Lower end of the 95 % interval of the median.", |case| {
                Some(case.ci95?[0])
            }),
            column("ci95_high", "Upper end of the 95 % interval of the median.", |case| {
                Some(case.ci95?[1])
            }),
            column("min", "Smallest sample.", |case| case.min).into_detail(),
            column("max", "Largest sample.", |case| case.max).into_detail(),
        ]);
    }
    fields.extend([
        OfCase::figure("samples", Quantity::Count, "Number of samples.", |case| case.samples.len()),
        OfCase::figure(
            "disturbed_samples",
            Quantity::Count,
            "Number of samples that other programs or the hypervisor disturbed.",
            |case| case.disturbed.len(),
        ),
        OfCase::detail("skipped", |case| case.skipped.clone()),
    ]);
    let metrics = cases.iter().flat_map(|case| &case.metrics);
    let metrics = distinct(metrics.map(|(name, metric)| (name.clone(), metric.unit)));
    fields.extend(metrics.into_iter().map(|(name, unit)| {
        let column = heading(&format!("metric_{name}"), unit);
        OfCase::figure(column, quantity(unit), "", move |case| {
            let metric = case.metrics.get(&name).filter(|metric| metric.unit == unit)?;
            Some(in_base_unit(metric.median, unit))
        })
        .into_detail()
        .for_programs()
    }));
    fields
}

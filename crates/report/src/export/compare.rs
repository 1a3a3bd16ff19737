//! The tables of a comparison of runs of the lab: a row for each case in each run.

use contend_record::compare::{Case, CompareRecord, Figure, Run, Side};
use contend_record::lab::Unit;
use contend_record::stats::Ratio;

use super::parameters::{self, distinct, heading, in_base_unit, quantity};
use super::sheet::{Field, Notation, Quantity, Sheet, Workbook};

/// A case in one of the compared runs.
struct Entry<'a> {
    case: &'a Case,
    run: &'a Run,
    /// Position of the run in the comparison, from 0.
    index: usize,
}

impl Entry<'_> {
    /// Returns the median of a figure in `unit`, in the base unit; `None` without one in this run.
    fn median(&self, figure: Option<&Figure>, unit: Unit) -> Option<f64> {
        let figure = figure.filter(|figure| figure.unit == unit)?;
        let median = figure.medians.get(self.index).copied().flatten()?;
        Some(in_base_unit(median, unit))
    }

    /// Returns the ratio of the case's main figure to that of the first run.
    fn ratio(&self) -> Option<&Ratio> {
        self.case.value.as_ref()?.ratios.get(self.index)?.as_ref()
    }

    fn side(&self) -> Option<&Side> {
        self.case.sides.get(self.index)
    }
}

/// Returns the tables of a comparison of runs of the lab.
pub fn workbook(record: &CompareRecord) -> Workbook {
    let sheets = record.experiments().into_iter().map(|experiment| {
        let cases: Vec<&Case> =
            record.cases.iter().filter(|case| case.experiment == experiment).collect();
        let entries: Vec<Entry<'_>> = cases
            .iter()
            .flat_map(|&case| {
                let runs = record.runs.iter().enumerate();
                runs.map(move |(index, run)| Entry { case, run, index })
            })
            .collect();
        Sheet::new("case", experiment, &entries, fields(&cases))
    });
    let names: Vec<&str> = record.runs.iter().map(|run| run.name.as_str()).collect();
    let subject = format!("runs {}", names.join(", "));
    let contend = Field::detail("contend", |record: &CompareRecord| {
        record.contend.as_ref().map(ToString::to_string)
    });
    Workbook::new("compare", subject, record, vec![contend], sheets.collect())
}

/// Returns the columns for the cases of an experiment.
fn fields<'a>(cases: &[&Case]) -> Vec<Field<'a, Entry<'a>>> {
    let mut fields: Vec<Field<'a, Entry<'a>>> = vec![
        Field::label("experiment", |entry: &Entry<'a>| entry.case.experiment.clone())
            .for_programs(),
        Field::label("case", |entry: &Entry<'a>| entry.case.parameters.to_string()).for_programs(),
        Field::label("run", |entry: &Entry<'a>| entry.run.name.clone()),
    ];
    fields.extend(parameters::columns(
        cases.iter().map(|case| &case.parameters),
        |entry: &Entry<'a>| &entry.case.parameters,
    ));
    for unit in distinct(cases.iter().filter_map(|case| Some(case.value.as_ref()?.unit))) {
        let median = Field::figure(
            heading("median", unit),
            quantity(unit),
            "Median of the samples.",
            move |entry: &Entry<'a>| entry.median(entry.case.value.as_ref(), unit),
        );
        fields.push(median.with_notation(Notation::Lab));
    }
    fields.extend(ratios());
    fields.extend([
        Field::figure("samples", Quantity::Count, "Number of samples.", |entry: &Entry<'a>| {
            match entry.side()? {
                Side::Measured { samples, .. } => Some(*samples),
                _ => None,
            }
        }),
        Field::detail("skipped", |entry: &Entry<'a>| match entry.side()? {
            Side::Skipped { reason } => Some(reason.clone()),
            _ => None,
        }),
        Field::label("host", |entry: &Entry<'a>| entry.run.host.name.clone()),
        Field::detail("started_at", |entry: &Entry<'a>| entry.run.started_at.clone())
            .for_programs(),
    ]);
    let metrics = cases.iter().flat_map(|case| &case.metrics);
    let metrics = distinct(metrics.map(|(name, figure)| (name.clone(), figure.unit)));
    fields.extend(metrics.into_iter().map(|(name, unit)| {
        let column = heading(&format!("metric_{name}"), unit);
        Field::figure(column, quantity(unit), "", move |entry: &Entry<'a>| {
            entry.median(entry.case.metrics.get(&name), unit)
        })
        .into_detail()
        .for_programs()
    }));
    fields
}

fn ratios<'a>() -> [Field<'a, Entry<'a>>; 3] {
    let end = |entry: &Entry<'a>, end: usize| Some(entry.ratio()?.ci95?[end]);
    [
        Field::figure(
            "median_ratio",
            Quantity::Ratio,
            "Median as a ratio to that of the first run.",
            |entry: &Entry<'a>| entry.ratio().map(|found| found.ratio),
        ),
        Field::figure(
            "ci95_low_ratio",
            Quantity::Ratio,
            "Lower end of the 95 % interval of the ratio.",
            move |entry: &Entry<'a>| end(entry, 0),
        ),
        Field::figure(
            "ci95_high_ratio",
            Quantity::Ratio,
            "Upper end of the 95 % interval of the ratio.",
            move |entry: &Entry<'a>| end(entry, 1),
        ),
    ]
}

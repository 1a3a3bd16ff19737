//! Matches the cases of several runs of the lab, and compares their measurements.

mod pipelines;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use contend_record::compare::{Case, CompareRecord, Figure, Origin, Run, SCHEMA, Side};
use contend_record::lab::{self, RunRecord, Unit};
use contend_record::parameters::{Parameters, Value};
use contend_record::stats::{Ratio, median};

pub use pipelines::{SavedRuns, compare_pipelines, of_parallel_run};

/// Compares runs with the first one, the baseline. Cases match if they have the same experiment and
/// the same parameters, except for the number of turns from which their figures were scaled. If a
/// run has a case several times, the first occurrences in all runs match, then the second ones, and
/// so on. Leaves the field `contend` empty.
pub fn compare(runs: &[(Origin, RunRecord)]) -> CompareRecord {
    let seed = runs.first().map_or(0, |(_, record)| record.seed);
    let records: Vec<&RunRecord> = runs.iter().map(|(_, record)| record).collect();
    let described = runs.iter().enumerate().map(|(index, (origin, record))| Run {
        name: name(index),
        origin: origin.clone(),
        contend: record.contend.clone(),
        suite: record.suite.clone(),
        experiments: record.experiments().into_iter().map(str::to_owned).collect(),
        started_at: record.started_at.clone(),
        wall_seconds: record.wall_seconds,
        quick: record.quick,
        ending: record.ending,
        host: record.host.clone(),
        warnings: record.warnings.clone(),
    });
    CompareRecord {
        schema: SCHEMA.to_owned(),
        contend: None,
        seed,
        runs: described.collect(),
        cases: rows(&records).iter().filter_map(|row| case(row, seed)).collect(),
    }
}

/// Returns the name of the run with the given index, from 0, in the comparison: A, B, … Z, AA, AB,
/// …
pub fn name(index: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => letter.to_string(),
        before => name(before - 1) + &letter.to_string(),
    }
}

/// The matching cases of all runs, in the order of the runs; `None` for a run that does not include
/// the case.
pub(crate) type Row<'a> = Vec<Option<&'a lab::Case>>;

/// Returns a row for each case of any run, in order of first appearance.
pub(crate) fn rows<'a>(runs: &[&'a RunRecord]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    // The rows of equal cases: the first occurrences in all runs, then the second ones, and so on.
    let mut by_key: HashMap<Key<'a>, Vec<usize>> = HashMap::new();
    for (index, record) in runs.iter().enumerate() {
        let mut occurrences: HashMap<Key<'a>, usize> = HashMap::new();
        for case in &record.cases {
            let key = key(case);
            let occurrence = occurrences.entry(key.clone()).or_default();
            let of_key = by_key.entry(key).or_default();
            if *occurrence == of_key.len() {
                of_key.push(rows.len());
                rows.push(vec![None; runs.len()]);
            }
            rows[of_key[*occurrence]][index] = Some(case);
            *occurrence += 1;
        }
    }
    rows
}

/// Name of the only parameter in which matching cases may differ: the number of turns from which a
/// figure was scaled.
const SCALED_FROM: &str = "turns";

/// What matching cases have in common: the experiment, and the parameters in alphabetical order.
type Key<'a> = (&'a str, Vec<(&'a str, &'a Value)>);

fn key(case: &lab::Case) -> Key<'_> {
    let mut parameters: Vec<_> =
        case.parameters.iter().filter(|(name, _)| *name != SCALED_FROM).collect();
    parameters.sort_unstable();
    (case.experiment.as_str(), parameters)
}

/// Returns the parameters of the cases of a row, as the first one has them, without `SCALED_FROM` if the
/// cases differ in it.
pub(crate) fn parameters(row: &Row<'_>) -> Parameters {
    let Some(first) = row.iter().flatten().next() else { return Parameters::new() };
    if row.iter().flatten().all(|other| first.parameters.has_same_entries(&other.parameters)) {
        first.parameters.clone()
    } else {
        first.parameters.without(SCALED_FROM)
    }
}

fn case(row: &Row<'_>, seed: u64) -> Option<Case> {
    let first = row.iter().flatten().next()?;
    let unit = row.iter().flatten().find(|case| !case.samples.is_empty()).map(|case| case.unit);
    let sides: Vec<_> = row.iter().map(|case| side(*case, unit)).collect();
    let measured: Row<'_> =
        row.iter().zip(&sides).map(|(case, side)| case.filter(|_| side.is_measured())).collect();
    let samples: Vec<_> =
        measured.iter().map(|case| case.map(|case| case.samples.as_slice())).collect();
    Some(Case {
        experiment: first.experiment.clone(),
        view: first.view,
        parameters: parameters(row),
        value: unit.map(|unit| figure(unit, &samples, seed)),
        metrics: metrics(&measured, seed),
        sides,
    })
}

fn side(case: Option<&lab::Case>, unit: Option<Unit>) -> Side {
    match case {
        None => Side::Absent,
        Some(case) if case.samples.is_empty() => match &case.skipped {
            Some(reason) => Side::Skipped { reason: reason.clone() },
            None => Side::NoSamples { stopped: case.stopped },
        },
        Some(case) if Some(case.unit) != unit => Side::OtherUnit { unit: case.unit },
        Some(case) => Side::Measured {
            samples: case.samples.len(),
            disturbed: case.disturbed.len(),
            warnings: case.warnings.clone(),
        },
    }
}

/// Returns every metric that at least two cases have in the same unit, which is that of the first
/// case with the metric. Leaves out values in other units.
fn metrics(measured: &Row<'_>, seed: u64) -> BTreeMap<String, Figure> {
    let names: BTreeSet<&String> =
        measured.iter().flatten().flat_map(|case| case.metrics.keys()).collect();
    let of = |name: &String| {
        let metrics = || measured.iter().map(|case| case.and_then(|case| case.metrics.get(name)));
        let unit = metrics().flatten().next()?.unit;
        let samples: Vec<_> = metrics()
            .map(|metric| metric.filter(|metric| metric.unit == unit))
            .map(|metric| metric.map(|metric| metric.samples.as_slice()))
            .collect();
        let several = samples.iter().flatten().count() > 1;
        several.then(|| (name.clone(), figure(unit, &samples, seed)))
    };
    names.into_iter().filter_map(of).collect()
}

fn figure(unit: Unit, samples: &[Option<&[f64]>], seed: u64) -> Figure {
    let baseline = samples.first().copied().flatten();
    let ratio = |(index, side): (usize, Option<&[f64]>)| {
        if index == 0 { None } else { Ratio::of(side?, baseline?, seed) }
    };
    Figure {
        unit,
        medians: samples.iter().map(|side| side.and_then(median)).collect(),
        ratios: samples.iter().copied().enumerate().map(ratio).collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use contend_record::Host;
    use contend_record::lab::{Metric, Stopped, View};

    use super::*;
    use crate::render::lab::sample;

    /// Returns a run with the given cases.
    pub(crate) fn run(cases: Vec<lab::Case>) -> (Origin, RunRecord) {
        let record = RunRecord {
            suite: None,
            started_at: "2026-01-02T03:04:05Z".to_owned(),
            seed: 7,
            host: Host::default(),
            ..sample::record(None, cases)
        };
        (Origin::StandardInput, record)
    }

    /// Returns a case of `n` forks with the given samples, in nanoseconds.
    pub(crate) fn case(n: u64, samples: &[f64]) -> lab::Case {
        let parameters = Parameters::new().with("kind", "fork").with("n", n);
        let mut case =
            lab::Case::new("units/create", View::Creation, parameters, Unit::Nanoseconds);
        case.samples = samples.to_vec();
        case
    }

    fn with_cpu(mut case: lab::Case, unit: Unit) -> lab::Case {
        let metric = Metric::of(unit, case.samples.clone());
        case.metrics.insert("cpu_self".to_owned(), metric);
        case
    }

    fn ratios(figure: &Figure) -> Vec<Option<f64>> {
        figure.ratios.iter().map(|ratio| ratio.as_ref().map(|ratio| ratio.ratio)).collect()
    }

    #[test]
    fn runs_are_named_like_columns_of_a_sheet() {
        let names = [0, 1, 25, 26, 27, 51, 52, 701, 702].map(name);
        assert_eq!(names, ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]);
    }

    #[test]
    fn the_first_run_is_the_baseline() {
        let runs = [10.0, 20.0, 5.0].map(|value| run(vec![case(1, &[value; 9])]));
        let record = compare(&runs);
        assert_eq!(record.seed, 7);
        let value = record.cases[0].value.as_ref().expect("measured");
        assert_eq!(value.medians, [Some(10.0), Some(20.0), Some(5.0)]);
        assert_eq!(ratios(value), [None, Some(2.0), Some(0.5)]);
        let own = compare(&[runs[0].clone(), runs[0].clone()]);
        assert_eq!(ratios(own.cases[0].value.as_ref().expect("measured")), [None, Some(1.0)]);
    }

    #[test]
    fn cases_scaled_from_different_turns_are_the_same() {
        let scaled = |turns: u64| {
            let mut case = case(1, &[1.0, 2.0]);
            case.parameters = Parameters::new().with("tick_us", 0).with("turns", turns);
            run(vec![case])
        };
        let record = compare(&[scaled(96), scaled(19)]);
        assert_eq!(record.cases.len(), 1);
        assert_eq!(record.cases[0].parameters, Parameters::new().with("tick_us", 0));
        let record = compare(&[scaled(96), scaled(96)]);
        assert_eq!(record.cases[0].parameters.number("turns"), Some(96));
    }

    #[test]
    fn the_order_of_cases_and_parameters_does_not_matter() {
        let mut turned = case(2, &[4.0; 9]);
        turned.parameters = Parameters::new().with("n", 2).with("kind", "fork");
        let record =
            compare(&[run(vec![case(1, &[1.0; 9]), case(2, &[2.0; 9])]), run(vec![turned])]);
        assert_eq!(record.cases.len(), 2);
        assert_eq!(record.cases[0].sides[1], Side::Absent);
        assert_eq!(ratios(record.cases[1].value.as_ref().expect("measured")), [None, Some(2.0)]);
    }

    #[test]
    fn cases_missing_in_some_runs_have_their_reason() {
        let mut skipped = case(1, &[]);
        skipped.skipped = Some("needs two CPUs".to_owned());
        let mut stopped = case(1, &[]);
        stopped.stopped = Some(Stopped::Interrupt);
        let mut bytes = case(1, &[1.0]);
        bytes.unit = Unit::Bytes;
        let runs = [vec![skipped], vec![case(1, &[1.0; 3])], vec![stopped], vec![bytes], vec![]];
        let record = compare(&runs.map(run));
        let [only] = record.cases.as_slice() else { panic!("{record:?}") };
        assert_eq!(only.measured(), 1);
        let expected = [
            Side::Skipped { reason: "needs two CPUs".to_owned() },
            Side::Measured { samples: 3, disturbed: 0, warnings: Vec::new() },
            Side::NoSamples { stopped: Some(Stopped::Interrupt) },
            Side::OtherUnit { unit: Unit::Bytes },
            Side::Absent,
        ];
        assert_eq!(only.sides, expected);
        let value = only.value.as_ref().expect("measured in one");
        assert_eq!(value.medians, [None, Some(1.0), None, None, None]);
        assert_eq!(ratios(value), [None; 5]);
    }

    #[test]
    fn a_case_without_samples_has_no_figure() {
        let record = compare(&[run(vec![case(1, &[])]), run(vec![])]);
        assert_eq!(record.cases[0].value, None);
        assert_eq!(record.cases[0].sides, [Side::NoSamples { stopped: None }, Side::Absent]);
        assert!(compare(&[run(vec![]), run(vec![])]).cases.is_empty());
    }

    #[test]
    fn equal_cases_of_one_run_match_in_order() {
        let twice = |first, second| run(vec![case(1, &[first; 9]), case(1, &[second; 9])]);
        let record = compare(&[twice(1.0, 10.0), twice(2.0, 30.0), run(vec![case(1, &[3.0; 9])])]);
        let found: Vec<_> =
            record.cases.iter().map(|case| ratios(case.value.as_ref().expect("some"))).collect();
        assert_eq!(found, [[None, Some(2.0), Some(3.0)], [None, Some(3.0), None]]);
    }

    #[test]
    fn rows_follow_the_first_appearance_also_with_many_equal_cases() {
        let with_kind = |kind: &str, n: u64| {
            let mut case = case(n, &[1.0]);
            case.parameters = Parameters::new().with("n", n).with("kind", kind);
            case
        };
        let cases = |numbers: &[u64]| run(numbers.iter().map(|n| with_kind("fork", *n)).collect());
        let (one, other) = (cases(&[1, 2, 1, 1]), cases(&[3, 1, 2, 2, 1]));
        let found = rows(&[&one.1, &other.1]);
        let number = |case: Option<&lab::Case>| case.and_then(|case| case.parameters.number("n"));
        let found: Vec<[Option<u64>; 2]> =
            found.iter().map(|row| [number(row[0]), number(row[1])]).collect();
        let (one, two, three) = (Some(1), Some(2), Some(3));
        assert_eq!(
            found,
            [[one, one], [two, two], [one, one], [one, None], [None, three], [None, two]]
        );
        // A search through all rows for each case would take minutes.
        let many = |count: u64| run((0..count).map(|n| with_kind("fork", n)).collect()).1;
        let many = many(50_000);
        assert_eq!(rows(&[&many, &many, &many]).len(), 50_000);
    }

    #[test]
    fn metrics_that_two_runs_have_are_compared() {
        let nanoseconds = |value| with_cpu(case(1, &[value; 9]), Unit::Nanoseconds);
        let other = with_cpu(case(1, &[9.0; 9]), Unit::Count);
        let runs = [nanoseconds(2.0), case(1, &[1.0]), other, nanoseconds(3.0)];
        let record = compare(&runs.map(|case| run(vec![case])));
        let metric = &record.cases[0].metrics["cpu_self"];
        assert_eq!(metric.medians, [Some(2.0), None, None, Some(3.0)]);
        assert_eq!(ratios(metric), [None, None, None, Some(1.5)]);
        let lonely = compare(&[run(vec![nanoseconds(2.0)]), run(vec![case(1, &[1.0])])]);
        assert!(lonely.cases[0].metrics.is_empty());
    }
}

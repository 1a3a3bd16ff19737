//! Distributions of latencies by their percentiles.

use contend_record::lab::{Case, Metric, Unit};

use super::super::chart::rows::{self, Row, Span};
use super::super::chart::{Colour, Scale};
use super::super::frame::Figure;
use super::super::table::{Cell, Table};
use super::details::with_spread;
use super::{MAX_BARS, case_name, number_of_samples, short_name};
use crate::render::lab::legend;
use crate::render::units::nanoseconds;

/// The percentiles, with the colour of the part up to each.
const PERCENTILES: [(&str, Colour); 3] =
    [("p50", Colour(0)), ("p99", Colour(2)), ("p99.9", Colour::NEUTRAL)];

/// Returns the percentiles of the cases of an experiment; `None` if fewer than two are known for all of them.
pub(super) fn figure(name: &str, cases: &[&Case], seed: u64) -> Option<Figure> {
    let known: Vec<(&str, Colour)> = PERCENTILES
        .into_iter()
        .filter(|(percentile, _)| cases.iter().any(|case| nanos(case, percentile).is_some()))
        .collect();
    let with_figures: Vec<&Case> =
        cases.iter().copied().filter(|case| nanos(case, "p50").is_some()).collect();
    if known.len() < 2 || with_figures.is_empty() {
        return None;
    }
    let (table, spreads) = table(&with_figures, &known, seed);
    let all = || {
        with_figures.iter().flat_map(|case| known.iter().filter_map(|(name, _)| nanos(case, name)))
    };
    let scale = Scale::log(all());
    let rows: Vec<Row> =
        with_figures.iter().take(MAX_BARS).map(|case| row(case, cases, &known)).collect();
    let worst = with_figures.iter().filter_map(|case| Some((case, nanos(case, known.last()?.0)?)));
    let worst = worst.max_by(|a, b| a.1.total_cmp(&b.1));
    let alternative = format!(
        "Bars up to the percentiles of each case. {}",
        worst.map_or_else(String::new, |(case, time)| format!(
            "The longest tail is that of {}, {}.",
            case_name(*case),
            nanoseconds(time)
        ))
    );
    Some(Figure {
        title: format!("{name}: distribution"),
        legend: known.iter().map(|(name, colour)| (*colour, format!("up to {name}"))).collect(),
        chart: rows::draw(&rows, &scale, nanoseconds, &[], &alternative),
        table,
        method: method(&with_figures, &spreads),
    })
}

/// Returns a table of the percentiles with the spread over the samples, and the texts of its cells.
fn table(cases: &[&Case], known: &[(&str, Colour)], seed: u64) -> (Table, String) {
    let mut headings = vec!["case".to_owned()];
    headings.extend(known.iter().map(|(percentile, _)| format!("#{percentile}")));
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    let mut texts = String::new();
    for case in cases {
        let mut row: Vec<Cell> = vec![case_name(*case).into()];
        row.extend(known.iter().map(|(percentile, _)| {
            let Some(metric) = metric(case, percentile) else { return Cell::default() };
            let text = with_spread(&nanoseconds(metric.median), metric, seed);
            texts.push_str(&text);
            Cell::number(text, metric.median)
        }));
        table.push(row);
    }
    (table, texts)
}

fn method(cases: &[&Case], spreads: &str) -> String {
    let counts = cases.iter().filter_map(|case| Some(metric(case, "p50")?.samples.len()));
    let legend = legend(spreads).map_or_else(String::new, |legend| format!(" {legend}"));
    format!(
        "Percentiles of single operations; the median over {} of each case. The scale is logarithmic.{legend}",
        number_of_samples(counts)
    )
}

fn nanos(case: &Case, percentile: &str) -> Option<f64> {
    metric(case, percentile).map(|metric| metric.median)
}

fn metric<'a>(case: &'a Case, percentile: &str) -> Option<&'a Metric> {
    let metric = case.metrics.get(percentile)?;
    (metric.unit == Unit::Nanoseconds && metric.median > 0.0).then_some(metric)
}

fn row(case: &Case, cases: &[&Case], known: &[(&str, Colour)]) -> Row {
    let label = short_name(case, cases);
    let mut from = 0.0;
    let mut spans = Vec::new();
    let mut values = Vec::new();
    for (percentile, colour) in known {
        let Some(to) = nanos(case, percentile).filter(|to| *to >= from) else { continue };
        let text = format!("{label}: {percentile} {}", nanoseconds(to));
        values.push(format!("{percentile} {}", nanoseconds(to)));
        spans.push(Span { from, to, colour: *colour, text });
        from = to;
    }
    Row { label, value: values.join(", "), spans, ..Row::default() }
}

#[cfg(test)]
mod tests {
    use contend_record::lab::View;
    use contend_record::parameters::Parameters;

    use super::*;

    #[test]
    fn each_part_ends_at_its_percentile() {
        let mut case = Case::new("a/b", View::default(), Parameters::new(), Unit::Nanoseconds);
        for (name, value) in [("p50", 100.0), ("p99", 400.0), ("p99.9", 900.0)] {
            case.metrics.insert(name.to_owned(), Metric::of(Unit::Nanoseconds, vec![value]));
        }
        let row = row(&case, &[&case], &PERCENTILES);
        let ends: Vec<f64> = row.spans.iter().map(|span| span.to).collect();
        assert_eq!(ends, [100.0, 400.0, 900.0]);
        assert!((row.spans[1].from - 100.0).abs() < 1e-9);
        assert!(figure("a/b", &[&case], 1).is_some());
        case.metrics.retain(|name, _| name == "p50");
        assert!(figure("a/b", &[&case], 1).is_none(), "a median alone is in the other figure");
    }

    #[test]
    fn the_table_has_the_spread_over_the_samples() {
        let with_samples = |samples: &[f64]| {
            let mut case = Case::new("a/b", View::default(), Parameters::new(), Unit::Nanoseconds);
            for name in ["p50", "p99"] {
                let metric = Metric::of(Unit::Nanoseconds, samples.to_vec());
                case.metrics.insert(name.to_owned(), metric);
            }
            figure("a/b", &[&case], 1).expect("percentiles").markup().into_string()
        };
        let one = with_samples(&[100.0]);
        assert!(one.contains("the median over 1 sample of each case"), "{one}");
        assert!(!one.contains("brackets"), "{one}");
        let few = with_samples(&[100.0, 200.0]);
        assert!(few.contains("150ns (100ns to 200ns)") && few.contains("range of the samples"));
        let enough = with_samples(&[100.0, 110.0, 120.0, 130.0, 140.0, 150.0]);
        assert!(enough.contains("125ns [10"), "{enough}");
        assert!(enough.contains("In [brackets]: 95 % interval."), "{enough}");
    }
}

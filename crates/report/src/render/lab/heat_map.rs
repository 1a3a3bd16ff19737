//! Renders the times of hand-offs between each pair of CPUs as a heat map.

use std::fmt::Write as _;

use anstyle::{Ansi256Color, Color, Style};
use contend_record::lab::{Case, RunRecord};
use contend_record::parameters::{Value, names};

use super::super::layout::{DIM, paragraph};
use super::shown;

/// Background colours from fast to slow, as ANSI 256-colour codes: from blue through green, yellow
/// and orange to red. The foreground is black.
const HEAT_COLOURS: [u8; 7] = [117, 121, 155, 227, 221, 215, 210];
/// Width of a cell of the map, in columns.
const CELL_COLUMNS: usize = 5;

/// Renders a map for each mechanism, with a list of the times for each distance between CPUs.
pub fn section(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let mut mechanisms: Vec<&str> = Vec::new();
    for mechanism in cases.iter().filter_map(|case| case.parameters.text(names::MECHANISM)) {
        if !mechanisms.contains(&mechanism) {
            mechanisms.push(mechanism);
        }
    }
    let mut out = String::new();
    if let Some(Value::Text(topology)) = cases.first().and_then(|case| case.facts.get("topology")) {
        paragraph(&mut out, "", &format!("{topology} (sysfs)."), width);
    }
    if record.host.cpus_allowed == 1 {
        let text = "Only one CPU is available, so hand-offs between CPUs cannot be measured.";
        paragraph(&mut out, "", text, width);
    }
    for mechanism in mechanisms {
        let of: Vec<&Case> = cases
            .iter()
            .copied()
            .filter(|case| case.parameters.text(names::MECHANISM) == Some(mechanism))
            .collect();
        out.push_str(&map(mechanism, &of, width));
    }
    out
}

fn ends(case: &Case) -> Option<[u64; 2]> {
    Some([case.parameters.number(names::FROM)?, case.parameters.number(names::TO)?])
}

fn map(mechanism: &str, cases: &[&Case], width: usize) -> String {
    let mut cpus: Vec<u64> = cases.iter().filter_map(|case| ends(case)).flatten().collect();
    cpus.sort_unstable();
    cpus.dedup();
    let values: Vec<f64> = cases.iter().filter_map(|case| case.median).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let (unit, name) = if most < 1000.0 { (1.0, "ns") } else { (1000.0, "µs") };
    let mut out = format!("{mechanism}, one way, {name}\n");
    // CPUs that do not fit appear only in the list of distances and in the record.
    let fitting = cpus.len().min(width.saturating_sub(6) / CELL_COLUMNS);
    let shown_cpus = &cpus[..fitting];
    let mut heading = "from\\to".to_owned();
    for cpu in shown_cpus {
        let _ = write!(heading, "{cpu:>CELL_COLUMNS$}");
    }
    let _ = writeln!(out, "{DIM}{heading}{DIM:#}");
    for from in shown_cpus {
        let _ = write!(out, "{from:>7}");
        for to in shown_cpus {
            let way = |wanted: [u64; 2]| cases.iter().find(|case| ends(case) == Some(wanted));
            // A pair measured in one direction is shown for the other direction, too.
            let case = way([*from, *to]).or_else(|| way([*to, *from]));
            out.push_str(&cell(case.and_then(|case| case.median), unit, [least, most]));
        }
        out.push('\n');
    }
    if fitting < cpus.len() {
        let text = format!("{} more CPUs do not fit; --json has them.", cpus.len() - fitting);
        paragraph(&mut out, "- ", &text, width);
    }
    for sentence in distances(cases) {
        paragraph(&mut out, "- ", &sentence, width);
    }
    out
}

/// Formats a time, in nanoseconds, divided by `unit`, or a dash if it is `None`. The background
/// shows its position between the shortest and the longest time, on a logarithmic scale.
fn cell(value: Option<f64>, unit: f64, [least, most]: [f64; 2]) -> String {
    let Some(value) = value else { return format!("{:>CELL_COLUMNS$}", "-") };
    let figure = value / unit;
    let text = match figure {
        ..9.995 => format!("{figure:.2}"),
        ..99.95 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    };
    let span = (most / least).ln();
    // Differences of a few percent are not worth a colour.
    let heat = if span < 0.05 { 0.0 } else { (value / least).ln() / span };
    // The value is an index into the colours.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let step = (heat.clamp(0.0, 1.0) * (HEAT_COLOURS.len() - 1) as f64).round() as usize;
    let ground = Color::Ansi256(Ansi256Color(HEAT_COLOURS[step.min(HEAT_COLOURS.len() - 1)]));
    let style = Style::new().bg_color(Some(ground)).fg_color(Some(Ansi256Color(16).into()));
    format!("{style}{text:>CELL_COLUMNS$}{style:#}")
}

/// Returns a line for each distance between CPUs: its shortest and longest time, or its only time
/// with the interval.
fn distances(cases: &[&Case]) -> Vec<String> {
    let mut distances: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in cases {
        let Some(Value::Text(distance)) = case.facts.get("distance") else { continue };
        match distances.iter_mut().find(|(other, _)| other == distance) {
            Some((_, cases)) => cases.push(case),
            None => distances.push((distance, vec![case])),
        }
    }
    let sentence = |(distance, cases): (&str, Vec<&Case>)| {
        let mut values: Vec<f64> = cases.iter().filter_map(|case| case.median).collect();
        values.sort_by(f64::total_cmp);
        let unit = cases.first()?.unit;
        let text = match (cases.as_slice(), values.as_slice()) {
            ([case], [value]) => {
                let interval = case.ci95.map_or_else(String::new, |[low, high]| {
                    format!(" [{}, {}]", shown(low, unit), shown(high, unit))
                });
                format!("{}{interval}", shown(*value, unit))
            }
            (_, [first, .., last]) => format!("{} to {}", shown(*first, unit), shown(*last, unit)),
            _ => return None,
        };
        Some(format!("{distance}: {text}"))
    };
    distances.into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use contend_record::Host;
    use contend_record::lab::{Unit, View};
    use contend_record::parameters::Parameters;

    use super::super::sample::record;
    use super::*;

    fn case(from: u64, to: u64, median: f64, distance: &str) -> Case {
        let parameters = Parameters::new().with("mechanism", "futex").with("from", from);
        let mut case = Case::new(
            "placement/cpus",
            View::CpuPairs,
            parameters.with("to", to),
            Unit::Nanoseconds,
        );
        case.median = Some(median);
        case.facts.insert("distance".to_owned(), distance.into());
        case.facts.insert("topology".to_owned(), "3 CPUs".into());
        case
    }

    fn shown_at(cpus_allowed: usize, cases: &[Case], width: usize) -> String {
        let host = Host { cpus_allowed, ..Host::default() };
        let record = RunRecord { host, ..record(None, Vec::new()) };
        let cases: Vec<&Case> = cases.iter().collect();
        anstream::adapter::strip_str(&section(&record, &cases, width)).to_string()
    }

    #[test]
    fn a_map_is_symmetric() {
        let cases = [
            case(0, 0, 2_400.0, "the same CPU"),
            case(0, 1, 15_160.0, "two cores"),
            case(0, 4, 120_400.0, "two packages"),
            case(1, 4, 118_000.0, "two packages"),
        ];
        insta::assert_snapshot!(shown_at(8, &cases, 80), @r"
        3 CPUs (sysfs).
        futex, one way, µs
        from\to    0    1    4
              0 2.40 15.2  120
              1 15.2    -  118
              4  120  118    -
        - the same CPU: 2.40µs
        - two cores: 15.2µs
        - two packages: 118µs to 120µs
        ");
    }

    #[test]
    fn cpus_that_do_not_fit_are_counted() {
        let cases: Vec<Case> = (0..30).map(|to| case(0, to, 50.0, "two cores")).collect();
        let text = shown_at(8, &cases, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("- 16 more CPUs do not fit; --json has them."), "{text}");
    }

    #[test]
    fn one_cpu_has_no_hand_offs_between_cpus() {
        let text = shown_at(1, &[case(1, 1, 2_400.0, "the same CPU")], 80);
        assert!(text.contains("Only one CPU is available"), "{text}");
    }
}

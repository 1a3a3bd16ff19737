//! Hand-offs between CPUs, as heat maps.

use std::collections::HashMap;

use contend_record::lab::Case;
use contend_record::parameters::names;
use maud::{Markup, html};

use super::super::chart::{Format, heat_map};
use super::super::number_of;
use crate::render::layout::grouped;
use crate::render::text::printable;

/// Largest number of CPUs in a map. The table has all pairs.
const MAX_CPUS: usize = 64;

/// Draws a heat map for each mechanism.
pub(super) fn draw(cases: &[&Case], format: Format) -> Markup {
    let mechanism = |case: &&Case| case.parameters.text(names::MECHANISM).unwrap_or("").to_owned();
    let by_mechanism = grouped(cases.iter().map(|case| (mechanism(case), *case)));
    html! {
        @for (mechanism, cases) in &by_mechanism {
            p.axis { (printable(mechanism)) }
            (map(cases, format))
        }
    }
}

fn map(cases: &[&Case], format: Format) -> Markup {
    let mut medians: HashMap<[u64; 2], Option<f64>> = HashMap::new();
    for case in cases {
        let number = |name| case.parameters.number(name);
        if let Some((from, to)) = number(names::FROM).zip(number(names::TO)) {
            medians.entry([from, to]).or_insert(case.median);
        }
    }
    let mut cpus: Vec<u64> = medians.keys().flatten().copied().collect();
    cpus.sort_unstable();
    cpus.dedup();
    let left_out = cpus.len().saturating_sub(MAX_CPUS);
    cpus.truncate(MAX_CPUS);
    let cell = |from: u64, to: u64| {
        // A pair measured in one direction is shown for the other direction, too.
        medians.get(&[from, to]).or_else(|| medians.get(&[to, from])).copied().flatten()
    };
    let rows: Vec<(String, Vec<Option<f64>>)> = cpus
        .iter()
        .map(|&from| (from.to_string(), cpus.iter().map(|&to| cell(from, to)).collect()))
        .collect();
    let headings: Vec<String> = cpus.iter().map(u64::to_string).collect();
    html! {
        (heat_map::draw("from \\ to CPU", &headings, &rows, format))
        @if left_out > 0 {
            p { (number_of(left_out, "more CPU")) " left out of the map; the table has all pairs." }
        }
    }
}

#[cfg(test)]
mod tests {
    use contend_record::lab::{Unit, View};
    use contend_record::parameters::Parameters;

    use super::*;
    use crate::render::units::nanoseconds;

    fn case(from: u64, to: u64, median: f64) -> Case {
        let parameters = Parameters::new().with("mechanism", "futex").with("from", from);
        let parameters = parameters.with("to", to);
        let mut case = Case::new("a/b", View::CpuPairs, parameters, Unit::Nanoseconds);
        case.median = Some(median);
        case
    }

    fn drawn(cases: &[Case]) -> String {
        draw(&cases.iter().collect::<Vec<_>>(), nanoseconds).into_string()
    }

    #[test]
    fn a_pair_is_in_both_directions_and_its_first_case_counts() {
        let text = drawn(&[case(0, 1, 100.0), case(0, 1, 300.0), case(4, 0, 200.0)]);
        assert_eq!(text.matches("100ns").count(), 2, "{text}");
        assert_eq!(text.matches("200ns").count(), 2, "{text}");
        assert!(!text.contains("300ns") && !text.contains("left out"), "{text}");
    }

    #[test]
    fn a_map_of_many_cpus_is_limited_and_says_so() {
        // A search through all cases for each cell would take minutes.
        let cpus = 300;
        let pairs = (0..cpus).flat_map(|from| (0..cpus).map(move |to| case(from, to, 100.0)));
        let text = drawn(&pairs.collect::<Vec<_>>());
        assert_eq!(text.matches("<td class=\"mark").count(), MAX_CPUS * MAX_CPUS);
        assert!(text.contains("236 more CPUs left out of the map"), "{text:.500}");
    }
}

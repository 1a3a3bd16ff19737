//! Renders experiments in which partners hand turns to each other.

use contend_record::lab::{Case, RunRecord};
use contend_record::parameters::names;

use super::super::layout::paragraph;
use super::table::{self, MetricColumn, TimeOf, figure, grid, ratio_of, values, with_spread};

/// Columns of the table that is shown if the cases have other parameters.
const MECHANISMS: [MetricColumn; 5] = [
    ("p50", "p50", 90),
    ("p99", "p99", 0),
    ("p99.9", "p99.9", 0),
    ("CPU time", "cpu", 0),
    ("switches", "switches", 80),
];

/// Columns of the table of cases that reproduce programs of the source document.
const PRESETS: [MetricColumn; 8] = [
    ("predicted", "predicted", 0),
    ("not ready %", "not_ready", 76),
    ("load %", "load_mean", 0),
    ("peak load %", "load_max", 0),
    ("CPU time", "cpu", 60),
    ("p50", "p50", 110),
    ("p99.9", "p99.9", 90),
    ("switches", "voluntary_switches", 100),
];

/// Renders the table of cases that reproduce programs of the source document.
pub fn presets(cases: &[&Case], width: usize) -> String {
    table::with_metrics(cases, "10,000 turns", &PRESETS, width)
}

/// Further times of a hand-off, by heading.
const FURTHER: [(&str, TimeOf); 2] =
    [("p99.9", |case| case.metric("p99.9")), ("CPU", |case| case.metric("cpu"))];

/// Renders a table of mechanisms for each placement, with processes and threads side by side, or
/// one table if the cases have other parameters.
pub fn mechanisms(record: &RunRecord, cases: &[&Case], width: usize) -> String {
    let names = table::parameter_names(cases);
    if names != ["mechanism", "partners", "placement"] {
        return table::with_metrics(cases, "hand-off", &MECHANISMS, width);
    }
    let table = |placement: String| {
        let of: Vec<&Case> = cases
            .iter()
            .copied()
            .filter(|case| table::parameter(*case, names::PLACEMENT) == placement)
            .collect();
        side_by_side(record, &of, &placement, width)
    };
    let tables: Vec<_> = values(cases, names::PLACEMENT).into_iter().map(table).collect();
    let mut out = tables.join("\n");
    let text = "Half of a round trip, which on one CPU contains a context switch. CPU: CPU time of both \
                partners together.";
    paragraph(&mut out, "", text, width);
    out
}

/// Renders a table of cases that differ in mechanism and partners, with `title` in the corner. It
/// has a row for each mechanism and columns for processes and for threads, followed by the ratio of
/// the median of threads to that of processes if both were measured.
pub fn side_by_side(record: &RunRecord, cases: &[&Case], title: &str, width: usize) -> String {
    let partners = values(cases, names::PARTNERS);
    let measured = |&&(_, time): &&(&str, TimeOf)| cases.iter().any(|case| time(case).is_some());
    let further: Vec<_> = FURTHER.iter().filter(measured).collect();
    let plural = |kind: &String| if kind == "process" { "processes" } else { "threads" };
    let has_ratio = partners.len() > 1;
    let mut headings = vec![title.to_owned()];
    headings.extend(partners.iter().map(|kind| plural(kind).to_owned()));
    headings.extend(has_ratio.then(|| "threads : processes".to_owned()));
    for (heading, _) in &further {
        let of_kind = |kind| {
            if has_ratio { format!("{heading} {}", plural(kind)) } else { (*heading).to_owned() }
        };
        headings.extend(partners.iter().map(of_kind));
    }
    let mut lines = vec![headings];
    for mechanism in values(cases, names::MECHANISM) {
        let find = |kind: &str| {
            cases.iter().copied().find(|case| {
                table::parameter(*case, names::MECHANISM) == mechanism
                    && table::parameter(*case, names::PARTNERS) == kind
            })
        };
        let found: Vec<Option<&Case>> = partners.iter().map(|kind| find(kind)).collect();
        let mut line = vec![mechanism.clone()];
        line.extend(found.iter().map(|case| case.map_or_else(String::new, with_spread)));
        if has_ratio {
            let ratio = find("thread").zip(find("process")).and_then(|(thread, process)| {
                ratio_of(&thread.samples, &process.samples, record.seed)
            });
            line.push(ratio.unwrap_or_default());
        }
        for (_, time) in &further {
            line.extend(found.iter().map(|case| figure(case.and_then(time))));
        }
        lines.push(line);
    }
    grid(&lines, 1, width)
}

#[cfg(test)]
mod tests {
    use contend_record::lab::View;
    use contend_record::parameters::Parameters;

    use super::super::sample;
    use super::*;

    #[test]
    fn processes_and_threads_are_side_by_side_for_each_placement() {
        let case = |partners: &str, placement: &str, value: f64| {
            let parameters = Parameters::new()
                .with("mechanism", "pipe")
                .with("partners", partners)
                .with("placement", placement);
            let about = ("handoff/mechanisms", View::HandoffMechanisms);
            let mut case = sample::case(about, parameters, value, &[("cpu", 2.0 * value)]);
            case.samples = [0.98, 0.99, 1.0, 1.0, 1.01, 1.02].map(|share| share * value).to_vec();
            case.ci95 = Some([0.99 * value, 1.01 * value]);
            case
        };
        let cases = vec![
            case("process", "same-cpu", 2000.0),
            case("process", "two-cpus", 9000.0),
            case("thread", "same-cpu", 1000.0),
        ];
        let record = sample::record(None, cases);
        let cases: Vec<&Case> = record.cases.iter().collect();
        let text = mechanisms(&record, &cases, 120);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        same-cpu                processes                 threads  threads : processes  CPU processes  CPU threads
        pipe      2.00µs [1.98µs, 2.02µs]  1.00µs [990ns, 1.01µs]    0.50 [0.49, 0.51]         4.00µs       2.00µs

        two-cpus                processes     CPU
        pipe      9.00µs [8.91µs, 9.09µs]  18.0µs
        Half of a round trip, which on one CPU contains a context switch. CPU: CPU time of both partners
          together.
        ");
    }

    #[test]
    fn every_column_names_its_figure() {
        let metrics = [("load_max", 40.0), ("load_mean", 5.0), ("cpu", 1e6)];
        let parameters = Parameters::new().with("placement", "free");
        let case = sample::case(("handoff/0", View::HandoffPreset), parameters, 1e9, &metrics);
        let text = anstream::adapter::strip_str(&presets(&[&case], 100)).to_string();
        let rows: Vec<Vec<_>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0], ["placement", "10,000 turns", "load %", "peak load %", "CPU time"]);
        assert_eq!(rows[1][2..4], ["5", "40"]);
    }
}

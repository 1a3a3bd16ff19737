//! Renders several runs of a pipeline, as medians with their intervals.

use contend_record::pipe::{PipeRecord, Runs};
use contend_record::stats::{Estimate, MIN_CI95_SAMPLES};
use contend_record::units::time;

use super::super::layout::{aligned, cut, plain_table, styled_lines};
use super::super::units::{counted, seconds};

/// Returns the medians of wall and CPU time with their intervals (or ranges, with fewer than six
/// runs).
pub(super) fn medians(runs: &Runs) -> [String; 2] {
    [(&runs.wall_seconds, "wall"), (&runs.cpu_seconds, "CPU")].map(|(estimate, name)| {
        let ends =
            ends(estimate, runs).map(|[low, high]| format!(" [{}, {}]", time(low), time(high)));
        format!("{} {name}{}", time(estimate.median), ends.unwrap_or_default())
    })
}

/// Returns how many runs there were, what the brackets after their medians are, how often they had the same
/// bottleneck, and which run the rest of the report shows.
pub(in crate::render) fn note(runs: &Runs) -> String {
    let brackets = brackets(runs).map_or_else(String::new, |words| format!(" [{words}]"));
    format!(
        "median of {}{brackets}; the same bottleneck in {} of them; below, the run nearest to the \
         median",
        counted(runs.count as u64, "run"),
        runs.same_bottleneck
    )
}

/// Returns what the brackets after medians are, in words; `None` for a single run, which has none.
pub(in crate::render) fn brackets(runs: &Runs) -> Option<&'static str> {
    match runs.count {
        ..2 => None,
        2..MIN_CI95_SAMPLES => Some("minimum and maximum"),
        _ => Some("95 % interval"),
    }
}

/// Renders a table of each stage's medians with their intervals, or ranges with fewer than six
/// runs. `record` is the record of the run that the report shows.
pub(super) fn table(runs: &Runs, record: &PipeRecord, width: usize) -> String {
    let interval = |estimate: &Estimate| median(estimate, runs);
    let mut table = plain_table();
    let mut headings = vec!["#", "stage", "busy", "CPU"];
    let wide = width >= 110;
    if wide {
        headings.extend(["starved", "blocked"]);
    }
    table.add_row(headings.into_iter().enumerate().map(|(i, t)| aligned(i, t.to_owned())));
    for stage in &runs.stages {
        let command =
            record.stages.get(stage.index.wrapping_sub(1)).map_or("", |s| s.command.as_str());
        let mut row = vec![
            stage.index.to_string(),
            cut(command, width.saturating_sub(if wide { 94 } else { 50 }).max(8)),
            interval(&stage.service_seconds),
            interval(&stage.cpu_seconds),
        ];
        if wide {
            row.extend([interval(&stage.starved_seconds), interval(&stage.blocked_seconds)]);
        }
        table.add_row(row.into_iter().enumerate().map(|(i, t)| aligned(i, t)));
    }
    styled_lines(table, None, width)
}

/// Returns the interval of a median, or the range of the samples if there are too few for an interval.
/// Returns `None` for a single run.
pub(in crate::render) fn ends(estimate: &Estimate, runs: &Runs) -> Option<[f64; 2]> {
    let samples = estimate.samples.iter().copied();
    match runs.count {
        ..2 => None,
        2..MIN_CI95_SAMPLES => {
            Some([samples.clone().fold(f64::INFINITY, f64::min), samples.fold(0.0, f64::max)])
        }
        _ => Some(estimate.ci95),
    }
}

/// Formats a median, in seconds, with its interval or range.
pub(in crate::render) fn median(estimate: &Estimate, runs: &Runs) -> String {
    let ends = ends(estimate, runs);
    let ends = ends.map(|[low, high]| format!(" [{}, {}]", seconds(low), seconds(high)));
    seconds(estimate.median) + &ends.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plain_output;
    use super::super::summary::headline;
    use super::super::tests::record;
    use super::*;

    fn runs(count: usize) -> Runs {
        let samples = [4.0, 3.0, 5.0].into_iter().cycle().take(count).collect();
        let estimate = Estimate::from_samples(samples, 1).expect("there are samples");
        Runs {
            count,
            wall_seconds: estimate.clone(),
            cpu_seconds: estimate,
            same_bottleneck: count,
            stages: Vec::new(),
        }
    }

    #[test]
    fn brackets_are_an_interval_from_six_runs_on() {
        for (count, words, expected) in [
            (1, None, None),
            (3, Some("minimum and maximum"), Some([3.0, 5.0])),
            (5, Some("minimum and maximum"), Some([3.0, 5.0])),
            (6, Some("95 % interval"), Some(runs(6).wall_seconds.ci95)),
        ] {
            let runs = runs(count);
            assert_eq!(brackets(&runs), words, "{count}");
            assert_eq!(ends(&runs.wall_seconds, &runs), expected, "{count}");
        }
    }

    #[test]
    fn the_headline_has_medians_and_a_note() {
        let record = PipeRecord { runs: Some(runs(3)), ..record() };
        insta::assert_snapshot!(plain_output(|out| headline(out, &record, 80)), @r"
        4.00 s wall [3.00 s, 5.00 s] | 4.00 s CPU [3.00 s, 5.00 s] | exit 0
        median of 3 runs [minimum and maximum]; the same bottleneck in 3 of them; below,
        the run nearest to the median
        ");
        let single = PipeRecord { runs: Some(runs(1)), ..record };
        let text = plain_output(|out| headline(out, &single, 80));
        assert!(text.starts_with("4.00 s wall | 4.00 s CPU | exit 0\nmedian of 1 run; "), "{text}");
    }
}

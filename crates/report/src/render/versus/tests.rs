use std::collections::BTreeMap;

use contend_record::pipe::{Bottleneck, BottleneckKind, PipeRecord, Stage};
use contend_record::versus::{Ratios, Tested};

use super::super::testing::plain;
use super::*;

fn estimate(median: f64, runs: i32) -> Estimate {
    let samples = (0..runs).map(|run| median * (1.0 + 0.01 * f64::from(run % 3 - 1))).collect();
    Estimate::from_samples(samples, 1).expect("there are samples")
}

fn variant(name: &str, command: &str, wall: f64, ratio: Option<f64>, runs: i32) -> Variant {
    let stage = |(place, text): (usize, &str)| Stage {
        index: place + 1,
        command: text.trim().to_owned(),
        user_seconds: wall / 2.0,
        on_cpu_seconds: wall / 2.0,
        ..Stage::default()
    };
    let profile = PipeRecord {
        wall_seconds: wall,
        stages: command.split('|').enumerate().map(stage).collect(),
        bottleneck: Bottleneck {
            kind: BottleneckKind::Stage,
            stage: Some(1),
            ..Bottleneck::default()
        },
        ..PipeRecord::default()
    };
    Variant {
        name: name.to_owned(),
        command: command.to_owned(),
        parameters: BTreeMap::new(),
        exit_code: 0,
        wall_seconds: estimate(wall, runs),
        cpu_seconds: estimate(1.5 * wall, runs),
        max_rss_bytes: estimate(3e6, runs),
        ratios: ratio.map(|ratio| Ratios {
            wall: estimate(ratio, runs),
            cpu: estimate(ratio, runs),
            memory: estimate(1.0, runs),
        }),
        origin: None,
        output_equal: Some(true),
        difference: None,
        profile,
    }
}

fn record(ratio: f64, runs: i32) -> VersusRecord {
    VersusRecord {
        in_turn: true,
        rounds: runs.unsigned_abs() as usize,
        variants: vec![
            variant("A", "sort x | uniq | wc -l", 1.0, None, runs),
            variant("B", "sort -u x | wc -l", ratio, Some(ratio), runs),
        ],
        ..VersusRecord::default()
    }
}

fn text(record: &VersusRecord) -> String {
    plain(&report(record, Detail::Summary, 80))
}

#[test]
fn a_report_has_the_ratio_first_and_then_the_reason() {
    insta::assert_snapshot!(text(&record(0.5, 10)));
}

#[test]
fn the_headline_says_which_pipeline_is_faster() {
    let first = |ratio: f64| text(&record(ratio, 10)).lines().next().unwrap_or("").to_owned();
    assert!(first(0.5).starts_with("B is 2.00 times as fast as A: 0.50 times the wall time [0.49"));
    assert!(first(2.0).starts_with("A is faster: B takes 2.00 times as long [1.98, 2.02] and"));
    assert!(first(1.001).starts_with("No clear difference between A and B"), "{}", first(1.001));
    let few = |ratio: f64, runs: i32| text(&record(ratio, runs));
    assert!(few(0.5, 2).starts_with("Too few runs"), "two runs may agree by chance");
    assert!(few(0.98, 4).starts_with("No clear difference"), "the difference is small");
    assert!(few(0.5, 3).starts_with("B is 2.00 times as fast"));
    let single = few(0.5, 1);
    let headline = single.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        headline.starts_with("Too few runs to compare A and B: B takes 0.49 times as long"),
        "{headline}"
    );
    assert!(!single.contains('['), "one run has no interval: {single}");
    let mut alone = record(0.5, 10);
    alone.variants.truncate(1);
    let alone = text(&alone);
    assert!(alone.starts_with("1.00 s wall [990 ms, 1.01 s]."), "{alone}");
    assert!(!alone.contains("ratio"), "there is nothing to compare: {alone}");
}

#[test]
fn a_pipeline_that_fails_or_has_another_output_is_not_praised() {
    let mut record = record(0.5, 10);
    record.variants[1].output_equal = Some(false);
    let headline = |record: &VersusRecord| {
        plain(&report(record, Detail::Summary, 200)).lines().next().unwrap_or_default().to_owned()
    };
    let differs = headline(&record);
    assert!(
        differs.starts_with("B is 2.00 times as fast as A, but its output differs:"),
        "{differs}"
    );
    record.variants[1].exit_code = 127;
    let failed = headline(&record);
    assert!(failed.starts_with("B fails (exit status 127): B takes 0.50 times"), "{failed}");
    record.variants.push(variant("C", "sort x", 0.8, Some(0.8), 10));
    let other = headline(&record);
    assert!(other.starts_with("C is 1.25 times as fast as A:"), "{other}");
}

#[test]
fn outputs_that_differ_and_conditions_are_reported() {
    let mut record = record(1.2, 10);
    record.variants[1].output_equal = Some(false);
    record.variants[1].difference = Some("line 1, byte 1: `2` instead of `1`".to_owned());
    let tested = |condition: &str, holds: &[&str], may: &[&str]| Tested {
        condition: condition.to_owned(),
        holds_for: holds.iter().map(|name| (*name).to_owned()).collect(),
        may_hold_for: may.iter().map(|name| (*name).to_owned()).collect(),
    };
    record.conditions = vec![
        tested("wall > 1.05x", &["B"], &[]),
        tested("cpu > 2x", &[], &[]),
        tested("memory > 1x", &[], &["B"]),
    ];
    let text = text(&record);
    assert!(text.contains("! The output of B differs: line 1, byte 1"), "{text}");
    assert!(text.contains("Failed: 'wall > 1.05x' holds for B."), "{text}");
    assert!(text.contains("Passed: 'cpu > 2x' does not hold."), "{text}");
    assert!(text.contains("Passed: 'memory > 1x' holds for the median of B, but not"), "{text}");
}

#[test]
fn brackets_are_an_interval_from_six_rounds_on() {
    for (rounds, words) in [
        (1, None),
        (3, Some("minimum and maximum")),
        (5, Some("minimum and maximum")),
        (6, Some("95 % interval")),
    ] {
        let record = record(0.5, rounds);
        assert_eq!(brackets(&record), words, "{rounds}");
        let text = text(&record);
        assert_eq!(text.contains('['), rounds > 1, "{text}");
        if let Some(words) = words {
            assert!(text.contains(&format!("; median [{words}]")), "{rounds}: {text}");
        }
        let wall = &record.variants[0].wall_seconds;
        let range = (rounds > 1).then_some([0.99, 1.01]);
        let expected = if rounds < 6 { range } else { Some(wall.ci95) };
        assert_eq!(ends(wall, record.rounds), expected, "{rounds}");
    }
}

#[test]
fn the_pipeline_with_the_fewest_saved_runs_decides_what_brackets_are() {
    let mut record = record(0.5, 3);
    record.in_turn = false;
    let many = estimate(1.0, 30);
    assert_eq!(ends(&many, record.rounds), Some([0.99, 1.01]), "the range, as the words say");
    record.variants[0].wall_seconds = many;
    // The samples of the ratio are not all pairs, whose range is its interval.
    let ratio = Estimate { ci95: [0.4, 0.6], ..estimate(0.5, 3) };
    assert_eq!(ratio_ends(&ratio, &record), Some([0.4, 0.6]));
    record.in_turn = true;
    assert_eq!(ratio_ends(&ratio, &record), ends(&ratio, 3));
}

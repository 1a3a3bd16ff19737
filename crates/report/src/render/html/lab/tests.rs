//! Tests of the page of a run of the lab.

use contend_record::Warning;
use contend_record::lab::{Limit, LimitReport, Stage, Step, Stopped, StoppedBy, Task};
use contend_record::warning::WarningId;

use super::*;
use crate::render::lab::sample;
use crate::render::testing::LAB;

/// Returns the page of a run with the given cases, without its record.
fn text(cases: Vec<Case>) -> String {
    markup(&sample::record(None, cases))
}

fn markup(record: &RunRecord) -> String {
    let page = page(record).expect("JSON");
    page.split_once("<script").expect("the record").0.to_owned()
}

fn case(n: u64, value: f64) -> Case {
    let parameters = Parameters::new().with("n", n);
    let mut case = sample::case(("units/create", View::Table), parameters, value, &[]);
    case.unit = Unit::Bytes;
    case
}

#[test]
fn a_negative_median_has_a_bar_to_the_left_of_zero() {
    let mut below = case(1, -2048.0);
    below.ci95 = Some([-4096.0, 1024.0]);
    let text = text(vec![below, case(2, 4096.0)]);
    assert!(text.contains(r#"x="25%" width="25%""#), "{text}");
    assert!(text.contains(r#"<line class="interval" x1="0%" x2="62.5%""#), "{text}");
    assert!(text.contains("-2.05kB"), "{text}");
}

#[test]
fn a_negative_median_has_a_point_below_zero() {
    let cases = [(1, -1000.0), (2, 0.0), (3, 1000.0)];
    let text = text(cases.map(|(n, value)| case(n, value)).to_vec());
    let heights: Vec<&str> =
        text.split("cy=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect();
    assert_eq!(heights, ["270", "140", "10"], "{text}");
}

#[test]
fn disturbed_cases_are_marked_and_counted() {
    let mut disturbed = case(1, 1000.0);
    disturbed.disturbed = vec![0];
    disturbed.warnings = vec![Warning::new(WarningId::OtherLoad, "1 of 2 samples")];
    let text = text(vec![disturbed, case(2, 4096.0)]);
    assert!(text.contains(">1.00kB!</td>") && text.contains(">4.10kB</td>"), "{text}");
    assert!(text.contains("Disturbed: 1 of 2 cases. !: some samples were disturbed"), "{text}");
    assert!(text.contains("</strong>1 of 2 cases was disturbed (other load above 5 %"), "{text}");
    assert!(!text.contains("1 of 2 samples"), "the sentence stands for the warnings: {text}");
}

#[test]
fn cases_that_stopped_early_have_their_reason() {
    let mut failed = case(1, 0.0);
    (failed.median, failed.samples) = (None, Vec::new());
    failed.stopped = Some(Stopped::Failure);
    let mut cut = case(2, 100.0);
    cut.stopped = Some(Stopped::Interrupt);
    cut.warnings = vec![Warning::new(WarningId::Frequency, "the processor was hot")];
    let text = text(vec![failed, cut]);
    assert!(text.contains("no samples: n=1: the experiment failed"), "{text}");
    assert!(text.contains("<td>the run was interrupted</td>"), "{text}");
    assert!(text.contains("</strong>n=2: the processor was hot"), "{text}");
}

#[test]
fn limits_stages_steps_and_facts_have_tables() {
    let mut all = case(1, 100.0);
    all.view = View::ThreadSharing;
    let limit = Limit {
        name: "kernel.pid_max".to_owned(),
        source: "/proc/sys/kernel/pid_max".to_owned(),
        value: 32_768,
        in_use: 218,
        per_unit: 1.0,
        allows: 32_313,
    };
    all.limit = Some(LimitReport {
        limits: vec![limit],
        cap: None,
        created: 32_000,
        errno: Some("EAGAIN".to_owned()),
        stopped_by: StoppedBy::Limit("kernel.pid_max".to_owned()),
        evidence: vec!["no pid was free".to_owned()],
        prediction_held: Some(true),
    });
    let time = |samples: &[f64]| Metric::of(Unit::Nanoseconds, samples.to_vec());
    all.stages.push(Stage {
        stage: "sort <b>".to_owned(),
        real: time(&[1e9, 3e9]),
        user: time(&[1e9, 1e9]),
        system: time(&[0.0, 0.0]),
    });
    all.timeline.push(Step {
        at_seconds: 0.5,
        who: "main".to_owned(),
        what: "sets n to 1".to_owned(),
        address: Some("0x10".to_owned()),
        value: Some(1),
        tasks: vec![Task { pid: 7, state: "R".to_owned(), ..Task::default() }],
    });
    all.facts.insert("mechanism_is".to_owned(), "a futex".into());
    all.facts.insert("messages".to_owned(), 12.into());
    let text = text(vec![all]);
    for expected in [
        "Predicted limit for units: kernel.pid_max at 32313. Created 32000; stopped by kernel.pid_max \
         (EAGAIN); no pid was free. The prediction was correct.",
        "<td>kernel.pid_max</td>",
        "<td>sort &lt;b&gt;</td><td class=\"number\" data-value=\"2000000000\">2.00s (1.00s to 3.00s)</td>",
        "Stages: medians of 2 samples. In (parentheses): range of the samples",
        "Both threads see n at the same address 0x10.",
        "<td>main sets n to 1: n = 1 at 0x10</td>",
        "<td>7</td>",
        "PSS divides shared pages by their users.",
        "<td>a futex</td><td class=\"number\" data-value=\"12\">12</td>",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn the_command_has_the_options_that_the_record_keeps() {
    let mut record = sample::record(None, vec![case(1, 100.0)]);
    assert!(markup(&record).contains("<code>contend lab run units/create</code>"));
    record.quick = true;
    let text = markup(&record);
    assert!(
        text.contains("<code>contend lab run units/create --quick</code>, with the --set"),
        "{text}"
    );
}

#[test]
fn the_page_says_what_the_terminal_says_about_saved_runs() {
    for json in LAB {
        let record: RunRecord = serde_json::from_str(json).expect("a record");
        let text = markup(&record);
        let disturbed = record.cases.iter().filter(|case| !case.disturbed.is_empty()).count();
        let warning = format!("</strong>{disturbed} of {} cases were disturbed", record.measured());
        assert!(text.contains(&warning), "{warning}");
        for case in &record.cases {
            for fit in record.fits.iter().filter(|fit| fit.experiment == case.experiment) {
                assert!(text.contains(&shown(fit.line.slope, fit.unit)), "{fit:?}");
            }
        }
    }
}

/// Returns the labels of the rows of charts.
pub(in super::super) fn labels(markup: &str) -> Vec<&str> {
    let labels = markup.split("<text class=\"label\"").skip(1);
    labels.filter_map(|rest| Some(rest.split_once('>')?.1.split_once('<')?.0)).collect()
}

#[test]
fn the_labels_of_a_chart_are_distinct() {
    let record: RunRecord = serde_json::from_str(LAB[0]).expect("a record");
    let text = markup(&record);
    for chart in text.split("<svg class=\"chart\"").skip(1) {
        let chart = chart.split_once("</svg>").expect("an end").0;
        let labels = labels(chart);
        let distinct: std::collections::HashSet<&str> = labels.iter().copied().collect();
        assert_eq!(distinct.len(), labels.len(), "{labels:?}");
        assert!(labels.iter().all(|label| !label.contains('…')), "{labels:?}");
    }
}

#[test]
fn cases_of_very_different_times_are_points_on_a_logarithmic_axis() {
    let kinds = |values: [f64; 3]| {
        let case = |(kind, value): (&str, f64)| {
            let mut case = case(1, value);
            case.parameters = Parameters::new().with("kind", kind);
            case
        };
        ["thread", "fork", "exec"].into_iter().zip(values).map(case).collect()
    };
    let far = text(kinds([1.0, 1e3, 1e6]));
    assert!(far.contains("<circle class=\"mark c0\" cx=\"50%\""), "{far}");
    assert!(far.contains("The axis is logarithmic.") && far.contains("\"Points of units/create"));
    let near = text(kinds([1.0, 50.0, 100.0]));
    assert!(near.contains("<rect class=\"mark c0\"") && !near.contains("logarithmic"), "{near}");
}

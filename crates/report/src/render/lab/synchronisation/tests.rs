//! The report's own figures, put in the place of a run's, bear its findings out.

use contend_record::Host;
use contend_record::lab::{Case, Chapter, Metric, RunRecord, Unit, View};
use contend_record::parameters::Parameters;

use super::super::sample::{case, record};
use super::chapter;

fn turns(number: &str, tick: Option<u64>, load: f64, seconds: f64) -> Case {
    let placement = if number == "9" { "same-cpu" } else { "free" };
    let mut parameters = Parameters::new().with("placement", placement).with("turns", 96);
    if let Some(tick) = tick {
        parameters = parameters.with("tick_us", tick);
    }
    let not_ready = if number == "9" { 6.0 } else { 100.0 };
    let figures = [
        ("load_max", load),
        ("load_mean", load),
        ("not_ready", not_ready),
        ("predicted", 1e9 * seconds),
        ("p50", 1e5 * seconds),
    ];
    case((&format!("handoff/{number}"), View::HandoffPreset), parameters, 1e9 * seconds, &figures)
}

fn workers(processes: u64, threads: u64, load: f64, seconds: f64) -> Case {
    let parameters = Parameters::new().with("processes", processes).with("threads", threads);
    case(("saturation/compute", View::Computing), parameters, 1e9 * seconds, &[("load", load)])
}

/// The report's column for two cores.
fn two_cores() -> RunRecord {
    let cases = vec![
        turns("0", Some(15_625), 2.0, 124.0),
        turns("1a+", None, 100.0, 37.0),
        turns("2", None, 22.0, 1.0),
        turns("2+", None, 53.0, 37.0),
        turns("4", None, 20.0, 1.0),
        turns("9", Some(15_625), 11.0, 9.0),
        workers(1, 1, 50.0, 32.0),
        workers(1, 2, 100.0, 37.0),
        workers(2, 1, 100.0, 33.0),
    ];
    let host = Host { cpus_allowed: 2, ..Host::default() };
    RunRecord { host, ..record(Some(Chapter::Synchronisation), cases) }
}

fn told(record: &RunRecord) -> String {
    let text = anstream::adapter::strip_str(&chapter(record, 100)).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_reports_figures_bear_its_findings_out() {
    let text = told(&two_cores());
    for letter in ["A", "B", "C"] {
        assert!(text.contains(&format!("{letter} holds here: ")), "{letter}: {text}");
    }
    assert!(text.contains("124s by sleeping with the report's tick, 124 times as long"), "{text}");
    assert!(text.contains("0 49%, 1 2%, 124 5%, 156 2.0%, 124 124"), "{text}");
    assert!(text.contains("sub has run when main looks"), "{text}");
    assert!(text.contains("from 96: 0 with tick, 1a+, 2, 2+, 4, 9 with tick."), "{text}");
    assert!(text.contains("is within 10 % of what was measured in 6 of 6 cases"), "{text}");
}

#[test]
fn other_figures_do_not() {
    let mut record = two_cores();
    let change = |record: &mut RunRecord, place: usize, value: f64, metric: &str, load: f64| {
        let case = &mut record.cases[place];
        case.samples = vec![1e9 * value; 2];
        case.median = Some(1e9 * value);
        case.metrics.insert(metric.to_owned(), Metric::of(Unit::Count, vec![load]));
    };
    change(&mut record, 0, 1.2, "load_max", 40.0);
    change(&mut record, 1, 60.0, "load_mean", 70.0);
    change(&mut record, 6, 20.0, "load", 80.0);
    let text = told(&record);
    for letter in ["A", "B", "C"] {
        assert!(text.contains(&format!("{letter} does not hold here: ")), "{letter}: {text}");
    }
}

#[test]
fn what_was_chosen_otherwise_is_not_the_reports() {
    let mut record = two_cores();
    record.cases[0].parameters = record.cases[0].parameters.clone().with("to_main", "semaphore");
    record.cases[5].parameters = record.cases[5].parameters.clone().with("placement", "two-cpus");
    let text = told(&record);
    assert!(text.contains("A cannot be told: ") && !text.contains("by sleeping (0)"), "{text}");
    assert!(text.contains("2 cases with parameters that the report does not have"), "{text}");
}

#[test]
fn one_cpu_cannot_tell() {
    let mut record = two_cores();
    record.host.cpus_allowed = 1;
    record.cases[6].metrics.insert("load".to_owned(), Metric::of(Unit::Count, vec![100.0]));
    let text = told(&record);
    assert!(text.contains("A cannot be told: ") && text.contains("B cannot be told: "), "{text}");
    assert_eq!(
        chapter(&super::super::sample::record(Some(Chapter::Synchronisation), Vec::new()), 80),
        ""
    );
}

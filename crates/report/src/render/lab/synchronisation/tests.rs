//! Tests that the report's own measurements confirm its conclusions, and that other measurements do
//! not.

use contend_record::Host;
use contend_record::lab::{Case, Chapter, Metric, RunRecord, Unit, View};
use contend_record::parameters::Parameters;

use super::super::sample::{case, chapter_text, record};

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

/// Returns a record with the report's measurements for two cores.
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

fn shown(record: &RunRecord) -> String {
    chapter_text(record, 100)
}

#[test]
fn the_reports_figures_confirm_its_conclusions() {
    let text = shown(&two_cores());
    for letter in ["A", "B", "C"] {
        assert!(text.contains(&format!("{letter}. confirmed: ")), "{letter}: {text}");
    }
    assert!(
        text.contains("124s by sleeping with the Windows tick, 124 (124 to 124) times as long"),
        "{text}"
    );
    assert!(text.contains("0 49%, 1 2%, 124 5%, 156 2.0%, 124 124"), "{text}");
    assert!(
        text.contains("the sub-process has usually finished before the main process checks"),
        "{text}"
    );
    assert!(text.contains("from 96: 0 with tick, 1a+, 2, 2+, 4, 9 with tick."), "{text}");
    assert!(text.contains("predicts 6 of 6 cases within 10 %"), "{text}");
}

#[test]
fn other_figures_do_not_confirm_them() {
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
    let text = shown(&record);
    for letter in ["A", "B", "C"] {
        assert!(text.contains(&format!("{letter}. not confirmed: ")), "{letter}: {text}");
    }
}

#[test]
fn single_samples_are_too_few() {
    let mut record = two_cores();
    record.cases.iter_mut().for_each(|case| case.samples.truncate(1));
    let text = shown(&record);
    for letter in ["A", "B", "C"] {
        assert!(text.contains(&format!("{letter}. inconclusive (too few samples): ")), "{text}");
    }
    assert!(text.contains("Compared: 1 sample of each."), "{text}");
}

#[test]
fn cases_with_other_parameters_are_left_out() {
    let mut record = two_cores();
    record.cases[0].parameters = record.cases[0].parameters.clone().with("to_main", "semaphore");
    record.cases[5].parameters = record.cases[5].parameters.clone().with("placement", "two-cpus");
    let text = shown(&record);
    assert!(
        text.contains("A. inconclusive (not measured): ") && !text.contains("by sleeping (0)"),
        "{text}"
    );
    assert!(text.contains("2 cases have other parameters than the report's"), "{text}");
}

#[test]
fn one_cpu_is_inconclusive() {
    let mut record = two_cores();
    record.host.cpus_allowed = 1;
    record.cases[6].metrics.insert("load".to_owned(), Metric::of(Unit::Count, vec![100.0]));
    let text = shown(&record);
    for letter in ["A", "B"] {
        assert!(text.contains(&format!("{letter}. inconclusive (only one CPU): ")), "{text}");
    }
    let empty = super::super::sample::record(Some(Chapter::Synchronisation), Vec::new());
    assert_eq!(shown(&empty), "");
}

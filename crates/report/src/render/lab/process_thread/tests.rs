//! Tests that the workshop's figures confirm its conclusions, and that other figures do not.

use contend_record::lab::{Case, Chapter, Limit, LimitReport, RunRecord, Stopped, StoppedBy, View};
use contend_record::parameters::Parameters;

use super::super::sample::{case, chapter_text, record};

fn creation(kind: &str, nanoseconds: f64) -> Case {
    let parameters = Parameters::new().with("kind", kind).with("n", 100);
    let metrics = [("cpu_self", nanoseconds / 4.0), ("cpu_children", nanoseconds / 4.0)];
    let mut case = case(("units/create", View::Creation), parameters, nanoseconds, &metrics);
    case.samples = vec![nanoseconds; 6];
    case
}

fn limit(kind: &str, created: u64, stopped_by: StoppedBy) -> Case {
    let parameters = Parameters::new().with("kind", kind);
    let mut case = case(("units/limit", View::UnitLimit), parameters, 1.0, &[]);
    let limit = Limit {
        name: "RLIMIT_NPROC".to_owned(),
        source: "ulimit -u".to_owned(),
        value: created,
        in_use: 0,
        per_unit: 1.0,
        allows: created,
    };
    case.limit = Some(LimitReport {
        limits: vec![limit],
        cap: None,
        created,
        errno: None,
        stopped_by,
        evidence: Vec::new(),
        prediction_held: None,
    });
    case
}

fn shown(cases: Vec<Case>) -> String {
    let record: RunRecord = record(Some(Chapter::ProcessThread), cases);
    chapter_text(&record, 100)
}

#[test]
fn the_workshops_figures_confirm_its_conclusions() {
    let limit_of = |kind, created| limit(kind, created, StoppedBy::Limit("RLIMIT_NPROC".into()));
    let text = shown(vec![
        creation("fork", 190_810.0),
        creation("thread", 83_890.0),
        limit_of("process", 1193),
        limit_of("thread", 4095),
    ]);
    assert!(text.contains("A. inconclusive (not measured): "), "{text}");
    assert!(text.contains("C. confirmed: ") && text.contains("D. confirmed: "), "{text}");
    assert!(
        text.contains("100 processes take 19.1ms, 100 threads 8.39ms: 2.27 [2.27, 2.27] times"),
        "{text}"
    );
    assert!(text.contains("50 % of the CPU time of creating a process"), "{text}");
}

#[test]
fn lower_figures_do_not_confirm_and_a_cap_is_inconclusive() {
    let text = shown(vec![
        creation("fork", 50_000.0),
        creation("thread", 83_890.0),
        limit("process", 1000, StoppedBy::Cap),
        limit("thread", 1000, StoppedBy::Cap),
    ]);
    assert!(text.contains("C. not confirmed: "), "{text}");
    assert!(text.contains("D. inconclusive (limit not reached): "), "{text}");
    assert!(text.contains("Both attempts ended at the cap."), "{text}");
    let guarded = shown(vec![
        limit("process", 900, StoppedBy::MemoryFloor),
        limit("thread", 1000, StoppedBy::Cap),
    ]);
    let ended = "with processes ended at the memory guard, the one with threads at the cap.";
    assert!(guarded.contains(ended), "{guarded}");
    assert_eq!(shown(Vec::new()), "");
}

#[test]
fn an_inconclusive_comparison_has_its_number_of_samples() {
    let mut thread = creation("thread", 83_890.0);
    thread.samples.push(83_890.0);
    let text = shown(vec![creation("fork", 83_890.0), thread.clone()]);
    assert!(text.contains("C. inconclusive (within noise): "), "{text}");
    assert!(text.contains("1.00 [1.00, 1.00] times as long. Compared: 6 and 7 samples."), "{text}");
    thread.stopped = Some(Stopped::Budget);
    let text = shown(vec![creation("fork", 83_890.0), thread]);
    assert!(text.contains("6 and 7 samples; --budget N, in seconds, takes more."), "{text}");
}

/// An interrupted run may have a single sample of each case. Even a large difference is then no
/// conclusion.
#[test]
fn a_difference_without_an_interval_is_inconclusive() {
    let few = |count: usize| {
        let mut cases = [creation("fork", 190_810.0), creation("thread", 83_890.0)];
        for case in &mut cases {
            case.samples.truncate(count);
            case.stopped = Some(Stopped::Interrupt);
        }
        shown(cases.to_vec())
    };
    let text = few(1);
    assert!(text.contains("C. inconclusive (too few samples): "), "{text}");
    assert!(text.contains("2.27 times as long. Compared: 1 sample of each."), "{text}");
    assert!(few(5).contains("C. inconclusive (too few samples): "));
    assert!(few(6).contains("C. confirmed: "));
}

#[test]
fn hand_offs_on_one_cpu_answer_which_is_cheaper_to_switch() {
    let hand_off = |partners: &str, placement: &str, nanoseconds: f64| {
        let parameters = Parameters::new()
            .with("mechanism", "pipe")
            .with("partners", partners)
            .with("placement", placement);
        let about = ("handoff/mechanisms", View::HandoffMechanisms);
        case(about, parameters, nanoseconds, &[])
    };
    let text = shown(vec![
        hand_off("process", "two-cpus", 9000.0),
        hand_off("process", "same-cpu", 2000.0),
        hand_off("thread", "same-cpu", 1800.0),
    ]);
    let sentence = "takes 1.80µs by pipe, 0.90 (0.90 to 0.90) times as long as between processes";
    assert!(text.contains(sentence), "{text}");
    assert!(text.contains("hand-off on one CPU processes threads threads : processes"), "{text}");
    assert!(!text.contains("9.00µs"), "only hand-offs on one CPU contain a switch: {text}");
}

//! The study's own figures, put in the place of a run's, bear its conclusions out.

use contend_record::Warning;
use contend_record::lab::{Case, Chapter, Metric, RunRecord, Stage, Step, Unit, View};
use contend_record::parameters::Parameters;
use contend_record::warning::WarningId;

use super::{chapter, study};

fn record(cases: Vec<Case>) -> RunRecord {
    super::super::sample::record(Some(Chapter::Pipeline), cases)
}

fn case((experiment, view): (&str, View), parameters: Parameters, real: f64) -> Case {
    let mut case = Case::new(experiment, view, parameters, Unit::Nanoseconds);
    case.samples = vec![real; 3];
    case.median = Some(real);
    case
}

fn seconds(value: f64) -> Metric {
    Metric::of(Unit::Nanoseconds, vec![1e9 * value; 3])
}

fn pipeline(
    experiment: (&str, View),
    words: &[(&str, &str)],
    whole: &study::Whole,
    stages: &[f64],
) -> Case {
    let parameters =
        words.iter().fold(Parameters::new(), |all, &(name, value)| all.with(name, value));
    let mut case = case(experiment, parameters, 1e9 * whole.real);
    case.metrics.insert("user".to_owned(), seconds(whole.user));
    case.metrics.insert("system".to_owned(), seconds(whole.system));
    case.metrics.insert("input".to_owned(), Metric::of(Unit::Bytes, vec![24.3e6]));
    let stage = |percent: &f64| Stage {
        stage: "stage".to_owned(),
        real: seconds(whole.real),
        user: seconds(whole.real * percent / 100.0),
        system: seconds(0.0),
    };
    case.stages = stages.iter().map(stage).collect();
    case
}

/// Five lines, one a second, that are held until the fifth second or not at all.
fn held(stage: &str, is_held: bool) -> Case {
    let mut case =
        case(("pipeline/hold", View::PipelineHold), Parameters::new().with("stage", stage), 1.0);
    let step = |what: &str, line: u8, at_seconds: f64| Step {
        at_seconds,
        who: stage.to_owned(),
        what: format!("line {line} {what}"),
        address: None,
        value: None,
        tasks: Vec::new(),
    };
    for line in 1..=5 {
        let produced = f64::from(line - 1);
        case.timeline.push(step("is produced", line, produced));
        case.timeline.push(step("arrives", line, if is_held { 5.0 } else { produced }));
    }
    case
}

fn the_study() -> Vec<Case> {
    let mut cases = Vec::new();
    for (awk, tokenizer, whole, stages) in &study::JSON {
        let words = [("awk", *awk), ("tokenizer", *tokenizer), ("copies", "1")];
        cases.push(pipeline(("pipeline/json", View::PipelineJson), &words, whole, stages));
    }
    for (awk, tokenizer, whole) in &study::TEN {
        let words = [("awk", *awk), ("tokenizer", *tokenizer), ("copies", "10")];
        cases.push(pipeline(("pipeline/json", View::PipelineJson), &words, whole, &[]));
    }
    for (filter, order, whole) in &study::FILTER {
        cases.push(pipeline(
            ("pipeline/filter", View::PipelineFilter),
            &[("filter", filter), ("order", order)],
            whole,
            &[],
        ));
    }
    cases.extend(study::HOLD.map(|(stage, later)| held(stage, later.starts_with('5'))));
    cases
}

/// What the chapter says of each conclusion: its line up to the colon.
fn verdicts(record: &RunRecord) -> Vec<String> {
    let text = anstream::adapter::strip_str(&chapter(record, 10_000)).to_string();
    let start = text.find("What holds").expect("the part is there");
    let lines = text[start..].lines().skip(1);
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(start, _)| start.to_owned())
        .take(9)
        .collect()
}

#[test]
fn the_study_s_figures_bear_its_conclusions_out() {
    let said = verdicts(&record(the_study()));
    // Its B rests on 1.4 % of real time, which it says is within what chance does.
    let expected = ["A", "B", "C", "D", "E", "F", "G", "H", "I"].map(|letter| match letter {
        "B" => "B cannot be told".to_owned(),
        letter => format!("{letter} holds here"),
    });
    assert_eq!(said, expected);
}

#[test]
fn other_figures_refute_them() {
    let mut cases = the_study();
    for case in &mut cases {
        let is = |name: &str, value: &str| case.parameters.text(name) == Some(value);
        let factor = if is("tokenizer", "four") { 2.0 } else { 1.0 };
        let factor = if is("order", "early") { 10.0 } else { factor };
        case.median = case.median.map(|median| median * factor);
        if case.parameters.text("stage") == Some("sort") {
            *case = held("sort", false);
        }
    }
    let said = verdicts(&record(cases));
    for refuted in ["E does not hold here", "H does not hold here", "I does not hold here"] {
        assert!(said.iter().any(|line| line == refuted), "{said:?}");
    }
    assert!(said.contains(&"F cannot be told".to_owned()), "alone it was never faster: {said:?}");
}

#[test]
fn what_others_have_stretched_tells_nothing_of_real_time() {
    let mut record = record(the_study());
    for case in &mut record.cases {
        case.disturbed = (0..case.samples.len()).collect();
        case.median = case.median.map(|median| 3.0 * median);
    }
    record.warnings.push(Warning::new(WarningId::OtherLoad, "others"));
    let said = verdicts(&record);
    for open in ["B", "C", "E", "F", "G"] {
        assert!(said.contains(&format!("{open} cannot be told")), "{said:?}");
    }
    // These rest on CPU times and on orders.
    for letter in ["A", "D", "H", "I"] {
        assert!(said.contains(&format!("{letter} holds here")), "{said:?}");
    }
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!(chapter(&record(Vec::new()), 80), "");
}

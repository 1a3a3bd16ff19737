//! Tests that the article's own measurements confirm its conclusions (except B, which is within
//! noise), and that other measurements do not.

use contend_record::Warning;
use contend_record::lab::{Case, Chapter, Metric, RunRecord, Stage, Step, Unit, View};
use contend_record::parameters::Parameters;
use contend_record::warning::WarningId;

use super::super::{Detail, chapter};
use super::article;

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
    whole: &article::Whole,
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

/// Returns the case of a stage for which five lines are produced, one second apart from 0 s. If
/// `is_held`, all of them arrive at 5 s; otherwise, each arrives when it is produced.
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

fn the_article() -> Vec<Case> {
    let mut cases = Vec::new();
    for (awk, tokenizer, whole, stages) in &article::JSON {
        let words = [("awk", *awk), ("tokenizer", *tokenizer), ("copies", "1")];
        cases.push(pipeline(("pipeline/json", View::PipelineJson), &words, whole, stages));
    }
    for (awk, tokenizer, whole) in &article::TEN {
        let words = [("awk", *awk), ("tokenizer", *tokenizer), ("copies", "10")];
        cases.push(pipeline(("pipeline/json", View::PipelineJson), &words, whole, &[]));
    }
    for (filter, order, whole) in &article::FILTER {
        cases.push(pipeline(
            ("pipeline/filter", View::PipelineFilter),
            &[("filter", filter), ("order", order)],
            whole,
            &[],
        ));
    }
    cases.extend(article::HOLD.map(|(stage, later)| held(stage, later.starts_with('5'))));
    cases
}

/// Returns the verdict on each conclusion: the beginning of its line, up to the colon.
fn verdicts(record: &RunRecord) -> Vec<String> {
    let content = super::chapter(record, 100).expect("cases were measured");
    let text = chapter::render(&content, Chapter::Pipeline, record, Detail::Summary, 100);
    let text = anstream::adapter::strip_str(&text).to_string();
    let starts = text.lines().filter_map(|line| line.split_once(": "));
    let is_verdict = |start: &&str| start.as_bytes().get(1..3) == Some(b". ");
    starts.map(|(start, _)| start).filter(is_verdict).map(str::to_owned).collect()
}

#[test]
fn the_articles_figures_confirm_its_conclusions() {
    let said = verdicts(&record(the_article()));
    // Conclusion B rests on a difference of 1.4 % in wall time, which the article itself calls
    // noise.
    let expected = ["A", "B", "C", "D", "E", "F", "G", "H", "I"].map(|letter| match letter {
        "B" => "B. inconclusive (within noise)".to_owned(),
        letter => format!("{letter}. confirmed"),
    });
    assert_eq!(said, expected);
}

#[test]
fn other_figures_do_not_confirm_them() {
    let mut cases = the_article();
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
    for refuted in ["E. not confirmed", "H. not confirmed", "I. not confirmed"] {
        assert!(said.iter().any(|line| line == refuted), "{said:?}");
    }
    assert!(said.contains(&"F. inconclusive (did not occur)".to_owned()), "{said:?}");
}

#[test]
fn disturbed_wall_times_are_not_compared() {
    let mut record = record(the_article());
    for case in &mut record.cases {
        case.disturbed = (0..case.samples.len()).collect();
        case.median = case.median.map(|median| 3.0 * median);
    }
    record.warnings.push(Warning::new(WarningId::OtherLoad, "others"));
    let said = verdicts(&record);
    for letter in ["B", "C", "E", "F", "G"] {
        let start = format!("{letter}. inconclusive (disturbed)");
        assert!(said.iter().any(|verdict| verdict.starts_with(&start)), "{said:?}");
    }
    // These conclusions rest on CPU times and on the order of events.
    for letter in ["A", "D", "H", "I"] {
        assert!(said.contains(&format!("{letter}. confirmed")), "{said:?}");
    }
}

/// With one sample of each pipeline, times are not compared. The delays of a stage that holds its
/// output are in that sample.
#[test]
fn single_samples_are_too_few() {
    let mut record = record(the_article());
    record.cases.iter_mut().for_each(|case| case.samples.truncate(1));
    let said = verdicts(&record);
    for letter in ["C", "D", "E", "G", "I"] {
        let verdict = format!("{letter}. inconclusive (too few samples)");
        assert!(said.contains(&verdict), "{said:?}");
    }
    assert!(said.contains(&"H. confirmed".to_owned()), "{said:?}");
}

/// A stage that forwards every line is no barrier, even if other load delays its first line.
#[test]
fn a_single_late_line_is_not_a_stage_that_holds_its_output() {
    let mut cases = the_article();
    for case in &mut cases {
        if case.parameters.text("stage") == Some("xargs -n 1 echo") {
            let arrival = case.timeline.iter_mut().find(|step| step.what == "line 1 arrives");
            arrival.expect("a step").at_seconds = 0.019;
        }
    }
    let said = verdicts(&record(cases));
    assert!(said.contains(&"H. confirmed".to_owned()), "{said:?}");
}

#[test]
fn a_run_without_cases_has_no_chapter() {
    assert!(super::chapter(&record(Vec::new()), 80).is_none());
}

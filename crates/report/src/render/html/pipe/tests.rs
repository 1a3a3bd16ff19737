use contend_record::advice::{Prediction, WhatIf};
use contend_record::pipe::{
    Attached, Bottleneck, BottleneckKind, Phase, PhaseStage, Runs, StageRuns,
};
use contend_record::stats::Estimate;

use super::super::super::testing::PIPE;
use super::*;

fn record() -> PipeRecord {
    serde_json::from_str(PIPE).expect("a record")
}

/// Returns the page without its record.
fn markup(record: &PipeRecord) -> String {
    let page = page(record).expect("JSON");
    page.split_once("<script").expect("the record comes last").0.to_owned()
}

/// Returns the text between the title of a figure and its end.
fn figure_of<'a>(markup: &'a str, title: &str) -> &'a str {
    let (_, rest) = markup.split_once(&format!("<figcaption>{title}<")).expect("a figure");
    rest.split_once("</figure>").expect("an end").0
}

/// Returns a record of several runs: wall times of 3, 4 and 5 s, CPU times of 1, 2 and 3 s.
fn of_runs(count: usize) -> PipeRecord {
    let estimate = |middle: f64| {
        let samples = [middle, middle - 1.0, middle + 1.0].into_iter().cycle().take(count);
        Estimate::from_samples(samples.collect(), 1).expect("there are samples")
    };
    let record = record();
    let of_stage = |stage: &Stage| StageRuns {
        index: stage.index,
        wall_seconds: estimate(4.0),
        cpu_seconds: estimate(2.0),
        service_seconds: estimate(2.0),
        run_queue_seconds: estimate(2.0),
        starved_seconds: estimate(2.0),
        blocked_seconds: estimate(2.0),
    };
    let runs = Runs {
        count,
        wall_seconds: estimate(4.0),
        cpu_seconds: estimate(2.0),
        same_bottleneck: 2,
        stages: record.stages.iter().map(of_stage).collect(),
    };
    PipeRecord { runs: Some(runs), trial: None, candidates: Vec::new(), ..record }
}

#[test]
fn several_runs_have_medians_and_intervals() {
    for (count, words) in [
        (1, None),
        (3, Some("minimum and maximum")),
        (5, Some("minimum and maximum")),
        (6, Some("95 % interval")),
    ] {
        let record = of_runs(count);
        let markup = markup(&record);
        let runs = record.runs.as_ref().expect("runs");
        assert!(markup.contains(&pipe::runs::note(runs)), "{count}");
        let [wall, cpu, _] = pipe::facts(&record);
        assert!(markup.contains(&format!("<li>{wall}</li><li>{cpu}</li>")), "{wall}, {cpu}");
        let title = format!("CPU time of {}", counted(count as u64, "run"));
        let lines = |figure: &str| figure.matches("class=\"interval\"").count();
        let stages = record.stages.len();
        let medians = figure_of(&markup, &title);
        let activities = figure_of(&markup, "Time of each stage by activity");
        let expected = if words.is_some() { [stages + 1, stages] } else { [0, 0] };
        assert_eq!([lines(medians), lines(activities)], expected, "{count}");
        let median = pipe::runs::median(&runs.stages[0].cpu_seconds, runs);
        assert!(medians.contains(&median), "{median}");
        if let Some(words) = words {
            assert!(medians.contains(&format!("thin lines show the {words}.")), "{medians}");
            assert!(
                activities.contains(&format!("thin lines show the {words} of")),
                "{activities}"
            );
        }
        assert_eq!(markup.contains("95 %"), count == 6, "{count}");
        let command = format!("<code>contend pipe --runs {count} '");
        assert!(markup.contains(&command), "{command}");
    }
}

#[test]
fn an_attached_pipeline_was_observed_and_has_not_exited() {
    let attached = Some(Attached { pids: vec![7, 8], has_ended: false });
    let markup = markup(&PipeRecord { attached, ..record() });
    assert!(markup.contains(" observed</li>") && !markup.contains(" wall</li>"));
    assert!(markup.contains("<li>still running</li>") && !markup.contains("<li>exit"));
    assert!(markup.contains("attached to the running pipeline (PIDs 7, 8)"));
    assert!(markup.contains("<code>contend pipe --pid 7</code>"));
}

#[test]
fn answers_follow_the_prediction_for_the_unchanged_pipeline() {
    let answer = WhatIf {
        question: "cpus 8".to_owned(),
        wall_seconds: 3.5,
        cpu_seconds: 5.0,
        bottleneck: "stage 1: sort".to_owned(),
    };
    let predicted = Prediction { wall_seconds: Some(6.25), cpu_seconds: 5.0 };
    let mut record =
        PipeRecord { what_if: vec![answer], predicted_unchanged: Some(predicted), ..record() };
    let with_wall = markup(&record);
    let (_, section) = with_wall.split_once("<h2>What if</h2>").expect("a section");
    for text in ["unchanged", "6.25s", "cpus 8", "3.50s", "stage 1: sort"] {
        assert!(section.contains(text), "{text}");
    }
    assert!(section.contains(&note_on_answers(&record)));
    record.predicted_unchanged = Some(Prediction { wall_seconds: None, cpu_seconds: 5.0 });
    let without = markup(&record);
    assert!(without.contains("Wall times are not predicted") && !without.contains("3.50s"));
    assert!(!markup(&self::record()).contains("<h2>What if</h2>"));
}

#[test]
fn phases_name_the_stage_with_which_their_bottleneck_alternates() {
    let bottleneck =
        Bottleneck { kind: BottleneckKind::Stage, stage: Some(2), ..Bottleneck::default() };
    let phase = Phase {
        end_seconds: 1.0,
        bottleneck,
        alternates_with: Some(3),
        explained_share: 0.934,
        stages: vec![PhaseStage { index: 2, ..PhaseStage::default() }],
        ..Phase::default()
    };
    let record = PipeRecord { phases: vec![phase], explained_share: Some(0.87), ..record() };
    let markup = markup(&record);
    let figure = figure_of(&markup, "Phases of the run");
    assert!(figure.contains("2 grep 7 and 3 sort, in turn"), "{figure}");
    assert!(figure.contains("93%") && figure.contains("explain 87% of the time"), "{figure}");
}

use contend_record::run::{Decision, PlanRecord, SourceRecord, StageOutcome, TakenOver};

use super::super::super::testing::RUN;
use super::*;

fn record() -> RunRecord {
    serde_json::from_str(RUN).expect("a record")
}

/// Returns the page without its record.
fn markup(record: &RunRecord) -> String {
    let page = page(record).expect("JSON");
    page.split_once("<script").expect("the record comes last").0.to_owned()
}

/// Returns the record of a pipeline of one stage that ran unchanged, as in a script.
fn unchanged(number: usize) -> RunRecord {
    let command = format!("sort file-{number}");
    let why = "the input is small";
    let stage = Stage { text: command.clone(), class: Class::PerRecord, why: String::new() };
    let stages = vec![StageOutcome { index: 1, exit_code: 0, cpu_seconds: 1.25, starts: 1 }];
    RunRecord {
        command,
        plan: Some(PlanRecord { stages: vec![stage], source: SourceRecord::Own, steps: vec![] }),
        decision: Decision { why: why.to_owned(), ..Decision::default() },
        outcome: Some(Outcome { wall_seconds: 1.5, stages, ..Outcome::default() }),
        ..RunRecord::default()
    }
}

fn script(pipelines: usize) -> RunRecord {
    RunRecord {
        command: "nightly.sh".to_owned(),
        plan: None,
        taken: vec![TakenOver { line: 1, text: "sort".to_owned(), stages: Vec::new() }],
        pipelines: (1..=pipelines).map(unchanged).collect(),
        ..record()
    }
}

#[test]
fn pipelines_that_are_left_out_are_counted_and_in_the_table() {
    let text = markup(&script(57));
    let charts = "The charts are those of the first 20 of 57 pipelines,";
    assert!(text.contains(charts), "{text}");
    assert_eq!(text.matches("<h3><code>sort file-").count(), 20);
    assert_eq!(
        text.matches("<td>sort file-").count(),
        57 + 20,
        "the table, and those of the charts"
    );
    assert!(!markup(&script(20)).contains("The charts are"));
}

#[test]
fn unchanged_pipelines_have_their_statistics_and_the_cpu_time_of_their_stages() {
    let text = markup(&script(1));
    let (_, section) = text.split_once("<h2>Pipelines</h2>").expect("a section");
    assert!(section.contains("plain: 1.50s; the input is small"), "{section}");
    assert!(section.contains("CPU time: 1.25s in the stages, 0 in contend; peak memory: contend"));
    assert!(section.contains("<figcaption>CPU time of each stage<"), "{section}");
    assert!(text.contains("none of 1 pipeline that contend took over ran in parallel"), "{text}");
    assert!(text.contains("1 the shell"), "the stage of the script itself: {text}");
    assert!(text.contains("<code>contend run --jobs 2 --file nightly.sh</code>"), "{text}");
}

#[test]
fn the_result_has_what_the_statistics_in_the_terminal_have() {
    let record = record();
    let text = markup(&record);
    let terminal = crate::render::run::statistics(&record, 200);
    let terminal = crate::render::testing::plain(&terminal);
    let outcome = record.outcome.as_ref().expect("an outcome");
    for line in [resources(outcome), how_it_ran(&record, outcome).1] {
        assert!(terminal.contains(&line) && text.contains(&line), "{line}: {terminal}");
    }
    let expected = record.decision.expected_cpu_seconds.map(seconds).expect("a time");
    assert!(text.contains(&format!("expected to need {expected} of CPU time")));
    assert!(text.contains("<code>contend run --jobs 2 "), "{text}");
}

#[test]
fn a_comparison_has_the_first_difference_and_the_exit_codes() {
    let checked = |check: Check| {
        let outcome = Outcome { exit_code: 1, check: Some(check), ..Outcome::default() };
        markup(&RunRecord { outcome: Some(outcome), ..record() })
    };
    let differs = Check {
        first_difference: Some(BLOCK_BYTES),
        bytes: BLOCK_BYTES + 5,
        original_bytes: BLOCK_BYTES + 9,
        exit_code: 3,
        wall_seconds: 2.0,
        ..Check::default()
    };
    let text = checked(differs);
    let expected = "first between bytes 65536 and 65545: 65541 bytes and exit code 1, instead of 65545 bytes and \
                    exit code 3. The original took 2.00s.";
    assert!(text.contains(expected), "{text}");
    let text = checked(Check { bytes: 7, ..Check::default() });
    assert!(text.contains("(7 bytes), but the exit code is 1 instead of 0."), "{text}");
    let text = checked(Check { same: true, bytes: 7, ..Check::default() });
    assert!(text.contains("byte for byte (7 bytes, exit code 1)."), "{text}");
    assert!(text.contains("run --jobs 2 --check "), "{text}");
}

#[test]
fn commands_that_are_left_to_the_shell_are_counted() {
    let text = markup(&RunRecord { left_others: Some(5), ..script(0) });
    assert!(text.contains("left to the shell: 5 other commands (builtins"), "{text}");
    let explained = markup(&RunRecord { outcome: None, ..record() });
    assert!(
        explained.contains("It would run in parallel</strong>") && explained.contains("--explain")
    );
}

//! Tests of decisions about pipelines of plain commands.

use contend_commands::Word;

use super::*;
use crate::run::testing::stages;

/// Returns settings that do not depend on the machine.
fn settings() -> Settings {
    Settings { jobs: Some(4), memory: Some(1 << 30), ..Settings::default() }
}

fn direct(stages: &[Simple], input: Kind) -> Direct<'_> {
    let path = |stage: &Simple| {
        let name = &stage.program.text;
        (name.clone(), in_path(name).expect("a usual program"))
    };
    Direct { stages, paths: stages.iter().map(path).collect(), input, originals: None }
}

/// Returns the decision that is based on a plan for the given stages.
fn decided(texts: &[&[&str]], input: Kind, settings: &Settings) -> Decision {
    let stages = stages(texts);
    let mut direct = direct(&stages, input);
    let plan = direct.plan(settings);
    let (decision, prefix) = direct.decide(&plan, settings).expect("nothing is read");
    assert!(prefix.is_empty(), "nothing is read");
    decision
}

/// Returns the decision for two stages over a file of 100 bytes.
fn decided_for_small_file(settings: &Settings) -> Decision {
    let file = tempfile::NamedTempFile::new().expect("room");
    std::fs::write(file.path(), [b'\n'; 100]).expect("room");
    let path = file.path().to_str().expect("text");
    decided(&[&["sort", path], &["uniq"]], Kind::Nothing, settings)
}

#[test]
fn commands_that_are_never_parallel_need_no_plan() {
    let never = stages(&[&["date"]]);
    let decision = direct(&never, Kind::Nothing).decide_at_once(&settings());
    assert!(!decision.expect("it is clear").parallel);
    let little = stages(&[&["sort"], &["uniq"]]);
    let decision = direct(&little, Kind::Nothing).decide_at_once(&settings());
    assert!(!decision.expect("it is clear").parallel);
}

#[test]
fn a_large_input_needs_a_plan_and_a_small_one_runs_plain() {
    let large = stages(&[&["sort"], &["uniq"]]);
    assert!(direct(&large, Kind::File(8 << 30)).decide_at_once(&settings()).is_none());
    let large: &[&[&str]] = &[&["sort"], &["uniq"]];
    assert!(decided(large, Kind::File(8 << 30), &settings()).parallel);
    let small = decided_for_small_file(&settings());
    assert_eq!((small.parallel, small.input_bytes), (false, Some(100)), "{small:?}");
}

#[test]
fn a_given_size_of_parts_forces_them() {
    let forced = Settings { chunk_bytes: Some(1 << 16), ..settings() };
    let decision = decided_for_small_file(&forced);
    assert_eq!((decision.parallel, decision.why.as_str()), (true, "the chunk size is given"));
    assert!(!decided(&[&["date"]], Kind::Nothing, &forced).parallel);
}

#[test]
fn pipefail_keeps_stages_that_are_cut_off_as_they_are() {
    let pipefail = Settings { pipefail: true, chunk_bytes: Some(1 << 16), ..settings() };
    let cut: &[&[&str]] = &[&["sort"], &["date"]];
    assert_eq!(decided(cut, Kind::File(8 << 30), &pipefail), status_visible());
    let whole: &[&[&str]] = &[&["sort"], &["uniq"]];
    assert!(decided(whole, Kind::File(8 << 30), &pipefail).parallel);
}

#[test]
fn an_explanation_of_a_stream_reads_none_of_it() {
    let explain = Settings { explain: true, ..settings() };
    let decision = decided(&[&["sort"], &["uniq"]], Kind::Stream, &explain);
    assert!(decision.parallel);
    assert_eq!(decision.why, "if the input is long enough");
}

/// Returns why the given stages need a shell.
fn refused(stages: &[Simple]) -> String {
    Direct::new(stages).map(drop).expect_err("it needs a shell")
}

#[test]
fn programs_that_need_a_shell_are_refused_with_a_reason() {
    assert_eq!(refused(&stages(&[&["no-such-program"]])), "`no-such-program` is not found");
    let mut own_path = stages(&[&["sort"]]);
    own_path[0].variables = vec![("PATH".to_owned(), Word::new("/x"))];
    assert_eq!(refused(&own_path), "`sort` has a `PATH` of its own");
    let mut missing = stages(&[&["sort"]]);
    missing[0].input = Some(Word::new("/no/such/file"));
    assert_eq!(refused(&missing), "`/no/such/file` is not a readable regular file");
    let mut folder = stages(&[&["sort"]]);
    folder[0].input = Some(Word::new("/"));
    assert_eq!(refused(&folder), "`/` is not a readable regular file");
    let script = tempfile::NamedTempFile::new().expect("room");
    std::fs::write(script.path(), "echo without a first line").expect("room");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(script.path(), permissions).expect("own file");
    let name = script.path().to_str().expect("text");
    let expected = format!("the kernel may not be able to start `{name}`");
    assert_eq!(refused(&stages(&[&[name]])), expected);
}

#[test]
fn only_a_first_stage_without_files_reads_standard_input() {
    assert!(reads_standard_input(&stages(&[&["sort"], &["uniq"]])));
    assert!(!reads_standard_input(&stages(&[&["sort", "file"], &["uniq"]])));
    assert!(!reads_standard_input(&[]));
}

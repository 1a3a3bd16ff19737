//! Tests of suggested changes: predictions, trials, and refusals of wrong changes.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{
    Command, candidates, contend, numbered_lines, pipe, record_of, run, shell_output, text,
    write_program,
};

fn tried(arguments: &[&str]) -> Value {
    record_of(pipe(&["--try", "--discard", "--budget", "4", "--seed", "1"]).args(arguments), "")
}

fn of_rewrite<'a>(record: &'a Value, rewrite: &str) -> &'a Value {
    let found = candidates(record).iter().find(|candidate| candidate["rewrite"] == rewrite);
    found.unwrap_or_else(|| panic!("{rewrite} in {:#}", record["candidates"]))
}

#[test]
fn a_change_with_another_output_is_wrong_and_never_recommended() {
    let folder = tempfile::tempdir().expect("a folder");
    // If a line has only two fields, the second `cut` passes on the output of the first.
    let file = numbered_lines(folder.path(), 60_000);
    fs::write(&file, fs::read_to_string(&file).expect("text") + "one:two\n").expect("room");
    let record = tried(&[&format!("cut -d: -f1,3 {file} | cut -d: -f2 | sort")]);
    let cut = of_rewrite(&record, "fuse-cut");
    assert_eq!(cut["safety"], "this-data");
    assert_eq!((&cut["verdict"], &cut["output_equal"]), (&"wrong".into(), &false.into()));
    assert!(cut["difference"].as_str().is_some_and(|text| !text.is_empty()), "{cut:#}");
    // For binary data, grep prints a message instead of the lines, but `grep -c` counts the lines.
    fs::write(&file, b"a\nb\0\n".repeat(50_000)).expect("room");
    let record = tried(&[&format!("grep a {file} | wc -l")]);
    assert_eq!(of_rewrite(&record, "count-in-grep")["verdict"], "wrong");
    let winner = record["trial"]["winner"].as_u64().and_then(|place| usize::try_from(place).ok());
    assert!(winner.is_none_or(|place| candidates(&record)[place]["verdict"] != "wrong"));
}

#[test]
fn a_different_status_is_a_different_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 60_000);
    let record = tried(&[&format!("grep nowhere {file} | wc -l")]);
    let count = of_rewrite(&record, "count-in-grep");
    assert_eq!(count["verdict"], "wrong");
    assert!(count["difference"].as_str().is_some_and(|d| d.contains("status 1")), "{count:#}");
}

#[test]
fn functions_and_aliases_are_not_rewritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 100_000);
    let pipeline = format!("cat {file} | sort | uniq");
    for setup in [
        "cat() { command cat \"$@\" | rev; }; sort() { command sort -r; }; uniq() { tail -n 3; }",
        "shopt -s expand_aliases; alias cat='nl' sort='sort -r' uniq='tail -n 3'",
    ] {
        let record = tried(&["--shell", "bash", "--setup", setup, &pipeline]);
        let own = ["larger-pipe"];
        let others = candidates(&record)
            .iter()
            .filter(|c| !own.contains(&c["rewrite"].as_str().unwrap_or("")));
        assert_eq!(others.count(), 0, "{setup}: {:#}", record["candidates"]);
    }
}

#[test]
fn a_large_input_is_sampled_and_the_winner_checked_on_the_whole_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 300_000);
    let pipeline = format!("sed 's/a/A/g' {file} | grep keep");
    let record = tried(&["--sample", "1M", &pipeline]);
    let used = &record["trial"]["input"];
    assert_eq!(used["kind"], "sample");
    assert!(used["bytes"].as_u64() < used["of_bytes"].as_u64());
    if record["trial"]["winner"] != Value::Null {
        assert_eq!(record["trial"]["confirmed_on_whole_input"], true);
    }
}

#[test]
fn input_from_a_pipe_is_saved() {
    let content = "b keep\na drop\n".repeat(100_000);
    let mut command = pipe(&["--try", "--discard", "--budget", "3", "sed 's/a/A/' | grep keep"]);
    // By default, a slow machine would use only a sample.
    let record = record_of(command.args(["--sample", "all"]), &content);
    let used = &record["trial"]["input"];
    assert_eq!((&used["kind"], &used["complete"]), (&"beginning".into(), &true.into()));
    assert_eq!(used["bytes"].as_u64(), Some(content.len() as u64));
    assert!(!candidates(&record).is_empty());
}

#[test]
fn a_named_pipe_is_opened_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("named");
    assert!(Command::new("mkfifo").arg(&path).status().expect("coreutils").success());
    let to = path.clone();
    let writer = std::thread::spawn(move || fs::write(to, "a\nb\n"));
    let mut command = Command::new("timeout");
    command.args(["30", contend(), "pipe", "--discard", "--stdin"]).arg(&path);
    // The run is long enough for contend to search for changes.
    let output = run(command.arg("sed s/a/b/ | sh -c 'cat; sleep 0.2'"), "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    writer.join().expect("it ends").expect("there is a reader");
}

#[test]
fn only_a_prefix_of_an_endless_input_is_saved_and_reported() {
    let line = format!(
        "yes 'some words to fill a line with' | {} pipe --try --discard --budget 0.1 'cat | wc -l'",
        contend()
    );
    let output = Command::new("bash").args(["-c", &line]).output().expect("bash starts");
    let report = text(&output.stderr);
    assert!(report.contains("only the first") && report.contains("use --stdin FILE"), "{report}");
}

#[test]
fn the_pipeline_s_output_appears_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 1000);
    let pipeline = format!("cat {file} | sort | uniq");
    let output = pipe(&["--try", "--budget", "1", &pipeline]).output().expect("it starts");
    assert_eq!((output.stdout, output.status.code()), shell_output(&pipeline));
}

#[test]
fn pipelines_with_side_effects_are_not_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 10);
    let out = folder.path().join("out");
    for stage in [
        "sort >OUT",
        "tee OUT",
        "xargs touch OUT",
        "while read f;do tee -a OUT;done",
        "cat - <(tee OUT </dev/null)",
        "cat - \"$(tee OUT </dev/null)\"",
        "{ sort >& OUT; }",
        "sed 's/1/b/wOUT'",
    ] {
        let pipeline = format!("cat {file} | {}", stage.replace("OUT", &out.to_string_lossy()));
        let output = pipe(&["--try", &pipeline]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{pipeline}");
        let error = text(&output.stderr);
        assert!(
            error.contains("--try reruns the pipeline, and stage 2, ")
                && error.lines().count() == 1,
            "{error}"
        );
        assert!(!out.exists(), "nothing has run");
    }
}

#[test]
fn an_output_that_differs_between_runs_cannot_be_compared() {
    let output = pipe(&["--try", "--discard", "date +%N | sed s/a/b/ | sed s/c/d/"])
        .output()
        .expect("it starts");
    assert!(text(&output.stderr).contains("is not deterministic"));
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn valid_what_if_questions_are_answered_and_others_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let json = json.to_str().expect("UTF-8");
    let questions = ["--what-if", "stage 2 x2", "--what-if", "fuse 1,2; cpus 8"];
    let pipeline = "seq 300000 | sort -n | wc -l";
    let record = record_of(pipe(&questions).args(["--no-advice", pipeline]), "");
    assert_eq!(record["what_if"].as_array().map(Vec::len), Some(2));
    fs::write(json, record.to_string()).expect("room");
    let output = Command::new(contend())
        .args(["pipe", "--from", json, "--what-if", "copies 10"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(0));
    let answer = text(&output.stderr);
    assert!(answer.contains("copies 10") && !answer.contains("Sampled from"), "{answer}");
    for (question, said) in [
        ("stage 9 x2", "there is no stage 9; the last one is stage 3"),
        ("faster please", "'cpus 8'"),
        ("fuse 1,3", "only adjacent stages"),
        ("stag 2 x2", "did you mean 'stage'?"),
    ] {
        let output = pipe(&["--what-if", question, pipeline]).output().expect("it starts");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
    for (content, said) in [
        ("{}", "not written by"),
        ("1 2", "not valid JSON"),
        (r#"{"schema": "contend.lab/1"}"#, "the schema is contend.lab/1"),
        (r#"{"schema": "contend.pipe/1"}"#, "damaged record"),
    ] {
        fs::write(json, content).expect("room");
        let output = Command::new(contend())
            .args(["pipe", "--from", json, "--what-if", "cpus 2"])
            .output()
            .expect("it starts");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn the_study_s_own_pipeline_can_be_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| format!("{}/{name}", folder.path().display());
    for name in ["tokenizer", "parser", "callbacks"] {
        let program = run(Command::new(contend()).args(["generate", "awk", name]), "");
        fs::write(path(name), program.stdout).expect("room");
    }
    let json = run(Command::new(contend()).args(["generate", "json-array", "50"]), "");
    fs::write(path("json"), json.stdout).expect("room");
    let [json, tokenizer, parser, callbacks] =
        ["json", "tokenizer", "parser", "callbacks"].map(path);
    let pipeline = format!("cat {json} | awk -f {tokenizer} | awk -f {parser} -f {callbacks}");
    let record = tried(&[&pipeline]);
    assert_eq!(record["exit_code"], 0, "{record:#}");
    assert!(!record["trial"].is_null(), "it is not refused: {record:#}");
    let [mawk, gawk] = ["mawk", "gawk"]
        .map(|awk| Command::new(awk).arg("1").stdin(Stdio::null()).output().is_ok());
    if mawk && gawk {
        let another = of_rewrite(&record, "another-awk");
        assert_eq!(another["output_equal"], true, "{another:#}");
    }
}

#[test]
fn a_setup_with_side_effects_is_executed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 900_000);
    let log = folder.path().join("log");
    let setup = format!("echo once >>{}", log.display());
    let pipeline = format!("cat {file} | sed s/a/b/ | sort | uniq | wc -l");
    let record = record_of(pipe(&["--discard", "--setup", &setup]).arg(&pipeline), "");
    assert_eq!(fs::read_to_string(&log).expect("written"), "once\n");
    assert!(candidates(&record).is_empty(), "{record:#}");
    let warnings = record["warnings"].as_array().expect("a list");
    assert!(warnings.iter().any(|warning| warning["id"] == "no-advice"), "{record:#}");
}

#[test]
fn a_program_with_the_name_of_a_filter_is_not_run_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 900_000);
    let (script, log) = (folder.path().join("fold"), folder.path().join("log"));
    write_program(&script, format!("#!/bin/sh\necho once >>{}\ncat\n", log.display()));
    let pipeline = format!("cat {file} | {} | sort | uniq | wc -l", script.display());
    let record = record_of(pipe(&["--discard"]).arg(&pipeline), "");
    assert_eq!(fs::read_to_string(&log).expect("written"), "once\n");
    assert!(!candidates(&record).is_empty(), "the rest can be better: {record:#}");
}

#[test]
fn the_trial_of_a_failed_stage_warns() {
    let record = tried(&["cat /no/such/file | sort | uniq"]);
    let warned = |warning: &Value| warning["id"] == "failed-stage";
    assert!(record["warnings"].as_array().expect("a list").iter().any(warned), "{record:#}");
}

#[test]
fn nothing_is_tried_if_a_command_does_not_exist() {
    let record = tried(&["no-such-command | sort | uniq"]);
    assert!(record["trial"].is_null() && candidates(&record).is_empty(), "{record:#}");
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("stage 1 `no-such-command` was not found"), "{warnings}");
}

#[test]
fn several_copies_are_compared_with_a_single_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 30_000);
    let pipeline = format!("cat {file} | sed s/a/b/ | sed s/c/d/");
    let record = tried(&["--sweep-copies", "1,3", &pipeline]);
    let load = record["trial"]["load"].as_array().expect("a list");
    let copies: Vec<_> = load.iter().map(|point| point["copies"].as_u64()).collect();
    assert_eq!(copies, [Some(1), Some(3)]);
    for point in load {
        let figures = point["figures"].as_array().expect("a list");
        assert!(figures.len() > 1 && figures[0]["candidate"].is_null());
        for one in figures {
            let all = one["wall_seconds"]["median"].as_f64().expect("a number");
            assert!(all > 0.0 && one["copy_wall_seconds"].as_f64() > Some(0.0));
        }
    }
}

#[test]
fn an_interrupt_ends_a_trial_and_leaves_the_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = numbered_lines(folder.path(), 200_000);
    let pipeline = format!("cat {file} | sort | uniq | wc -l");
    let mut command = pipe(&["--try", "--budget", "60", "--discard", &pipeline]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("alive");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(15));
    let left = run(Command::new("pgrep").args(["-f", &file]), "");
    assert_eq!(text(&left.stdout), "", "nothing is left running");
}

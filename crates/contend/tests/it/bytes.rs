//! Tests of byte counts, which equal those of `wc -c` unless the record marks them as approximate,
//! and tests that the report, the record and the pipeline's output do not share a stream.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Command, PublicFolder, contend, record, run, text};

/// First stages of pipelines.
const SOURCES: &[&str] = &[
    "seq 3000",
    "seq 40000",
    "printf '%s\\n' one two three",
    "for i in $(seq 3); do basename /a/$i; done",
    "for i in $(seq 200); do echo line $i; done",
    "{ seq 500; echo to standard error >&2; }",
    "dd if=/dev/zero bs=1000 count=37",
    "sh -c 'seq 100; seq 100 >&2'",
];

/// Later stages of pipelines, which read to EOF.
const FILTERS: &[&str] = &[
    "cat",
    "tr 0-9 a-j",
    "sed 's/1/22/'",
    "sed -n '/1/p; w /dev/stderr'",
    "(cat; echo to standard error >&2)",
    "dd bs=512",
    "dd bs=4096 status=none",
    "awk '{ print; print \"x\" >\"/dev/stderr\" }'",
    "awk '{ print $1, NR }'",
    "tee /dev/stderr",
    "{ x=$(echo one; echo two); cat; }",
    "while read -r l; do echo \"$l\"; done",
    "{ head -c 1000000 | tail -n 20; }",
    "grep 1",
    "sort",
    "sort -u",
    "uniq -c",
    "tail -n 3",
    "wc -l",
    "nl",
];

/// Returns the number of bytes that each stage writes if the shell runs it, as counted by `wc -c`.
fn truth(stages: &[&str]) -> Vec<u64> {
    (1..=stages.len())
        .map(|count| {
            let first = stages[..count].iter().map(|s| format!("{{ {s}\n}} 2>/dev/null"));
            let script = format!("{} | wc -c", first.collect::<Vec<_>>().join(" | "));
            let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output();
            text(&output.expect("sh starts").stdout).trim().parse().expect("a number")
        })
        .collect()
}

fn is_marked(stage: &Value, field: &str) -> bool {
    stage["approximate"].as_array().expect("a list").iter().any(|marked| marked == field)
}

#[test]
fn unmarked_byte_counts_agree_with_wc() {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut exact, mut exact_pipes) = (0, 0);
    for _ in 0..60 {
        let mut stages = vec![SOURCES[random.usize(..SOURCES.len())]];
        for _ in 0..random.usize(1..4) {
            stages.push(FILTERS[random.usize(..FILTERS.len())]);
        }
        let truth = truth(&stages);
        let record = record(&["--discard", &stages.join(" | ")]);
        for (index, stage) in record["stages"].as_array().expect("a list").iter().enumerate() {
            if !is_marked(stage, "bytes_out") {
                assert_eq!(stage["bytes_out"], truth[index], "out of {index}: {record:#}");
                exact += 1;
            }
            if index > 0 && !is_marked(stage, "bytes_in") {
                assert_eq!(stage["bytes_in"], truth[index - 1], "into {index}: {record:#}");
                exact += 1;
            }
        }
        exact_pipes += check_pipes(&record, &truth);
    }
    assert!(exact > 40, "hardly anything is exact: {exact}");
    assert!(exact_pipes > 40, "hardly any pipe is exact: {exact_pipes}");
}

/// Asserts that the counts of pipes that are not marked as approximate equal `truth`, and returns
/// the number of those pipes.
fn check_pipes(record: &Value, truth: &[u64]) -> usize {
    let pipes = record["boundaries"].as_array().expect("a list");
    assert_eq!(pipes.len() + 1, truth.len());
    let exact = pipes.iter().zip(truth).filter(|(pipe, _)| pipe["bytes_approximate"] == false);
    exact.map(|(pipe, truth)| assert_eq!(pipe["bytes"], *truth, "{pipe}: {record:#}")).count()
}

/// Pipelines, each with the number of bytes that go through its first pipe. The kernel's counters
/// of the first two stages differ from that number.
const MISCOUNTED: &[(&str, u64)] = &[
    ("nosuchcmd | cat | wc -c", 0),
    ("(echo a; echo bbb >&2; sleep 0.1) | (sleep 0.2; true)", 2),
    ("for i in $(seq 3); do date +%s; sleep 0.02; done | cat | wc -c", 33),
    ("sh -c 'echo out; echo error >&2' | head -n 5 | wc -c", 4),
];

#[test]
fn a_pipe_is_marked_if_neither_side_proves_its_count() {
    for (pipeline, truth) in MISCOUNTED {
        for _ in 0..3 {
            let record = record(&["--discard", pipeline]);
            let pipe = &record["boundaries"][0];
            let sides = [(0, "bytes_out"), (1, "bytes_in")];
            let proved = sides.iter().any(|(at, field)| !is_marked(&record["stages"][at], field));
            assert_eq!(pipe["bytes_approximate"], !proved, "{record:#}");
            assert!(!proved || pipe["bytes"] == *truth, "{truth} bytes: {record:#}");
        }
    }
}

#[test]
fn the_table_of_pipes_marks_approximate_counts() {
    let mut command = Command::new(contend());
    command.args([
        "pipe",
        "--verbose",
        "--no-advice",
        "--discard",
        "nosuchcmd | (sleep 0.1; true)",
    ]);
    let report = text(&run(&mut command, "").stderr);
    let row = report.lines().find(|line| line.trim_start().starts_with("1-2")).expect("a row");
    let cells: Vec<_> = row.split_whitespace().collect();
    assert!(cells[1].starts_with('~') && cells[2].starts_with('~'), "{report}");
}

#[test]
fn a_here_document_is_not_output_of_the_stage_before() {
    let text = "seq 30 | cat - /dev/fd/3 3<<'EOF' | wc -c\nfrom here\nEOF";
    let record = record(&["--discard", text]);
    let stages = record["stages"].as_array().expect("a list");
    for (stage, wanted) in stages.iter().zip([81, 91]) {
        assert!(is_marked(stage, "bytes_out") || stage["bytes_out"] == wanted, "{record:#}");
    }
    assert!(is_marked(&stages[1], "bytes_in") || stages[1]["bytes_in"] == 81, "{record:#}");
}

#[test]
fn standard_error_does_not_count_as_output() {
    let many = "sh -c 'seq 10000; seq 9000 >&2'";
    let cases =
        ["seq 3 | nosuchcmd", "cat >/nonexistent/x", many, "for i in $(seq 3); do date; done"];
    for pipeline in cases {
        let record = record(&["--discard", pipeline]);
        let last = record["stages"].as_array().and_then(|stages| stages.last());
        assert!(is_marked(last.expect("a stage"), "bytes_out"), "{record:#}");
    }
}

#[test]
fn filters_without_messages_are_exact() {
    let record = record(&["--discard", "seq 20000 | tr 1 2 | sort -n | uniq -c | tail -n 3"]);
    for (index, stage) in record["stages"].as_array().expect("a list").iter().enumerate() {
        assert!(!is_marked(stage, "bytes_out"), "{stage:#}");
        assert!(index == 0 || !is_marked(stage, "bytes_in"), "{stage:#}");
    }
}

#[test]
fn json_is_not_mixed_with_the_pipeline_s_output() {
    for target in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let mut command = Command::new(contend());
        let output = run(command.args(["pipe", "--json", target, "echo out"]), "");
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(output.stdout.is_empty(), "{target}: nothing has run");
        let message = text(&output.stderr);
        assert!(message.contains("--discard") && message.contains("a file"), "{message}");
        let mut command = Command::new(contend());
        command.args(["pipe", "--no-advice", "--discard", "--json", target, "echo out"]);
        let output = run(&mut command, "");
        let record: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
        assert_eq!(record["command"], "echo out");
    }
    // Standard output redirected to a file is the same stream.
    let folder = PublicFolder::new();
    let file = folder.path().join("both");
    let script = format!("{} pipe --json {f} 'echo out' >{f}", contend(), f = file.display());
    let output = run(Command::new("sh").args(["-c", &script]), "");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn report_and_json_do_not_share_a_stream() {
    let pairs = [("-", "/dev/stdout"), ("/dev/stdout", "-"), ("/dev/fd/1", "/dev/stdout")];
    for (report, json) in pairs {
        let mut command = Command::new(contend());
        command.args(["pipe", "--discard", "--output", report, "--json", json, "echo"]);
        let output = run(&mut command, "");
        assert_eq!(output.status.code(), Some(2), "{report} {json}");
        assert!(output.stdout.is_empty());
    }
    let mut command = Command::new(contend());
    command.args(["pipe", "--no-advice", "--output", "/dev/null", "--json", "/dev/null", "true"]);
    assert_eq!(run(&mut command, "").status.code(), Some(0));
}

#[test]
fn a_program_that_is_not_a_shell_is_reported_in_one_line() {
    for shell in ["/bin/ls", "/bin/cat"] {
        let mut command = Command::new(contend());
        let output = run(command.args(["pipe", "--shell", shell, "true | true"]), "");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(shell) && message.contains("not a shell"), "{message}");
    }
}

//! Tests of the options of `contend run`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{Command, contend, run, text};
use crate::terminal::on_a_terminal;

/// Returns a `contend run` command with small chunks and the given arguments.
fn run_in_chunks(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["run", "-j", "2", "--part-size", "64k"]).args(arguments);
    command
}

/// Returns `count` lines that begin with pseudorandom numbers, the same ones every time.
fn lines(count: u32) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{} line", n.wrapping_mul(2_654_435_761) % 1_000_003); // writing to a String cannot fail
        text
    })
}

fn assert_status(output: &Output, status: i32) {
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{messages}");
}

#[test]
fn sort_spills_to_the_given_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = lines(1_000_000);
    let pipeline = |folder: &Path| format!("sort -T {}", folder.display());
    let spilling = |folder: &Path, temporary: &Path| {
        let mut command = run_in_chunks(&["--memory", "16M", &pipeline(folder)]);
        run(command.env("LC_ALL", "C").env("TMPDIR", temporary), &input)
    };
    let nowhere = Path::new("/proc/no-such-folder");
    let output = spilling(folder.path(), nowhere);
    assert_status(&output, 0);
    let mut sorted: Vec<&str> = input.lines().collect();
    sorted.sort_unstable();
    assert!(text(&output.stdout).lines().eq(sorted), "not sorted");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
    let output = spilling(nowhere, folder.path());
    // `sort` reports its own errors, with its own exit status.
    assert_status(&output, 2);
    let messages = text(&output.stderr);
    assert!(messages.starts_with("sort: cannot create temporary file in "), "{messages}");
}

#[test]
fn sort_respects_the_memory_limit() {
    const MEMORY_BYTES: u64 = 16 << 20;
    const BALLAST_BYTES: usize = 256 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("full"), lines(3_000_000)).expect("room");
    std::fs::write(folder.path().join("short"), lines(10)).expect("room");
    // In `ru_maxrss`, the kernel would include the memory of the process that starts contend.
    let ballast = vec![1_u8; BALLAST_BYTES];
    let resident = |pipeline: &str| {
        let mut command = Command::new(contend());
        command.args(["run", "-j", "2", "--part-size", "1M", "--memory", "16M"]);
        command.args(["--json=record", pipeline]);
        let command = command.current_dir(&folder).env("LC_ALL", "C").stdout(Stdio::null());
        assert!(command.status().expect("there is a sh").success(), "{pipeline}");
        let record = std::fs::read_to_string(folder.path().join("record")).expect("a record");
        let record: Value = serde_json::from_str(&record).expect("JSON");
        record["outcome"]["own_max_rss_bytes"].as_u64().expect("bytes")
    };
    // This is the memory that contend needs for any input.
    let short = resident("sort short | uniq -c");
    assert!((1_000_000..BALLAST_BYTES as u64 / 2).contains(&short), "{short} bytes");
    drop(ballast);
    for pipeline in ["sort full | uniq -c", "sort full"] {
        let full = resident(pipeline);
        assert!(
            full - short < MEMORY_BYTES,
            "{pipeline}: {short} bytes without data, {full} with it"
        );
    }
}

#[test]
fn commands_are_named_in_the_configuration_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("contend/run.toml");
    std::fs::create_dir(folder.path().join("contend")).expect("room");
    let explain = |arguments: &[&str]| {
        let mut command = Command::new(contend());
        command.args(["run", "--explain"]).args(arguments);
        run(command.env("XDG_CONFIG_HOME", folder.path()), "")
    };
    let annotated = "[[map]]\ncommand = \"env cat\"\n";
    std::fs::write(&file, annotated).expect("room");
    let explained = text(&explain(&["env cat -u | env tac"]).stdout);
    let [known, _, unknown, ..] = explained.lines().collect::<Vec<_>>()[1..] else {
        panic!("{explained}")
    };
    assert!(known.contains("handles each record independently"), "{explained}");
    assert!(unknown.contains("runs alone"), "{explained}");
    let explained = text(&explain(&["--map", "env tac", "env tac | env cat"]).stdout);
    assert_eq!(explained.matches("handles each record independently").count(), 2, "{explained}");
    std::fs::write(&file, format!("{annotated}\nrecords = lines\n")).expect("room");
    let output = explain(&["cat"]);
    assert_status(&output, 2);
    let error = text(&output.stderr);
    assert!(error.contains("contend/run.toml, line 4: "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// Runs `contend run --check` on a pipeline in small chunks, with `input` from a pipe. Returns its
/// output.
fn checked(pipeline: &str, input: &str) -> Output {
    run(run_in_chunks(&["--check", pipeline]).env("LC_ALL", "C"), input)
}

#[test]
fn a_check_prints_the_output_once_and_reports_that_it_is_identical() {
    let input = lines(100_000);
    let output = checked("grep 7 | cut -d' ' -f1 | sort -n", &input);
    assert_status(&output, 0);
    let said = text(&output.stderr);
    let start =
        format!("contend: identical output ({} bytes, exit 0); parallel ", output.stdout.len());
    assert!(said.starts_with(&start) && said.lines().count() == 1, "{said}");
    let wanted = input.lines().filter(|line| line.contains('7')).count();
    assert_eq!(text(&output.stdout).lines().count(), wanted);
    // `--check` also compares exit statuses other than 0, and commands that exit early.
    assert_status(&checked("grep nowhere", &input), 1);
    let output = checked("tr a-z A-Z | head -n 1", &input);
    assert_status(&output, 0);
    assert_eq!(text(&output.stdout), "0 LINE\n");
}

#[test]
fn pipelines_that_a_shell_runs_are_checked_too() {
    let input = lines(50_000);
    for (pipeline, status) in [
        ("grep 7 | { cut -d' ' -f1; } | sort -n | uniq", 0),
        ("grep 7 | tr a-z A-Z | (sort; exit 3)", 3),
        ("grep 7 | no-such-command | sort", 0),
    ] {
        let output = checked(pipeline, &input);
        assert_status(&output, status);
        let said = text(&output.stderr);
        let start =
            format!("contend: identical output ({} bytes, exit {status})", output.stdout.len());
        assert!(said.contains(&start), "{pipeline}: {said}");
        let has_speed = said.contains("; parallel ") || said.contains("; plain ");
        let expected = status == 0 && !output.stdout.is_empty();
        assert_eq!(has_speed, expected, "{pipeline}: {said}");
    }
}

#[test]
fn a_check_reads_a_file_on_standard_input_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input");
    let input = lines(50_000);
    std::fs::write(&file, &input).expect("room");
    let mut command = Command::new("sh");
    // contend starts after the bytes that `head` has read, and leaves no input.
    let line = "{ head -c 7 >/dev/null; \"$0\" run -j 2 --part-size 64k --check \
                'tr a-z A-Z | sort'; cat; } <\"$1\"";
    let output = run(command.args(["-c", line, contend()]).arg(&file).env("LC_ALL", "C"), "");
    assert_status(&output, 0);
    assert!(text(&output.stderr).starts_with("contend: identical output ("), "{output:?}");
    assert_eq!(output.stdout.len(), input.len() - 7);
}

#[test]
fn a_check_that_finds_a_difference_reports_its_position() {
    let input = lines(100_000);
    // The declared record format is wrong: each chunk is numbered from 1.
    let arguments = ["--check", "--map", "nl", "nl"];
    let output = run(&mut run_in_chunks(&arguments), &input);
    assert_status(&output, 1);
    let said = text(&output.stderr);
    assert!(said.starts_with("contend: outputs differ, first at byte "), "{said}");
    assert!(said.contains("whether `nl` really processes each record independently"), "{said}");
}

#[test]
fn commands_with_side_effects_are_not_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("copy");
    let output = checked(&format!("tee {}", file.display()), "a\n");
    assert_status(&output, 2);
    let error = text(&output.stderr);
    assert!(error.starts_with("contend: --check reruns the pipeline, and stage 1, "), "{error}");
    assert!(!file.exists());
}

#[test]
fn a_check_that_cannot_save_its_input_is_an_error() {
    let mut command = run_in_chunks(&["--check", "sort"]);
    let output = run(command.env("TMPDIR", "/proc/no-such-folder"), "a\n");
    assert_status(&output, 125);
    let error = text(&output.stderr);
    assert!(error.contains("cannot keep standard input in /proc/no-such-folder: "), "{error}");
}

/// Returns the record of a run in chunks, and checks its schema.
fn record(pipeline: &str, input: &str) -> Value {
    record_of(&[pipeline], input)
}

/// Returns the record of a run in chunks with the given arguments, and checks its schema.
fn record_of(arguments: &[&str], input: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let mut command = run_in_chunks(&["--json", json.to_str().expect("UTF-8")]);
    run(command.args(arguments).env("LC_ALL", "C"), input);
    let record = std::fs::read_to_string(json).expect("a record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let schema = include_str!("../../../../schemas/contend.run-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validate(&schema, &record).expect("the record follows its schema");
    record
}

#[test]
fn the_record_has_the_input_size_and_the_number_of_chunks() {
    let input = lines(100_000);
    let outcome = &record("tr a-z A-Z | sort | uniq -c | cat -n", &input)["outcome"];
    assert_eq!(outcome["input_bytes"], input.len());
    assert!(outcome["parts"].as_u64().expect("a count") > 10, "{outcome}");
    assert_eq!(outcome["in_one_piece"], Value::Array(vec![]));
    assert!(outcome["stages"][0]["cpu_seconds"].as_f64().expect("a time") > 0.0, "{outcome}");
    // The run ends before a second sample, and perhaps before the first.
    let peak = outcome["peak_memory_bytes"].as_u64();
    assert!(peak.is_none_or(|peak| peak > 100_000), "{outcome}");
}

#[test]
fn the_record_of_a_script_has_its_pipelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script.sh");
    let lines_of_script = "for word in 1 2; do grep $word | tr a b | sort -u; done\n\
                           tr x y <\"$0\" | sort | wc -l &\nwait; exit 4\n";
    std::fs::write(&script, lines_of_script).expect("room");
    let record = record_of(&["-f", script.to_str().expect("UTF-8")], &lines(20_000));
    assert_eq!(record["outcome"]["exit_code"], 4, "{record}");
    let pipelines = record["pipelines"].as_array().expect("a list");
    let mut commands: Vec<_> =
        pipelines.iter().map(|one| one["command"].as_str().expect("text").to_owned()).collect();
    commands.sort();
    assert_eq!(commands.len(), 3, "{commands:?}");
    assert_eq!(commands[0], "grep 1 | tr a b | sort -u");
    assert_eq!(commands[1], "grep 2 | tr a b | sort -u");
    assert!(pipelines.iter().all(|one| one["plan"]["steps"].is_array()), "{record}");
    assert!(pipelines[0]["outcome"]["parts"].as_u64().expect("a count") > 0, "{record}");
}

#[test]
fn the_record_has_the_reason_of_a_fallback() {
    let input = format!("{}\0\n{}", lines(20_000), lines(20_000));
    // Input from a pipe whose writer pauses would be another reason.
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &input).expect("room");
    let pipeline = format!("cat {} | grep 1 | tr a b", file.path().display());
    let outcome = &record(&pipeline, "")["outcome"];
    let why = "stages 2 to 3 ran once over the whole input: its input contains the byte 0x00, which \
               a command treats specially";
    assert_eq!(outcome["in_one_piece"][0], why, "{outcome}");
    assert_eq!(outcome["input_bytes"], input.len());
}

#[test]
fn each_fallback_has_its_own_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("room");
        path.to_str().expect("UTF-8").to_owned()
    };
    let fractions: Vec<_> = (1..20_000).map(|n| (f64::from(n) * 0.1).to_string()).collect();
    let (fractions, empty) = (file("fractions", &fractions.join("\n")), file("empty", ""));
    let whole = file("whole", &lines(20_000));
    for (pipeline, why) in [
        (format!("awk '{{ s += $1 }} END {{ print s }}' {fractions}"), "totals were rounded"),
        (format!("grep x {empty} | sort"), "the input was empty"),
        (
            format!("sed 's/(\\)/x/' {whole}"),
            "a command failed on a chunk, or wrote to standard error",
        ),
    ] {
        let reasons = &record(&pipeline, "")["outcome"]["in_one_piece"];
        let reason = reasons[0].as_str().unwrap_or_default();
        assert!(reason.ends_with(why), "{pipeline}: {reasons}");
    }
}

/// Runs a slow pipeline on a terminal, followed by the shell text `suffix`. Returns all text that
/// the terminal received, or `None` if there is no terminal.
fn slow_on_a_terminal(test: &str, arguments: &str, suffix: &str) -> Option<String> {
    let input = "{ seq 100000; sleep 4; seq 10; }";
    let line = format!(
        "{input} | {} run -j 2 --part-size 64k {arguments} 'tr 1 2 | sort | uniq' {suffix}",
        contend()
    );
    on_a_terminal(test, 60, &line)
}

#[test]
fn a_terminal_shows_progress() {
    let test = "a_terminal_shows_progress";
    let Some(drawn) = slow_on_a_terminal(test, "", ">/dev/null") else { return };
    assert!(drawn.contains("kB read, "), "{drawn:?}");
    assert!(drawn.ends_with("\u{1b}[J\u{1b}8"), "it is taken away: {drawn:?}");
    // If the output goes to the terminal as well, progress is removed before it.
    let Some(drawn) = slow_on_a_terminal(test, "", "") else { return };
    let last = drawn.rfind("kB read, ").expect("it was drawn");
    let output = drawn.find("2\r\n20\r\n").expect("there is output");
    let cleared = drawn.rfind("\u{1b}[J\u{1b}8").expect("it was taken away");
    assert!(last < cleared && cleared < output, "{drawn:?}");
    for (arguments, suffix) in [("--no-progress", ">/dev/null"), ("", ">/dev/null 2>/dev/null")] {
        let Some(drawn) = slow_on_a_terminal(test, arguments, suffix) else { return };
        assert_eq!(drawn, "");
    }
}

#[test]
fn an_empty_pipeline_is_an_error_as_with_pipe() {
    let said = |verb: &str, text: &str| {
        let output = run(Command::new(contend()).args([verb, text]), "");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let blank =
        ["", " ", "\t", "\n", " \n\t\n", "# nothing", "  # one\n# two\n", "\\\n", "\\\n # x"];
    for text in blank {
        let (status, error) = said("run", text);
        assert_eq!(status, Some(2), "{text:?}: {error}");
        assert!(error.contains("the pipeline is empty"), "{text:?}: {error}");
        assert_eq!(said("pipe", text), (status, error), "{text:?}");
    }
    for options in [["--explain", " "], ["--stats", "#"], ["--check", ""], ["--json", "\n"]] {
        let output = run(Command::new(contend()).arg("run").args(options), "");
        assert_status(&output, 2);
    }
    for text in [":", "true # nothing", "# first\ntrue", "cat"] {
        assert_eq!(said("run", text), (Some(0), String::new()), "{text:?}");
    }
}

#[test]
fn records_have_the_version_of_contend() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let lab = |name: &str| {
        let mut command = Command::new(contend());
        command.args(["lab", "run", "engine/empty", "--smallest", "--no-store", "--json"]);
        command.arg(path(name));
        command
    };
    let mut compare = Command::new(contend());
    compare.arg("compare").args([path("lab"), path("lab2")]).arg("--json").arg(path("compare"));
    let mut pipe = Command::new(contend());
    pipe.args(["pipe", "true | cat", "--json"]).arg(path("pipe"));
    let mut scripts = Command::new(contend());
    scripts.args(["run", "--json"]).arg(path("run")).arg("x=1; echo $x | cat");
    for command in [&mut lab("lab"), &mut lab("lab2"), &mut compare, &mut pipe, &mut scripts] {
        assert_status(&run(command, ""), 0);
    }
    for name in ["lab", "compare", "pipe", "run"] {
        let text = std::fs::read(path(name)).expect("it was written");
        let record: Value = serde_json::from_slice(&text).expect("JSON");
        let writer = &record["contend"];
        assert_eq!(writer["version"], env!("CARGO_PKG_VERSION"), "{name}");
        let commit = &writer["commit"];
        assert!(
            commit.is_null() || commit.as_str().is_some_and(|commit| commit.len() >= 7),
            "{name}: {commit}"
        );
        for run in record["runs"].as_array().into_iter().flatten() {
            assert_eq!(run["contend"], *writer, "{name}");
        }
    }
}

#[test]
fn options_after_a_script_are_refused_unless_separated() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("script"), "echo \"$#:$*\"\n").expect("room");
    let script = |words: &[&str]| {
        let mut command = Command::new(contend());
        let ran = run(command.args(["run", "-f", "script"]).args(words).current_dir(&folder), "");
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    for words in [&["--explain"][..], &["-j", "2"], &["a", "--memory=1M"], &["--color=never"]] {
        let (status, printed, error) = script(words);
        assert_eq!((status, printed.as_str()), (Some(2), ""), "{words:?}");
        assert!(error.contains(" comes after the script: "), "{words:?}: {error}");
    }
    assert_eq!(script(&["--", "--explain", "x"]).1, "2:--explain x\n");
    assert_eq!(script(&["-x", "--other", "--", "--stats"]).0, Some(2));
    assert_eq!(script(&["-x", "--other"]).1, "2:-x --other\n");
}

#[test]
fn a_script_for_another_program_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script");
    std::fs::write(&path, "#!/usr/bin/env zsh\necho done\n").expect("room");
    let ran = |options: &[&str]| {
        let mut command = Command::new(contend());
        run(command.arg("run").args(options).arg("-f").arg(&path), "")
    };
    let refused = ran(&[]);
    assert_status(&refused, 2);
    assert!(text(&refused.stderr).contains("is a script for 'zsh'"), "{refused:?}");
    let given = ran(&["--shell", "sh"]);
    assert_status(&given, 0);
    assert_eq!(text(&given.stdout), "done\n");
}

#[test]
fn a_script_gets_statistics_per_pipeline_and_the_command_that_runs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "seq 3 | sort -n | tail -1\nseq 4 | tr 4 5 | sort -r\n";
    std::fs::write(folder.path().join("a.sh"), lines).expect("room");
    let script = |words: &[&str]| {
        let mut command = Command::new(contend());
        let ran = run(command.arg("run").args(words).current_dir(&folder), "");
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let (status, printed, statistics) = script(&["--stats", "-f", "a.sh"]);
    assert_eq!((status, printed.as_str()), (Some(0), "3\n5\n3\n2\n1\n"));
    for line in lines.lines() {
        assert!(statistics.lines().any(|shown| shown == line), "{statistics}");
    }
    let hint = "in parallel: contend run --file a.sh";
    assert!(!statistics.contains(hint), "{statistics}");
    for option in ["--stats", "--explain"] {
        let (status, _, error) = script(&[option, "bash a.sh"]);
        assert!(status == Some(0) && error.contains(hint), "{option}: {error}");
    }
    assert!(!script(&["bash a.sh"]).2.contains(hint));
    let (status, printed, error) = script(&["--check", "-f", "a.sh"]);
    assert_eq!((status, printed.as_str()), (Some(2), ""));
    assert!(error.contains("cmp <(bash a.sh) <(contend run --file a.sh)"), "{error}");
    let (_, _, error) = script(&["--check", "-f", "a.sh", "LOG", "o q"]);
    let command = "cmp <(bash a.sh LOG 'o q') <(contend run --file a.sh -- LOG 'o q')";
    assert!(error.contains(command), "{error}");
    std::fs::write(folder.path().join("none.sh"), "f() { cat \"$1\" | sort; }\n").expect("room");
    let (_, _, statistics) = script(&["--stats", "-f", "none.sh"]);
    assert!(statistics.contains("contend took over none of the pipelines"), "{statistics}");
}

#[test]
fn messages_of_bash_name_the_script_and_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "#!/bin/bash\nset -e -o pipefail\nf() { cat \"$1\" | sort; }\nnosuch || :\n\
                 f /no/such/file || :\nFOO=(a b); echo \"$0 ${FOO[1]}\"\n";
    std::fs::write(folder.path().join("min.sh"), lines).expect("room");
    for options in [&[][..], &["--stats"]] {
        let mut command = Command::new(contend());
        command.arg("run").args(options).args(["-f", "min.sh"]).current_dir(&folder);
        let ran = run(&mut command, "");
        let said = text(&ran.stderr);
        assert!(said.starts_with("min.sh: line 4: nosuch: command not found\n"), "{said}");
        assert_eq!(text(&ran.stdout), "min.sh b\n");
    }
}

#[test]
fn a_script_may_come_from_standard_input() {
    let script = "echo \"$0:$*\"; seq 3 | tr 1 \"$1\" | sort -r; exit 3\n";
    let unchanged = "set -x; set +x; echo \"$0:$*\"\nread -r line\necho skipped\necho \"$line\"\n";
    for path in ["-", "/dev/stdin"] {
        let ran = |script: &str| {
            let mut command = Command::new(contend());
            let output = run(command.args(["run", "--file", path, "7"]).env("LC_ALL", "C"), script);
            (output.status.code(), text(&output.stdout))
        };
        let name = if path == "-" { "bash" } else { path };
        assert_eq!(ran(script), (Some(3), format!("{name}:7\n7\n3\n2\n")));
        // The shell reads a script that contend leaves unchanged itself.
        let (status, printed) = ran(unchanged);
        assert_eq!(status, Some(0), "{path}: {printed}");
        if path == "-" {
            assert_eq!(printed, "bash:7\necho skipped\n");
        }
    }
    let output = run(Command::new(contend()).args(["run", "-"]), "");
    assert_status(&output, 2);
    assert!(text(&output.stderr).contains("`contend run --file -`"), "{output:?}");
}

#[test]
fn a_run_without_pipeline_names_both_ways_to_give_one() {
    let output = run(Command::new(contend()).arg("run"), "");
    assert_status(&output, 2);
    let error = text(&output.stderr);
    assert!(error.contains("missing pipeline or script: "), "{error}");
    assert!(error.contains("--file SCRIPT"), "{error}");
}

#[test]
fn an_explanation_reports_a_syntax_error_once() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.sh"), "sort \"$x\" |\n\nfi\n").expect("room");
    for (words, error) in [
        (&["if true"][..], "in line 1 (unexpected end of the text);"),
        (&["sort $x | ("], "in line 1 (unexpected end of the text);"),
        (&["-f", "a.sh"], "in line 3;"),
    ] {
        let mut command = Command::new(contend());
        let output = run(command.args(["run", "--explain"]).args(words).current_dir(&folder), "");
        assert_status(&output, 0);
        let printed = text(&output.stdout).replace("\n  ", " ");
        assert!(printed.contains(&format!("syntax error {error}")), "{printed}");
        assert_eq!(printed.matches("syntax").count(), 2, "{printed}");
        assert!(printed.contains("it may accept syntax"), "{printed}");
    }
}

#[test]
fn the_history_has_the_name_of_a_script_and_its_parallel_pipelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "seq 100000 | tr 1 \"$1\" | sort | tail -n 1\n";
    std::fs::write(folder.path().join("a.sh"), lines).expect("room");
    let contend = |words: &[&str]| {
        let mut command = Command::new(contend());
        run(command.args(words).current_dir(&folder).env("LC_ALL", "C"), "")
    };
    let part = ["run", "--store", "runs.db", "--part-size", "64k", "-f", "a.sh", "7 8"];
    assert_status(&contend(&part), 0);
    let shown = text(&contend(&["history", "show", "1", "--store", "runs.db"]).stdout);
    assert!(shown.contains("a.sh '7 8'\n"), "{shown}");
    assert!(!shown.contains("seq 100000"), "{shown}");
    let parallel = "1 of 1 pipeline that contend took over ran in parallel";
    assert!(shown.contains(parallel), "{shown}");
}

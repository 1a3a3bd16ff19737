//! Tests of output on a terminal, and of the state in which contend leaves the terminal.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::{Command, contend, has, run, skip, text};

/// Runs a shell command on a new terminal. Returns all text that the terminal received, or `None`
/// if there is no terminal.
pub fn on_a_terminal(test: &str, columns: u16, line: &str) -> Option<String> {
    typed_on_a_terminal(test, columns, line, &[])
}

/// Runs a shell command on a new terminal and types `keys`: pairs of a text to wait for, and the
/// keys to type then. Returns all text that the terminal received, or `None` if there is no
/// terminal.
pub fn typed_on_a_terminal(
    test: &str,
    columns: u16,
    line: &str,
    keys: &[(&str, &str)],
) -> Option<String> {
    if !has("script") {
        skip(test, "there is no script(1) to make a terminal with");
        return None;
    }
    let line = format!("stty cols {columns} rows 24; {line}");
    let mut script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .stdin(if keys.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts");
    let mut keyboard = script.stdin.take();
    let mut screen = script.stdout.take().expect("a pipe");
    let mut drawn = Vec::new();
    let mut buffer = [0; 4096];
    let mut keys = keys.iter();
    let mut next = keys.next();
    while let Ok(length @ 1..) = screen.read(&mut buffer) {
        drawn.extend_from_slice(&buffer[..length]);
        if let (Some((after, key)), Some(keyboard)) = (next, &mut keyboard)
            && text(&drawn).contains(after)
        {
            keyboard.write_all(key.as_bytes()).expect("it reads");
            next = keys.next();
        }
    }
    script.wait().expect("a child");
    // The terminal adds a carriage return before each line feed.
    Some(text(&drawn).replace("\r\r\n", "\r\n"))
}

fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' {
            // ESC 7, ESC 8 and ESC D are complete; others start with [ and end with a letter.
            if characters.next() == Some('[') {
                let _ = characters.by_ref().find(char::is_ascii_alphabetic);
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[test]
fn the_report_fits_60_columns() {
    let pipeline = "seq 2000000 | sed 's/a long expression that will not fit/x/' | cat | wc -l";
    for options in [&["--runs", "1"][..], &["--runs", "2"], &["--runs", "2", "--verbose"]] {
        let mut command = Command::new(contend());
        command.args(["pipe", "--no-advice", "--stdin", "/dev/null"]).args(options).arg(pipeline);
        let output = run(command.env("COLUMNS", "60"), "");
        let report = text(&output.stderr);
        for line in report.lines() {
            assert!(line.chars().count() <= 60, "{line:?}");
        }
        assert!(report.contains("starved"), "{report}");
        let is_verbose = options.contains(&"--verbose");
        assert_eq!(report.contains("per gigabyte"), is_verbose, "{report}");
    }
}

#[test]
fn control_characters_in_the_pipeline_do_not_reach_the_terminal() {
    let test = "control_characters_in_the_pipeline_do_not_reach_the_terminal";
    let line = format!("{} pipe --discard 'echo \u{1b}]0;title\u{7} | cat'", contend());
    let Some(drawn) = on_a_terminal(test, 100, &line) else { return };
    assert!(drawn.contains("echo ␛]0;title␇"), "{drawn:?}");
    assert!(!drawn.contains("\u{1b}]0;"), "{drawn:?}");
    let wrong = format!("{} pipe 'echo \u{1b}]0;title\u{7} | )'", contend());
    let Some(drawn) = on_a_terminal(test, 100, &wrong) else { return };
    assert!(!drawn.contains("\u{1b}]0;"), "{drawn:?}");
}

/// The key for the end of input, which terminals do not echo.
const END_OF_INPUT: &str = "\u{4}";
/// A shell script that waits for two interrupts, and reports each.
const CATCHER: &str = "trap 'n=x$n; echo caught' INT
wait_for() { until [ \"$n\" = $1 ]; do sleep 0.05; done; }
echo ready; wait_for x; echo second; wait_for xx; exit 7
";

#[test]
fn a_caught_interrupt_does_not_end_contend() {
    let test = "a_caught_interrupt_does_not_end_contend";
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    // When the last stage reads EOF, the stage before it has exited or is about to.
    let stage = format!("sh -c {}", quoted(&format!("cat; sleep 0.3; {CATCHER}")));
    let line = format!("{} pipe \"setsid true | $STAGE\"; echo code=$?", contend());
    // Unlike other shells, bash continues after a Ctrl-C that did not kill its child.
    let line = format!("export STAGE={}; bash -c {}", quoted(&stage), quoted(&line));
    let keys = [("ready", "\u{3}"), ("second", "\u{3}")];
    let Some(drawn) = typed_on_a_terminal(test, 100, &line, &keys) else { return };
    assert!(drawn.contains("caught") && drawn.contains("code=7"), "{drawn}");
    assert!(!drawn.contains("told to end"), "{drawn}");
    // If the last stage dies of the interrupt, contend dies of it, too, like a shell.
    let pipeline = "sleep 60 | sh -c \"echo ready; exec sleep 60\"";
    let line = format!("{} pipe '{pipeline}'; echo code=$?", contend());
    let line = format!("bash -c {}", quoted(&line));
    let keys = [("ready", "\u{3}")];
    let Some(drawn) = typed_on_a_terminal(test, 100, &line, &keys) else { return };
    assert!(drawn.contains("SIGINT") && !drawn.contains("code="), "{drawn}");
}

#[test]
fn stages_handle_an_interrupt_themselves() {
    let test = "stages_handle_an_interrupt_themselves";
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let catcher = folder.path().join("catcher");
    std::fs::write(&catcher, CATCHER).expect("room");
    let run = |pipeline: &str, keys: &[(&str, &str)]| {
        let line = format!("{} run {}; echo code=$?", contend(), quoted(pipeline));
        typed_on_a_terminal(test, 100, &format!("bash -c {}", quoted(&line)), keys)
    };
    let keys = [("ready", "\u{3}"), ("second", "\u{3}")];
    let pipeline = format!("setsid true | sh {}", catcher.display());
    let Some(drawn) = run(&pipeline, &keys) else { return };
    assert!(drawn.matches("caught").count() == 2 && drawn.contains("code=7"), "{drawn}");
    // Earlier stages may die.
    let pipeline = format!("sleep 60 | sh {}", catcher.display());
    let Some(drawn) = run(&pipeline, &keys) else { return };
    assert!(drawn.matches("caught").count() == 2 && drawn.contains("code=7"), "{drawn}");
    // If the last stage dies, contend dies, too, like a shell. First a plain run, then one in
    // chunks.
    let pipeline = "sleep 60 | sh -c 'echo ready; exec sleep 60'";
    let Some(drawn) = run(pipeline, &[("ready", "\u{3}")]) else { return };
    assert!(drawn.contains("ready") && !drawn.contains("code="), "{drawn}");
    let [input, output] = ["in", "out"].map(|name| folder.path().join(name));
    std::fs::write(&input, "some words in a line\n".repeat(6_000_000)).expect("room");
    let slow = format!("rev {} | tr a b", input.display());
    let line = format!("{} run -j 2 {} >{}", contend(), quoted(&slow), output.display());
    let line = format!("bash -c {}", quoted(&format!("{line}; echo code=$?")));
    // The interrupt comes after the first progress line.
    let keys = [("B/s", "\u{3}")];
    let Some(drawn) = typed_on_a_terminal(test, 100, &line, &keys) else { return };
    assert!(drawn.contains("B/s") && !drawn.contains("code="), "{drawn}");
    let [input, output] = [input, output].map(|path| path.metadata().expect("there").len());
    assert!(output < input, "all of it was written");
}

#[test]
fn one_ctrl_d_ends_the_input() {
    let test = "one_ctrl_d_ends_the_input";
    let line = format!("echo ready; {} run 'grep x | sort'; echo code=$?", contend());
    let Some(drawn) = typed_on_a_terminal(test, 100, &line, &[("ready", "\u{4}")]) else { return };
    assert!(drawn.contains("code=0"), "{drawn}");
}

#[test]
fn a_stopped_pipeline_frees_the_terminal_and_continues() {
    let test = "a_stopped_pipeline_frees_the_terminal_and_continues";
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let over = folder.path().join("over");
    let waits = format!("until [ -e {} ]; do sleep 0.1; done | cat", over.display());
    let pipeline = format!("{} pipe {}", contend(), quoted(&waits));
    let line = format!("set -m; {pipeline}; echo stopped; : >{}; fg; echo code=$?", over.display());
    let line = format!("bash -c {}", quoted(&line));
    let keys = [("stages running", "\u{1a}")];
    let Some(drawn) = typed_on_a_terminal(test, 100, &line, &keys) else { return };
    let cleared = drawn.find("\u{1b}7\r\n\u{1b}[J\u{1b}8").expect("the table is taken away");
    assert!(cleared < drawn.rfind("stopped").expect("it stopped"), "{drawn:?}");
    assert!(drawn.contains("code=0"), "{drawn:?}");
}

/// Quotes a string as one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn colours_are_used_only_on_terminals() {
    let test = "colours_are_used_only_on_terminals";
    let mut command = Command::new(contend());
    let output = run(command.args(["pipe", "echo x | cat"]), "");
    assert!(!text(&output.stderr).contains('\u{1b}'));
    let line = format!("{} pipe 'echo x | cat'", contend());
    let Some(drawn) = on_a_terminal(test, 100, &line) else { return };
    assert!(drawn.contains("\u{1b}[1m"), "{drawn:?}");
    let Some(drawn) = on_a_terminal(test, 100, &format!("NO_COLOR=1 {line}")) else { return };
    assert!(!drawn.contains("\u{1b}[1m"), "{drawn:?}");
    let line = format!("{} pipe --color never 'echo x | cat'", contend());
    let Some(drawn) = on_a_terminal(test, 100, &line) else { return };
    assert!(!drawn.contains("\u{1b}[1m"), "{drawn:?}");
}

#[test]
fn stages_are_shown_while_they_run_and_then_cleared() {
    let test = "stages_are_shown_while_they_run_and_then_cleared";
    let line = format!("{} pipe 'cat | cat'", contend());
    let keys = [("stages running", END_OF_INPUT)];
    let Some(drawn) = typed_on_a_terminal(test, 80, &line, &keys) else { return };
    assert!(drawn.contains("2 of 2 stages running"), "{drawn:?}");
    assert!(drawn.contains("starved"));
    // The last drawing is cleared before the report.
    let report = drawn.rfind(" wall").expect("a report");
    let live = drawn.rfind("stages running").expect("it was shown");
    assert!(live < report);
    assert!(drawn[live..report].contains("\u{1b}7\r\n\u{1b}[J\u{1b}8"));
    for quiet in ["--no-progress ", "--no-progress --discard "] {
        let line = format!("{} pipe {quiet}'sleep 1.3 | cat'", contend());
        let Some(drawn) = on_a_terminal(test, 80, &line) else { return };
        assert!(!drawn.contains("stages running"));
    }
}

#[test]
fn the_live_view_shows_how_much_of_a_file_is_read() {
    let test = "the_live_view_shows_how_much_of_a_file_is_read";
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("input");
    std::fs::write(&input, vec![b'x'; 1_000_000]).expect("room");
    let pipeline = "{ head -c 250000 >/dev/null; sleep 4; } | cat";
    let line = format!("{} pipe '{pipeline}' <{}", contend(), input.display());
    let Some(drawn) = on_a_terminal(test, 80, &line) else { return };
    assert!(drawn.contains("[#####...............] 25 %, "), "{drawn:?}");
}

#[test]
fn several_runs_show_their_number() {
    let test = "several_runs_show_their_number";
    let line = format!("{} pipe --runs 3 --no-advice 'sleep 0.7 | cat'", contend());
    let Some(drawn) = on_a_terminal(test, 80, &line) else { return };
    assert!(drawn.contains("run 3 of 3 [#############.......] 66 %"), "{drawn:?}");
    assert!(drawn.contains("2 of 2 stages running"), "{drawn:?}");
}

#[test]
fn nothing_is_shown_if_standard_error_is_not_a_terminal() {
    let mut command = Command::new(contend());
    let output = run(command.args(["pipe", "sleep 1.3 | cat"]), "");
    assert!(!text(&output.stderr).contains("stages running"));
}

#[test]
fn pipeline_output_on_the_same_terminal_is_not_cleared() {
    let test = "pipeline_output_on_the_same_terminal_is_not_cleared";
    // The first stage's messages arrive while the table is shown, one of them without a newline;
    // the output arrives at the end.
    let stage = "cat; printf no-newline >&2; sleep 0.4; echo >&2; echo line-2 >&2; echo out";
    let line = format!("{} pipe '{{ {stage}; }} | cat'", contend());
    let keys = [("stages running", END_OF_INPUT)];
    let Some(drawn) = typed_on_a_terminal(test, 80, &line, &keys) else { return };
    let plain = without_escapes(&drawn);
    for text in ["no-newline", "line-2", "out"] {
        assert!(plain.contains(text), "{plain}");
    }
    assert!(drawn.contains("stages running"), "the table was not shown: {drawn:?}");
    // The line of the cursor is never cleared: the cursor moves down before each clearing.
    for (place, _) in drawn.match_indices("\u{1b}[J") {
        assert!(drawn[..place].ends_with("\u{1b}7\r\n"), "{drawn:?}");
    }
    // Each move up follows a move down by the same distance.
    for (place, _) in drawn.match_indices("\u{1b}[2A") {
        assert!(drawn[..place].ends_with("\u{1b}D\u{1b}D"), "{drawn:?}");
    }
}

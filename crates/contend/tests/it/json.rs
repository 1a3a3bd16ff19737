//! Tests of the command line of `contend json`, and comparisons with other programs.

use std::io::{Read as _, Write as _};
use std::process::{Output, Stdio};

use crate::support::{Command, contend, has, is_tried, run, skip, text};

const MENU: &str = r#"{"menu": {"id": "file", "popup": {"menuitem": [
  {"value": "New", "onclick": "CreateNewDoc()"},
  {"value": "Open", "onclick": "OpenDoc()"}
]}, "odd key": "a\tb\\c\u0041"}}
"#;

fn json(arguments: &[&str], input: &str) -> Output {
    run(Command::new(contend()).arg("json").args(arguments), input)
}

fn printed(arguments: &[&str], input: &str) -> String {
    let output = json(arguments, input);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    text(&output.stdout)
}

/// Runs `contend json`, and returns its exit status, output and messages.
fn ended(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let output = json(arguments, input);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn values_are_printed_in_every_format() {
    insta::assert_snapshot!(printed(&[".menu.popup.menuitem[].value", ".menu.id"], MENU), @r"
    .menu.id	file
    .menu.popup.menuitem[0].value	New
    .menu.popup.menuitem[1].value	Open
    ");
    insta::assert_snapshot!(printed(&[r#".menu["odd key"]"#], MENU), @r#".menu["odd key"]	a\tb\\cA"#);
    insta::assert_snapshot!(printed(&["-f", "gron", "..menuitem"], MENU), @r#"
    json.menu.popup.menuitem = [];
    json.menu.popup.menuitem[0] = {};
    json.menu.popup.menuitem[0].value = "New";
    json.menu.popup.menuitem[0].onclick = "CreateNewDoc()";
    json.menu.popup.menuitem[1] = {};
    json.menu.popup.menuitem[1].value = "Open";
    json.menu.popup.menuitem[1].onclick = "OpenDoc()";
    "#);
    insta::assert_snapshot!(printed(&["--format=jsonl", "..[1]", "..\"odd key\""], MENU), @r#"
    {"value":"Open","onclick":"OpenDoc()"}
    "a\tb\\cA"
    "#);
}

#[test]
fn paths_and_files_are_distinguished() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in [("plain", "{\"a\":1}"), (".hidden", "{\"a\":2}")] {
        std::fs::write(folder.path().join(name), content).expect("room");
    }
    let in_folder = |arguments: &[&str]| {
        let mut command = Command::new(contend());
        run(command.arg("json").args(arguments).current_dir(folder.path()), "{\"a\":3}")
    };
    assert_eq!(text(&in_folder(&[".a", "plain", "./.hidden"]).stdout), ".a\t1\n.a\t2\n");
    assert_eq!(text(&in_folder(&["plain", "-", ".a"]).stdout), ".a\t1\n.a\t3\n");
    assert_eq!(text(&in_folder(&[".hidden"]).stdout), "");
    let no_path = in_folder(&["plain"]);
    assert_eq!(no_path.status.code(), Some(2));
    assert!(text(&no_path.stderr).contains("missing path"));
}

#[test]
fn syntax_errors_are_shown_with_their_position() {
    let refused = |arguments: &[&str]| {
        let (status, output, error) = ended(arguments, "");
        assert_eq!((status, output.as_str()), (Some(2), ""), "{error}");
        error
    };
    insta::assert_snapshot!(refused(&[".menu.popup[-1]"]), @r"
    contend: an index counts from 0: the length of an array is unknown in a single pass
      .menu.popup[-1]
                  ^
    ");
    insta::assert_snapshot!(refused(&[".", ".a[\"b"]), @r#"
    contend: missing closing quote
      .a["b
           ^
    "#);
    assert!(refused(&[".a", "/no/such/file"]).contains("cannot read /no/such/file: No such file"));
    assert!(refused(&[".a", "/"]).contains("cannot read /: it is a directory"));
    assert!(refused(&["--format", "xml", ".a"]).contains("xml"));
    assert!(refused(&[]).contains("<PATH|FILE>"));
}

#[test]
fn invalid_json_ends_with_status_1_after_the_valid_part() {
    let (status, output, error) = ended(&[".a"], "{\"a\": 1}\n{\"a\": 2}\n{\"a\": x}\n");
    assert_eq!((status, output.as_str()), (Some(1), ".a\t1\n.a\t2\n"));
    assert_eq!(error, "contend: standard input: line 3, column 7 (byte 24): expected a value\n");
    assert_eq!(ended(&[".a"], "").0, Some(1));
    assert_eq!(ended(&["."], "[1] \u{1b}").2.matches('\u{1b}').count(), 0);
}

#[test]
fn matches_are_printed_before_more_input_arrives() {
    let mut child = Command::new(contend())
        .args(["json", ".a"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    for value in ["1", "2"] {
        stdin.write_all(format!("{{\"a\":{value}}}\n").as_bytes()).expect("it reads");
        let mut line = [0; 5];
        stdout.read_exact(&mut line).expect("a line");
        assert_eq!(line, *format!(".a\t{value}\n").as_bytes());
    }
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_closed_reader_ends_json_without_a_message() {
    let mut child = Command::new(contend())
        .args(["json", "."])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("piped");
    while stdin.write_all(b"[1,2,3]\n").is_ok() {} // until contend has exited
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let mut command = Command::new(contend());
    let child = command.args(["json", "."]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.stdout(full).spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(b"1").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("cannot write standard output: No space left"));
}

/// Returns the peak RSS of `contend json` in bytes for an input that consists of a start,
/// `INPUT_MB` mebibytes of a repeated piece, and an end.
fn peak_memory(arguments: &[&str], [start, piece, end]: [&str; 3]) -> u64 {
    let mut child = Command::new(contend())
        .arg("json")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(start.as_bytes()).expect("it reads");
    let block = piece.repeat((1 << 20) / piece.len());
    for _ in 0..INPUT_MB {
        stdin.write_all(block.as_bytes()).expect("it reads");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("procfs");
    stdin.write_all(end.as_bytes()).expect("it reads");
    drop(stdin);
    assert!(child.wait().expect("it ends").success(), "{start} {arguments:?}");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024
}

/// Size of the repeated part of the input in mebibytes: more memory than contend may use.
const INPUT_MB: usize = 64;

#[test]
fn memory_does_not_grow_with_the_input() {
    let shapes = [
        ["[{\"a\":0}", ",{\"a\":1,\"b\":[2,3]}", "]"],
        ["", "{\"a\":1,\"b\":[2,3]}\n", ""],
        ["{\"a\":\"", "no end to it \\n\\u00e9", "\"}"],
        ["{\"c\":[1", "                  ", "]}"],
        ["{\"a\":{", "\"b\":{},\"c\":[1],", "\"\":0}}"],
    ];
    for (row, shape) in shapes.into_iter().enumerate() {
        let queries = [&[".a", "..b"][..], &["--format=jsonl", "."]].into_iter().enumerate();
        for (_, arguments) in queries.filter(|(column, _)| is_tried(row, *column, 2)) {
            let peak = peak_memory(arguments, shape);
            assert!(peak < 50_000_000, "{peak} bytes for {shape:?} {arguments:?}");
        }
    }
    // Only a number or key that is printed or compared is held in memory as a whole.
    let endless_number = ["{\"a\":", "1234567890", "}"];
    assert!(peak_memory(&[".b"], endless_number) < 50_000_000);
    let endless_key = ["{\"a\":{\"", "no end to it", "\":2}}"];
    assert!(peak_memory(&[".b"], endless_key) < 50_000_000);
}

/// Returns JSON texts for which jq and gron print the same as contend, apart from the order of
/// lines and the format of numbers.
fn agreed() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/json/accept");
    let entries = std::fs::read_dir(folder).expect("the collection");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read_to_string(path).expect("UTF-8"));
    texts
        .chain([
            MENU.to_owned(),
            "[\"\u{80}\u{9f}\u{7f}\", {\"\u{e9}\u{301}1\": {}, \"\u{b2}\": []}]".to_owned(),
        ])
        .collect()
}

#[test]
fn assignments_match_gron() {
    if !has("gron") {
        return skip("assignments_match_gron", "there is no gron");
    }
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for input in agreed() {
        let theirs = run(Command::new("gron").arg("--monochrome"), &input);
        let ours = printed(&["--format=gron", "."], &input);
        assert_eq!(sorted(&ours), sorted(&text(&theirs.stdout)), "{input}");
    }
}

#[test]
fn json_lines_match_jq() {
    if !has("jq") {
        return skip("json_lines_match_jq", "there is no jq");
    }
    for input in agreed() {
        if input.contains(|c: char| c.is_ascii_digit()) && !input.contains(['"', '\\']) {
            continue; // jq computes with numbers, and its versions write them differently
        }
        let theirs = run(Command::new("jq").args(["-c", "."]), &input);
        let ours = printed(&["--format=jsonl", "."], &input);
        assert_eq!(ours, with_contend_escapes(&text(&theirs.stdout)), "{input}");
    }
}

/// Converts the escapes in the output of jq to those of contend: upper-case hexadecimal digits, and
/// no escape for U+007F.
fn with_contend_escapes(theirs: &str) -> String {
    let mut text = theirs.replace("\\u007f", "\x7f");
    for control in 0..0x20 {
        text = text.replace(&format!("\\u{control:04x}"), &format!("\\u{control:04X}"));
    }
    text
}

//! Tests of the JSON tokenizer and parser in awk. Compares their output for the JSON texts in
//! `testdata/json` with the result of `serde_json`, in every installed awk, and checks their other
//! documented properties.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support::{Command, contend, has, is_tried, run, skip, text};

/// The program that each variant of awk needs, and the command that runs the variant.
const AWKS: [(&str, &str); 6] = [
    ("mawk", "mawk"),
    ("gawk", "gawk"),
    ("gawk", "gawk --posix"),
    ("gawk", "env LC_ALL=C gawk"),
    ("busybox", "busybox awk"),
    ("original-awk", "original-awk"),
];

const FOUR_STAGE_TOKENIZER: &str =
    r#"tr '\000\n' '\001\r' | tr '"' '\n' | $AWK -f join.awk | $AWK -v joined=1 -f tokenizer.awk"#;
const TOKENIZER: &str = "$AWK -f tokenizer.awk";
const DIRECT_TOKENIZER: &str = "$AWK -v direct=1 -f tokenizer.awk";
const PARSER: &str = "$AWK -f parser.awk -f callbacks.awk";

/// Creates a folder with the awk programs.
fn programs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["tokenizer", "join", "parser", "callbacks"] {
        let output = generate(&["awk", name]);
        std::fs::write(folder.path().join(format!("{name}.awk")), output.stdout).expect("room");
    }
    folder
}

fn generate(arguments: &[&str]) -> Output {
    Command::new(contend()).arg("generate").args(arguments).output().expect("it starts")
}

/// Runs a shell script in the folder on `input`, with `$AWK` replaced by the given awk.
fn sh(folder: &Path, awk: &str, script: &str, input: &str) -> Output {
    let script = script.replace("$AWK", awk);
    run(Command::new("sh").args(["-c", &script]).current_dir(folder), input)
}

fn collection() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(collection().join(folder)).expect("the collection is there");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() > 50, "{}", files.len());
    files
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Runs the tokenizer and the parser on every file, in one shell. `feed` is shell text that prints
/// the contents of `$file`. Returns the exit status of the parser and its output for each file.
fn all(
    folder: &Path,
    awk: &str,
    feed: &str,
    tokenizer: &str,
    files: &[PathBuf],
) -> Vec<(i32, String)> {
    let mut list = String::new();
    for file in files {
        let _ = writeln!(list, "{}", file.display());
    }
    let script = format!(
        "while read -r file; do {feed} | {tokenizer} | {PARSER} 2>/dev/null; echo \"=status $?\"; \
         done 2>/dev/null"
    );
    let output = sh(folder, awk, &script, &list);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut results = Vec::new();
    let mut shown = String::new();
    for line in text.lines() {
        match line.strip_prefix("=status ") {
            Some(status) => {
                results.push((status.parse().expect("a status"), std::mem::take(&mut shown)));
            }
            None => shown.push_str(&(line.to_owned() + "\n")),
        }
    }
    assert_eq!(results.len(), files.len(), "{awk} {tokenizer}");
    results
}

/// Appends the lines that the parser should print for `value`: every scalar and bracket with its
/// path. Strings are encoded as `serde_json` does.
fn expected(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            lines.push(format!("{path} <=> {{"));
            for (name, member) in members {
                expected(&format!("{path}.{}", Value::from(name.as_str())), member, lines);
            }
            lines.push(format!("{path} <=> }}"));
        }
        Value::Array(items) => {
            lines.push(format!("{path} <=> ["));
            for (index, item) in items.iter().enumerate() {
                expected(&format!("{path}.{index}"), item, lines);
            }
            lines.push(format!("{path} <=> ]"));
        }
        other => lines.push(format!("{path}: {other}")),
    }
}

/// Converts the strings and numbers in a line of the parser's output to the format of `serde_json`.
fn normal(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('"') {
        let (before, string) = rest.split_at(start);
        let mut decoded = serde_json::Deserializer::from_str(string).into_iter::<Value>();
        let value = decoded.next().expect("a string").expect("JSON");
        let length = decoded.byte_offset();
        out.push_str(before);
        out.push_str(&value.to_string());
        rest = &string[length..];
    }
    match rest.split_once(": ") {
        Some((path, scalar)) if !scalar.is_empty() => {
            let value: Value = serde_json::from_str(scalar).expect("a number or literal");
            out + &format!("{path}: {value}")
        }
        _ => out + rest,
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn every_awk_accepts_and_refuses_the_texts_of_the_collection() {
    let folder = programs();
    let (accept, reject) = (files("accept"), files("reject"));
    // The awk programs do not validate UTF-8.
    let reject: Vec<_> =
        reject.into_iter().filter(|file| !name(file).starts_with("utf8-")).collect();
    for (row, (program, awk)) in AWKS.into_iter().enumerate() {
        if !has(program) {
            skip(
                "every_awk_accepts_and_refuses_the_texts_of_the_collection",
                &format!("there is no {program}"),
            );
            continue;
        }
        let ways =
            [("cat \"$file\"", TOKENIZER), ("{ cat \"$file\"; echo; }", FOUR_STAGE_TOKENIZER)];
        // Differences between the variants of gawk do not affect the other commands.
        let count = if awk == program || program == "busybox" { 2 } else { 1 };
        for (column, (feed, tokenizer)) in ways[..count].iter().enumerate() {
            if !is_tried(row, column, 2) {
                continue;
            }
            check_accepted(&accept, &all(folder.path(), awk, feed, tokenizer, &accept), awk);
            check_refused(&reject, &all(folder.path(), awk, feed, tokenizer, &reject), awk);
        }
    }
}

fn check_accepted(files: &[PathBuf], results: &[(i32, String)], awk: &str) {
    for (file, (status, shown)) in files.iter().zip(results) {
        assert_eq!(*status, 0, "{awk} refuses {}", name(file));
        let text = std::fs::read_to_string(file).expect("UTF-8");
        let value: Value = serde_json::from_str(&text).expect("accepted by serde_json too");
        let mut lines = Vec::new();
        expected("@", &value, &mut lines);
        let found = shown.lines().map(normal).collect();
        assert_eq!(sorted(found), sorted(lines), "{awk} {}", name(file));
    }
}

fn check_refused(files: &[PathBuf], results: &[(i32, String)], awk: &str) {
    for (file, (status, shown)) in files.iter().zip(results) {
        assert_ne!(*status, 0, "{awk} takes {}: {shown}", name(file));
    }
}

/// Returns the command of an installed awk, or `None` if no awk is installed.
fn some_awk() -> Option<&'static str> {
    AWKS.iter().find(|(program, _)| has(program)).map(|(_, command)| *command)
}

#[test]
fn the_example_prints_the_lines_of_the_study() {
    let Some(awk) = some_awk() else {
        return skip("the_example_prints_the_lines_of_the_study", "there is no awk");
    };
    let folder = programs();
    let example = r#"{"menu": {"id": "file", "items": [{"value": "New"}, 1]}}"#;
    let output = sh(folder.path(), awk, &format!("{TOKENIZER} | {PARSER}"), example);
    assert_eq!(
        text(&output.stdout),
        "@ <=> {\n@.\"menu\" <=> {\n@.\"menu\".\"id\": \"file\"\n@.\"menu\".\"items\" <=> [\n\
         @.\"menu\".\"items\".0 <=> {\n@.\"menu\".\"items\".0.\"value\": \"New\"\n\
         @.\"menu\".\"items\".0 <=> }\n@.\"menu\".\"items\".1: 1\n@.\"menu\".\"items\" <=> ]\n\
         @.\"menu\" <=> }\n@ <=> }\n"
    );
}

#[test]
fn an_error_is_reported_after_the_valid_part() {
    let cases = [
        (r#"["a", "#, "@ <=> [\n@.0: \"a\"\n", "token 3: unexpected end of input in @.1"),
        ("[1] 2", "@ <=> [\n@.0: 1\n@ <=> ]\n", "trailing data: 2"),
        ("[1] \"a\tb\"", "@ <=> [\n@.0: 1\n@ <=> ]\n", "a control character in a string"),
        (r#"["\u12"]"#, "@ <=> [\n", r#"not a string: "\u12""#),
        ("[\"a\0b\"]", "@ <=> [\n", "tokenizer: "),
        ("", "", "the input is empty"),
    ];
    let folder = programs();
    for (program, awk) in AWKS.into_iter().filter(|(program, _)| has(program)) {
        for (input, shown, message) in cases {
            let output = sh(folder.path(), awk, &format!("{TOKENIZER} | {PARSER}"), input);
            assert_eq!(output.status.code(), Some(1), "{program} {input:?}");
            assert_eq!(text(&output.stdout), shown, "{program} {input:?}");
            assert!(text(&output.stderr).contains(message), "{program}: {}", text(&output.stderr));
        }
        let deep = "[".repeat(100_000);
        let output = sh(folder.path(), awk, &format!("{TOKENIZER} | {PARSER} >/dev/null"), &deep);
        assert!(text(&output.stderr).contains("nested deeper than 1000 levels"), "{program}");
    }
}

#[test]
fn callbacks_can_be_replaced() {
    let Some(awk) = some_awk() else {
        return skip("callbacks_can_be_replaced", "there is no awk");
    };
    let folder = programs();
    let own = "function json_begin(path, mark) { depth++ }\n\
               function json_end(path, mark) { }\n\
               function json_value(path, value, type) { count[type]++ }\n\
               END { print depth, count[\"string\"], count[\"number\"], count[\"literal\"] }\n";
    std::fs::write(folder.path().join("callbacks.awk"), own.replace("depth", "levels"))
        .expect("room");
    let input = r#"{"a": ["x", 1, 2, true], "b": {"c": null, "d": "y"}}"#;
    let output =
        sh(folder.path(), awk, &format!("{DIRECT_TOKENIZER} | {PARSER}"), &format!("{input}\n"));
    assert_eq!(text(&output.stdout), "3 2 2 2\n", "{}", text(&output.stderr));
}

#[test]
fn the_generated_array_is_json_of_243_bytes_a_document() {
    let output = generate(&["json-array", "1000"]);
    let array: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(array.len(), 1000);
    assert_eq!(array[999]["menu"]["popup"]["menuitem"][2]["onclick"], "CloseDoc()");
    assert_eq!(output.stdout.len(), 1000 * 243 + 1);
    // The reader may close the pipe early.
    let script = format!("'{}' generate json-array 1000000 | head -c 1000", contend());
    let output = Command::new("sh").args(["-c", &script]).output().expect("sh");
    assert_eq!((output.stdout.len(), text(&output.stderr)), (1000, String::new()));
}

//! Tests of the pages about symptoms, `docs/symptoms/`: each symptom has a page with the same parts, and
//! the programs on the pages compile.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Command, contend, has, skip, text};

/// The headings of a page, in order.
const HEADINGS: &[&str] = &[
    "## A program that has it",
    "## The change",
    "## Evidence and gain",
    "## Healthy programs that look alike",
    "## Limits",
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(docs().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the symptoms by their names in JSON.
fn symptoms() -> Vec<String> {
    let schema = Command::new(contend()).args(["generate", "schema", "doctor"]).output();
    let schema: Value =
        serde_json::from_slice(&schema.expect("it starts").stdout).expect("a schema");
    let all = schema["$defs"]["Symptom"]["oneOf"].as_array().expect("symptoms");
    all.iter().map(|symptom| symptom["const"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn every_symptom_has_a_page_that_others_link_to() {
    let (index, guide) = (page("symptoms/README.md"), page("guides/doctor.md"));
    for symptom in symptoms() {
        let page = page(&format!("symptoms/{symptom}.md"));
        let found: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(found, HEADINGS, "{symptom}");
        assert!(page.contains("\nDiagnosis: ") || page.contains("\n1. "), "{symptom}: no report");
        assert!(index.contains(&format!("({symptom}.md) | `{symptom}`")), "{symptom}: the index");
        let link = format!("[`{symptom}`](../symptoms/{symptom}.md)");
        assert!(guide.contains(&link), "{symptom}: the guide");
    }
}

/// Each page begins with a complete program.
#[test]
fn the_programs_on_the_pages_compile() {
    let folder = tempfile::tempdir().expect("a folder");
    for symptom in symptoms() {
        let page = page(&format!("symptoms/{symptom}.md"));
        let (language, program) = first_block(&page);
        let file = folder.path().join(format!("{}.{language}", symptom.replace('-', "_")));
        std::fs::write(&file, program).expect("room");
        let words: &[&str] = match language {
            "c" => &["cc", "-fsyntax-only", "-Wall", "-Werror"],
            "rust" => &["rustc", "--edition=2024", "--emit=metadata", "-Dwarnings"],
            "python" => &["python3", "-m", "py_compile"],
            "bash" => &["bash", "-n"],
            _ => panic!("{symptom}: a program in {language}"),
        };
        if !has(words[0]) {
            skip("the_programs_on_the_pages_compile", &format!("there is no {}", words[0]));
            continue;
        }
        let mut compiler = Command::new(words[0]);
        compiler.args(&words[1..]).arg(&file).current_dir(folder.path()).stdin(Stdio::null());
        let output = compiler.output().expect("it starts");
        assert!(output.status.success(), "{symptom}: {}", text(&output.stderr));
    }
}

/// Returns the language and the contents of the first block of a page.
fn first_block(page: &str) -> (&str, &str) {
    let (_, rest) = page.split_once("```").expect("a block");
    let (language, rest) = rest.split_once('\n').expect("a language");
    let (program, _) = rest.split_once("```").expect("an end");
    (language, program)
}

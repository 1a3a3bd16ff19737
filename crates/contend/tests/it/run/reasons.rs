//! Tests of the reasons why stages are not parallel, and of the results of such pipelines.

use serde_json::Value;

use super::{Environment, Input, assert_no_differences, contend_run, folder, words};
use crate::support::{Command, contend, has, run, skip, text, write_program};

const EARLIER_INPUT_REASON: &str = "its output depends on all earlier input";

/// Stages that need the whole input or are unknown to contend, with the reasons.
const SEQUENTIAL_STAGES: &[(&str, &str)] = &[
    ("sed -n 2p", "`2p` counts lines"),
    ("sed =", "`=` prints line numbers"),
    ("sed '$!d'", "`$!d` asks whether the line is the last"),
    ("sed N", "`N` takes the next line"),
    ("sed 3q", "`3q` counts lines"),
    ("sed '/a/,/b/d'", "`/a/,/b/d` is a range of lines"),
    ("sed x", "`x` keeps text from line to line"),
    ("awk 'NR%2'", "`NR` counts lines"),
    ("awk '!seen[$0]++'", "`seen` keeps its value from line to line"),
    ("awk '/a/,/b/'", "`/a/,/b/` is a range of lines"),
    ("awk '{ print last; last = $0 }'", "`last` keeps its value from line to line"),
    ("nl", "it numbers lines"),
    ("tac", "it writes the lines of the whole input in reverse"),
    ("shuf -n 0", "it shuffles the whole input"),
    ("paste - -", "it joins lines, and where it breaks them depends on all earlier input"),
    ("head -c 5", "it takes the first 5 bytes of all its input"),
    ("head -n -1", "it leaves out the last 1 lines of all its input"),
    ("tail -n +3", "it takes all its input from number 3 of the lines on"),
    ("tail -c 5", "it takes the last 5 bytes of all its input"),
    ("tee copy", "it writes its input to files"),
    ("cat -n", "`-n` numbers lines"),
    ("sort -R", "`-R` shuffles the whole input"),
    ("sort -m", "`-m` merges sorted files"),
    ("sort -c", "it checks the order of the whole input"),
    ("sort -o copy", "`-o` writes to a file"),
    ("uniq -d -f 1", "`-f` treats different lines as equal"),
    ("grep -n o", "`-n` numbers lines"),
    ("grep -A1 o", "it also writes lines around matches"),
    ("grep -q o", "`-q` ends at the first match"),
    ("grep -b o", "`-b` counts the bytes before each line"),
    ("split -n r/1/2", "it writes its input to files"),
    ("md5sum", "it computes one checksum of the whole input"),
    ("fmt", "it joins lines into paragraphs"),
    ("xargs", "how it groups items depends on the whole input"),
    ("jq -s -R length", "`-s` reads the whole input as one value"),
    ("od -c", "it numbers bytes from the start of the input"),
    ("gzip -n", EARLIER_INPUT_REASON),
    ("dd status=none", "it counts blocks from the start of the input"),
    ("wc in", "it reads files named in its arguments"),
    ("diff - in", "it compares whole files"),
    ("iconv -f UTF-16 -t UTF-8", "`UTF-16` may depend on earlier input"),
    ("./my-filter", "`./my-filter` is unknown"),
];

/// Pipelines that a shell has to run, with the reasons.
const SHELL_PIPELINES: &[(&str, &str)] = &[
    (
        "sort | while read -r line; do echo \"$line\"; done",
        "`while read -r line; do echo \"$line\"; done` is not a plain command",
    ),
    ("sort | read -r line", "`read` is a shell builtin"),
    ("sort | (cat; cat)", "`(cat; cat)` is not a plain command"),
    ("sort | no-such-program", "`no-such-program` is not found"),
    ("sort $OTHER", "`sort $OTHER` is not a plain command"),
    ("sort i*", "`sort i*` is not a plain command"),
    ("printf 'b\\na\\n' | sort", "`printf` is a shell builtin"),
];

/// Returns the JSON output of `--explain`.
fn explained(environment: &Environment<'_>, pipeline: &str) -> Value {
    let done = environment.run(contend_run(&["-j", "2", "--explain", "--json", "-"], pipeline));
    assert_eq!((done.status, done.stderr.as_slice()), (0, &[][..]), "{pipeline}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// Creates a folder with a filter that is unknown to contend.
fn folder_with_filter() -> tempfile::TempDir {
    let folder = folder(&words(30_000));
    write_program(&folder.path().join("my-filter"), "#!/bin/sh\ntr a-c d-f\n");
    folder
}

#[test]
fn sequential_stages_are_explained_and_run_as_in_bash() {
    let test = "sequential_stages_are_explained_and_run_as_in_bash";
    if let Some(missing) = ["bash", "gawk", "jq"].into_iter().find(|program| !has(program)) {
        return skip(test, &format!("there is no {missing}"));
    }
    let folder = folder_with_filter();
    let environment = Environment { folder: folder.path(), input: Input::Pipe, locale: "C.UTF-8" };
    let mut wrong = Vec::new();
    for &(stage, why) in SEQUENTIAL_STAGES {
        // The stages before and after it are parallel.
        let pipeline = format!("tr A-Z a-z | {stage} | cut -c 1-20");
        let explained = explained(&environment, &pipeline);
        let [before, it, after] = [0, 1, 2].map(|index| &explained["plan"]["stages"][index]);
        assert_eq!((&it["class"], &it["why"]), (&"opaque".into(), &why.into()), "{stage}");
        assert_eq!([&before["class"], &after["class"]], ["per-record"; 2], "{stage}");
        // Output in random order must be sorted before the comparison.
        let pipeline = if stage == "sort -R" { pipeline + " | sort" } else { pipeline };
        wrong.extend(environment.difference(&["-j", "3", "--part-size", "3k"], &pipeline));
        wrong.extend(environment.difference(&[], &pipeline));
    }
    assert_no_differences(&wrong);
}

#[test]
fn pipelines_that_need_a_shell_are_explained_and_run_as_in_bash() {
    if !has("bash") {
        return skip(
            "pipelines_that_need_a_shell_are_explained_and_run_as_in_bash",
            "there is no bash",
        );
    }
    let folder = folder_with_filter();
    let environment = Environment { folder: folder.path(), input: Input::File, locale: "C" };
    let mut wrong = Vec::new();
    for &(pipeline, why) in SHELL_PIPELINES {
        let explained = explained(&environment, pipeline);
        let said = explained["decision"]["why"].as_str().unwrap_or_default();
        assert!(said.contains(why), "{pipeline}: {said}");
        assert_eq!(explained["plan"], Value::Null, "{pipeline}");
        wrong.extend(environment.difference(&["-j", "3", "--part-size", "3k"], pipeline));
    }
    assert_no_differences(&wrong);
}

#[test]
fn explain_prints_the_reasons_of_the_record() {
    let folder = folder_with_filter();
    let environment = Environment { folder: folder.path(), input: Input::File, locale: "C" };
    let done = environment.run(contend_run(&["-j", "2", "--explain"], "tr A-Z a-z | sed -n 2p"));
    let shown = text(&done.stdout);
    assert!(shown.contains("parallel: handles each record independently"), "{shown}");
    assert!(shown.contains("runs alone: `2p` counts lines"), "{shown}");
    assert!(shown.contains("\nplain: "), "small as it is: {shown}");
    // With a given chunk size, the plan is parallel even for small inputs.
    let forced = ["-j", "2", "--part-size", "3k", "--explain"];
    let shown = text(&environment.run(contend_run(&forced, "tr A-Z a-z | sed -n 2p")).stdout);
    assert!(shown.contains("\nparallel: the chunk size is given"), "{shown}");
}

#[test]
fn files_that_the_first_stage_has_to_read_are_explained() {
    let folder = folder(b"some\nlines\n");
    std::fs::write(folder.path().join("open"), "no line break").expect("room");
    std::fs::write(folder.path().join("empty"), "").expect("room");
    let environment = Environment { folder: folder.path(), input: Input::Pipe, locale: "C" };
    let cases = [
        ("sort nowhere | uniq", "`nowhere` cannot be read: No such file or directory"),
        ("cat in nowhere | sort", "`nowhere` cannot be read: No such file or directory"),
        ("cut -f1 open in | sort", "`open` ends with an incomplete record"),
        ("sort empty | uniq", "`empty` is empty"),
        ("sort /dev/null | uniq", "`/dev/null` is not a regular file"),
    ];
    let mut wrong = Vec::new();
    for (pipeline, why) in cases {
        let first = &explained(&environment, pipeline)["plan"]["stages"][0];
        let said = first["why"].as_str().unwrap_or_default();
        assert!(said.starts_with(why), "{pipeline}: {first}");
        wrong.extend(environment.difference(&["-j", "3", "--part-size", "3k"], pipeline));
    }
    assert_no_differences(&wrong);
}

/// A script with stages that are parallel, stages about which contend decides at run time, and
/// commands that it leaves to the shell.
const SCRIPT: &str = "\
x=1
for i in 1 2; do
  sort in | uniq -c
done
tr a b <in | rev | head -n 1
n=$(cat in | wc -l)
grep x \"$1\" | sort | while read -r l; do echo $l; done
own() { sort; }
own <in | tac
wc <<< in
sort in | uniq; echo $?
echo one; ls
";

#[test]
fn every_stage_of_a_script_has_a_reason_after_its_line() {
    let folder = folder(b"");
    std::fs::write(folder.path().join("script.sh"), SCRIPT).expect("room");
    let explained = |options: &[&str]| {
        let mut command = Command::new(contend());
        command.current_dir(&folder).args(["run", "--explain"]).args(options);
        text(&command.args(["-f", "script.sh"]).output().expect("it runs").stdout)
    };
    let shown = explained(&[]);
    let below = |line: &str| {
        let (_, below) = shown.split_once(line).unwrap_or_else(|| panic!("{line}: {shown}"));
        let reasons = below.lines().take_while(|text| text.starts_with("     "));
        reasons.map(str::trim).collect::<Vec<_>>().join(" ")
    };
    assert!(below("line  3  sort in | uniq -c\n").contains("`uniq -c`: parallel, then combined: "));
    let taken = below("line  5  tr a b < in | rev | head -n 1\n");
    assert!(taken.contains("`rev`: parallel: ") && taken.contains("`head -n 1`: "), "{taken}");
    assert!(below("line  6  n=$(cat in | wc -l)\n").contains("it only sets variables"));
    let taken =
        "decided at run time, when the shell has expanded the words (--stats shows how it ran)";
    assert_eq!(below("line  7  grep x \"$1\" | sort\n"), taken);
    assert!(below("line  9  own < in\n").contains("it is a function defined in the text"));
    assert!(below("line  9  tac\n").contains("neighbouring stage is known to run on chunks"));
    assert!(below("line 10  wc <<< in\n").contains("it reads too little"));
    assert!(shown.contains("left to the shell: 6 other commands"), "{shown}");
    assert!(shown.contains("\nparallel: "), "{shown}");

    let record: Value = serde_json::from_str(&explained(&["--json=-"])).expect("JSON");
    let lines = |list: &str| -> Vec<u64> {
        let entries = record[list].as_array().expect("a list").iter();
        entries.map(|entry| entry["line"].as_u64().expect("a line")).collect()
    };
    assert_eq!((lines("taken"), lines("left")), (vec![3, 5, 7, 8, 11], vec![6, 9, 9, 10]));
}

#[test]
fn a_pipeline_after_json_is_not_a_file() {
    let folder = folder(b"some\nlines\n");
    let environment = Environment { folder: folder.path(), input: Input::File, locale: "C" };
    let plan = explained(&environment, "sort in")["plan"].clone();
    assert!(plan["stages"].is_array(), "{plan}");
    let behind = environment.run(contend_run(&["-j", "2", "--explain", "--json"], "sort in"));
    let record: Value = serde_json::from_slice(&behind.stdout).expect("JSON");
    assert_eq!(record["plan"], plan);
    let refused = environment.run(contend_run(&["--json"], "sort in"));
    assert_eq!((refused.status, refused.stdout.len()), (2, 0));
    assert!(refused.stderr.iter().any(|word| word == "--explain:"), "{:?}", refused.stderr);
    assert!(!folder.path().join("sort in").exists());
}

#[test]
fn the_records_option_requires_map() {
    let refused = run(Command::new(contend()).args(["run", "--records", "csv", "cat"]), "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--map"), "{}", text(&refused.stderr));
}

//! Tests that changes which promise identical output keep that promise on awkward files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Command, contend, has, is_tried, skip};

/// Files on which similar commands give different results.
const FILES: &[(&str, &[u8])] = &[
    ("plain", b"b:1 x\na:2 y\nb:1 x\nc\n\nkeep:me:too z\n"),
    ("no-end", b"b:1\na:2\nlast:3"),
    ("empty", b""),
    ("crlf", b"b:1\r\na:2\r\n"),
    ("zero", b"b:1\0x\na:2\nb:1\0x\n"),
    ("bytes", b"\xff\xfe:1\na\xc3:2\n\xe2\x82\xac:3\n"),
    ("-n", b"an option's name\nb:1\n"),
    ("newlines", b"\n\n\n"),
];

/// Pipelines over a file `F`. Each rewrite in `ALWAYS` applies to at least one of them.
const PIPELINES: &[&str] = &[
    "cat F | sort",
    "cat F | wc",
    "cat F | wc -l",
    "cat F | tail -n 2",
    "cat ./F | head -n 3 | cat | wc -c",
    "<F cat | grep -a b",
    "sort F | uniq",
    "sort -r <F | uniq | wc -l",
    "LC_ALL=C sort F | uniq",
    "sed s/b/B/ F | sed /x/d",
    "sed -E y/b/c/ F | sed 's/x+/Q/'",
    "sed -n /b/p F | sed s/a/A/g",
    "sed 's/:/;/2' <F | sed -n -E '/(1|2)/p'",
    "sed s/a/b/ -- F | sed s/c/d/",
    "tr ab AB <F | tr -d x",
    "LC_ALL=C tr a-y b-z <F | LC_ALL=C tr b a",
    "tr -d '\\r' <F | tr -d x | wc -c",
    "cut -c2-9 F | cut -c1-3",
    "cut -d: -f1-2 F | cut -d: -f1",
    "cut -b 2- F | cut -b 2",
    "head -n 3 F | head -2",
    "tail -n 3 F | tail -n 1",
    "head -n 20 -- F | head -n 5",
    "grep -av a F | grep -av c",
    "grep -av -e x F | grep -v -a -e :1",
    "sed s/a/b/ F | tail -n 2",
    "cut -d: -f1 F | tail -n 1",
    "tr a b <F | wc -l",
    "sed 's/a/b/; s/c/d/' F | wc -l",
    "sort F | head -n 2",
    "sort -t: -k2,2n -s F | tail -n 2",
    "sort -u F | head -n 1",
    "sed 's/a/b/; s/b/c/; /z/d' F",
    "awk '{ gsub(/a/, \"b\"); gsub(/b/, \"c\"); print }' F",
    "awk -v RS=: '{ gsub(/^a/, \"b\"); gsub(/c$/, \"d\"); print }' F",
    "sed s/a/b/ F missing | sed s/b/c/",
    "sort missing | uniq",
];

/// The rewrites that promise identical output for any input.
const ALWAYS: &[&str] = &[
    "drop-cat",
    "fuse-cut",
    "fuse-grep",
    "fuse-head",
    "fuse-sed",
    "fuse-tr",
    "reduce-early",
    "sort-unique",
    "top-lines",
];

/// Returns the output and the exit status of a pipeline in bash, without standard input.
fn plain(folder: &Path, pipeline: &str) -> (Vec<u8>, Option<i32>) {
    let mut command = Command::new("bash");
    command.args(["-c", pipeline]).current_dir(folder).env("LC_ALL", "C.UTF-8");
    // A candidate may start contend.
    let own = Path::new(contend()).parent().expect("a folder");
    command.env("PATH", format!("{}:{}", own.display(), std::env::var("PATH").expect("UTF-8")));
    let output = command.stdin(Stdio::null()).output().expect("bash starts");
    (output.stdout, output.status.code())
}

fn candidates(folder: &Path, pipeline: &str) -> Vec<Value> {
    let json = folder.join("record.json");
    let mut command = Command::new(contend());
    command.args(["pipe", "--try", "--budget", "0.02", "--discard", "--output", "/dev/null"]);
    command.arg("--json").arg(&json).arg("--").arg(pipeline);
    command.current_dir(folder).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    let output = command.output().expect("it starts");
    let text = fs::read_to_string(&json)
        .unwrap_or_else(|_| panic!("{pipeline}: {}", String::from_utf8_lossy(&output.stderr)));
    let record: Value = serde_json::from_str(&text).expect("JSON");
    record["candidates"].as_array().expect("a list").clone()
}

#[test]
fn rewrites_that_promise_identical_output_keep_it_on_awkward_files() {
    if !has("bash") {
        return skip(
            "rewrites_that_promise_identical_output_keep_it_on_awkward_files",
            "there is no bash",
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut promised = BTreeSet::new();
    for (row, (name, content)) in FILES.iter().enumerate() {
        fs::write(folder.path().join(name), content).expect("room");
        let pipelines = PIPELINES.iter().enumerate();
        let tried = pipelines.filter(|(column, _)| is_tried(row, *column, 3));
        // A file whose name looks like an option matters only to the pipelines that name it.
        for pipeline in tried.map(|(_, pipeline)| pipeline.replace('F', name)) {
            let own = plain(folder.path(), &pipeline);
            for candidate in candidates(folder.path(), &pipeline) {
                let command = candidate["command"].as_str().expect("text");
                let recommended = ["faster", "cheaper"].iter().any(|v| candidate["verdict"] == *v);
                if candidate["safety"] == "always" || recommended {
                    assert_eq!(plain(folder.path(), command), own, "{pipeline}\n{candidate:#}");
                }
                if candidate["safety"] == "always" {
                    promised.insert(candidate["rewrite"].as_str().expect("text").to_owned());
                }
            }
        }
        for (other, content) in FILES {
            if let Ok(now) = fs::read(folder.path().join(other)) {
                assert_eq!(now, *content, "a file was changed");
            }
        }
    }
    // Recommendations and combinations depend on times, and differ between runs.
    let missing: Vec<_> = ALWAYS.iter().filter(|name| !promised.contains(**name)).collect();
    assert!(missing.is_empty(), "not tried: {missing:?}; tried: {promised:?}");
}

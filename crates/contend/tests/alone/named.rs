//! Tests that the report names the right bottleneck, for pipelines whose bottleneck is known.

use std::process::Stdio;

use serde_json::Value;

use crate::in_quiet;
use crate::support::{Command, contend, finding_ids, has, number, record, run, skip, text};

fn bottleneck(record: &Value) -> (&str, Option<u64>, Option<&str>) {
    let found = &record["bottleneck"];
    (found["kind"].as_str().expect("a kind"), found["stage"].as_u64(), found["limit"].as_str())
}

/// Shell text that keeps a CPU busy for a fixed number of iterations after copying its input.
const BUSY: &str = "{ cat; i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; }";

#[test]
fn a_sleeping_stage_is_the_bottleneck_although_another_uses_more_cpu() {
    in_quiet(|| {
        let sleeper = "while read -r l; do sleep 0.01; echo $l; done";
        let record = record(&[&format!("seq 120 | {sleeper} | {BUSY} | cat")]);
        let cpu = |index: usize| {
            let stage = &record["stages"][index];
            number(&stage["user_seconds"]) + number(&stage["system_seconds"])
        };
        assert_eq!(bottleneck(&record), ("stage", Some(2), Some("wait")), "{record}");
        let waits = &record["stages"][1]["other_waits"];
        assert!(cpu(2) > 0.0 && number(&waits["sleep"]) > number(&waits["child"]), "{waits}");
        assert!(number(&record["stages"][2]["starved_seconds"]) > 0.5);
    });
}

#[test]
fn a_busy_stage_is_the_bottleneck_and_its_neighbours_wait() {
    in_quiet(|| {
        let slow = "head -c 60000000 /dev/zero | base64 | gzip -6 | cat >/dev/null";
        let record = record(&[slow]);
        // On a single CPU, two busy stages make the machine the bottleneck.
        let kind = if record["host"]["cpus_allowed"] == 1 { "machine" } else { "stage" };
        assert_eq!(bottleneck(&record), (kind, Some(3), Some("cpu")), "{record}");
        let stages = record["stages"].as_array().expect("a list");
        assert!(number(&stages[1]["blocked_seconds"]) > number(&stages[1]["starved_seconds"]));
        assert!(number(&stages[3]["starved_seconds"]) > 0.5 * number(&stages[3]["wall_seconds"]));
        assert_eq!(record["boundaries"][1]["waiting_side"], "writer");
        assert_eq!(record["boundaries"][2]["waiting_side"], "reader");
        if kind == "stage" {
            assert!(finding_ids(&record).contains(&"cannot-matter".to_owned()));
        }
    });
}

#[test]
fn one_cpu_with_several_busy_stages_is_the_bottleneck() {
    in_quiet(|| {
        if !has("taskset") {
            return skip(
                "one_cpu_with_several_busy_stages_is_the_bottleneck",
                "there is no taskset",
            );
        }
        let folder = tempfile::tempdir().expect("a folder");
        let json = folder.path().join("x.json");
        let first_cpu = std::fs::read_to_string("/proc/self/status")
            .expect("procfs")
            .lines()
            .find_map(|line| {
                line.strip_prefix("Cpus_allowed_list:").map(str::trim).map(str::to_owned)
            })
            .and_then(|list| list.split([',', '-']).next().map(str::to_owned))
            .expect("a CPU");
        let status = Command::new("taskset")
            .args(["-c", &first_cpu, contend(), "pipe", "--output", "/dev/null", "--json"])
            .arg(&json)
            .arg(
                "seq 400000 | sed 's/1/2/' | sed 's/2/3/' | sed 's/3/4/' | sed 's/4/5/' >/dev/null",
            )
            .stdin(Stdio::null())
            .status()
            .expect("starts");
        assert!(status.success());
        let text = std::fs::read_to_string(json).expect("a record");
        let record: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(bottleneck(&record).0, "machine", "{record}");
        assert!(bottleneck(&record).1.is_some());
        assert_eq!(record["host"]["cpus_allowed"], 1);
    });
}

#[test]
fn slow_input_and_a_slow_reader_are_bottlenecks() {
    in_quiet(|| {
        let script = |feed: &str, drain: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let json = folder.path().join("x.json");
            let line = format!(
                "{feed} | {} pipe --output /dev/null --json {} 'cat | tr a b' | {drain}",
                contend(),
                json.display()
            );
            let output = Command::new("sh").args(["-c", &line]).output().expect("sh");
            assert!(output.status.success());
            serde_json::from_str::<Value>(&std::fs::read_to_string(json).expect("a record"))
                .expect("JSON")
        };
        let starved = script("(echo a; sleep 0.7; echo a)", "cat >/dev/null");
        assert_eq!(bottleneck(&starved).0, "input", "{starved}");
        let blocked = script("head -c 400000 /dev/zero", "(sleep 0.7; cat >/dev/null)");
        assert_eq!(bottleneck(&blocked).0, "output", "{blocked}");
    });
}

#[test]
fn barriers_are_found() {
    in_quiet(|| {
        let document = "for i in $(seq 4); do date +%s; sleep 0.15; done | sort \
                        | while read -r t; do echo $t; done";
        let holding = record(&[document]);
        assert_eq!(holding["stages"][1]["holds_output"], true, "{holding}");
        assert!(finding_ids(&holding).contains(&"holds-output".to_owned()));
        let streaming = record(&["for i in 1 2 3 4; do echo x; sleep 0.15; done | cat | cat"]);
        for stage in streaming["stages"].as_array().expect("a list") {
            assert_eq!(stage["holds_output"], false, "{streaming}");
        }
        let large = record(&["seq 400000 | sort | cat >/dev/null"]);
        assert_eq!(large["stages"][1]["holds_output"], true, "{large}");
        assert_eq!(large["stages"][2]["holds_output"], false);
    });
}

#[test]
fn starting_many_programs_is_found() {
    in_quiet(|| {
        let record = record(&["seq 200 | while read -r n; do expr $n + 1; done >/dev/null"]);
        let found = record["findings"].as_array().expect("a list").iter();
        let startup: Vec<_> = found.filter(|finding| finding["id"] == "startup-cost").collect();
        assert_eq!(startup.len(), 1, "{record}");
        assert_eq!(startup[0]["stages"], serde_json::json!([2]));
    });
}

#[test]
fn the_demonstration_names_the_slow_stage() {
    in_quiet(|| {
        let demo = run(Command::new(contend()).args(["demo", "--lines", "150000"]), "");
        assert_eq!(demo.status.code(), Some(0), "{}", text(&demo.stderr));
        let shown = text(&demo.stdout);
        for n in [6, 3] {
            let said = format!("Bottleneck: stage {n}, sed 's/[0-9]//g' (CPU-bound)");
            // With one CPU, or if other programs keep all CPUs busy, the CPUs are the bottleneck.
            let busy = "Bottleneck: the CPUs";
            let one = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
            let is_busy = one || shown.contains("other programs used the rest");
            assert!(shown.contains(&said) || is_busy && shown.contains(busy), "{shown}");
        }
        assert!(shown.contains("What this shows"));
    });
}

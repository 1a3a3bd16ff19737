//! Tests of measurements and findings on pipelines with known properties.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{
    Command, contend, finding_ids, has, number, output, pipe, record, skip, text,
};

#[test]
fn the_record_has_its_fixed_fields_and_follows_its_schema() {
    let record = record(&["seq 200000 | sort -n | tail -n 1"]);
    let schema = include_str!("../../../../schemas/contend.pipe-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = validator.iter_errors(&record).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");

    let top = "schema command exit_code wall_seconds stages boundaries total bottleneck findings \
               host warnings";
    for field in top.split_whitespace() {
        assert!(record.get(field).is_some(), "{field}");
    }
    assert_eq!(record["schema"], "contend.pipe/1");
    let fields = "index command exit_code wall_seconds user_seconds system_seconds cpu_percent \
                  on_cpu_seconds run_queue_seconds starved_seconds blocked_seconds service_seconds \
                  other_wait_seconds unexplained_seconds bytes_in bytes_out reads writes \
                  voluntary_switches involuntary_switches max_rss_bytes first_output_seconds \
                  holds_output";
    for stage in record["stages"].as_array().expect("a list") {
        for field in fields.split_whitespace() {
            assert!(stage.get(field).is_some(), "{field}");
        }
    }
    for field in ["kind", "stage", "limit", "evidence"] {
        assert!(record["bottleneck"].get(field).is_some(), "{field}");
    }
}

#[test]
fn state_times_add_up_to_the_wall_time() {
    let record = record(&["seq 300000 | sed 's/1/2/' | sort | uniq -c | tail -n 1"]);
    for stage in record["stages"].as_array().expect("a list") {
        let parts = ["on_cpu", "run_queue", "starved", "blocked", "other_wait", "unexplained"];
        let sum: f64 = parts.iter().map(|part| number(&stage[format!("{part}_seconds")])).sum();
        let wall = number(&stage["wall_seconds"]);
        assert!((sum - wall).abs() < 1e-6 * wall.max(1.0), "{sum} of {wall}: {stage}");
        // Service time is part of the lifetime: running, or waiting for neither a pipe nor a CPU.
        let service = number(&stage["service_seconds"]);
        let at_work = number(&stage["on_cpu_seconds"]) + number(&stage["other_wait_seconds"]);
        assert!(service <= wall + 1e-9, "{service} of {wall}: {stage}");
        assert!(service <= at_work + 1e-9, "{service} of {at_work}: {stage}");
        // Job control does not stop the stages of this test.
        assert!(service > at_work - 1e-9, "{service} of {at_work}: {stage}");
    }
}

#[test]
fn bytes_are_exact_for_stages_of_a_millisecond() {
    for _ in 0..10 {
        let record = record(&["printf '%s' 12345 | cat | tr 1 2"]);
        let stages = record["stages"].as_array().expect("a list");
        assert_eq!(stages[0]["bytes_out"], 5);
        assert_eq!(stages[1]["bytes_in"], 5);
        assert_eq!(stages[1]["bytes_out"], 5);
        assert_eq!(stages[2]["bytes_out"], 5);
    }
    let record = record(&["seq 200000 | sed 's/$/x/' | wc -c"]);
    let stages = record["stages"].as_array().expect("a list");
    assert_eq!(stages[0]["bytes_out"], 1_288_895);
    assert_eq!(stages[1]["bytes_in"], 1_288_895);
    assert_eq!(stages[1]["bytes_out"], 1_488_895);
    assert_eq!(record["boundaries"][1]["bytes"], 1_488_895);
}

#[test]
fn cpu_time_agrees_with_the_kernel() {
    if !has("bash") {
        return skip("cpu_time_agrees_with_the_kernel", "there is no bash");
    }
    // The shell reports the CPU time of contend and of the processes that contend waited for.
    let script = "TIMEFORMAT='%U %S'; time \"$0\" pipe --no-advice --output /dev/null --json - \
                  --discard 'seq 1500000 | sort -n >/dev/null'";
    let output = output(Command::new("bash").args(["-c", script, contend()]));
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let total = &record["total"];
    let cpu = number(&total["user_seconds"]) + number(&total["system_seconds"]);
    let said = text(&output.stderr);
    let said: f64 = said.split_whitespace().map(|word| word.parse::<f64>().expect("a time")).sum();
    // The shell rounds to milliseconds. The remainder is the CPU time of contend and its shell.
    assert!(cpu <= said + 0.01 && cpu > 0.5 * said, "{cpu} s of {said} s");
}

#[test]
fn a_reader_of_single_bytes_is_found() {
    let record = record(&["seq 20000 | while read -r n; do :; done"]);
    assert!(finding_ids(&record).contains(&"tiny-reads".to_owned()), "{record}");
}

#[test]
fn spliced_bytes_are_reported_as_unknown() {
    if !has("pv") {
        return skip("spliced_bytes_are_reported_as_unknown", "there is no pv");
    }
    let record = record(&["head -c 30000000 /dev/zero | pv -q | wc -c"]);
    assert!(finding_ids(&record).contains(&"bytes-unseen".to_owned()), "{record}");
}

#[test]
fn memory_of_a_stage_excludes_other_processes() {
    let record = record(&["echo x | cat | sort -S 64M --parallel=1 | cat"]);
    let memory = |index: usize| number(&record["stages"][index]["max_rss_bytes"]);
    assert!(memory(1) < 3.5e6, "a cat needs no more than its libraries: {}", memory(1));
    let sorted = crate::support::record(&["seq 1000000 | sort -S 64M --parallel=1 >/dev/null"]);
    assert!(number(&sorted["stages"][1]["max_rss_bytes"]) > 30e6);
}

#[test]
fn several_runs_give_medians_with_intervals() {
    let record = record(&["--runs", "5", "seq 100000 | sort >/dev/null"]);
    let runs = &record["runs"];
    assert_eq!(runs["count"], 5);
    let wall = &runs["wall_seconds"];
    assert_eq!(wall["samples"].as_array().map(Vec::len), Some(5));
    let (low, median, high) =
        (number(&wall["ci95"][0]), number(&wall["median"]), number(&wall["ci95"][1]));
    assert!(low <= median && median <= high);
    assert!((number(&record["wall_seconds"]) - median).abs() < 1e-9);
}

#[test]
fn observation_stays_off_the_data_path() {
    let mut command =
        pipe(&["--discard", "--json", "-", "head -c 200000000 /dev/zero | cat | cat"]);
    let output = command.stdin(Stdio::null()).output().expect("starts");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(record["boundaries"][0]["bytes"], 200_000_000);
    let own_cpu = number(&record["observation"]["own_cpu_seconds"]);
    let total = &record["total"];
    let cpu = number(&total["user_seconds"]) + number(&total["system_seconds"]);
    // Copying the data would cost as much as a stage.
    assert!(own_cpu < 0.25 * cpu, "{own_cpu} s of {cpu} s");
    // Most of the memory is that of the debug build itself; the data is 200 MB.
    assert!(number(&record["observation"]["own_max_rss_bytes"]) < 30e6);
}

#[test]
fn processes_that_a_stage_leaves_running_belong_to_it() {
    // Three concurrent busy loops, for which the shell does not wait.
    let work = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo done";
    let record = record(&[&format!("for n in 1 2 3; do {{ {work}; }} & done | cat")]);
    let [left, reader] = [&record["stages"][0], &record["stages"][1]];
    assert!(number(&left["user_seconds"]) > 10.0 * number(&reader["user_seconds"]), "{record}");
    assert!(number(&left["wall_seconds"]) > 0.8 * number(&record["wall_seconds"]), "{record}");
    assert_eq!(record["stages"][0]["bytes_out"], 15);
    // The stage starts a process substitution without waiting for it.
    let longer = work.replace("60000", "300000");
    let record = self::record(&[&format!("cat <({longer}) | cat")]);
    assert!(number(&record["stages"][0]["user_seconds"]) > 0.01, "{record}");
}

#[test]
fn temporary_files_of_a_last_sort_are_not_output() {
    let record = record(&["seq 1000000 | sort -S 8M >/dev/null"]);
    let sort = &record["stages"][1];
    let written = number(&sort["bytes_out"]);
    assert!((6_888_896.0..7_500_000.0).contains(&written), "{written}: {sort}");
    assert_eq!(sort["holds_output"], true);
    assert!(number(&sort["first_output_seconds"]) > 0.5 * number(&sort["wall_seconds"]));
}

#[test]
fn a_file_that_a_shell_reads_again_counts_once() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "a line\n".repeat(60_000)).expect("room");
    let record = record(&[&format!("while read -r l; do :; done <{}", file.path().display())]);
    let stage = &record["stages"][0];
    assert!(number(&stage["bytes_in"]) < 420_000.0 + 70_000.0, "{stage}");
    assert!(stage["approximate"].as_array().expect("a list").contains(&"bytes_in".into()));
}

#[test]
fn a_stage_that_starts_late_is_not_a_barrier() {
    let record = record(&["yes | head -c 20000000 | (sleep 0.3; cat >/dev/null)"]);
    assert_eq!(record["stages"][2]["holds_output"], false, "{record}");
}

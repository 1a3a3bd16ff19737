//! Tests of `contend doctor --try`: which remedies it tries, and what it says about them.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use contend_sys::procfs::with_descendants;
use contend_sys::{Pid, Signal, cpu};
use rustix::process::{kill_process, test_kill_process};
use serde_json::Value;

use crate::support::{Command, contend, has, run, skip, text, wait_until};

/// Returns `contend doctor` with the arguments, whose JSON goes to standard output.
fn doctor(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.arg("doctor").args(["--json", "-"]).args(arguments).stdin(Stdio::null());
    command.env_remove("OMP_NUM_THREADS");
    command
}

/// Returns the record in the output of a command that prints nothing itself.
fn record_in(output: &Output) -> Value {
    let json = text(&output.stdout);
    let record: Value = serde_json::from_str(&json)
        .unwrap_or_else(|_| panic!("{json}{}", String::from_utf8_lossy(&output.stderr)));
    let schema = include_str!("../../../../schemas/contend.doctor-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validate(&schema, &record).expect("the record follows its schema");
    record
}

/// Runs `contend doctor` with the arguments, and returns the record and the report.
fn tried(arguments: &[&str]) -> (Value, String) {
    let output = doctor(arguments).output().expect("contend starts");
    (record_in(&output), text(&output.stderr))
}

fn remedies(record: &Value) -> &[Value] {
    record["trials"]["remedies"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the remedy with this change.
fn of_change<'a>(record: &'a Value, change: &str) -> &'a Value {
    let found = remedies(record).iter().find(|remedy| remedy["change"] == change);
    found.unwrap_or_else(|| panic!("no {change}: {record:#}"))
}

fn warning_ids(record: &Value) -> Vec<&str> {
    let warnings = record["warnings"].as_array().expect("a list");
    warnings.iter().filter_map(|warning| warning["id"].as_str()).collect()
}

/// Returns whether there are several CPUs, and reports that a test was skipped if not: most remedies
/// change nothing on a single one.
fn has_cpus(test: &str) -> bool {
    let has_several = cpu::allowed() > 1;
    if !has_several {
        skip(test, "there is one CPU");
    }
    has_several
}

/// A script that takes less time the smaller `OMP_NUM_THREADS` is.
const SLEEPS: &str = "sleep 0.${OMP_NUM_THREADS:-4}";

#[test]
fn the_faster_remedy_is_recommended_with_its_command() {
    if !has_cpus("the_faster_remedy_is_recommended_with_its_command") {
        return;
    }
    let (record, report) =
        tried(&["--try=openmp-threads", "--runs", "12", "--", "sh", "-c", SLEEPS]);
    let best = &remedies(&record)[0];
    assert_eq!(record["trials"]["winner"], 0, "{record:#}");
    assert_eq!((&best["remedy"], &best["verdict"]), (&"openmp-threads".into(), &"faster".into()));
    assert_eq!(best["change"], "OMP_NUM_THREADS=1");
    assert_eq!(best["command"], "OMP_NUM_THREADS=1 sh -c 'sleep 0.${OMP_NUM_THREADS:-4}'");
    assert_eq!(best["output_equal"], true);
    assert_eq!(best["wall_ratio"]["samples"].as_array().map(Vec::len), Some(12));
    assert_eq!(record["trials"]["rounds"], 12);
    assert_eq!(record["exit_code"], 0);
    assert!(report.contains("Use this instead: "), "{report}");
    assert!(report.contains("  OMP_NUM_THREADS=1 sh -c "), "{report}");
}

#[test]
fn another_output_or_exit_code_is_never_recommended() {
    if !has_cpus("another_output_or_exit_code_is_never_recommended") {
        return;
    }
    let arguments = ["--try=openmp-threads", "--runs", "2", "--", "sh", "-c"];
    let script = "exit $((4 - ${OMP_NUM_THREADS:-4}))";
    let (record, report) = tried(&[&arguments[..], &[script]].concat());
    let wrong = of_change(&record, "OMP_NUM_THREADS=1");
    assert_eq!((&wrong["verdict"], &wrong["output_equal"]), (&"wrong".into(), &false.into()));
    assert_eq!(wrong["difference"], "status 3 instead of 0, with the same output");
    assert!(record["trials"]["winner"].is_null(), "{record:#}");
    assert!(report.contains("WRONG OUTPUT"), "{report}");

    let output = Command::new(contend())
        .args(["doctor", "--try=openmp-threads", "--runs", "2", "--", "sh", "-c"])
        .arg(format!("echo ${{OMP_NUM_THREADS:-4}}; {SLEEPS}"))
        .env_remove("OMP_NUM_THREADS")
        .stdin(Stdio::null())
        .output()
        .expect("contend starts");
    assert_eq!(text(&output.stdout), "4\n", "the output of the first run, once");
    let report = text(&output.stderr);
    assert!(report.contains("OMP_NUM_THREADS=1: line 1, byte 1: `1` instead of `4`"), "{report}");
}

#[test]
fn only_exit_codes_are_compared_if_the_output_differs_from_run_to_run() {
    if !has_cpus("only_exit_codes_are_compared_if_the_output_differs_from_run_to_run") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let json = json.to_str().expect("UTF-8");
    let script = format!("echo $$; {SLEEPS}");
    let output = Command::new(contend())
        .args(["doctor", "--json", json, "--try=openmp-threads", "--runs", "12", "--", "sh", "-c"])
        .arg(script)
        .env_remove("OMP_NUM_THREADS")
        .stdin(Stdio::null())
        .output()
        .expect("contend starts");
    let report = text(&output.stderr);
    let record: Value =
        serde_json::from_str(&fs::read_to_string(json).expect("a record")).expect("JSON");
    assert_eq!(record["trials"]["output_compared"], false, "{report}");
    let best = of_change(&record, "OMP_NUM_THREADS=1");
    assert_eq!((&best["verdict"], &best["output_equal"]), (&"faster".into(), &Value::Null));
    assert!(report.contains("only exit codes were compared"), "{report}");
}

#[test]
fn an_affinity_is_in_force_when_the_program_starts() {
    if !has_cpus("an_affinity_is_in_force_when_the_program_starts") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let script = format!("grep Cpus_allowed_list /proc/self/status >>{}", log.display());
    let (record, _) = tried(&["--try=one-cpu", "--runs", "1", "--", "sh", "-c", &script]);
    let last = cpu::allowed_list().pop().expect("a CPU");
    let remedy = of_change(&record, &format!("taskset -c {last}"));
    assert_eq!(remedy["output_equal"], true, "{record:#}");
    let log = fs::read_to_string(log).expect("runs");
    let lists: Vec<&str> = log.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(lists.len(), 5, "observed, twice unchanged, and a round of two: {log}");
    let pinned = lists.iter().filter(|list| **list == last.to_string()).count();
    assert_eq!(pinned, 1, "{log}");
}

#[test]
fn every_run_reads_the_same_input() {
    if !has_cpus("every_run_reads_the_same_input") {
        return;
    }
    let script = "cat >&2; exit 0";
    let mut command = doctor(&["--try=openmp-threads", "--runs", "1", "--", "sh", "-c", script]);
    let output = run(&mut command, "line\n");
    let record = record_in(&output);
    let input = &record["trials"]["input"];
    assert_eq!((&input["kind"], &input["complete"]), (&"beginning".into(), &true.into()));
    assert!(text(&output.stderr).starts_with("line\n"), "the first run reads it, too");

    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let script = format!("cat >>{}; echo END >>{}", log.display(), log.display());
    let mut command = doctor(&["--try=openmp-threads", "--runs", "1", "--", "sh", "-c", &script]);
    let record = record_in(&run(&mut command, "line\n"));
    // The observed run, two of the unchanged command, and a round.
    let runs = 4 + remedies(&record).len();
    assert_eq!(fs::read_to_string(log).expect("runs"), "line\nEND\n".repeat(runs));
}

#[test]
fn jobs_of_the_command_itself_are_changed() {
    if !has_cpus("jobs_of_the_command_itself_are_changed") || !has("xargs") {
        return;
    }
    let cpus = cpu::allowed();
    let mut command = doctor(&["--try=xargs-jobs", "--runs", "12", "--", "xargs", "-n1", "sleep"]);
    let record = record_in(&run(&mut command, &"0.05\n".repeat(4 * cpus)));
    let option = format!("-P{cpus}");
    let best = of_change(&record, &option);
    assert_eq!(best["verdict"], "faster", "{record:#}");
    assert_eq!(best["command"], format!("xargs {option} -n1 sleep"));
}

#[test]
fn a_finding_without_a_remedy_needs_a_change_of_code() {
    let script = "for i in {1..400}; do /bin/true; done";
    let (record, report) = tried(&["--try", "--", "bash", "-c", script]);
    assert_eq!(remedies(&record), &[] as &[Value], "{record:#}");
    assert_eq!(record["trials"]["rounds"], 0);
    assert!(report.contains("no remedy without a change of code applies"), "{report}");
    let findings = record["findings"].as_array().expect("a list");
    if findings.iter().any(|finding| finding["symptom"] == "fork-storm") {
        let needed = "Short-lived processes or threads needs a change of code (estimated gain";
        assert!(report.contains(needed), "{report}");
        assert!(findings[0]["command"].is_null());
    }
}

/// Compiles a C program that two threads of OpenMP keep busy. Returns whether that was possible.
fn compile(folder: &Path) -> bool {
    let source = "\
#include <time.h>
int main(void) {
    #pragma omp parallel num_threads(2)
    {
        struct timespec begun, now;
        clock_gettime(CLOCK_MONOTONIC, &begun);
        do clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begun.tv_sec) * 1e9 + now.tv_nsec - begun.tv_nsec < 2e9);
    }
}
";
    fs::write(folder.join("busy.c"), source).expect("room");
    let compiled = |option: &str, name: &str| {
        let arguments = [option, "-o", name, "busy.c"];
        let output = Command::new("cc").args(arguments).current_dir(folder).output();
        output.is_ok_and(|output| output.status.success())
    };
    has("cc") && compiled("-fopenmp", "with") && compiled("-O1", "without")
}

#[test]
fn variables_of_openmp_are_tried_only_if_its_library_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    if !compile(folder.path()) {
        skip("variables_of_openmp_are_tried_only_if_its_library_is_loaded", "no cc with OpenMP");
        return;
    }
    let remedies_of = |name: &str| {
        let program = folder.path().join(name);
        let program = program.to_str().expect("UTF-8");
        let (record, _) = tried(&["--try=all", "--runs", "1", "--", program]);
        let names = remedies(&record).iter().map(|remedy| remedy["remedy"].to_string());
        (names.collect::<Vec<_>>(), record["processes"][0]["libraries"].to_string())
    };
    let (remedies, libraries) = remedies_of("with");
    assert!(remedies.iter().any(|name| name == "\"openmp-wait-policy\""), "{remedies:?}");
    assert!(libraries.contains("openmp"), "{libraries}");
    let (remedies, libraries) = remedies_of("without");
    assert!(!remedies.iter().any(|name| name.contains("openmp")), "{remedies:?}");
    assert!(!libraries.contains("openmp"), "{libraries}");
}

#[test]
fn the_exit_status_is_that_of_the_first_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made");
    let made = made.to_str().expect("UTF-8");
    let script = format!("if test -e {made}; then exit 3; fi; touch {made}; exit 7");
    let arguments = ["--try=openmp-wait-policy", "--runs", "1"];
    let command = ["--", "sh", "-c", &script];
    let output = doctor(&[&arguments[..], &command].concat()).output().expect("contend starts");
    assert_eq!(output.status.code(), Some(7));
    let record = record_in(&output);
    let warnings = warning_ids(&record);
    assert!(warnings.contains(&"failed-stage") && warnings.contains(&"runs-differ"), "{record:#}");
    let report = text(&output.stderr);
    assert!(report.contains("status 3 in the trial, and with 7 in its first run"), "{report}");

    let prepare = format!("rm -f {made}");
    let prepared = [&arguments[..], &["--prepare", &prepare], &command].concat();
    fs::remove_file(made).expect("it was made");
    let output = doctor(&prepared).output().expect("contend starts");
    assert_eq!(output.status.code(), Some(7));
    assert!(!warning_ids(&record_in(&output)).contains(&"runs-differ"));

    let failing = [&arguments[..], &["--prepare", "exit 5", "--", "true"]].concat();
    let output = doctor(&failing).output().expect("contend starts");
    assert_eq!(output.status.code(), Some(125));
    let report = text(&output.stderr);
    assert!(report.contains("Diagnosis: "), "{report}");
    assert!(report.contains("--try failed: cannot prepare a run: --prepare ended with status 5"));
}

#[test]
fn the_guide_lists_every_remedy() {
    let guide = include_str!("../../../../docs/guides/doctor.md");
    let names = contend_doctor::remedy::TABLE.iter().map(|row| row.name);
    let missing: Vec<&str> =
        names.filter(|name| !guide.contains(&format!("\n| `{name}` | "))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_command_that_does_not_exist_is_not_tried() {
    let output = doctor(&["--try", "--", "no-such-command"]).output().expect("contend starts");
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("cannot execute no-such-command"));
}

#[test]
fn mistakes_are_refused() {
    let own = std::process::id().to_string();
    let mistakes: [(&[&str], &str); 6] = [
        (&["--try", &own], "give its command, as in `contend doctor --try -- "),
        (&["--try=no-such", "--", "true"], "invalid value 'no-such' for '--try"),
        (&["--try=all,one-cpu", "--", "true"], "'all' and 'findings' stand alone"),
        (&["--runs", "3", "--", "true"], "--try"),
        (&["--try", "--runs", "3", "--budget", "3", "--", "true"], "cannot be used with"),
        (&["--try", "--runs", "0", "--", "true"], "whole number"),
    ];
    for (arguments, expected) in mistakes {
        let output = doctor(arguments).output().expect("contend starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let report = text(&output.stderr);
        assert!(report.contains(expected), "{arguments:?}: {report}");
    }
}

#[test]
fn a_signal_ends_the_trial_with_a_report_and_leaves_no_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made");
    let made = made.to_str().expect("UTF-8");
    // The first run ends; the later ones do not.
    let script = format!("if test -e {made}; then sleep 1000 | sleep 1000; fi; touch {made}");
    let mut command = doctor(&["--try=openmp-wait-policy", "--", "sh", "-c", &script]);
    let tester = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("contend");
    let pid = Pid::from_child(&tester);
    let mut started = Vec::new();
    wait_until("a run of the trial sleeps", || {
        started = with_descendants(pid);
        let is_sleep = |pid: &Pid| {
            let path = format!("/proc/{}/comm", pid.as_raw_nonzero());
            fs::read_to_string(path).is_ok_and(|name| name == "sleep\n")
        };
        started.iter().filter(|pid| is_sleep(pid)).count() == 2
    });
    kill_process(pid, Signal::INT).expect("alive");
    let output = tester.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), None, "it ends by the signal");
    let record = record_in(&output);
    assert_eq!(record["trials"]["interrupted"], true);
    let report = text(&output.stderr);
    assert!(report.contains("interrupted before the first round was complete"), "{report}");
    let left: Vec<&Pid> = started.iter().filter(|pid| test_kill_process(**pid).is_ok()).collect();
    assert!(left.is_empty(), "{left:?}");
}

//! Tests of hand-offs, saturation and placement with the real executable.

use std::process::Stdio;

use serde_json::Value;

use crate::lab::in_cgroup;
use crate::support::{Command, cases, contend, has, lab, lab_record, metric, output, skip, text};

#[test]
fn parameters_that_are_set_take_effect() {
    let record = lab_record(&[
        "handoff/2",
        "--smallest",
        "--set",
        "to_main=eventfd,pipe",
        "--set",
        "placement=same-cpu",
        "--turns",
        "7",
    ]);
    let cases = cases(&record);
    assert_eq!(cases.len(), 2, "{cases:?}");
    for (case, mechanism) in cases.iter().zip(["eventfd", "pipe"]) {
        assert_eq!(case["parameters"]["to_main"], mechanism, "{case}");
        assert_eq!(case["parameters"]["placement"], "same-cpu", "{case}");
        assert_eq!(case["facts"]["to_main"], mechanism, "{case}");
        assert_eq!(case["facts"]["to_sub"], "semaphore", "{case}");
        assert_eq!(
            (&case["facts"]["turns"], &case["facts"]["scaled_to_turns"]),
            (&7.into(), &10_000.into())
        );
    }
}

#[test]
fn parameters_that_cannot_be_set_are_reported() {
    let told: [(&[&str], &str); 9] = [
        (&["run", "handoff/2", "--set", "x=1"], "--set: unknown parameter 'x'; parameters: end, "),
        (&["run", "engine/empty", "--set", "x=1"], "; engine/empty has no parameters"),
        (
            &["run", "handoff/2", "--set", "placement=moon"],
            "invalid --set placement=moon: expected one of free, same-cpu, ",
        ),
        (
            &["run", "handoff/2", "--set", "slack_ns=0"],
            "invalid --set slack_ns=0: expected a number from 1 to 1000000000",
        ),
        (&["run", "handoff/2", "--set", "slack_ns"], "expected NAME=VALUE"),
        (
            &["run", "units/create", "--turns", "5"],
            "--turns: units/create has no turns; it applies",
        ),
        (
            &["run", "handoff/1", "--set", "to_main=event", "--set", "to_sub=none"],
            "invalid parameters of handoff/1: to_sub=none and to_main=event cannot be combined: 'none' does \
             not wait, and 'event' does not count posts; to_main can be semaphore, ",
        ),
        (
            &["run", "handoff/2", "--set", "start=none", "--set", "to_sub=signal"],
            "to_sub=signal needs a start that waits",
        ),
        (
            &["run", "handoff/2", "--turns", "100000000"],
            "100000000 turns would take more than 200 s; use --set turns=5000000 or fewer",
        ),
    ];
    for (arguments, message) in told {
        let output = output(&mut lab(arguments));
        let error = text(&output.stderr);
        assert!(error.contains(message), "{arguments:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn incompatible_mechanisms_are_reported() {
    let record = lab_record(&["handoff/2", "handoff/4", "--smallest", "--set", "to_main=none"]);
    let [semaphore, event] = cases(&record).as_slice() else { panic!("two cases") };
    assert!(semaphore["skipped"].is_null(), "a semaphore counts: {semaphore}");
    let reason = event["skipped"].as_str().expect("an event does not");
    assert!(reason.contains("to_main=none and to_sub=event cannot be combined"), "{reason}");
}

#[test]
fn a_sleeping_partner_takes_at_least_its_ticks() {
    let record = lab_record(&["handoff/0", "--smallest", "--set", "tick_us=2000", "--turns", "10"]);
    let [case] = cases(&record).as_slice() else { panic!("one case") };
    let not_ready = metric(case, "not_ready") / 100.0;
    let turn = case["median"].as_f64().expect("a figure") / 10_000.0;
    // A sleep may start in the middle of a tick, so the first sleep may be shorter.
    assert!(turn >= 0.8 * not_ready * 2e6, "{case}");
}

#[test]
fn the_suite_fits_a_narrow_terminal_and_states_conclusions() {
    let mut command = lab(&["suite", "synchronisation", "--smallest", "--no-store"]);
    let output = output(command.env("COLUMNS", "60"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    let wide: Vec<_> = report.lines().filter(|line| line.chars().count() > 76).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(report.contains("Which conclusions hold here"), "{report}");
    for letter in ["\nA. ", "\nB. ", "\nC. "] {
        assert!(report.contains(letter), "{report}");
    }
}

#[test]
fn the_suite_uses_the_options_of_the_command_line() {
    let plan = |arguments: &[&str]| {
        let all = [&["suite", "synchronisation", "--dry-run"], arguments].concat();
        text(&output(&mut lab(&all)).stdout)
    };
    let usual = plan(&[]);
    assert!(usual.contains("tick_us=15625") && !usual.contains("tick_us=10000"), "{usual}");
    assert!(!usual.contains("partners=thread"), "{usual}");
    let other = plan(&["--only", "tick_us=10000", "--set", "partners=thread"]);
    assert!(other.contains("tick_us=10000") && !other.contains("tick_us=15625"), "{other}");
    assert!(other.contains("partners=thread") && !other.contains("partners=process"), "{other}");
}

#[test]
fn cases_that_need_two_cpus_are_skipped_on_one() {
    if !has("taskset") {
        return skip("cases_that_need_two_cpus_are_skipped_on_one", "there is no taskset");
    }
    let mut command = Command::new("taskset");
    command.args(["-c", "0", contend(), "lab", "run", "placement/cpus", "saturation/compute"]);
    command.args(["handoff/mechanisms", "--quick", "--no-store"]);
    let output = output(command.stdin(Stdio::null()));
    let report = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(report.contains("Only one CPU is available"), "{report}");
    assert!(report.contains("needs two CPUs, and only one may be used"), "{report}");
    assert!(!report.contains("Amdahl"), "one CPU does not tell how work scales: {report}");
}

#[test]
fn scaling_fits_are_in_the_record() {
    let record = lab_record(&["saturation/compute", "--smallest"]);
    let cpus = record["host"]["cpus_allowed"].as_u64().expect("a number");
    for case in cases(&record) {
        let workers = |name: &str| case["parameters"][name].as_u64().expect("a number");
        let count = workers("processes") * workers("threads");
        let load = metric(case, "load");
        let most = 100.0 * count.min(cpus) as f64 / cpus as f64;
        assert!(load <= 1.05 * most, "so many workers cannot use more CPUs: {case}");
    }
    let laws: Vec<&Value> = record["scaling"].as_array().map_or(vec![], |all| all.iter().collect());
    let amdahl = laws.iter().filter(|fit| fit["law"]["law"] == "amdahl").count();
    assert_eq!(amdahl, if cpus > 1 { 2 } else { 0 }, "of threads, and of processes: {laws:?}");
}

#[test]
#[ignore = "needs the right to make control groups; .ci/run runs it where there is that right"]
fn a_quota_is_respected_and_shown() {
    let arguments = "saturation/compute --quick --set threads=2 --set work=50";
    let (output, record) =
        in_cgroup("cpu", &["cpu.cfs_quota_us=50000", "cpu.max=50000 100000"], arguments);
    assert!(output.contains("The cgroup's quota allows 0.50 of "), "{output}");
    for case in cases(&record) {
        assert!(metric(case, "throttled") > 0.0, "{case}");
        assert!(case["facts"]["cpu_quota"] == "0.50 CPUs", "{case}");
    }
}

//! Tests of `contend lab` with the real executable.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control_group::ControlGroup;
use crate::support::{
    Command, PublicFolder, as_unused_user, by_effort, cases, contend, has, lab, lab_record, metric,
    output, skip, text, unused_user,
};

#[test]
fn a_list_can_be_limited_to_some_experiments() {
    let list = text(&output(&mut lab(&["list", "server/*", "units/create"])).stdout);
    assert!(list.contains("  server/hello ") && list.contains("  units/create "), "{list}");
    assert!(!list.contains("  handoff/0 ") && !list.contains("Suites"), "{list}");
    let unknown = output(&mut lab(&["list", "servr/hello"]));
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean 'server/hello'?"), "{unknown:?}");
}

/// Tests that every documented experiment is listed, and that each of its cases, in the smallest
/// form, has the documented unit, and is measured or skipped with a known reason.
#[test]
fn every_experiment_follows_schema_and_documentation() {
    let list = text(&output(&mut lab(&["list"])).stdout);
    let docs = documentation();
    let names: Vec<&str> = docs.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut names: Vec<&str> = names.into_iter().filter(|name| name.contains('/')).collect();
    assert!(names.len() >= 9, "{names:?}");
    // `lab_runtimes` measures these experiments, which take as long as all others together.
    names.retain(|name| !["runtime/memory", "runtime/round-trip"].contains(name));
    let limits = ["--smallest", "--budget", by_effort("30", "120"), "--step-seconds", "0"];
    let record = lab_record(&[names.as_slice(), &limits].concat());
    check_schema(&record);
    for name in names {
        assert!(list.contains(&format!("  {name} ")), "{name} is not in the list");
        let of_name: Vec<_> =
            cases(&record).iter().filter(|case| case["experiment"] == name).collect();
        assert!(!of_name.is_empty(), "{name} was not run");
        for case in of_name {
            check_case(case, &docs);
            let reason = case["skipped"].as_str();
            let known = [
                "not installed",
                "needs",
                "limits",
                "no tiny program",
                "allows",
                "huge pages",
                "must fit",
                "disabled",
                "refused",
                "came with Java",
                "without a module",
                "keeps no idle connections",
                "closes each connection",
            ];
            let fit = reason.is_none_or(|reason| known.iter().any(|known| reason.contains(known)));
            assert!(fit, "{case}");
        }
    }
}

/// Returns the documentation of all experiments.
pub fn documentation() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/experiments.md");
    std::fs::read_to_string(page).expect("the page is there")
}

/// Checks that a case has all fields and a documented unit, and is either measured or skipped.
pub fn check_case(case: &Value, docs: &str) {
    let required =
        ["experiment", "parameters", "unit", "samples", "median", "ci95", "min", "max", "warnings"];
    assert!(required.iter().all(|field| case.get(field).is_some()), "{case}");
    let unit = case["unit"].as_str().expect("a unit");
    assert!(docs.contains(&format!("- unit: {unit}\n")), "{case}");
    let measured = !case["samples"].as_array().expect("a list").is_empty();
    assert!(measured == case["skipped"].is_null(), "{case}");
}

/// Checks that a record follows its schema.
pub fn check_schema(record: &Value) {
    let schema = include_str!("../../../../schemas/contend.lab-1.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validate(&schema, record).expect("the record follows its schema");
}

#[test]
fn a_forked_child_has_a_copy_and_a_thread_does_not() {
    let record = lab_record(&["sharing/*", "--step-seconds", "0"]);
    let [process, thread] = cases(&record).as_slice() else { panic!("{record}") };
    assert_eq!(process["median"], 4096.0, "one page was copied: {process}");
    assert!(metric(process, "page_faults") >= 1.0);
    let facts = |case: &Value, names: [&str; 4]| names.map(|name| case["facts"][name].as_i64());
    let seen = ["child_inherited", "child_wrote", "parent_still_saw", "parent_wrote"];
    assert_eq!(facts(process, seen), [Some(1), Some(2), Some(1), Some(2)]);
    let seen = ["thread_saw", "thread_wrote", "main_then_saw", "main_wrote"];
    assert_eq!(facts(thread, seen), [Some(1), Some(2), Some(2), Some(3)]);
    for case in [process, thread] {
        let steps = case["timeline"].as_array().expect("steps");
        assert_eq!(steps.len(), 5);
        assert!(steps.iter().all(|step| step["address"] == steps[0]["address"]));
        assert_eq!(steps[1]["tasks"].as_array().map(Vec::len), Some(2), "both are there: {case}");
    }
    let [parent, child] = [0, 1].map(|i| process["timeline"][1]["tasks"][i].clone());
    assert_eq!(child["ppid"], parent["pid"]);
    let [main, other] = [0, 1].map(|i| thread["timeline"][1]["tasks"][i].clone());
    assert_eq!(other["pid"], main["pid"]);
    assert_ne!(other["tid"], main["tid"]);
}

#[test]
fn a_small_rlimit_is_predicted_and_named() {
    let test = "a_small_rlimit_is_predicted_and_named";
    let user = unused_user(0);
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let Some(mut command) = as_unused_user(test, &program, user, 60) else { return };
    let output = command
        .args(["lab", "run", "units/limit", "--cap", "none", "--yes", "--no-store"])
        .args(["--json", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let record: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    for case in cases(&record) {
        let limit = &case["limit"];
        assert_eq!(limit["stopped_by"]["limit"], "RLIMIT_NPROC", "{case}");
        assert_eq!(limit["limits"][0]["name"], "RLIMIT_NPROC", "{case}");
        assert_eq!(limit["errno"], "EAGAIN");
        assert_eq!(limit["prediction_held"], true, "{case}");
        let created = limit["created"].as_u64().expect("a number");
        assert!((40..60).contains(&created), "{created}");
        assert!(case["limit"]["evidence"].to_string().contains("another unit could be created"));
    }
    assert_eq!(tasks_of(user), 0, "nothing of it is left");
}

/// Starts a run without a terminal, and returns its exit status and messages. The store cannot be
/// created, so that nothing is measured even if contend does not refuse the run.
fn without_a_terminal(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(contend());
    command.arg("lab").args(arguments).args(["--store", "/dev/null/runs.db"]).stdin(Stdio::null());
    let output = output(&mut command);
    (output.status.code(), text(&output.stderr))
}

#[test]
fn the_process_limit_is_exhausted_only_on_request() {
    let refused = |(status, message): &(Option<i32>, String), cap: &str| {
        let start = format!("contend: --cap {cap} exhausts ");
        let end = ", which other programs share: add --yes to run it without a terminal\n";
        *status == Some(2) && message.starts_with(&start) && message.ends_with(end)
    };
    let none: [&[&str]; 4] = [
        &["run", "units/limit", "--cap", "none"],
        &["run", "units/*", "--cap", "none", "--quick"],
        &["run", "units/limit", "--only", "kind=thread", "--cap", "none", "--smallest"],
        &["suite", "process-thread", "--cap", "none"],
    ];
    for arguments in none {
        let outcome = without_a_terminal(arguments);
        assert!(refused(&outcome, "none"), "{arguments:?}: {outcome:?}");
    }
    // This exceeds the number of process ids of any kernel.
    let beyond = ["run", "units/limit", "--cap", "100000000"];
    let outcome = without_a_terminal(&beyond);
    assert!(refused(&outcome, "100000000"), "{outcome:?}");
    // These runs are not refused: they fail only at the store, which is opened next.
    let harmless: [&[&str]; 4] = [
        &["run", "units/limit", "--cap", "1"],
        &["run", "units/limit"],
        &["suite", "process-thread"],
        &["run", "units/create", "--cap", "none"],
    ];
    for arguments in harmless {
        let (code, error) = without_a_terminal(arguments);
        assert_eq!(code, Some(125), "{arguments:?}: {error}");
        assert!(error.contains("cannot open the store"), "{arguments:?}: {error}");
    }
    let planned = ["run", "units/limit", "--cap", "none", "--dry-run"];
    assert_eq!(without_a_terminal(&planned).0, Some(0), "nothing is measured");
}

/// Tests that the default cap is lowered if it would reach a limit of the user.
#[test]
fn the_default_cap_stays_below_a_small_limit() {
    let test = "the_default_cap_stays_below_a_small_limit";
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let Some(mut command) = as_unused_user(test, &program, unused_user(3), 60) else { return };
    let output = command
        .args(["lab", "run", "units/limit", "--no-store", "--json", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let record: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    for case in cases(&record) {
        let cap = case["parameters"]["cap"].as_u64().expect("a number");
        assert!((20..=30).contains(&cap), "{case}");
        assert_eq!(case["limit"]["stopped_by"]["kind"], "cap", "{case}");
        assert_eq!(case["limit"]["created"], cap, "{case}");
    }
}

/// Returns the number of processes with the given real user id.
fn tasks_of(user: u32) -> usize {
    let folders = std::fs::read_dir("/proc").expect("procfs").flatten();
    let owner = |folder: std::fs::DirEntry| {
        let status = std::fs::read_to_string(folder.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.to_owned();
        line.split_whitespace().next()?.parse::<u32>().ok()
    };
    folders.filter_map(owner).filter(|&owner| owner == user).count()
}

/// Runs experiments in a new control group of `controller`, and checks that the group is empty
/// afterwards. Applies the first `FILE=VALUE` in `settings` whose file exists. Returns the report
/// and the record.
pub fn in_cgroup(controller: &str, settings: &[&str], arguments: &str) -> (String, Value) {
    let group = ControlGroup::new(controller, settings);
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let script = format!(
        "{} && exec '{}' lab run {arguments} --no-store --json '{}'",
        group.join(),
        contend(),
        json.display()
    );
    let output = output(Command::new("sh").args(["-c", &script]).stdin(Stdio::null()));
    group.remove();
    let record = std::fs::read_to_string(json).unwrap_or_default();
    let record = serde_json::from_str(&record);
    (text(&output.stdout), record.unwrap_or_else(|e| panic!("{e}: {output:?}")))
}

#[test]
#[ignore = "needs the right to make control groups; .ci/run runs it where there is that right"]
fn the_cgroup_that_limits_units_is_named() {
    let arguments = "units/limit --cap 2000 --yes";
    let (_, record) = in_cgroup("pids", &["pids.max=50"], arguments);
    for case in cases(&record) {
        assert_eq!(case["limit"]["stopped_by"]["limit"], "cgroup pids.max", "{case}");
        assert_eq!(case["limit"]["prediction_held"], true, "{case}");
    }
}

#[test]
#[ignore = "needs the right to make control groups; .ci/run runs it where there is that right"]
fn the_memory_of_a_cgroup_is_predicted() {
    let settings = ["memory.limit_in_bytes=200000000", "memory.max=200000000"];
    let (_, record) = in_cgroup("memory", &settings, "units/limit --cap 2000");
    for case in cases(&record) {
        assert_eq!(case["limit"]["limits"][0]["name"], "memory", "{case}");
        let created = case["limit"]["created"].as_u64().expect("a number");
        assert!(created > 50, "{case}");
        assert!(case["skipped"].is_null(), "{case}");
    }
}

/// Starts a run, waits until it has many processes, sends it a signal, and asserts that no
/// processes of its cases remain. Returns the signal that ended contend, if one did, and the
/// report.
fn interrupt(signal: &str, store: &Path) -> (Option<i32>, String) {
    use std::os::unix::process::ExitStatusExt;
    let child = lab(&["run", "units/memory", "units/create", "--no-progress", "--budget", "30"])
        .arg("--store")
        .arg(store)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    while descendants(child.id()) < 100 && began.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let helpers = groups_of(child.id());
    assert!(!helpers.is_empty(), "it has processes of cases");
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    // If contend is killed, the processes of its cases reap the others.
    let began = Instant::now();
    while helpers.iter().any(|&group| is_group_alive(group))
        && began.elapsed() < Duration::from_secs(40)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!helpers.iter().any(|&group| is_group_alive(group)), "something is left running");
    (output.status.signal(), text(&output.stdout))
}

/// Returns all processes as (pid, parent, group).
fn processes() -> Vec<(u32, u32, u32)> {
    let folders = std::fs::read_dir("/proc").expect("procfs").flatten();
    let read = |folder: std::fs::DirEntry| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(folder.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        Some((pid, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    folders.filter_map(read).collect()
}

pub fn descendants(pid: u32) -> usize {
    let all = processes();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(all.iter().filter(|process| process.1 == parent).map(|process| process.0));
        next += 1;
    }
    found.len() - 1
}

pub fn groups_of(parent: u32) -> Vec<u32> {
    processes().iter().filter(|process| process.1 == parent).map(|process| process.2).collect()
}

pub fn is_group_alive(group: u32) -> bool {
    processes().iter().any(|process| process.2 == group)
}

#[test]
fn an_interrupted_run_is_saved_and_leaves_no_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let (signal, report) = interrupt("-TERM", &store);
    assert_eq!(signal, Some(15));
    assert!(report.contains("interrupted"), "{report}");
    let list = output(Command::new(contend()).arg("history").arg("--store").arg(&store));
    assert!(text(&list.stdout).contains("interrupted"), "{}", text(&list.stdout));
    let mut show = Command::new(contend());
    show.args(["history", "show", "1", "--json", "-", "--store"]).arg(&store);
    let kept: Value = serde_json::from_slice(&output(&mut show).stdout).expect("a record");
    assert_eq!(kept["ending"], "interrupted");
    assert_eq!(kept["schema"], "contend.lab/1");
}

#[test]
fn a_killed_lab_run_leaves_no_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let (signal, _) = interrupt("-KILL", &store);
    assert_eq!(signal, Some(9));
    let list = output(Command::new(contend()).arg("history").arg("--store").arg(&store));
    assert!(text(&list.stdout).contains("unfinished"), "{}", text(&list.stdout));
}

#[test]
fn cases_that_one_cpu_cannot_measure_are_reported() {
    if !has("taskset") {
        return skip("cases_that_one_cpu_cannot_measure_are_reported", "there is no taskset");
    }
    let mut command = Command::new("taskset");
    command.args(["-c", "0", contend(), "lab", "run", "engine/*", "--quick", "--no-store"]);
    let output = output(command.stdin(Stdio::null()));
    let report = text(&output.stdout);
    assert!(report.contains("needs two CPUs, and only one may be used"), "{report}");
    assert!(output.status.success());
}

#[test]
fn a_dry_run_prints_the_plan() {
    let plan = |options: &[&str]| {
        let arguments = [&["run", "units/startup", "--dry-run"], options].concat();
        text(&output(&mut lab(&arguments)).stdout)
    };
    let seeded = plan(&["--seed", "5"]);
    assert!(seeded.contains("seed 5:\n"), "{seeded}");
    assert!(seeded.contains("units/startup command=fork:"), "{seeded}");
    let unseeded = plan(&[]);
    assert!(!unseeded.contains("seed"), "a later run has another seed: {unseeded}");
}

#[test]
fn invalid_arguments_are_reported_with_a_remedy() {
    let told = |arguments: &[&str]| {
        let output = output(&mut lab(arguments));
        (output.status.code(), text(&output.stderr))
    };
    let budgets =
        ["-1", "0", "-0", "0.0001", "1e-300", "NaN", "inf", "-inf", "1e400", "86401", "", "x"];
    for budget in budgets {
        for arguments in [["run", "engine/empty"], ["suite", "pipeline"]] {
            let (code, error) = told(&[&arguments[..], &[&format!("--budget={budget}")]].concat());
            assert_eq!(code, Some(2), "{arguments:?} {budget}: {error}");
            assert!(error.contains("seconds from 0.001 to 86400"), "{budget}: {error}");
        }
        let mut pipe = Command::new(contend());
        pipe.args(["pipe", "--try", &format!("--budget={budget}"), "true"]).stdin(Stdio::null());
        assert_eq!(output(&mut pipe).status.code(), Some(2), "pipe {budget}");
    }
    let cases: [(&[&str], &str); 30] = [
        (&["run", "units/nothing"], "no experiment 'units/nothing'; `contend lab list` shows"),
        (&["run", "engine/empty", "--only", "x=1"], "unknown parameter 'x'"),
        (&["run", "process-thread"], "is a suite: use `contend lab suite process-thread`"),
        (&["suite", "x"], "no suite 'x'; suites: callback, pipeline, process-thread"),
        (&["run", "engine/empty", "--step-seconds", "-1"], "seconds from 0 to 86400"),
        (&["run", "units/limit", "--cap", "0"], "a number from 1, or `none`"),
        (&["run", "units/create", "--only", "kind"], "expected NAME=VALUE"),
        (&["run", "units/create", "--only", "kind=x"], "kind=x matches no case; values of kind: "),
        (&["run", "units/creat"], "no experiment 'units/creat'; did you mean 'units/create'?"),
        (&["suite", "process-tread"], "did you mean 'process-thread'?"),
        (&["run", "units/create", "--only", "kind=frok"], "did you mean 'fork'?"),
        (&["run", "units/create", "--only", "knd=fork"], "did you mean 'kind'?"),
        (
            &["run", "units/create", "--set", "n=100"],
            "'n' selects cases and cannot be set; use --only n=100 (values: 1, 10, 100",
        ),
        (&["run", "units/create", "--set", "n=7"], "use --only n=1 (values: 1, 10, 100"),
        (
            &["run", "units/create", "--set", "nn=5"],
            "unknown parameter 'nn'; units/create has kind, n, parent_mib, huge_pages: select cases with --only",
        ),
        (
            &["run", "units/create", "units/limit", "--set", "m=7"],
            "; these experiments have kind, n",
        ),
        (
            &["run", "units/create", "--set", "kind=thraed"],
            "use --only kind=thread (values: fork, ",
        ),
        (
            &["run", "units/create", "--only", "parent_mib=1024", "--quick"],
            "; parent_mib=1024 is measured only without --quick; values of parent_mib with --quick: 64, \
             parent_mib= (without)",
        ),
        (
            &["run", "handoff/mechanisms", "--only", "partners=thread", "--quick"],
            "is measured only without --quick; with it, use --set partners=thread",
        ),
        (
            &["run", "units/create", "--only", "n=5", "--quick"],
            "; values of n with --quick: 1, 100\n",
        ),
        (
            &["run", "units/create", "--only", "parent_mib=0"],
            "; values of parent_mib: 64, 1024, parent_mib= (without)",
        ),
        (
            &["run", "units/*", "--only", "kind=proces"],
            "--only kind=proces matches no case; did you mean 'process'?",
        ),
        (
            &["suite", "process-thread", "--only", "kind=fork,thred"],
            "--only kind=thred matches no case; did you mean 'thread'?",
        ),
        (
            &["run", "units/create", "--only", "n="],
            "--only n=: the value is missing; values of n: 1, 10, 100",
        ),
        (
            &["run", "units/create", "--only", "kind=vfork", "--only", "parent_mib=64,1024"],
            "no case matches --only kind=vfork --only parent_mib=64,1024 together\n",
        ),
        (
            &["run", "units/create", "--turns", "5"],
            "--turns: units/create has no turns; it applies to handoff/*\n",
        ),
        (&["run", "unit/*"], "did you mean 'units/*'?"),
        (&["suite", "units/create"], "is an experiment: use `contend lab run units/create`"),
        (&["suite", "units/*"], "selects experiments: use `contend lab run 'units/*'`"),
        (&["run", "units/create", "--kind", "fork"], "tip: to select cases: --only kind=fork"),
    ];
    for (arguments, message) in cases {
        let (code, error) = told(arguments);
        assert!(error.contains(message), "{arguments:?}: {error}");
        assert_eq!(code, Some(2), "{arguments:?}");
    }
}

#[test]
fn several_values_of_a_parameter_select_cases_with_any_of_them() {
    let plan = |arguments: &[&str]| {
        let all = [&["run", "units/create", "--dry-run", "--only", "parent_mib="], arguments];
        text(&output(&mut lab(&all.concat())).stdout)
    };
    let listed = plan(&["--only", "kind=fork,thread", "--only", "n=1,10"]);
    assert!(listed.starts_with("4 cases, "), "{listed}");
    let repeated = ["--only", "n=1", "--only", "n=10"];
    assert_eq!(listed, plan(&[&["--only", "kind=fork,thread"], &repeated[..]].concat()));
}

#[test]
fn a_plan_says_which_cases_ignore_the_budget() {
    let plan = |arguments: &[&str]| text(&output(&mut lab(arguments)).stdout);
    let limits = ["run", "units/limit", "--budget", "3", "--dry-run"];
    let first =
        "2 cases with a fixed number of samples take the first even beyond the budget of 3 s";
    assert!(plan(&limits).contains(first), "{}", plan(&limits));
    let one = plan(&[&limits[..], &["--only", "kind=thread"]].concat());
    assert!(one.contains("1 case with a fixed number of samples takes the first even"), "{one}");
    let adaptive = plan(&["run", "units/create", "--budget", "3", "--dry-run"]);
    assert!(!adaptive.contains("fixed number"), "{adaptive}");
}

#[test]
fn the_report_fits_a_narrow_terminal() {
    let mut command = lab(&["suite", "process-thread", "--smallest", "--no-store"]);
    let output = output(command.env("COLUMNS", "60"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    let wide: Vec<_> = report.lines().filter(|line| line.chars().count() > 76).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(report.contains("Which conclusions hold here"));
}

#[test]
fn lists_fit_the_width() {
    for arguments in [&["list"][..], &["suite", "shared-memory", "--dry-run"]] {
        for width in [60, 80] {
            let listed = text(&output(lab(arguments).env("COLUMNS", width.to_string())).stdout);
            assert!(listed.lines().count() > 20, "{listed}");
            let long: Vec<_> = listed.lines().filter(|line| line.chars().count() > width).collect();
            assert!(long.is_empty(), "{arguments:?} at {width} columns: {long:#?}");
        }
    }
}

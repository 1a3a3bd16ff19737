//! Tests of the store and of `contend history` with the real executable.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use contend_report::store::{Store, StoredRun};

use crate::support::{Command, PublicFolder, as_nobody, contend, text};

fn run(store: &Path) -> Command {
    let mut command = Command::new(contend());
    command.args(["lab", "run", "engine/empty", "sharing/thread", "--budget", "2", "--seed", "9"]);
    command.args(["--step-seconds", "0", "--store"]).arg(store).stdin(Stdio::null());
    command
}

fn history(store: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(contend());
    command.arg("history").args(arguments).arg("--store").arg(store);
    command.output().expect("it starts")
}

#[test]
fn a_saved_run_is_printed_as_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("new/runs.db");
    let first = run(&store).output().expect("it starts");
    assert!(text(&first.stderr).contains("saved as run 1; show it again: contend history show 1"));
    let again = history(&store, &["show", "1"]);
    let again = text(&again.stdout);
    let (heading, report) = again.split_once('\n').expect("several lines");
    assert!(heading.starts_with("run 1, 2") && heading.contains(": engine/empty"), "{heading}");
    assert_eq!(report, text(&first.stdout));
    run(&store).output().expect("it starts");
    let list = text(&history(&store, &[]).stdout);
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[1].trim_start().starts_with("2 ") && lines[2].trim_start().starts_with("1 "));
    assert!(lines[1].contains("complete") && lines[1].contains("engine/empty sharing/thread"));
}

#[test]
fn a_run_without_time_for_all_cases_is_not_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let mut command = Command::new(contend());
    command.args(["lab", "run", "units/create", "--only", "kind=fork", "--budget", "0.001"]);
    let output = command.arg("--store").arg(&store).stdin(Stdio::null()).output();
    let report = text(&output.expect("it starts").stdout);
    assert!(report.contains("not measured: 7 cases with kind=fork ("), "{report}");
    assert!(report.contains("--budget N takes more time)"), "{report}");
    let list = text(&history(&store, &[]).stdout);
    assert!(list.contains("  1 of 8 cases  "), "{list}");
}

#[test]
fn a_missing_run_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let none = history(&store, &[]);
    assert!(text(&none.stdout).starts_with("No saved runs: "));
    assert!(!store.exists(), "listing creates no store");
    run(&store).output().expect("it starts");
    let missing = history(&store, &["show", "7"]);
    assert_eq!(text(&missing.stderr), "contend: no saved run 7; `contend history` lists them\n");
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn removal_of_several_runs_is_all_or_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let none = history(&store, &["rm", "1"]);
    let error = "contend: no saved run 1; none was removed (`contend history` lists them)\n";
    assert_eq!((none.status.code(), text(&none.stderr).as_str()), (Some(2), error));
    assert!(!store.exists(), "removing creates no store");
    let add = || {
        let mut command = Command::new(contend());
        command.args(["lab", "run", "engine/empty", "--smallest", "--store"]).arg(&store);
        assert!(command.stdin(Stdio::null()).output().expect("it starts").status.success());
    };
    (0..3).for_each(|_| add());
    let numbers = || -> Vec<String> {
        let list = text(&history(&store, &[]).stdout);
        let number = |line: &str| line.split_whitespace().next().map(str::to_owned);
        list.lines().skip(1).filter_map(number).collect()
    };
    let wrong = history(&store, &["rm", "1", "7", "9"]);
    let error = "contend: no saved run 7, 9; none was removed (`contend history` lists them)\n";
    assert_eq!((wrong.status.code(), text(&wrong.stderr).as_str()), (Some(2), error));
    assert_eq!(numbers(), ["3", "2", "1"]);
    for words in [&["rm"][..], &["rm", "x"], &["rm", "--all"]] {
        assert_eq!(history(&store, words).status.code(), Some(2), "{words:?}");
    }
    let two = history(&store, &["rm", "3", "1", "3"]);
    assert_eq!((two.status.code(), text(&two.stderr).as_str()), (Some(0), "removed 2 runs\n"));
    assert!(two.stdout.is_empty());
    assert_eq!(numbers(), ["2"]);
    assert_eq!(history(&store, &["show", "3"]).status.code(), Some(2));
    add();
    assert_eq!(numbers(), ["4", "2"], "a number is never used again");
}

#[test]
fn a_run_without_measurements_is_not_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let json = folder.path().join("run.json");
    // The machine has no CPU with this number, so every case is skipped with a reason.
    let output = Command::new(contend())
        .args(["lab", "run", "placement/cpus", "--set", "from=4095", "--set", "to=4095"])
        .arg("--store")
        .arg(&store)
        .arg("--json")
        .arg(&json)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert!(error.contains("not saved: nothing was measured"), "{error}");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).expect("it was written")).expect("JSON");
    assert_eq!(record["ending"], "empty", "what measured nothing is not complete");
    assert_eq!(text(&history(&store, &[]).stdout), "No runs are saved yet.\n");
}

#[test]
fn options_take_precedence_over_the_variable() {
    let folder = tempfile::tempdir().expect("a folder");
    let [variable, option] = ["variable.db", "option.db"].map(|name| folder.path().join(name));
    let run = |options: &[&str]| {
        let mut command = Command::new(contend());
        command.args(["lab", "run", "engine/empty", "--smallest"]).args(options);
        command.env("CONTEND_STORE", &variable).stdin(Stdio::null());
        let output = command.output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    let (code, error) = run(&["--no-store"]);
    assert_eq!((code, variable.exists()), (Some(0), false), "{error}");
    let path = option.to_str().expect("UTF-8");
    let (code, error) = run(&["--store", path]);
    assert_eq!((code, variable.exists(), option.exists()), (Some(0), false, true), "{error}");
    assert_eq!(run(&["--store", path, "--no-store"]).0, Some(2), "options that contradict");
    let (code, error) = run(&[]);
    assert_eq!((code, variable.exists()), (Some(0), true), "{error}");
    assert!(error.ends_with("contend history show 1\n"), "the variable selects it: {error}");
}

#[test]
fn concurrent_runs_are_both_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let spawn = || run(&store).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let both = [spawn().expect("it starts"), spawn().expect("it starts")];
    for child in both {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let list = text(&history(&store, &[]).stdout);
    assert_eq!(list.matches("complete").count(), 2, "{list}");
}

/// Asserts that an unusable store stops the run before it measures, that the message names a
/// remedy, and that the file is unchanged.
fn assert_refused(store: &Path, message: &str) {
    let before = std::fs::read(store).ok();
    let output = run(store).output().expect("it starts");
    let error = text(&output.stderr);
    assert!(error.contains(message), "{error}");
    assert!(error.contains("(use --store FILE or --no-store)"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read(store).ok(), before);
}

#[test]
fn a_broken_or_foreign_store_is_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    std::fs::write(&store, "this is text ".repeat(200)).expect("room");
    assert_refused(&store, "is not a contend store, or is damaged (left untouched)");

    std::fs::remove_file(&store).expect("there");
    run(&store).output().expect("it starts");
    let mut bytes = std::fs::read(&store).expect("there");
    // Set the version of the tables in the header of the file.
    bytes[60..64].copy_from_slice(&77_u32.to_be_bytes());
    std::fs::write(&store, &bytes).expect("room");
    assert_refused(&store, "was created by a newer contend (format 77");
    assert!(text(&history(&store, &[]).stderr).contains("newer contend"));

    assert_refused(folder.path(), "it is a directory");
    let without = Command::new(contend())
        .args(["lab", "run", "engine/empty", "--budget", "5", "--smallest", "--no-store"])
        .output()
        .expect("it starts");
    assert!(without.status.success());
}

#[test]
fn a_read_only_folder_is_reported() {
    let test = "a_read_only_folder_is_reported";
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).expect("room");
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).expect("own folder");
    let Some(mut command) = as_nobody(test, &program) else { return };
    let store = locked.join("runs.db");
    let output = command
        .args(["lab", "run", "engine/empty", "--quick", "--store"])
        .arg(&store)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    assert!(text(&output.stderr).contains("cannot open the store"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(125));
}

/// Tests that the measurements are printed even if the disk is full at the end of a run.
#[test]
#[ignore = "needs the right to mount; .ci/run runs it where there is that right"]
fn a_full_disk_loses_no_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    // The file system has room for an empty store, but not for a record.
    let script = format!(
        "mount -t tmpfs -o size=56k none '{folder}' && exec '{program}' lab run units/create \
         engine/empty --smallest --budget 2 --store '{folder}/runs.db'",
        folder = folder.path().display(),
        program = contend()
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let error = text(&output.stderr);
    assert!(text(&output.stdout).contains("engine/empty"), "{error}");
    assert!(error.contains("the run above was not saved"), "{error}");
    assert!(error.contains("full"), "{error}");
    assert_eq!(output.status.code(), Some(125));
}

/// Returns a contend command that saves profiles, with its configuration and data below `folder`,
/// which is also the working directory.
fn saving(folder: &Path) -> Command {
    let mut command = Command::new(contend());
    command.env("XDG_CONFIG_HOME", folder.join("config")).env("XDG_DATA_HOME", folder.join("data"));
    command.env_remove("CONTEND_STORE").current_dir(folder).stdin(Stdio::null());
    command
}

#[test]
fn profiles_are_saved_shown_filtered_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = saving(folder.path()).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (_, report) = run(&["pipe", "--discard", "--no-advice", "seq 300000 | sort | tail -n 1"]);
    run(&["pipe", "--label", "after", "--discard", "--no-advice", "seq 300000 | tail -n 1"]);
    run(&["pipe", "--vs", "seq 3 | cat", "--runs", "2", "seq 3"]);
    run(&["pipe", "--no-store", "--discard", "true"]);
    let (list, _) = run(&["history"]);
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(lines.len(), 4, "{list}");
    assert!(lines[1].contains("versus") && lines[1].contains("seq 3 vs seq 3 | cat"), "{list}");
    let has_time = lines[2].contains(" ms ") || lines[2].contains(" s ");
    assert!(has_time && lines[2].contains("after"), "{list}");
    let (shown, _) = run(&["history", "show", "1"]);
    assert_eq!(shown, report, "it is printed as after the run");
    let (filtered, _) = run(&["history", "--command", "sort"]);
    assert_eq!(filtered.lines().count(), 2, "{filtered}");
    let (filtered, _) = run(&["history", "--label", "aft", "--kind", "pipe"]);
    assert_eq!(filtered.lines().count(), 2, "{filtered}");
    assert_eq!(run(&["history", "--until", "2001"]).0, "No saved run matches.\n");
    run(&["history", "label", "before", "1"]);
    let (compared, _) = run(&["compare", "1", "2"]);
    assert!(
        compared.contains("run 1 (before), 20") && compared.contains("run 2 (after)"),
        "{compared}"
    );
    assert!(compared.contains("Stage 2 of A `sort` is left out"), "{compared}");
    // A saved comparison is compared pipeline by pipeline.
    let (compared, _) = run(&["compare", "2", "3"]);
    assert!(
        compared.contains("A of run 3, 20") && compared.contains("B of run 3, 20"),
        "{compared}"
    );
    assert!(compared.contains("C  seq 3 | cat"), "{compared}");
}

#[test]
fn a_store_is_never_overwritten_by_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db").display().to_string();
    let run = |arguments: &[&str]| {
        let output = saving(folder.path()).args(arguments).output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    let discarding = ["pipe", "--no-advice", "--discard", "--store", &store];
    assert_eq!(run(&[&discarding[..], &["seq 3"]].concat()).0, Some(0));
    let before = std::fs::read(&store).expect("a store");
    for arguments in [
        &["history", "export", "--store", &store, &store][..],
        &["history", "show", "1", "--store", &store, "--json", &store],
        &["pipe", "--no-store", "--discard", "--json", &store, "seq 3"],
        &["pipe", "--no-store", "--discard", "--output", &store, "seq 3"],
        &["compare", "1", "1", "--store", &store, "--json", &store],
    ] {
        let (status, message) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {message}");
        assert!(message.contains("it is a database"), "{arguments:?}: {message}");
        assert_eq!(std::fs::read(&store).expect("a store"), before, "{arguments:?}");
    }
    let file = folder.path().join("runs.jsonl");
    std::fs::write(&file, "a backup").expect("room");
    let (status, message) = run(&[
        "history",
        "export",
        "--store",
        &store,
        "--label",
        "typo",
        &file.display().to_string(),
    ]);
    assert_eq!(status, Some(2), "{message}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "a backup");
}

#[test]
fn long_parallel_runs_and_those_with_a_label_are_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = saving(folder.path()).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    run(&["run", "echo x | tr x y"]);
    assert!(run(&["history"]).starts_with("No saved runs"), "a short run");
    run(&["run", "--label", "mine", "echo x | tr x y"]);
    let list = run(&["history"]);
    assert!(list.contains("mine") && list.contains("echo x | tr x y"), "{list}");
    assert!(run(&["history", "show", "1"]).contains("tr x y"));
}

#[test]
fn secrets_and_the_configuration_are_respected() {
    let folder = tempfile::tempdir().expect("a folder");
    let configure = |content: &str| {
        let directory = folder.path().join("config/contend");
        std::fs::create_dir_all(&directory).expect("room");
        std::fs::write(directory.join("config.toml"), content).expect("room");
    };
    let pipe = |pipeline: &str| {
        let arguments = ["pipe", "--discard", "--no-advice", pipeline];
        saving(folder.path()).args(arguments).output().expect("it starts")
    };
    configure("[history]\nredact = ['pin [a-z]+']\n");
    assert!(pipe("echo --password=hunter2 pin sesame | cat").status.success());
    let json = saving(folder.path()).args(["history", "show", "1", "--json", "-"]).output();
    let json = text(&json.expect("it starts").stdout);
    assert!(!json.contains("hunter2") && !json.contains("sesame"), "{json}");
    assert!(json.contains("echo --password=[redacted] [redacted] | cat"), "{json}");
    configure("[history]\npipe = false\n");
    assert!(pipe("echo second").status.success());
    let list = saving(folder.path()).arg("history").output().expect("it starts");
    assert!(!text(&list.stdout).contains("second"));
    configure("[history]\nredact = ['(']\n");
    let wrong = pipe("true");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("config.toml: redact: "), "{}", text(&wrong.stderr));
}

#[test]
fn exported_runs_can_be_imported_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = saving(folder.path()).args(arguments).output().expect("it starts");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    for label in ["one", "two"] {
        run(&["pipe", "--label", label, "--discard", "--no-advice", "seq 3 | tac"]);
    }
    assert_eq!(run(&["history", "export", "runs.jsonl", "2"]).0, Some(0));
    assert_eq!(
        run(&["history", "import", "--store", "new.db", "runs.jsonl"]).2,
        "imported 1 run: 1\n"
    );
    let again = run(&["history", "import", "--store", "new.db", "runs.jsonl"]).2;
    assert_eq!(again, "imported 0 runs; 1 was saved already\n");
    let list = run(&["history", "--store", "new.db"]).1;
    assert!(list.contains("two") && !list.contains("one"), "{list}");
    let (all, _) = (run(&["history", "export", "-"]).1, 0);
    assert_eq!(all.lines().count(), 2);
    std::fs::write(folder.path().join("other.txt"), "{}\n").expect("room");
    let (status, _, error) = run(&["history", "import", "other.txt"]);
    assert_eq!(status, Some(2));
    assert!(
        error.contains("other.txt, line 1: not written by `contend history export` or --json"),
        "{error}"
    );
    let line: serde_json::Value =
        serde_json::from_str(all.lines().next().expect("a run")).expect("JSON");
    for (field, value, expected) in [
        ("started_at", "\u{1b}]0;x\u{7}", "'␛]0;x␇' is not a time"),
        ("schema", "contend.pipe/99", "cannot show records of 'contend.pipe/99'"),
        ("record", "text", "the record is damaged: "),
    ] {
        let mut changed = line.clone();
        changed[field] = value.into();
        std::fs::write(folder.path().join("changed.jsonl"), changed.to_string()).expect("room");
        let (status, _, error) = run(&["history", "import", "--store", "no.db", "changed.jsonl"]);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains("changed.jsonl, line 1: "), "{error}");
        assert!(error.contains(expected) && error.contains("nothing was imported"), "{error}");
        assert!(!folder.path().join("no.db").exists());
    }
}

#[test]
fn records_of_a_directory_are_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = saving(folder.path()).args(arguments).output().expect("it starts");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let records = folder.path().join("records");
    std::fs::create_dir(&records).expect("room");
    let lab = include_str!("../../../../testdata/lab/process-thread.json");
    std::fs::write(records.join("b.json"), lab).expect("room");
    let other = lab.replacen("\"host\":{", "\"host\":{\"name\":\"other\",", 1);
    assert_ne!(other, lab);
    std::fs::write(records.join("c.json"), other).expect("room");
    let pipeline = "seq 3 | grep -ve --password=hunter2";
    let profile = ["pipe", "--no-store", "--discard", "--no-advice", "--json", "records/a.json"];
    assert_eq!(run(&[&profile[..], &[pipeline]].concat()).0, Some(0));
    std::fs::write(records.join("notes.txt"), "no record").expect("room");

    let import = |paths: &[&str]| run(&[&["import", "--store", "new.db"], paths].concat());
    assert_eq!(import(&["records"]).2, "imported 3 runs: 1 to 3\n");
    assert_eq!(import(&["records/b.json"]).2, "imported 0 runs; 1 was saved already\n");
    let list = run(&["history", "--store", "new.db"]).1;
    assert!(list.contains("suite process-thread") && list.contains("other"), "{list}");
    let shown = run(&["history", "show", "1", "--store", "new.db", "--json", "-"]).1;
    assert!(shown.contains("[redacted]") && !shown.contains("hunter2"), "{shown}");
    assert_eq!(run(&["compare", "2", "3", "--store", "new.db"]).0, Some(0));

    // Nothing is added if one of the files is wrong.
    std::fs::write(records.join("d.json"), "{\n  \"schema\": \"contend.lab/1\"\n}\n")
        .expect("room");
    let (status, _, error) = run(&["import", "--store", "none.db", "records"]);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("records/d.json: '' is not a time; nothing was imported"), "{error}");
    assert!(!folder.path().join("none.db").exists());
    for (text, expected) in
        [("", "the file is empty"), ("{\n", "not valid JSON"), ("[1]\n", "line 1: not written by")]
    {
        std::fs::write(folder.path().join("x.json"), text).expect("room");
        let (status, _, error) = run(&["import", "--store", "none.db", "x.json"]);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    std::fs::create_dir(folder.path().join("empty")).expect("room");
    let error = import(&["empty"]).2;
    assert!(error.contains("empty has no file *.json or *.jsonl"), "{error}");
    let error = import(&["missing"]).2;
    assert!(error.contains("cannot read missing: No such file"), "{error}");
}

#[test]
fn a_saved_run_does_not_control_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.db");
    let hostile = "x\u{1b}]0;title\u{7}\u{1b}[2J";
    let record = include_str!("../../../../testdata/lab/process-thread.json");
    let record = record.replacen("units/create", "units/create\\u001b[2J", 1);
    let store = Store::open(&path).expect("a folder");
    let run = StoredRun {
        started_at: hostile,
        schema: "contend.lab/1",
        title: hostile,
        ending: hostile,
        label: hostile,
        host: hostile,
        record: &record,
    };
    store.add(&run).expect("room");
    store.add(&StoredRun { schema: hostile, host: "other", ..run }).expect("room");
    drop(store);
    for arguments in
        [&["history"][..], &["history", "show", "1"], &["history", "show", "1", "--full"]]
    {
        let mut command = Command::new(contend());
        command.args(["--color", "always"]).args(arguments).arg("--store").arg(&path);
        let shown = text(&command.output().expect("it starts").stdout);
        assert!(shown.contains('␛'), "{shown}");
        for escape in shown.split('\u{1b}').skip(1) {
            let style =
                escape.trim_start_matches(|c: char| c == '[' || c == ';' || c.is_ascii_digit());
            assert!(style.starts_with('m'), "{arguments:?}: {escape:?}");
        }
        assert!(!shown.contains('\u{7}'), "{shown}");
    }
}

#[test]
fn the_list_has_the_median_of_repeated_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, json) = (folder.path().join("runs.db"), folder.path().join("record.json"));
    let mut command = Command::new(contend());
    command.args(["pipe", "--no-advice", "--runs", "2", "--json"]).arg(&json).arg("--store");
    // The two runs take different times.
    command.arg(&store).arg("if mkdir first; then sleep 2; fi");
    assert!(command.current_dir(folder.path()).output().expect("it starts").status.success());
    let record = std::fs::read_to_string(&json).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let median = record["runs"]["wall_seconds"]["median"].as_f64().expect("a median");
    assert!((median - record["wall_seconds"].as_f64().expect("a time")).abs() > 0.1);
    let list = text(&history(&store, &[]).stdout);
    assert!(list.contains(&contend_record::units::time(median)), "{median}: {list}");
}

#[test]
fn several_runs_of_a_pipeline_have_a_trend() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let list = || text(&history(&store, &[]).stdout);
    for number in 1..=3 {
        let mut command = Command::new(contend());
        command.args(["pipe", "--no-advice", "--store"]).arg(&store).arg("sleep 0.1 | cat");
        assert!(command.output().expect("it starts").status.success());
        assert_eq!(list().contains("wall time"), number == 3, "{}", list());
    }
    let last = list().lines().last().expect("a trend").to_owned();
    assert!(last.contains(" to ") && last.ends_with("sleep 0.1 | cat"), "{last}");
    assert!(last.contains('█') || last.contains('▄'), "{last}");
}

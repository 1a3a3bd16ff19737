//! Tests of `contend run --on slurm` and `contend lab --on slurm`. They run alone, because Slurm's tasks keep all CPUs busy.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use crate::run_exclusively;
use crate::support::cluster::{INPUT, Setting};
use crate::support::slurm::Slurm;
use crate::support::{Command, contend, text, wait_until};

/// Runs the body of a test with a cluster, unless there is no Slurm.
fn with_slurm(test: &str, body: impl FnOnce(&Slurm)) {
    run_exclusively(|| {
        if let Some(slurm) = Slurm::start(test) {
            body(&slurm);
            wait_until("no task is left", || slurm.tasks().is_empty());
        }
    });
}

/// Returns the command that runs a pipeline on a cluster.
fn on_slurm(
    setting: &Setting,
    slurm: &Slurm,
    parts: &str,
    more: &[&str],
    pipeline: &str,
) -> Command {
    let words = [&["--on", "slurm", "--parts", parts], more, &[pipeline]].concat();
    let mut command = setting.run(&words);
    command.env("SLURM_CONF", slurm.configuration());
    command
}

#[test]
fn slurm_changes_no_byte_and_no_exit_code() {
    with_slurm("slurm_changes_no_byte_and_no_exit_code", |slurm| {
        let setting = Setting::new();
        fs::write(setting.path("bytes"), b"b\r\n\xff\xfe\n\n a\tc \nb\r\nlast").expect("room");
        for (pipeline, code) in [
            ("cat bytes | LC_ALL=C tr a-c x-z", 0),
            ("cat bytes in | grep -a zzz", 1),
            ("cat in bytes | LC_ALL=C sort | uniq -c", 0),
        ] {
            let mut bash = Command::new("bash");
            let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
            let output = on_slurm(&setting, slurm, "5", &[], pipeline).output().expect("it starts");
            let message = text(&output.stderr);
            assert_eq!(output.stdout, bash.expect("bash starts").stdout, "{pipeline}: {message}");
            assert_eq!(output.status.code(), Some(code), "{pipeline}: {message}");
            assert!(!message.contains("this machine only"), "{message}");
            setting.assert_nothing_is_left();
        }
    });
}

#[test]
fn settings_that_the_probe_prints_are_used() {
    with_slurm("settings_that_the_probe_prints_are_used", |slurm| {
        let setting = Setting::new();
        let run = |words: &[&str]| {
            let mut command = setting.run(words);
            command.env("SLURM_CONF", slurm.configuration());
            command.env("XDG_CONFIG_HOME", setting.0.path());
            command.output().expect("it starts")
        };
        let probed = run(&["--on", "slurm", "--probe"]);
        let message = text(&probed.stdout);
        assert_eq!(probed.status.code(), Some(0), "{}", text(&probed.stderr));
        let settings = message.find("[slurm]").map(|place| &message[place..]).expect("settings");
        let slots = settings.lines().find_map(|line| line.strip_prefix("slots = "));
        let slots: u64 = slots.expect("slots").parse().expect("a number");
        assert!((1..=4).contains(&slots), "{message}");
        setting.assert_nothing_is_left();
        fs::create_dir(setting.path("contend")).expect("room");
        fs::write(setting.path("contend/run.toml"), settings).expect("room");
        let explained = run(&["--on", "auto", "--parts", "2", "--explain", "cat in | sort"]);
        let message = text(&explained.stdout);
        assert!(message.contains(" on slurm"), "{message}{}", text(&explained.stderr));
    });
}

#[test]
fn slurm_repeats_what_was_lost_with_a_task() {
    with_slurm("slurm_repeats_what_was_lost_with_a_task", |slurm| {
        let setting = Setting::new();
        let child = on_slurm(&setting, slurm, "3", &["--map", "./slow"], "cat in | ./slow").spawn();
        let child = child.expect("it starts");
        wait_until("the last part waits", || setting.path("waiting").exists());
        let killed = slurm.command("scancel").args(["--signal=KILL", "--user=root"]).output();
        assert!(killed.expect("scancel starts").status.success());
        wait_until("no task is left", || slurm.tasks().is_empty());
        setting.go();
        let output = child.wait_with_output().expect("a child");
        assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(0));
        assert!(setting.runs() > 3, "a part ran again");
        setting.assert_nothing_is_left();
    });
}

#[test]
fn a_signal_ends_the_tasks_of_slurm() {
    with_slurm("a_signal_ends_the_tasks_of_slurm", |slurm| {
        let setting = Setting::new();
        let child = on_slurm(&setting, slurm, "3", &["--map", "./slow"], "cat in | ./slow").spawn();
        let child = child.expect("it starts");
        wait_until("the last part waits", || setting.path("waiting").exists());
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        let output = child.wait_with_output().expect("a child");
        assert_eq!(output.status.code(), None, "{}", text(&output.stderr));
        setting.assert_nothing_is_left();
    });
}

#[test]
fn what_slurm_refuses_is_told() {
    with_slurm("what_slurm_refuses_is_told", |slurm| {
        let setting = Setting::new();
        let options = ["--engine-option=--partition=none"];
        let output = on_slurm(&setting, slurm, "2", &options, "cat in | tr a b").output();
        let output = output.expect("it starts");
        let message = text(&output.stderr);
        assert!(message.contains("sbatch failed: "), "{message}");
        assert!(message.contains("invalid partition"), "{message}");
        assert_eq!(output.status.code(), Some(125));
        setting.assert_nothing_is_left();
    });
}

/// Returns the command that measures on nodes. It saves the runs in the folder.
fn lab_on_slurm(folder: &Path, slurm: &Slurm, experiment: &str, more: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["lab", "run", experiment, "--on", "slurm", "--store", "runs.db"]).args(more);
    command.env("SLURM_CONF", slurm.configuration()).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the saved runs, as `contend history` lists them.
fn saved_runs(folder: &Path) -> serde_json::Value {
    let mut command = Command::new(contend());
    command.args(["history", "--store", "runs.db", "--json", "-"]).current_dir(folder);
    let output = command.output().expect("it starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn assert_no_work_directory_is_left(folder: &Path) {
    let names: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().collect();
    let is_work = |name: &str| name.starts_with(".contend");
    assert!(!names.iter().any(|entry| is_work(&text(entry.file_name().as_encoded_bytes()))));
}

#[test]
fn the_lab_measures_on_several_nodes() {
    with_slurm("the_lab_measures_on_several_nodes", |slurm| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--smallest", "--nodes", "2", "--label", "both", "--html", "page.html"];
        let mut command = lab_on_slurm(folder.path(), slurm, "engine/clock", &options);
        let output = command.output().expect("it starts");
        let (report, messages) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{messages}");
        assert!(report.contains("engine/clock") && report.contains("B/A"), "{report}");
        assert!(messages.contains("saved as runs 1 to 2; compare them:"), "{messages}");
        let runs = saved_runs(folder.path());
        let found = runs.as_array().expect("a list");
        assert_eq!(found.len(), 2, "{runs}");
        for run in found {
            assert_eq!((&run["title"], &run["label"]), (&"engine/clock".into(), &"both".into()));
            assert_eq!(run["ending"], "complete", "{runs}");
        }
        let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
        assert!(page.contains(">n1<") && page.contains(">n2<"));
        assert_no_work_directory_is_left(folder.path());
    });
}

#[test]
fn an_interrupted_run_on_nodes_keeps_what_was_measured() {
    with_slurm("an_interrupted_run_on_nodes_keeps_what_was_measured", |slurm| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--nodes", "2", "--budget", "600", "--engine-option=--time=5"];
        let child = lab_on_slurm(folder.path(), slurm, "units/create", &options)
            .spawn()
            .expect("it starts");
        let has_begun = |node: &str| {
            let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
            entries.map(|entry| entry.path()).any(|path| path.join(node).exists())
        };
        wait_until("both nodes have begun", || has_begun("n1.log") && has_begun("n2.log"));
        // They have to measure something: the first samples take about a second, all of them minutes.
        std::thread::sleep(std::time::Duration::from_secs(8));
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        let output = child.wait_with_output().expect("a child");
        let messages = text(&output.stderr);
        assert_eq!(output.status.code(), None, "{messages}");
        let runs = saved_runs(folder.path());
        let endings: Vec<_> =
            runs.as_array().expect("a list").iter().map(|run| &run["ending"]).collect();
        assert_eq!(endings, ["interrupted"; 2], "{messages}");
        assert_no_work_directory_is_left(folder.path());
    });
}

#[test]
fn what_slurm_refuses_for_the_lab_is_told() {
    with_slurm("what_slurm_refuses_for_the_lab_is_told", |slurm| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--engine-option=--partition=none"];
        let output = lab_on_slurm(folder.path(), slurm, "engine/clock", &options)
            .output()
            .expect("it starts");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{message}");
        assert!(message.contains("invalid partition"), "{message}");
        assert!(message.contains("srun ended without running on a node"), "{message}");
        assert_no_work_directory_is_left(folder.path());
    });
}

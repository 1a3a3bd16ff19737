//! Tests of `contend run --on`: parts that run elsewhere, and what happens when something fails there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use contend_sys::procfs::{Stat, children};
use contend_sys::{Pid, Signal};
use rustix::process::{Resource, Rlimit, kill_process, prlimit};
use serde_json::{Value, json};

use crate::support::cluster::{INPUT, Setting};
use crate::support::{Command, contend, processes_with, text, wait_until, write_program};

fn kill(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("it runs");
}

#[test]
fn an_attempt_that_is_killed_runs_again() {
    let setting = Setting::new();
    let child = setting.start();
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    let [slow] = children(part)[..] else { panic!("one command at a time") };
    kill(part, Signal::KILL);
    wait_until("its command ends, too", || Stat::of(slow).is_err());
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(setting.runs(), 4);
    setting.assert_nothing_is_left();
}

#[test]
fn a_job_whose_driver_was_killed_is_continued() {
    let setting = Setting::new();
    let mut child = setting.start();
    kill(Pid::from_child(&child), Signal::KILL);
    child.wait().expect("a child");
    let name = setting.0.path().display().to_string();
    wait_until("no process is left", || processes_with(&name).is_empty());
    let [work] = &setting.work()[..] else { panic!("the work directory is left") };
    let work = work.display().to_string();
    setting.go();
    let elsewhere = Command::new(contend()).args(["run", "--resume", &work]).output();
    let elsewhere = elsewhere.expect("it starts");
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(text(&elsewhere.stderr).contains("change to it first"), "{}", text(&elsewhere.stderr));
    fs::set_permissions(&work, Permissions::from_mode(0o777)).expect("own folder");
    let output = setting.output(&["--resume", &work]);
    assert!(text(&output.stderr).contains("other users may write to "), "{}", text(&output.stderr));
    fs::set_permissions(&work, Permissions::from_mode(0o700)).expect("own folder");
    let inside = fs::File::create(format!("{work}/out")).expect("room");
    let output = setting.run(&["--resume", &work]).stdout(inside).output().expect("it starts");
    let message = text(&output.stderr);
    assert!(message.contains("/out, a file of the job: use another one"), "{message}");
    fs::remove_file(format!("{work}/out")).expect("own file");
    // The commands get the variables of the job.
    let mut again = setting.run(&["--resume", &work]);
    let output = again.env("LC_ALL", "xx_XX").env("PATH", "/no/such/folder").output();
    let output = output.expect("it starts");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(setting.runs(), 4, "only the last part runs again");
    setting.assert_nothing_is_left();
}

#[test]
fn two_drivers_do_not_run_the_same_job() {
    let setting = Setting::new();
    let child = setting.start();
    let [work] = &setting.work()[..] else { panic!("there is a work directory") };
    let second = setting.output(&["--resume", &work.display().to_string()]);
    let message = text(&second.stderr);
    assert!(message.contains("another contend is running it"), "{message}");
    assert_eq!(second.status.code(), Some(125));
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    setting.assert_nothing_is_left();
}

#[test]
fn an_input_that_grows_is_read_here() {
    let setting = Setting::new();
    let child = setting.start();
    let more = format!("{INPUT}more\n");
    fs::write(setting.path("in"), &more).expect("room");
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert_eq!(text(&output.stdout), more, "{message}");
    assert!(message.contains("in has changed since the job was planned"), "{message}");
    assert_eq!(output.status.code(), Some(0));
    setting.assert_nothing_is_left();
}

#[test]
fn an_attempt_runs_in_the_environment_of_the_job() {
    let setting = Setting::new();
    let show = setting.path("show");
    write_program(&show, "#!/bin/sh\nsed \"s/\\$/$SUFFIX/\"\n");
    let words = ["--on", "local", "--parts", "3", "-j", "1", "--map", "./slow", "--map", "./show"];
    let mut command = setting.run(&[&words[..], &["cat in | ./slow | ./show"]].concat());
    let mut child = command.env("SUFFIX", "-x").spawn().expect("it starts");
    wait_until("the last part waits", || setting.path("waiting").exists());
    kill(Pid::from_child(&child), Signal::KILL);
    child.wait().expect("a child");
    setting.go();
    let [work] = &setting.work()[..] else { panic!("the work directory is left") };
    let plan = work.join("job.json").display().to_string();
    let words = ["part", "--plan", &plan, "--part", "2", "--attempt", "77"];
    let mut part = Command::new(contend());
    let part = part.args(words).env("SUFFIX", "-y").env("NOISE", "1").output().expect("it starts");
    assert_eq!(part.status.code(), Some(0), "{}", text(&part.stderr));
    let found = fs::read_to_string(work.join("2.77.part")).expect("an output");
    assert_eq!(found, "wait-x\nh-x\n");
    fs::remove_dir_all(work).expect("own folder");
}

#[test]
fn more_files_than_descriptors_are_no_obstacle() {
    let setting = Setting::new();
    let names: Vec<String> = (0..200).map(|number| format!("file{number}")).collect();
    for name in &names {
        fs::write(setting.path(name), format!("{name}\n")).expect("room");
    }
    let pipeline = format!("cat {} | tr a-z A-Z", names.join(" "));
    let script = "ulimit -n 64; exec \"$@\"";
    let contend = contend().to_owned();
    let words = [
        "-c", script, "bash", &contend, "run", "--on", "local", "-j", "1", "--parts", "20",
        &pipeline,
    ];
    let mut command = Command::new("bash");
    let output = command.args(words).current_dir(setting.0.path()).output().expect("bash starts");
    let message = text(&output.stderr);
    let expected = names.join("\n").to_uppercase() + "\n";
    assert_eq!(text(&output.stdout), expected, "{message}");
    assert_eq!((message.as_str(), output.status.code()), ("", Some(0)));
    setting.assert_nothing_is_left();
}

#[test]
fn a_signal_ends_the_job_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let setting = Setting::new();
        let child = setting.start();
        kill(Pid::from_child(&child), signal);
        let output = child.wait_with_output().expect("a child");
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{}", text(&output.stderr));
        setting.assert_nothing_is_left();
    }
}

#[test]
fn a_part_without_room_on_a_worker_runs_again() {
    let setting = Setting::new();
    let line = "x".repeat(20_000);
    let input = format!("a\n{line}\nwait\n{line}\n");
    fs::write(setting.path("in"), &input).expect("room");
    let words = ["--on", "local", "--parts", "2", "-j", "1", "--map", "./slow", "--stats"];
    let mut command = setting.run(&[&words[..], &["cat in | ./slow"]].concat());
    let child = command.ignoring(Signal::XFSZ).spawn().expect("it starts");
    wait_until("the last part waits", || setting.path("waiting").exists());
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    // Enough for a report, but not for an output.
    let little = Rlimit { current: Some(10_000), maximum: None };
    prlimit(Some(part), Resource::Fsize, little).expect("own process");
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert_eq!((text(&output.stdout), output.status.code()), (input, Some(0)), "{message}");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("- part 1: ") && message.contains("File too large"), "{message}");
    setting.assert_nothing_is_left();
}

#[test]
fn clocks_may_differ() {
    let setting = Setting::new();
    let day = Duration::from_hours(24);
    let set_time = |path: &Path, time: SystemTime| {
        let file = fs::File::open(path).expect("a file");
        file.set_modified(time).expect("own file");
    };
    // The file server is a day ahead of this machine, and the workers are a day behind it.
    set_time(&setting.path("in"), SystemTime::now() + day);
    let child = setting.start();
    let [work] = &setting.work()[..] else { panic!("there is a work directory") };
    for entry in fs::read_dir(work).expect("a folder") {
        set_time(&entry.expect("an entry").path(), SystemTime::now() - day);
    }
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(setting.runs(), 3, "no part runs again");
    setting.assert_nothing_is_left();
}

#[test]
fn a_part_that_always_fails_is_an_error_with_its_reason() {
    let setting = Setting::new();
    let child = setting.start();
    // The attempt at the part that waits has opened the file; the next one does not find it.
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    fs::rename(setting.path("in"), setting.path("moved")).expect("own file");
    kill(part, Signal::KILL);
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains("part 3 of 3 (bytes "), "{message}");
    assert!(message.contains("cannot read in: No such file or directory"), "{message}");
    setting.assert_nothing_is_left();
}

#[test]
fn exit_codes_are_those_of_bash() {
    let setting = Setting::new();
    let many: Vec<String> = (0..200_000).map(|number| format!("{number}\n")).collect();
    fs::write(setting.path("many"), many.concat()).expect("room");
    for pipeline in [
        "grep zzz in",
        "grep a in",
        "! grep a in",
        "grep zzz in | sort",
        "./slow <no",
        // The second command leaves before the first has written everything.
        "head -n 150000 many | sed 1q",
        "grep 1 many | head -n 50000 | sed 1q",
    ] {
        let output = setting.output(&["--on", "local", "--parts", "2", pipeline]);
        let mut bash = Command::new("bash");
        let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
        let bash = bash.expect("bash starts");
        let found = (output.status.code(), text(&output.stdout));
        assert_eq!(found, (bash.status.code(), text(&bash.stdout)), "{pipeline}");
        setting.assert_nothing_is_left();
    }
    let pipefail = ["--on", "local", "--parts", "2", "--pipefail", "grep -c zzz in | tr 0 1"];
    assert_eq!(setting.output(&pipefail).status.code(), Some(1));
}

#[test]
fn what_cannot_be_divided_runs_here_and_says_why() {
    let setting = Setting::new();
    fs::write(setting.path("empty"), "").expect("room");
    for (pipeline, expected, why) in [
        ("tac in | head -n 1", "h\n", ""),
        ("cat empty | wc -l", "0\n", "its first stages run once over the whole input"),
        ("cat | wc -l", "0\n", "its input is not named files"),
        ("for i in 1 2; do echo $i; done", "1\n2\n", ""),
    ] {
        let output = setting.output(&["--on", "local", "--parts", "2", pipeline]);
        let message = text(&output.stderr);
        assert_eq!(text(&output.stdout), expected, "{message}");
        assert!(
            message.starts_with("contend: runs on this machine only: "),
            "{pipeline}: {message}"
        );
        assert!(message.contains(why), "{pipeline}: {message}");
        setting.assert_nothing_is_left();
    }
}

#[test]
fn the_record_says_how_the_input_is_divided() {
    let setting = Setting::new();
    let record = |name: &str| -> Value {
        let text = fs::read_to_string(setting.path(name)).expect("a record");
        serde_json::from_str(&text).expect("JSON")
    };
    let size = INPUT.len();
    let planned =
        ["--on", "local", "--parts", "3", "--explain", "--json", "plan", "cat in | tr a b"];
    assert_eq!(setting.output(&planned).status.code(), Some(0));
    let division = &record("plan")["division"];
    assert_eq!((&division["engine"], &division["parts"]), (&json!("local"), &json!(3)));
    assert_eq!(division["input_bytes"], size);
    let shown = setting.output(&["--on", "local", "--parts", "3", "--explain", "cat in | tr a b"]);
    assert!(text(&shown.stdout).contains("3 parts of at most "), "{}", text(&shown.stdout));

    let words = ["--on", "local", "--parts", "3", "-j", "1", "--map", "./slow", "--json", "ran"];
    let mut command = setting.run(&[&words[..], &["--stats", "cat in | ./slow"]].concat());
    let child = command.spawn().expect("it starts");
    wait_until("the last part waits", || setting.path("waiting").exists());
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    kill(part, Signal::KILL);
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert!(message.contains("3 parts of at most ") && message.contains("4 attempts"), "{message}");
    let ran = record("ran");
    assert_eq!(ran["division"]["parts"], 3);
    let divided = &ran["outcome"]["divided"];
    assert_eq!(divided["attempts"], 4);
    assert_eq!(divided["failures"], json!(["part 3: no worker has reported on it"]));
    let [host] = &divided["hosts"].as_array().expect("an array")[..] else { panic!("one machine") };
    assert_eq!((&host["parts"], &host["output_bytes"]), (&json!(3), &json!(size)));
}

#[test]
fn a_job_can_be_written_as_files() {
    let setting = Setting::new();
    let bin = setting.path("bin");
    fs::create_dir(&bin).expect("room");
    // Slurm's program only notes how it is called.
    let sbatch = "#!/bin/sh\necho \"$@\" >submitted\n";
    write_program(&bin.join("sbatch"), sbatch);
    let words = ["--on", "slurm", "--parts", "3", "--emit", "job", "cat in | tr a-z A-Z"];
    let output = setting.output(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("sh job/submit.sh"), "{}", text(&output.stdout));
    let again = setting.output(&words);
    assert!(text(&again.stderr).contains("File exists"), "{}", text(&again.stderr));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut submit = Command::new("sh");
    submit.args(["job/submit.sh"]).env("PATH", path).current_dir(setting.0.path());
    assert_eq!(submit.output().expect("it starts").status.code(), Some(0));
    let submitted = fs::read_to_string(setting.path("submitted")).expect("it was called");
    assert!(submitted.contains("--parsable --array=0-") && submitted.contains("/job/slurm.sh"));
    // A task, as Slurm would start it.
    let mut task = Command::new("sh");
    let job = setting.path("job").display().to_string();
    task.args(["job/slurm.sh", &job, contend(), "0", "1", "1000000"]);
    let task = task.current_dir(setting.0.path()).output().expect("it starts");
    assert_eq!(task.status.code(), Some(0), "{}", text(&task.stderr));
    fs::write(setting.path("job/1.csv"), "").expect("room");
    let output = setting.output(&["--resume", "job", "--on", "local", "--stats"]);
    assert_eq!(text(&output.stdout), INPUT.to_uppercase(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(" 3 parts in "), "{}", text(&output.stderr));
    let left = |name: &str| setting.path("job").join(name).exists();
    assert!(left("job.json") && left("submit.sh") && left("slurm.sh") && left("1.csv"));
    assert!(!left("0.0.part") && !left("taken.0") && !left("lock"));
    let local = setting.output(&["--on", "local", "--emit", "other", "cat in | tr a b"]);
    assert!(text(&local.stderr).contains("--emit is for"), "{}", text(&local.stderr));
    let whole = setting.output(&["--on", "slurm", "--emit", "other", "tac in"]);
    assert!(text(&whole.stderr).contains("runs on one machine only: "), "{}", text(&whole.stderr));
    assert!(!setting.path("other").exists());
}

#[test]
fn an_array_that_may_have_been_submitted_is_cancelled() {
    let setting = Setting::new();
    let bin = setting.path("bin");
    fs::create_dir(&bin).expect("room");
    // Slurm has accepted the array when the program is interrupted.
    let programs = [("sbatch", "kill -INT $$"), ("scancel", "echo \"$@\" >>$0.called")];
    for (name, text) in programs {
        write_program(&bin.join(name), format!("#!/bin/sh\n{text}\n"));
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = setting.run(&["--on", "slurm", "--parts", "2", "cat in | tr a b"]);
    let output = command.env("PATH", path).output().expect("it starts");
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    let called = fs::read_to_string(bin.join("scancel.called")).expect("it was called");
    assert!(called.starts_with("--quiet --name=contend-"), "{called}");
}

#[test]
fn pipelines_of_scripts_are_divided() {
    let setting = Setting::new();
    fs::write(setting.path("script"), "cat in | tr a-z A-Z >out\ncd /\necho done\n").expect("room");
    let words = ["--on", "local", "--parts", "3", "--stats", "-f", "script"];
    let output = setting.output(&words);
    let message = text(&output.stderr);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("done\n", Some(0)));
    assert!(message.contains("3 parts of at most "), "{message}");
    assert_eq!(fs::read_to_string(setting.path("out")).expect("an output"), INPUT.to_uppercase());
    let text_of_shell = "cat in | tr a-z A-Z >other";
    let output = setting.output(&["--on", "local", "--parts", "3", "--stats", text_of_shell]);
    let message = text(&output.stderr);
    assert!(message.contains("3 parts of at most "), "{message}");
    assert_eq!(fs::read_to_string(setting.path("other")).expect("an output"), INPUT.to_uppercase());
    // What is not worth it runs here. Of a script, contend does not say so.
    let output = setting.output(&["--on", "local", "-f", "script"]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("done\n", ""));
    let output = setting.output(&["--on", "local", "cat in | tr a-z A-Z"]);
    let message = text(&output.stderr);
    assert_eq!(text(&output.stdout), INPUT.to_uppercase());
    assert!(message.contains("its files have less than 2 MiB"), "{message}");
    setting.assert_nothing_is_left();
}

#[test]
fn workers_combine_sorted_outputs() {
    let setting = Setting::new();
    let lines: Vec<String> = (0..5000).map(|number| format!("{}\n", number % 97)).collect();
    fs::write(setting.path("many"), lines.concat()).expect("room");
    let pipeline = "cat many | sort | uniq -c | sort -rn";
    let words = ["--on", "local", "--parts", "9", "--fan-in", "3", "--stats", pipeline];
    let output = setting.output(&words);
    let message = text(&output.stderr);
    let bash = Command::new("bash").args(["-c", pipeline]).current_dir(setting.0.path()).output();
    assert_eq!(text(&output.stdout), text(&bash.expect("bash starts").stdout), "{message}");
    assert_eq!(output.status.code(), Some(0));
    assert!(message.contains("9 parts of at most "), "{message}");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("9 parts and 3 combinations in "), "{message}");
    setting.assert_nothing_is_left();
}

#[test]
fn a_merge_that_fails_on_a_worker_is_noticed() {
    let setting = Setting::new();
    let lines: Vec<String> = (0..5000).map(|number| format!("{}K\n", number % 97)).collect();
    fs::write(setting.path("many"), lines.concat()).expect("room");
    let run = |pipeline: &str| {
        let words = ["--on", "local", "--parts", "40", "--fan-in", "20", pipeline];
        let mut command = setting.run(&words);
        command.env("TMPDIR", "/no/such/folder").output().expect("it starts")
    };
    // `sort` merges more than this number of files by way of others, for which there is no directory.
    for pipeline in ["sort -h --batch-size=16 many", "sort -h --batch-size=16 many | head -n 100"] {
        let output = run(pipeline);
        let message = text(&output.stderr);
        assert_eq!(
            (text(&output.stdout).as_str(), output.status.code()),
            ("", Some(125)),
            "{message}"
        );
        assert!(message.contains("merging sorted lines failed with exit code 2"), "{message}");
        setting.assert_nothing_is_left();
    }
    // Without the option, it needs no other files.
    let output = run("sort -h many");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), lines.len());
}

#[test]
fn pipelines_of_scripts_do_not_depend_on_the_cluster() {
    let setting = Setting::new();
    fs::create_dir(setting.path("config")).expect("room");
    let file = setting.path("in").display().to_string();
    let pipeline = format!("sort {file} {file} {file} | uniq -c");
    let bash = Command::new("bash").args(["-c", &pipeline]).output().expect("bash starts");
    let expected_output = text(&bash.stdout);
    let cases = [
        ("spark", format!("true\n{pipeline}"), "cannot start spark-submit"),
        ("local", format!("cd /proc\n{pipeline}"), ""),
        ("local", format!("export XDG_CONFIG_HOME=/none HOME=/none\n{pipeline}"), ""),
    ];
    for (engine, script, expected) in cases {
        fs::write(setting.path("script"), script + "\necho done\n").expect("room");
        let output = setting.output(&["--on", engine, "--parts", "2", "-f", "script"]);
        let message = text(&output.stderr);
        let all = format!("{expected_output}done\n");
        assert_eq!((text(&output.stdout), output.status.code()), (all, Some(0)), "{message}");
        assert!(
            message.contains(expected) && message.is_empty() == expected.is_empty(),
            "{message}"
        );
    }
    // A work directory that has vanished.
    fs::create_dir(setting.path("work")).expect("room");
    fs::write(setting.path("script"), format!("rmdir work\n{pipeline}\n")).expect("room");
    let output =
        setting.output(&["--on", "local", "--work", "work", "--parts", "2", "-f", "script"]);
    let message = text(&output.stderr);
    assert_eq!(
        (text(&output.stdout), output.status.code()),
        (expected_output, Some(0)),
        "{message}"
    );
    assert!(message.contains("cannot write to "), "{message}");
}

#[test]
fn an_explanation_says_what_the_run_does() {
    let setting = Setting::new();
    let explained = |words: &[&str]| {
        let output = setting.output(&[&["--on", "local", "--explain"], words].concat());
        let text = text(&output.stdout);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let small = explained(&["cat in | sort"]);
    let expected = "plain: runs on this machine only: its files have less than 2 MiB";
    assert!(small.contains(expected), "{small}");
    let serial = setting.output(&["--on", "local", "--parts", "2", "tac in | head -n 1"]);
    let message = text(&serial.stderr);
    assert!(message.contains("its first stages run once over the whole input"), "{message}");
}

#[test]
fn a_probe_measures_the_engine() {
    let setting = Setting::new();
    let output = setting.output(&["--on", "local", "-j", "3", "--probe"]);
    let message = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(message.starts_with("local: the first part began after "), "{message}");
    assert!(message.contains("It ran 3 parts at a time, and each took "), "{message}");
    assert!(message.contains("they read a new file of 256MB at "), "{message}");
    setting.assert_nothing_is_left();
    write_program(&setting.path("sbatch"), "#!/bin/sh\necho no cluster >&2; exit 1\n");
    let mut failing = setting.run(&["--on", "slurm", "--probe"]);
    failing.env("PATH", format!("{}:/usr/bin:/bin", setting.0.path().display()));
    let failed = failing.output().expect("it starts");
    let message = text(&failed.stderr);
    assert!(message.contains("the job failed: ") && message.contains("no cluster"), "{message}");
    assert_eq!((failed.status.code(), failed.stdout.len()), (Some(125), 0));
    fs::remove_file(setting.path("sbatch")).expect("own file");
    setting.assert_nothing_is_left();
    let mut child =
        setting.run(&["--on", "local", "-j", "1", "--probe"]).spawn().expect("it starts");
    wait_until("a job runs", || setting.work().len() == 2);
    kill(Pid::from_child(&child), Signal::TERM);
    assert_eq!(child.wait().expect("a child").signal(), Some(Signal::TERM.as_raw()));
    setting.assert_nothing_is_left();
    let auto = setting.output(&["--on", "auto", "--probe"]);
    assert!(text(&auto.stderr).contains("name it with --on"), "{}", text(&auto.stderr));
    assert_eq!(auto.status.code(), Some(2));
}

#[test]
fn settings_of_engines_come_from_the_configuration() {
    let setting = Setting::new();
    fs::create_dir_all(setting.path("config/contend")).expect("room");
    fs::create_dir(setting.path("shared")).expect("room");
    let run = |configuration: &str, words: &[&str]| {
        fs::write(setting.path("config/contend/run.toml"), configuration).expect("room");
        let mut command = setting.run(words);
        command.env("XDG_CONFIG_HOME", setting.path("config")).output().expect("it starts")
    };
    let configuration = "[slurm]\noptions = [\"--partition=long\"]\n";
    let words = ["--on", "slurm", "--parts", "2", "--emit", "job", "cat in | tr a b"];
    let output = run(configuration, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let script = fs::read_to_string(setting.path("job/submit.sh")).expect("a script");
    assert!(script.contains("--partition=long"), "{script}");
    let configuration = "[spark]\nslots = 100\n";
    let output =
        run(configuration, &["--on", "auto", "--parts", "2", "--explain", "cat in | sort"]);
    let message = text(&output.stdout);
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("runs on this machine only: "), "{message}");
    assert!(
        message.contains("it takes an estimated ") && message.contains("on spark"),
        "{message}"
    );
    let output = run(configuration, &["--on", "auto", "--parts", "2", "cat in | tr a-z A-Z"]);
    assert_eq!(text(&output.stdout), INPUT.to_uppercase(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("on spark"), "{}", text(&output.stderr));
    let configuration = "[spark]\nwork = \"none\"\n";
    let words = ["--on", "spark", "--parts", "2", "cat in | tr a b"];
    let output = run(configuration, &words);
    assert!(text(&output.stderr).contains("none is not a directory"), "{}", text(&output.stderr));
}

/// Why a work directory without a bucket is refused.
const IN_STORE: &str = if cfg!(feature = "object-store") {
    "--work s3://: a bucket is missing"
} else {
    "--work s3://: this contend was built without the feature object-store"
};

#[test]
fn mistakes_are_refused() {
    let setting = Setting::new();
    for (arguments, expected) in [
        (&["--parts", "2", "cat in"][..], "--on <ENGINE>"),
        (&["--on", "none", "cat in"], "invalid value 'none'"),
        (&["--on", "local", "--parts", "0", "cat in"], "invalid value '0'"),
        (&["--on", "local", "--work", "in", "cat in"], "--work: in is not a directory"),
        (&["--on", "local", "--master", "local", "cat in"], "--master is for --on spark"),
        (&["--engine-option", "x", "cat in"], "--engine-option is for an engine of a cluster"),
        (&["--on", "auto", "cat in"], "--on auto needs `slots` in [spark] or [slurm]"),
        (&["--dry-run", "cat in"], "--on <ENGINE>"),
        (&["--on", "local", "--fan-in", "1", "cat in"], "invalid value '1'"),
        (&["--resume", "."], "cannot read or write the job in ./job.json"),
        (&["--resume", ".", "cat in"], "cannot be used with"),
        (&["--on", "local", "--probe", "--memory", "1000000"], "cannot be used with"),
        (&["--on", "spark", "--emit", "job", "--work", ".", "cat in"], "that of --emit"),
        (&["--on", "local", "--work", "s3://", "cat in"], IN_STORE),
    ] {
        let output = setting.output(arguments);
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_ne!(output.status.code(), Some(0));
        setting.assert_nothing_is_left();
    }
}

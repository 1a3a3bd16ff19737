//! Jobs whose machines share a store instead of a directory.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contend_sys::procfs::children;
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use super::{lines, run};
use crate::support::cluster::{INPUT, Setting};
use crate::support::spark::{MASTER, set_variables, spark};
use crate::support::store::{Faults, Store};
use crate::support::{Child, Command, contend, processes_with, text, wait_until};

/// Where the files of jobs are.
const WORK: [&str; 2] = ["--work", "s3://bucket/jobs"];

fn output(setting: &Setting, address: SocketAddr, words: &[&str]) -> Output {
    run(setting, address, words).output().expect("it starts")
}

/// Starts the slow command over three parts in turn, and waits until only the last one is left.
fn start(setting: &Setting, address: SocketAddr) -> Child {
    start_for(setting, address, Duration::from_mins(5))
}

/// Does that with a deadline for the run.
fn start_for(setting: &Setting, address: SocketAddr, deadline: Duration) -> Child {
    let words = ["--on", "local", "--parts", "3", "-j", "1", "--map", "./slow"];
    let words = [&words[..], &WORK, &["cat in | ./slow"]].concat();
    let child = run(setting, address, &words).deadline(deadline).spawn().expect("it starts");
    wait_until("the last part waits", || setting.path("waiting").exists());
    child
}

/// Returns what bash prints.
pub(super) fn by_bash(setting: &Setting, pipeline: &str) -> Vec<u8> {
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
    bash.expect("bash starts").stdout
}

#[test]
fn outputs_pass_through_a_store() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    fs::write(setting.path("lines"), lines()).expect("room");
    for (pipeline, parts, stats) in [
        ("cat lines lines lines | tr 0-9 a-j", "1", "1 part of"),
        ("cat lines | grep 77", "4", "4 parts of"),
        ("sort lines | uniq -c", "7", "and 6 combinations of"),
        ("cat in | grep nothing", "3", "3 parts of"),
    ] {
        let words = [&["--on", "local", "--parts", parts], &WORK[..], &["--fan-in", "2"]];
        let words = [&words.concat(), &["--stats", pipeline][..]].concat();
        let output = output(&setting, address, &words);
        let message = text(&output.stderr);
        assert!(output.stdout == by_bash(&setting, pipeline), "{pipeline}: {message}");
        assert!(!message.contains("this machine only"), "{message}");
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(message.contains(stats), "{message}");
        assert_eq!(store.keys(), Vec::<String>::new(), "{pipeline}");
        setting.assert_nothing_is_left();
    }
    assert!(store.in_pieces.load(Ordering::Relaxed) > 0, "large outputs are written in pieces");
}

#[test]
fn an_output_that_is_damaged_in_the_store_is_made_again() {
    for (pipeline, count) in [("cat in | tr a-z A-Z", 1), ("sort in | uniq -c", 2)] {
        let setting = Setting::new();
        let store = Store::with(Faults { damages: AtomicU64::new(count), ..Faults::default() });
        let address = store.start();
        let words = ["--on", "local", "--parts", "4", "--fan-in", "2", "--stats"];
        let output = output(&setting, address, &[&words[..], &WORK, &[pipeline]].concat());
        let message = text(&output.stderr);
        assert_eq!(output.stdout, by_bash(&setting, pipeline), "{pipeline}: {message}");
        assert!(message.contains("checksum"), "{message}");
        assert_eq!(store.keys(), Vec::<String>::new(), "{pipeline}");
        setting.assert_nothing_is_left();
    }
}

#[test]
fn a_probe_leaves_nothing_in_the_store() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    let probed = output(&setting, address, &[&["--on", "local", "--probe"], &WORK[..]].concat());
    let message = text(&probed.stdout);
    assert_eq!(probed.status.code(), Some(0), "{}", text(&probed.stderr));
    assert!(message.contains("they read a new file of 256MB at "), "{message}");
    assert!(store.sent.load(Ordering::Relaxed) > 256_000_000, "workers read an object");
    assert_eq!(store.keys(), Vec::<String>::new());
    setting.assert_nothing_is_left();
}

#[test]
fn a_store_may_be_unreachable_for_a_while() {
    for faults in [
        Faults { refused_lists: AtomicU64::new(3), ..Faults::default() },
        Faults { refused_outputs: AtomicU64::new(3), ..Faults::default() },
    ] {
        let (setting, store) = (Setting::new(), Store::with(faults));
        fs::write(setting.path("go"), "").expect("room");
        let words = ["--on", "local", "--parts", "3", "--map", "./slow"];
        let words = [&words[..], &WORK, &["cat in | ./slow"]].concat();
        let output = output(&setting, store.start(), &words);
        let message = text(&output.stderr);
        assert_eq!(text(&output.stdout), INPUT, "{message}");
        let told = message.matches("waiting: cannot use s3://bucket/jobs/.contend-").count();
        assert_eq!(told, 1, "once for three requests: {message}");
        assert_eq!(setting.runs(), 3, "no part runs again");
        assert_eq!(store.keys(), Vec::<String>::new());
        setting.assert_nothing_is_left();
    }
}

#[test]
#[ignore = "takes more than five minutes; a test of the driver has a shorter tolerance"]
fn a_job_is_kept_if_its_store_stays_unreachable() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    let child = start_for(&setting, address, Duration::from_mins(8));
    store.is_down.store(true, Ordering::Relaxed);
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{message}");
    assert_eq!(message.matches("waiting: cannot use s3://bucket/jobs/.contend-").count(), 1);
    let [work] = &setting.work()[..] else { panic!("the work directory is kept: {message}") };
    let work = work.display().to_string();
    assert!(message.contains(&format!("are kept in {work}: see --resume")), "{message}");
    store.is_down.store(false, Ordering::Relaxed);
    let resumed = self::output(&setting, address, &["--resume", &work]);
    assert_eq!(text(&resumed.stdout), INPUT, "{}", text(&resumed.stderr));
    assert_eq!(setting.runs(), 4, "complete parts do not run again");
    assert_eq!(store.keys(), Vec::<String>::new());
    setting.assert_nothing_is_left();
}

#[test]
fn a_signal_ends_a_request_that_is_not_answered() {
    for words in [&["--parts", "3", "cat in | tr a b"][..], &["--probe"]] {
        let setting = Setting::new();
        let store = Store::with(Faults { hangs: true, ..Faults::default() });
        let words = [&["--on", "local"], &WORK[..], words].concat();
        let mut child = run(&setting, store.start(), &words).spawn().expect("it starts");
        wait_until("a request hangs", || store.hanging.load(Ordering::Relaxed));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let begun = Instant::now();
        let status = child.wait().expect("a child");
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{words:?}");
        // Less than the time after which the request would fail.
        assert!(begun.elapsed() < Duration::from_secs(15), "{words:?}: {:?}", begun.elapsed());
        setting.assert_nothing_is_left();
    }
}

#[test]
fn a_stage_of_a_script_keeps_its_files_where_contend_was_started() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    let slow = setting.path("slow").display().to_string();
    let script = format!("mkdir sub\ncd sub\ncat ../in | {slow}\n");
    fs::write(setting.path("script"), script).expect("room");
    let words = ["--on", "local", "--parts", "3", "-j", "1", "--map", &slow];
    let words = [&words[..], &WORK, &["-f", "script"]].concat();
    let child = run(&setting, address, &words).spawn().expect("it starts");
    wait_until("the last part waits", || setting.path("sub/waiting").exists());
    assert_eq!(setting.work().len(), 2, "the directory sub, and that of the job");
    fs::write(setting.path("sub/go"), "").expect("room");
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    fs::remove_dir_all(setting.path("sub")).expect("own folder");
    setting.assert_nothing_is_left();
}

#[test]
fn scripts_do_not_depend_on_the_store() {
    let setting = Setting::new();
    let store = Store::with(Faults { is_read_only: true, ..Faults::default() });
    let address = store.start();
    fs::write(setting.path("script"), "mkdir sub\ncd sub\ncat ../in | tr a-z A-Z\n").expect("room");
    let words = [&["--on", "local", "--parts", "3"], &WORK[..], &["-f", "script"]].concat();
    let output = output(&setting, address, &words);
    let message = text(&output.stderr);
    assert_eq!(output.stdout, by_bash(&setting, "cat in | tr a-z A-Z"), "{message}");
    assert!(
        message.contains("runs on this machine only: cannot use the work directory s3://"),
        "{message}"
    );
    fs::remove_dir(setting.path("sub")).expect("contend leaves nothing there");
    setting.assert_nothing_is_left();
}

#[test]
fn a_job_with_a_store_is_continued() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    let mut child = start(&setting, address);
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it runs");
    child.wait().expect("a child");
    let name = setting.0.path().display().to_string();
    wait_until("no process is left", || processes_with(&name).is_empty());
    let [work] = &setting.work()[..] else { panic!("the work directory is left") };
    assert_eq!(store.outputs(), 2, "{:?}", store.keys());
    setting.go();
    let work = work.display().to_string();
    let refused = output(&setting, address, &["--resume", &work, "--on", "slurm"]);
    let message = text(&refused.stderr);
    assert!(message.contains("need a work directory that all machines share"), "{message}");
    let output = output(&setting, address, &["--resume", &work]);
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(setting.runs(), 4, "complete parts do not run again");
    assert_eq!(store.keys(), Vec::<String>::new());
    setting.assert_nothing_is_left();
}

#[test]
fn a_signal_leaves_nothing_in_the_store() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let child = start(&setting, store.start());
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    child.wait_with_output().expect("a child");
    assert_eq!(store.keys(), Vec::<String>::new());
    setting.assert_nothing_is_left();
}

#[test]
fn trouble_with_a_store_is_an_error_with_its_reason() {
    let setting = Setting::new();
    let store = Store::with(Faults { is_read_only: true, ..Faults::default() });
    let address = store.start();
    let words = ["--on", "local", "--parts", "2"];
    let refused = output(&setting, address, &[&words[..], &WORK, &["cat in | tr a b"]].concat());
    let message = text(&refused.stderr);
    assert!(
        message.contains("cannot use the work directory s3://bucket/jobs/.contend-"),
        "{message}"
    );
    assert!(message.contains("Permission denied"), "{message}");
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(125), 0), "{message}");
    setting.assert_nothing_is_left();

    let store = Arc::new(Store::default());
    let address = store.start();
    let slurm = ["--on", "slurm", "--parts", "2", "--work", "s3://bucket/jobs", "cat in | tr a b"];
    let refused = output(&setting, address, &slurm);
    let message = text(&refused.stderr);
    assert!(message.contains("need a work directory that all machines share"), "{message}");
    assert_eq!(refused.status.code(), Some(2));
    let emit = ["--on", "spark", "--emit", "job", "--work", ".", "cat in | tr a b"];
    let refused = output(&setting, address, &emit);
    assert!(text(&refused.stderr).contains("that of --emit"), "{}", text(&refused.stderr));
    assert_eq!(store.keys(), Vec::<String>::new());
    setting.assert_nothing_is_left();
}

#[test]
fn a_part_that_always_fails_is_an_error_with_its_reason() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let child = start(&setting, store.start());
    // The attempt at the part that waits has opened the file; the next one does not find it.
    let [part] = children(Pid::from_child(&child))[..] else { panic!("one attempt at a time") };
    fs::rename(setting.path("in"), setting.path("moved")).expect("own file");
    kill_process(part, Signal::KILL).expect("it runs");
    setting.go();
    let output = child.wait_with_output().expect("a child");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains("part 3 of 3 (bytes "), "{message}");
    assert!(message.contains("cannot read in: No such file or directory"), "{message}");
    assert_eq!(store.keys(), Vec::<String>::new());
    setting.assert_nothing_is_left();
}

#[test]
fn a_worker_need_not_have_the_directory_of_the_job() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    store.put("in", b"b\na\n");
    let words = ["--on", "spark", "--parts", "1", "--emit", "job"];
    let words = [&words[..], &WORK, &["cat s3://bucket/in | tr a-z A-Z"]].concat();
    assert_eq!(output(&setting, address, &words).status.code(), Some(0));
    let job = fs::read_to_string(setting.path("job/job.json")).expect("a job");
    let folder = setting.0.path().display().to_string();
    let elsewhere = job.replace(&format!("\"directory\":\"{folder}\""), "\"directory\":\"/none\"");
    assert_ne!(job, elsewhere);
    fs::write(setting.path("job.json"), elsewhere).expect("room");
    fs::create_dir(setting.path("scratch")).expect("room");
    let part = |more: &[&str]| {
        let mut part = Command::new(contend());
        part.args(["part", "--plan", "job.json", "--part", "0", "--attempt", "0"]).args(more);
        part.current_dir(setting.0.path()).output().expect("it starts")
    };
    let refused = part(&[]);
    assert!(text(&refused.stderr).contains("--scratch is needed"), "{}", text(&refused.stderr));
    let complete = part(&["--scratch", "scratch"]);
    assert_eq!(complete.status.code(), Some(0), "{}", text(&complete.stderr));
    assert_eq!(store.outputs(), 1, "{:?}", store.keys());
}

#[test]
fn workers_of_spark_need_no_shared_directory() {
    let test = "objects::work::workers_of_spark_need_no_shared_directory";
    let Some(home) = spark(test) else { return };
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    let lines = lines();
    store.put("lines", lines.as_bytes());
    fs::write(setting.path("lines"), &lines).expect("room");
    let words = ["--on", "spark", "--master", MASTER, "--parts", "4", "--fan-in", "2"];
    let words =
        [&words[..], &WORK, &["--emit", "job", "sort s3://bucket/lines | uniq -c"]].concat();
    let mut emit = run(&setting, address, &words);
    set_variables(&mut emit, &home, &home.join("bin"));
    let emitted = emit.output().expect("it starts");
    assert_eq!(emitted.status.code(), Some(0), "{}", text(&emitted.stderr));
    let mut submit = Command::new("sh");
    submit.arg("job/submit.sh").current_dir(setting.0.path());
    set_variables(&mut submit, &home, &home.join("bin"));
    let submitted = submit.output().expect("it starts");
    assert_eq!(submitted.status.code(), Some(0), "{}", text(&submitted.stderr));
    assert_eq!(store.outputs(), 4, "{:?}", store.keys());
    let mut resume = run(&setting, address, &["--resume", "job"]);
    set_variables(&mut resume, &home, &home.join("bin"));
    let output = resume.output().expect("it starts");
    let message = text(&output.stderr);
    assert!(output.stdout == by_bash(&setting, "sort lines | uniq -c"), "{message}");
    assert!(!message.contains("this machine"), "{message}");
    let left = ["lines".to_owned()];
    assert_eq!(store.keys(), left, "{message}");
}

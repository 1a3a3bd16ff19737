//! Tests of `contend run --on spark`. They run alone, because Spark keeps all CPUs busy.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contend_sys::procfs::with_descendants;
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use crate::run_exclusively;
use crate::support::cluster::{INPUT, Setting};
use crate::support::{Command, has, skip, text, wait_until};

/// Returns the folder of a Spark installation, or skips the test with a message.
fn spark(test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("SPARK_HOME").map(PathBuf::from);
    match home.filter(|home| home.join("bin/spark-submit").exists()) {
        Some(home) if has("java") && has("python3") => Some(home),
        _ => {
            skip(test, "SPARK_HOME does not name an Apache Spark, or there is no Java or Python");
            None
        }
    }
}

/// Returns the command that runs a pipeline on a Spark cluster with two executors on this machine.
fn on_spark(setting: &Setting, home: &Path, parts: &str, more: &[&str], pipeline: &str) -> Command {
    let words = ["--on", "spark", "--master", "local-cluster[2,1,1024]", "--parts", parts];
    let mut command = setting.run(&[&words, more, &[pipeline]].concat());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", home.join("bin").display()));
    command.env("SPARK_HOME", home).env("SPARK_LOCAL_IP", "127.0.0.1");
    command.env("PYTHONPATH", home.parent().expect("a folder of packages"));
    command
}

#[test]
fn spark_changes_no_byte_and_no_exit_code() {
    let test = "spark_changes_no_byte_and_no_exit_code";
    let Some(home) = spark(test) else { return };
    run_exclusively(|| check_bytes(&home));
}

fn check_bytes(home: &Path) {
    let setting = Setting::new();
    fs::write(setting.path("bytes"), b"b\r\n\xff\xfe\n\n a\tc \nb\r\nlast").expect("room");
    for (pipeline, code) in
        [("cat bytes | LC_ALL=C tr a-c x-z", 0), ("cat bytes in | grep -a zzz", 1)]
    {
        let mut bash = Command::new("bash");
        let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
        let bash = bash.expect("bash starts");
        let output = on_spark(&setting, home, "4", &[], pipeline).output().expect("it starts");
        let message = text(&output.stderr);
        assert_eq!(output.stdout, bash.stdout, "{pipeline}: {message}");
        assert_eq!(output.status.code(), Some(code), "{pipeline}: {message}");
        assert!(!message.contains("this machine only"), "{message}");
        setting.assert_nothing_is_left();
    }
}

#[test]
fn spark_repeats_what_was_lost_with_an_executor() {
    let test = "spark_repeats_what_was_lost_with_an_executor";
    let Some(home) = spark(test) else { return };
    run_exclusively(|| check_lost_executors(&home));
}

fn check_lost_executors(home: &Path) {
    let setting = Setting::new();
    let child = on_spark(&setting, home, "3", &["--map", "./slow"], "cat in | ./slow").spawn();
    let child = child.expect("it starts");
    wait_until("the last part waits", || setting.path("waiting").exists());
    let of_job = with_descendants(Pid::from_child(&child));
    let executors: Vec<Pid> = of_job
        .into_iter()
        .filter(|pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            let line = line.unwrap_or_default();
            String::from_utf8_lossy(&line).contains("CoarseGrainedExecutorBackend")
        })
        .collect();
    assert!(!executors.is_empty(), "there are executors");
    for executor in executors {
        let _ = kill_process(executor, Signal::KILL); // a wrapper may have ended with it
    }
    std::thread::sleep(Duration::from_millis(500));
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(setting.runs() > 3, "a part ran again");
    setting.assert_nothing_is_left();
}

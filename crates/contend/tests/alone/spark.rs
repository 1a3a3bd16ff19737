//! Tests of `contend run --on spark`. They run alone, because Spark keeps all CPUs busy.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;

use contend_sys::procfs::with_descendants;
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;
use tempfile::TempDir;

use crate::run_exclusively;
use crate::support::cluster::{INPUT, Setting};
use crate::support::spark::{MASTER, set_variables, spark};
use crate::support::{Child, Command, text, wait_until, write_program};

/// Returns the command that runs a pipeline on a Spark cluster with two executors on this machine.
fn on_spark(setting: &Setting, home: &Path, parts: &str, more: &[&str], pipeline: &str) -> Command {
    on_master(MASTER, setting, home, &[&["--parts", parts], more].concat(), pipeline)
}

/// Returns the command that runs a pipeline on the Spark cluster with the given master.
fn on_master(
    master: &str,
    setting: &Setting,
    home: &Path,
    more: &[&str],
    pipeline: &str,
) -> Command {
    let words = ["--on", "spark", "--master", master];
    let mut command = setting.run(&[&words, more, &[pipeline]].concat());
    set_variables(&mut command, home, &home.join("bin"));
    command
}

/// A cluster of a master and two workers, whose hosts have different names. It ends when this is dropped.
pub struct Standalone {
    /// The URL of the master.
    pub url: String,
    _folder: TempDir,
    _daemons: [Child; 3],
}

impl Standalone {
    /// Starts a cluster with the Spark in a folder.
    pub fn start(home: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let url = format!("spark://127.0.0.1:{port}");
        let log = folder.path().join("master");
        let daemon = |class: &str, host: &str, log: &Path, words: &[&str]| {
            let mut command = Command::new(home.join("bin/spark-class"));
            command.arg(format!("org.apache.spark.deploy.{class}"));
            command.args(["--host", host, "--webui-port", "0"]).args(words);
            set_variables(&mut command, home, &home.join("bin"));
            let log = File::create(log).expect("room");
            command.env("SPARK_LOCAL_IP", host).stdin(Stdio::null()).stdout(Stdio::null());
            command.current_dir(folder.path()).stderr(log).spawn().expect("it starts")
        };
        let master = daemon("master.Master", "127.0.0.1", &log, &["--port", &port.to_string()]);
        let workers = ["127.0.0.2", "127.0.0.3"].map(|host| {
            let work = folder.path().join(host).display().to_string();
            let words = ["--cores", "1", "--memory", "1g", "--work-dir", &work, &url];
            daemon("worker.Worker", host, &folder.path().join(format!("log.{host}")), &words)
        });
        wait_until("two workers are registered", || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            log.matches("Registering worker").count() == 2
        });
        let [one, two] = workers;
        Self { url, _folder: folder, _daemons: [master, one, two] }
    }
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

/// A command that copies its input. The first process that reads the line `wait` waits until there is a file `go`.
const ONCE: &str = "#!/bin/sh\n\
                    while read -r line; do\n  \
                      if [ \"$line\" = wait ] && mkdir waiting; then until [ -e go ]; do sleep 0.02; done; fi\n  \
                      echo \"$line\"\n\
                    done 2>/dev/null\n";

#[test]
fn spark_need_not_wait_for_a_slow_worker() {
    let test = "spark_need_not_wait_for_a_slow_worker";
    let Some(home) = spark(test) else { return };
    run_exclusively(|| check_slow_worker(&home));
}

/// Spark starts a second attempt at a slow task on another machine only, so that this needs workers whose hosts have different
/// names.
fn check_slow_worker(home: &Path) {
    let (setting, cluster) = (Setting::new(), Standalone::start(home));
    let once = setting.path("once");
    write_program(&once, ONCE);
    let options = ["speculation=true", "speculation.interval=100ms", "speculation.quantile=0.5"];
    let options = options.map(|option| format!("--engine-option=spark.{option}"));
    let [enable, interval, quantile] = options.each_ref().map(String::as_str);
    let conf = "--engine-option=--conf";
    let words = ["--parts", "3", "--map", "./once", conf, enable, conf, interval, conf, quantile];
    let command = &mut on_master(&cluster.url, &setting, home, &words, "cat in | ./once");
    let output = command.output().expect("it starts");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(setting.path("waiting").exists(), "one attempt was slow");
    fs::remove_dir(setting.path("waiting")).expect("own folder");
    setting.assert_nothing_is_left();
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
    let runs = |pid: &Pid, program: &str| {
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
        String::from_utf8_lossy(&line.unwrap_or_default()).contains(program)
    };
    let that_run =
        |program: &str| of_job.iter().copied().filter(|pid| runs(pid, program)).collect();
    let executors: Vec<Pid> = that_run("CoarseGrainedExecutorBackend");
    let commands: Vec<Pid> = that_run("/bin/sh\0./slow");
    assert!(!executors.is_empty(), "there are executors");
    assert!(!commands.is_empty(), "their attempts run commands");
    for executor in executors {
        let _ = kill_process(executor, Signal::KILL); // a wrapper may have ended with it
    }
    wait_until("the commands have ended with the executors", || {
        !commands.iter().any(|pid| runs(pid, "./slow"))
    });
    setting.go();
    let output = child.wait_with_output().expect("a child");
    assert_eq!(text(&output.stdout), INPUT, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(setting.runs() > 3, "a part ran again");
    setting.assert_nothing_is_left();
}

//! Tests with programs that end, stop, multiply or hide, and with few resources and permissions. The
//! figures of each record must fit together ([`super::checks`]).

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Output, Stdio};
use std::time::Duration;

use contend_sys::procfs::{Stat, children};
use contend_sys::{Pid, Signal};
use rustix::process::{kill_process, test_kill_process};
use serde_json::Value;

use super::{Running, checks, doctor, figure, is_used, record};
use crate::control_group::ControlGroup;
use crate::support::{
    Command, PublicFolder, as_nobody, contend, has, is_root, skip, text, wait_until,
};
use crate::terminal::typed_on_a_terminal;

/// A program with many threads that wait, which are created on request.
struct Threads {
    program: crate::support::Child,
    answers: std::io::BufReader<std::process::ChildStdout>,
}

impl Threads {
    fn start() -> Self {
        let mut command = Command::new(contend());
        command.args(["lab-probe", "thread"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.stderr(Stdio::null()).spawn().expect("contend starts");
        let stdout = program.stdout.take().expect("a pipe");
        let mut threads = Self { program, answers: std::io::BufReader::new(stdout) };
        assert!(threads.answer().starts_with("ready "));
        threads
    }

    fn with(count: usize) -> Self {
        let mut threads = Self::start();
        threads.create(count);
        threads
    }

    fn create(&mut self, count: usize) {
        use std::io::Write as _;
        let stdin = self.program.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "park {count} 0").expect("it reads");
        assert!(self.answer().starts_with(&format!("parked {count} ")));
    }

    fn answer(&mut self) -> String {
        use std::io::BufRead as _;
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line
    }

    fn id(&self) -> String {
        self.program.id().to_string()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A script in Python, which is killed at the end. Skips the test and returns `None` without Python.
fn python(test: &str, script: &str) -> Option<Running> {
    if !has("python3") {
        skip(test, "there is no python3");
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
    Some(Running(command.spawn().expect("python3 starts")))
}

/// Returns the sum of the times of a record in a state, as a share of the time of all threads.
fn share(record: &Value, state: &str) -> f64 {
    figure(record, &format!("/state_seconds/{state}")) / figure(record, "/thread_seconds")
}

/// Returns the mean number of threads that were observed.
fn mean_threads(record: &Value) -> f64 {
    figure(record, "/thread_seconds") / figure(record, "/observed_seconds")
}

fn has_warning(record: &Value, id: &str) -> bool {
    record["warnings"].as_array().expect("a list").iter().any(|warning| warning["id"] == id)
}

/// Starts `contend doctor` with the arguments, and waits until it observes a thread.
fn start(arguments: &[&str]) -> crate::support::Child {
    let mut command = Command::new(contend());
    command.arg("doctor").args(arguments).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let observer = command.spawn().expect("contend starts");
    let folder = format!("/proc/{}/fd", observer.id());
    wait_until("contend observes a thread", || {
        let links = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        links
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|link| link.to_string_lossy().ends_with("/schedstat"))
    });
    observer
}

/// Runs a command with contend in its arguments, and returns the record that it writes.
fn record_by(command: &mut Command) -> Value {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let record = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    checks::check(&record);
    record
}

const JSON: [&str; 5] = ["doctor", "--json", "-", "--output", "/dev/null"];

/// Returns whether the observation is too short for shares. A slow machine may prolong it.
fn is_short(record: &Value) -> bool {
    figure(record, "/observed_seconds") < 0.2
}

#[test]
fn a_program_that_ends_at_once_is_reported() {
    for command in ["true", "false", "sleep 0.05"] {
        let words: Vec<&str> = command.split(' ').collect();
        let record = record(&[&["--"], &words[..]].concat());
        assert_eq!(has_warning(&record, "few-samples"), is_short(&record), "{record:#}");
        assert_eq!(record["exit_code"], i32::from(command == "false"), "{record:#}");
    }
}

#[test]
fn the_observation_ends_with_the_program() {
    let sleep = Running::start("exec sleep 3");
    let record = record(&["--for", "1h", &sleep.id()]);
    assert!(figure(&record, "/observed_seconds") < 100.0);
    assert!(!has_warning(&record, "unobserved"), "{record:#}");
}

#[test]
fn a_zombie_is_refused() {
    let parent = Running::start("sleep 0.3 & exec sleep 1000");
    let mut zombie = None;
    wait_until("its child has ended", || {
        let is_zombie = |pid: &Pid| Stat::of(*pid).is_ok_and(|stat| stat.state == b'Z');
        zombie = children(parent.pid()).into_iter().find(is_zombie);
        zombie.is_some()
    });
    let zombie = zombie.map(|pid| pid.as_raw_nonzero().to_string()).expect("found");
    let output = doctor(&[&zombie]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("has ended"), "{}", text(&output.stderr));
}

#[test]
fn thousands_of_children_are_counted() {
    let record = record(&["--", "bash", "-c", "for ((i = 0; i < 2000; i++)); do (:); done"]);
    assert_eq!(record["exit_code"], 0);
    if is_used(&record, "switches") {
        let cpu = figure(&record, "/cpu_seconds");
        assert!(figure(&record, "/processes/0/cpu_seconds") < cpu, "children count: {record:#}");
    }
}

#[test]
fn a_process_that_executes_another_program_goes_on() {
    let script = "for i in {1..3}; do sleep 0.1; done; exec sleep 0.3";
    let record = record(&["--", "bash", "-c", script]);
    let threads = record["threads"].as_array().expect("threads");
    assert!(threads.iter().any(|thread| thread["name"] == "sleep"), "{record:#}");
}

/// A thread that executes a program gets the ID of the process, and all others end.
#[test]
fn a_thread_may_execute_another_program() {
    let test = "a_thread_may_execute_another_program";
    let script = "import os, threading, time\n\
                  for i in range(5):\n    \
                      threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n\
                  time.sleep(0.5)\n\
                  run = lambda: os.execvp('sleep', ['sleep', '1000'])\n\
                  threading.Thread(target=run).start()\n\
                  time.sleep(1000)\n";
    let Some(program) = python(test, script) else { return };
    let observer = start(&["--for", "1h", "--json", "-", "--output", "/dev/null", &program.id()]);
    let command = format!("/proc/{}/cmdline", program.id());
    wait_until("it executes sleep", || {
        std::fs::read(&command).unwrap_or_default().starts_with(b"sleep\0")
    });
    std::thread::sleep(Duration::from_secs(2));
    kill_process(Pid::from_child(&observer), Signal::INT).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    checks::check(&record);
    let processes = record["processes"].as_array().expect("processes");
    assert_eq!(processes[0]["command"], "sleep 1000", "{record:#}");
    // Nothing ran, but for a moment.
    let running = figure(&record, "/state_seconds/running");
    let moments = record["moments"].as_array().expect("moments");
    let is_running = |moments: &&Value| moments["cause"] == "serial" || moments["cause"] == "busy";
    let busy: f64 = moments.iter().filter(is_running).map(|m| figure(m, "/seconds")).sum();
    assert!(busy < running + 0.5, "{busy} s: {record:#}");
}

#[test]
fn many_threads_are_observed() {
    let (before, mut later) = (Threads::with(1000), Threads::start());
    let arguments = ["--for", "1h", "--json", "-", "--output", "/dev/null"];
    let observer = start(&[&arguments[..], &[&before.id(), &later.id()]].concat());
    std::thread::sleep(Duration::from_millis(500));
    later.create(1000);
    std::thread::sleep(Duration::from_secs(4));
    kill_process(Pid::from_child(&observer), Signal::INT).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    checks::check(&record);
    assert!(mean_threads(&record) > 1000.0, "{record:#}");
    assert!(figure(&record, "/observation/threads") > 2000.0, "{record:#}");
    assert!(share(&record, "condition") > 0.9, "{record:#}");
}

/// Every thread is observed, although contend may open fewer files than there are threads.
#[test]
fn few_descriptors_suffice_for_many_threads() {
    let threads = Threads::with(100);
    let observe = |limit: u32, options: &[&str]| -> Output {
        let script = "ulimit -n $0 && exec \"$@\"";
        let mut command = Command::new("bash");
        command.args(["-c", script, &limit.to_string(), contend()]).args(options);
        command.stdin(Stdio::null()).output().expect("bash starts")
    };
    for limit in [30, 64, 300] {
        let output = observe(limit, &[&JSON, &["--for", "500ms", &threads.id()][..]].concat());
        let record: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        checks::check(&record);
        assert_eq!(record["observation"]["threads"], 101, "{limit}: {record:#}");
        assert!(mean_threads(&record) > 50.0, "{limit}: {record:#}");
        assert!(!has_warning(&record, "unobserved"), "{record:#}");
    }
    // Standard streams and the eight that an observation needs are more than ten; from eleven on,
    // it depends on what the kernel lets contend open.
    for limit in 10..20 {
        let output = observe(limit, &[&JSON, &["--for", "100ms", &threads.id()][..]].concat());
        let errors = text(&output.stderr);
        if limit > 10 && output.status.success() {
            checks::check(&serde_json::from_slice(&output.stdout).expect("JSON"));
        } else {
            assert_eq!(output.status.code(), Some(125), "{limit}: {errors}");
            assert!(errors.contains("ulimit -n"), "{limit}: {errors}");
        }
    }
}

#[test]
fn a_missing_command_is_missing_even_if_a_directory_in_path_is_closed() {
    let test = "a_missing_command_is_missing_even_if_a_directory_in_path_is_closed";
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).expect("room");
    std::fs::set_permissions(&closed, Permissions::from_mode(0o000)).expect("own directory");
    std::fs::write(folder.path().join("plain"), "").expect("room");
    let path = format!("{}:{}:/bin:/usr/bin", closed.display(), folder.path().display());
    for (name, code, why) in
        [("no-such-command", 127, "No such file or directory"), ("plain", 126, "Permission denied")]
    {
        let Some(mut command) = as_nobody(test, &program) else { return };
        let output = command.args(["doctor", "--", name]).env("PATH", &path).output();
        let output = output.expect("it starts");
        let message = text(&output.stderr);
        assert!(
            message.starts_with(&format!("contend: cannot execute {name}: {why}")),
            "{message}"
        );
        assert_eq!(output.status.code(), Some(code), "{message}");
    }
}

#[test]
fn two_hundred_processes_are_observed() {
    let sleepers: Vec<Running> = (0..200).map(|_| Running::start("exec sleep 1000")).collect();
    let ids: Vec<String> = sleepers.iter().map(Running::id).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    wait_until("they sleep", || {
        let command_line = |id: &&str| std::fs::read(format!("/proc/{id}/cmdline"));
        ids.iter().all(|id| command_line(id).unwrap_or_default().starts_with(b"sleep\0"))
    });
    let record = record(&[&["--for", "500ms"], &ids[..]].concat());
    assert!(figure(&record, "/observation/processes") >= 200.0, "{record:#}");
    assert!(mean_threads(&record) > 100.0, "{record:#}");
    let report = text(&doctor(&[&["--for", "100ms"], &ids[..]].concat()).stderr);
    let headline = report.lines().next().unwrap_or_default();
    assert!(headline.contains("200 processes"), "{headline}");
    let command = report.lines().nth(1).unwrap_or_default();
    assert_eq!(command, "sleep 1000 and others");
    let report = text(&doctor(&["--for", "100ms", ids[0], ids[1], ids[2]]).stderr);
    assert_eq!(report.lines().nth(1), Some("sleep 1000 and 2 more processes"));
}

#[test]
fn a_stopped_program_is_stopped_and_not_asleep() {
    let sleep = Running::start("exec sleep 1000");
    wait_until("it sleeps", || {
        let path = format!("/proc/{}/cmdline", sleep.id());
        std::fs::read(path).unwrap_or_default().starts_with(b"sleep\0")
    });
    std::thread::sleep(Duration::from_millis(100));
    kill_process(sleep.pid(), Signal::STOP).expect("alive");
    let record = record(&["--for", "1s", &sleep.id()]);
    assert!(share(&record, "stopped") > 0.9, "{record:#}");
    assert_eq!(record["moments"][0]["cause"], "stopped", "{record:#}");
}

#[test]
fn a_program_that_is_stopped_during_the_observation_was_asleep_before() {
    let sleep = Running::start("exec sleep 1000");
    let observer = start(&["--for", "1h", "--json", "-", "--output", "/dev/null", &sleep.id()]);
    for signal in [Signal::STOP, Signal::CONT, Signal::STOP] {
        std::thread::sleep(Duration::from_secs(1));
        kill_process(sleep.pid(), signal).expect("alive");
    }
    std::thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_child(&observer), Signal::INT).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    checks::check(&record);
    for state in ["stopped", "sleep"] {
        assert!((0.1..0.9).contains(&share(&record, state)), "{state}: {record:#}");
    }
}

/// Once the main thread has ended, the process is a zombie, but its other threads run.
#[test]
fn threads_that_outlive_the_main_thread_are_observed() {
    let test = "threads_that_outlive_the_main_thread_are_observed";
    let script = "import ctypes, platform, threading, time\n\
                  for i in range(3):\n    \
                      threading.Thread(target=time.sleep, args=(1000,)).start()\n\
                  number = {'x86_64': 60, 'aarch64': 93}[platform.machine()]\n\
                  ctypes.CDLL(None).syscall(number, 0)\n";
    let Some(program) = python(test, script) else { return };
    wait_until("its main thread has ended", || {
        Stat::of(program.pid()).is_ok_and(|stat| stat.state == b'Z' && stat.threads > 1)
    });
    let record = record(&["--for", "500ms", &program.id()]);
    assert!(mean_threads(&record) > 2.0, "{record:#}");
    assert!(figure(&record, "/observed_seconds") > 0.4, "{record:#}");
}

#[test]
fn a_queue_for_a_single_cpu_is_no_wait() {
    let test = "a_queue_for_a_single_cpu_is_no_wait";
    if !has("taskset") {
        return skip(test, "there is no taskset");
    }
    let cpus = contend_sys::cpu::allowed_list();
    let cpu = cpus.first().expect("a CPU").to_string();
    let loops = "for i in {1..10}; do timeout 2 bash -c 'while :; do :; done' & done; wait";
    let record = record(&["--", "taskset", "-c", &cpu, "bash", "-c", loops]);
    assert!(share(&record, "runnable") > 0.2, "{record:#}");
    assert_eq!(record["cpus"], 1.0, "{record:#}");
}

/// The program is moved into the group after its start, as by a container runtime.
#[test]
#[ignore = "needs the right to make control groups; .ci/run runs it where there is that right"]
fn the_quota_of_another_control_group_is_found() {
    let group = ControlGroup::new("cpu", &["cpu.cfs_quota_us=50000", "cpu.max=50000 100000"]);
    let script = format!("{}; (timeout 2 sh -c 'while :; do :; done'); :", group.join());
    let record = record(&["--", "sh", "-c", &script]);
    group.remove();
    assert_eq!(record["cpus"], 0.5, "{record:#}");
    // It runs for half of the time, and is stopped for the other half.
    let moments = record["moments"].as_array().expect("a list");
    let limited = moments.iter().find(|moment| moment["cause"] == "limited");
    assert!(limited.is_some_and(|moment| figure(moment, "/share") > 0.3), "{record:#}");
    // Without free CPUs, a larger quota would save nothing.
    if figure(&record, "/observation/others_cpu_share") < 0.3 {
        assert_eq!(record["findings"][0]["symptom"], "cpu-limit", "{record:#}");
    }
}

#[test]
fn a_limit_of_the_program_alone_is_found() {
    let test = "a_limit_of_the_program_alone_is_found";
    if !has("taskset") {
        return skip(test, "there is no taskset");
    }
    let cpus = contend_sys::cpu::allowed_list();
    let cpu = cpus.first().expect("a CPU").to_string();
    let script = format!("taskset -c {cpu} timeout 3 sh -c 'while :; do :; done'; :");
    assert_eq!(record(&["--", "sh", "-c", &script])["cpus"], 1.0);
}

#[test]
fn contend_may_have_a_single_cpu_or_little_memory_for_records() {
    let test = "contend_may_have_a_single_cpu_or_little_memory_for_records";
    let threads = Threads::with(10);
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -l 0; exec \"$@\"", "bash", contend()]).args(JSON);
    let record = record_by(command.args(["--for", "300ms", &threads.id()]));
    assert!(mean_threads(&record) > 6.0, "{record:#}");
    if !has("taskset") {
        return skip(test, "there is no taskset");
    }
    let cpus = contend_sys::cpu::allowed_list();
    let mut command = Command::new("taskset");
    command.args(["-c", &cpus.first().expect("a CPU").to_string(), contend()]).args(JSON);
    let record = record_by(command.args(["--for", "300ms", &threads.id()]));
    assert!(mean_threads(&record) > 6.0, "{record:#}");
}

#[test]
fn contend_may_observe_the_shell_that_started_it() {
    let script = format!("{} doctor --for 300ms $$; :", contend());
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash starts");
    let report = text(&output.stderr);
    assert!(report.contains("| 1 process, 1 thread"), "contend itself does not count: {report}");
}

#[test]
fn wrong_processes_and_times_are_refused() {
    let refused = |arguments: &[&str], expected: &str| {
        let output = doctor(arguments);
        let report = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{report}");
        assert!(report.contains(expected), "{report}");
    };
    let threads = Threads::with(1);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", threads.id())).expect("alive");
    let mut ids = tasks.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let thread = ids.find(|id| *id != threads.id()).expect("another thread");
    refused(&[&thread], &format!("{thread} is a thread of process {}", threads.id()));
    refused(&["0"], "whole number");
    for time in ["0s", "100000000000000000s", "-1s", "1e300s"] {
        refused(&[&format!("--for={time}"), &threads.id()], "expected a time such as");
    }
    let record = record(&["--for", "1ms", &threads.id()]);
    assert_eq!(has_warning(&record, "few-samples"), is_short(&record), "{record:#}");
    let script = format!("exec {} doctor $$", contend());
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash starts");
    assert!(text(&output.stderr).contains("is contend itself"), "{}", text(&output.stderr));
}

#[test]
fn a_command_that_cannot_be_executed_has_the_shell_s_status() {
    for (command, status) in [("/etc/passwd", 126), ("/", 126), ("", 127), ("./no/such", 127)] {
        let output = doctor(&["--", command]);
        assert_eq!(output.status.code(), Some(status), "{command}");
        assert!(text(&output.stderr).starts_with("contend: cannot execute "));
    }
}

#[test]
fn the_report_fits_the_terminal_and_60_columns() {
    let threads = Threads::with(3);
    for (columns, width) in [(100, 100), (60, 60), (40, 60)] {
        let mut command = Command::new(contend());
        command.args(["doctor", "--verbose", "--for", "300ms", &threads.id()]);
        let output = command.env("COLUMNS", columns.to_string()).output().expect("it starts");
        for line in text(&output.stderr).lines() {
            assert!(line.chars().count() <= width, "{columns}: {line}");
        }
    }
}

#[test]
fn closed_or_full_outputs_are_errors_and_the_command_runs_to_its_end() {
    let run = |redirection: &str, options: &str, status: i32| {
        let folder = tempfile::tempdir().expect("a folder");
        let done = folder.path().join("done");
        let script = format!(
            "{} doctor {options} -- sh -c 'sleep 0.1; : >{}; exit {status}' {redirection}",
            contend(),
            done.display()
        );
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash starts");
        assert!(done.exists(), "{redirection} {options}");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for redirection in [">&-", "<&-"] {
        assert_eq!(run(redirection, "--output /dev/null", 3).0, Some(3), "{redirection}");
    }
    assert_eq!(run("2>&-", "", 0).0, Some(0), "a closed stream is no error");
    for (redirection, options) in [
        ("", "--output /dev/full"),
        ("2>/dev/null", "--json /dev/full"),
        ("2>/dev/full", ""),
        (">/dev/full", "--json - --output /dev/null"),
        (">&-", "--json - --output /dev/null"),
    ] {
        assert_eq!(run(redirection, options, 0).0, Some(125), "{redirection} {options}");
        assert_eq!(run(redirection, options, 3).0, Some(3), "that of the command takes precedence");
    }
    let (_, message) = run("", "--output /dev/full", 3);
    assert!(message.contains("No space left on device"), "{message}");
}

#[test]
fn a_signal_ends_the_observation_and_the_command() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let observer = start(&["--", "sleep", "1000"]);
        let command = children(Pid::from_child(&observer)).first().copied().expect("started");
        kill_process(Pid::from_child(&observer), signal).expect("alive");
        let output = observer.wait_with_output().expect("a child");
        assert_eq!(output.status.signal(), Some(signal.as_raw()));
        let report = text(&output.stderr);
        assert!(report.contains("Diagnosis: "), "{report}");
        assert!(report.contains(&format!("exit {}", 128 + signal.as_raw())), "{report}");
        assert!(test_kill_process(command).is_err(), "it has been reaped");
    }
}

#[test]
fn a_broken_pipe_signal_is_no_reason_to_end() {
    let sleep = Running::start("exec sleep 1000");
    let observer = start(&["--for", "500ms", &sleep.id()]);
    kill_process(Pid::from_child(&observer), Signal::PIPE).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("Diagnosis: "));
}

#[test]
fn a_command_may_read_from_the_terminal() {
    let test = "a_command_may_read_from_the_terminal";
    let script = "printf Name:; read name; echo Hello $name";
    let line = format!("{} doctor -- sh -c '{script}'", contend());
    let keys = [("Name:", "Ada\r")];
    let Some(screen) = typed_on_a_terminal(test, 80, &line, &keys) else { return };
    assert!(screen.contains("Hello Ada"), "{screen}");
    assert!(screen.contains("Diagnosis:"), "{screen}");
}

#[test]
fn names_cannot_control_the_terminal() {
    let test = "names_cannot_control_the_terminal";
    // The name of the thread and its arguments: an escape sequence, a newline and invalid UTF-8.
    let script = "import ctypes, time\n\
                  ctypes.CDLL(None).prctl(15, b'\\x1b[31mx\\n\\xff', 0, 0, 0)\n\
                  time.sleep(1000)\n#\u{1b}[32m";
    let Some(program) = python(test, script) else { return };
    let comm = format!("/proc/{}/comm", program.id());
    wait_until("it has its name", || {
        std::fs::read(&comm).unwrap_or_default().starts_with(b"\x1b[31mx")
    });
    let mut command = Command::new(contend());
    command.args(["doctor", "--verbose", "--for", "300ms", "--json", "-", &program.id()]);
    let output = command.output().expect("contend starts");
    let report = text(&output.stderr);
    let is_allowed = |c: char| !c.is_control() || c == '\n';
    assert!(report.chars().all(is_allowed), "{report:?}");
    let json = text(&output.stdout);
    assert!(json.chars().all(is_allowed), "{json:?}");
    let record: Value = serde_json::from_str(&json).expect("JSON");
    checks::check(&record);
    assert_eq!(record["threads"][0]["name"], "\u{1b}[31mx\n\u{fffd}");
}

/// A filter of system calls, as containers have one, makes `perf_event_open` fail.
#[test]
fn without_context_switches_the_sums_hold() {
    let test = "without_context_switches_the_sums_hold";
    if !has("python3") || !cfg!(target_arch = "x86_64") {
        return skip(test, "there is no python3, or another architecture");
    }
    let filter = "import ctypes, os, struct, sys\n\
                  code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (6, 0, 0, 0x50001),\n        \
                          (6, 0, 0, 0x7fff0000)]\n\
                  code = b''.join(struct.pack('HBBI', *line) for line in code)\n\
                  text = ctypes.create_string_buffer(code)\n\
                  class Program(ctypes.Structure):\n    \
                      _fields_ = [('count', ctypes.c_ushort), ('filter', ctypes.c_void_p)]\n\
                  program = Program(4, ctypes.addressof(text))\n\
                  libc = ctypes.CDLL(None)\n\
                  assert libc.prctl(38, 1, 0, 0, 0) == 0\n\
                  assert libc.prctl(22, 2, ctypes.byref(program)) == 0\n\
                  os.execv(sys.argv[1], sys.argv[1:])\n";
    let observe = |words: &[&str]| {
        let mut command = Command::new("python3");
        record_by(command.args(["-c", filter, contend()]).args(JSON).args(words))
    };
    let loops = "for i in {1..6}; do timeout 1 bash -c 'while :; do :; done' & done; wait";
    let busy = observe(&["--", "bash", "-c", loops]);
    assert!(!is_used(&busy, "switches"), "{busy:#}");
    let layers = busy["observation"]["layers"].to_string();
    assert!(layers.contains("seccomp"), "{layers}");
    let children = observe(&["--", "bash", "-c", "for i in {1..1000}; do (:); done"]);
    assert!(has_warning(&children, "unobserved"), "their CPU time is unknown: {children:#}");
    let threads = Threads::with(500);
    let record = observe(&["--for", "1s", &threads.id()]);
    assert_eq!(record["observation"]["threads"], 501, "{record:#}");
    assert!(mean_threads(&record) > 250.0, "{record:#}");
}

#[test]
fn processes_of_other_users_are_observed_by_their_counters() {
    let test = "processes_of_other_users_are_observed_by_their_counters";
    if !is_root() {
        return skip(test, "only root can start a process as another user");
    }
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let other = Running::start("while :; do :; done");
    let Some(mut command) = as_nobody(test, &program) else { return };
    let record = record_by(command.args(JSON).args(["--for", "500ms", &other.id()]));
    for layer in ["switches", "system-calls", "wait-channels", "io"] {
        assert!(!is_used(&record, layer), "{layer}: {record:#}");
    }
    assert!(mean_threads(&record) > 0.5, "{record:#}");
}

/// A process that may not be dumped is as those of another user, as after it has changed its user.
#[test]
fn a_process_that_may_not_be_read_is_observed_by_its_counters() {
    let test = "a_process_that_may_not_be_read_is_observed_by_its_counters";
    let script = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nwhile True: pass\n";
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let Some(mut command) = as_nobody(test, &program) else { return };
    if !has("python3") {
        return skip(test, "there is no python3");
    }
    let words = ["--for", "1s", "--", "timeout", "1", "python3", "-c", script];
    let record = record_by(command.args(JSON).args(words));
    assert!(figure(&record, "/observed_seconds") > 0.5, "{record:#}");
}

#[test]
fn hidden_processes_are_named_as_such() {
    let test = "hidden_processes_are_named_as_such";
    let mount = "mount -t proc -o hidepid=2 proc /proc";
    let works = |script: &str| {
        let status = Command::new("unshare")
            .args(["-m", "sh", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if !is_root() || !has("setpriv") || !has("unshare") || !works(mount) {
        return skip(test, "only root with unshare and setpriv can mount /proc");
    }
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    let other = Running::start("exec sleep 1000");
    let become_nobody = "exec setpriv --reuid=65534 --regid=65534 --clear-groups";
    let script = format!("{mount} && {become_nobody} {} doctor {}", program.display(), other.id());
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    let output = output.expect("unshare starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("hidepid"), "{}", text(&output.stderr));
}

#[test]
fn programs_in_another_pid_namespace_are_observed() {
    let test = "programs_in_another_pid_namespace_are_observed";
    let Some(unshare) = unshare(test) else { return };
    let mount = [&unshare[..], &["--mount-proc"]].concat();
    let script = "sleep 1 & wait";
    let record = record(&[&["--"], &mount[..], &["sh", "-c", script]].concat());
    assert!(mean_threads(&record) > 1.4, "{record:#}");

    // contend inside the namespace.
    let mut command = Command::new(mount[0]);
    command.args(&mount[1..]).arg(contend()).args(JSON);
    let record = record_by(command.args(["--", "sh", "-c", script]));
    assert!(mean_threads(&record) > 1.1, "{record:#}");
}

/// With `/proc` of another namespace, the files of an ID are those of another process.
#[test]
fn another_namespace_s_proc_is_refused() {
    let test = "another_namespace_s_proc_is_refused";
    let Some(unshare) = unshare(test) else { return };
    let mut command = Command::new(unshare[0]);
    let command = command.args(&unshare[1..]).arg(contend());
    let output = command.args(["doctor", "--", "sh", "-c", "echo ran"]).output().expect("starts");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("PID namespace"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "", "the command is not started");
}

/// Returns the words of a command that executes another one in a new PID namespace. Skips the test with a
/// message and returns `None` if that is not permitted.
fn unshare(test: &str) -> Option<Vec<&'static str>> {
    let candidates: [&[&str]; 2] = [&["unshare", "-p", "-f"], &["unshare", "-U", "-r", "-p", "-f"]];
    let works = |words: &&[&str]| {
        let mut command = Command::new(words[0]);
        let command = command.args(&words[1..]).args(["--mount-proc", "true"]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let found = candidates.into_iter().find(works);
    if found.is_none() {
        skip(test, "no PID namespace may be created");
    }
    found.map(<[&str]>::to_vec)
}

/// A terminal sends the signal to the command, too, which may need some time to clean up.
#[test]
fn an_interrupt_from_the_keyboard_leaves_the_command_its_time() {
    let test = "an_interrupt_from_the_keyboard_leaves_the_command_its_time";
    let trap =
        "trap \"sleep 3; echo cleaned; exit 5\" INT; echo ready; while :; do sleep 0.1; done";
    let line = format!("{} doctor -o /dev/null -- bash -c '{trap}'", contend());
    let Some(screen) = typed_on_a_terminal(test, 80, &line, &[("ready", "\x03")]) else { return };
    assert!(screen.contains("cleaned"), "{screen}");
}

#[test]
fn one_file_for_report_and_record_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("both").display().to_string();
    for name in [file.as_str(), "-"] {
        let output = doctor(&["--output", name, "--json", name, "--", "true"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("name the same file"), "{}", text(&output.stderr));
    }
    let output = doctor(&[]);
    assert!(text(&output.stderr).contains("contend doctor [OPTIONS] -- <COMMAND>..."));
}

/// The report goes to a pipe whose reader has left, as with `contend doctor … 2>&1 | head -1`.
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(contend());
    command.args(["doctor", "--", "sh", "-c", "sleep 0.1; exit 4"]).stdin(Stdio::null());
    let status = command.stderr(Stdio::from(writer)).stdout(Stdio::null()).status();
    assert_eq!(status.expect("contend starts").code(), Some(4));
}

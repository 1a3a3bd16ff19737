//! Running contend and its rivals.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;

mod process;

#[allow(unused_imports, reason = "each target uses some of them")]
pub use process::{Child, Command};

/// The executable under test.
pub fn contend() -> &'static str {
    env!("CARGO_BIN_EXE_contend")
}

/// Says, past the test harness, that a test was not run and why. `.ci/run` counts these.
pub fn skip(test: &str, reason: &str) {
    report(&format!("SKIPPED {test}: {reason}"));
}

/// Prints a line past the test harness.
pub fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// What tests that try many cases use: `full` before a change is merged, which
/// `CONTEND_TEST_EFFORT=full` asks for, and otherwise `quick`.
pub fn by_effort<T>(quick: T, full: T) -> T {
    let is_full = std::env::var_os("CONTEND_TEST_EFFORT").is_some_and(|effort| effort == "full");
    if is_full { full } else { quick }
}

/// Whether a test tries this combination of things: at full effort all of them, otherwise one in
/// `step`, such that each row and each column of a table has its share.
pub fn is_tried(row: usize, column: usize, step: usize) -> bool {
    by_effort((row + column).is_multiple_of(step), true)
}

/// Whether a program is to be found.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether these tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command with this text on its standard input.
pub fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()).is_ok()); // it need not read it
        child.wait_with_output().expect("it ends")
    })
}

/// Text that must be UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// `contend pipe` with these arguments; its report and record are thrown away.
pub fn pipe(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["pipe", "--output", "/dev/null"]).args(arguments);
    command
}

/// The same without advice, which runs stages again and so takes time.
fn plain_pipe(arguments: &[&str]) -> Command {
    let mut command = pipe(&["--no-advice"]);
    command.args(arguments);
    command
}

/// Profiles a pipeline and reads the record.
pub fn record(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let mut command = plain_pipe(&["--json", json.to_str().expect("UTF-8")]);
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("it starts");
    read_record(&json, &output)
}

/// Runs a `contend pipe` with this standard input and reads the record that it leaves.
pub fn record_of(command: &mut Command, input: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let output = run(command.arg("--json").arg(&json), input);
    read_record(&json, &output)
}

fn read_record(json: &Path, output: &Output) -> Value {
    let text = std::fs::read_to_string(json)
        .unwrap_or_else(|_| panic!("no record; {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&text).expect("JSON")
}

/// The findings' ids.
pub fn finding_ids(record: &Value) -> Vec<String> {
    record["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|finding| finding["id"].as_str().expect("a name").to_owned())
        .collect()
}

/// A copy of an executable where any user may execute it, in a folder that any user may use.
pub struct Public {
    folder: tempfile::TempDir,
}

impl Public {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("contend-it-").tempdir().expect("a folder");
        set_mode(folder.path(), 0o777);
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn install(&self, program: &str, name: &str, mode: u32) -> PathBuf {
        let target = self.folder.path().join(name);
        // Copied by ourselves, a child that another test starts meanwhile would hold it open for
        // writing for a moment, and it could not be executed.
        let copied = Command::new("cp").arg(program).arg(&target).status().expect("cp starts");
        assert!(copied.success(), "room");
        set_mode(&target, mode);
        target
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("own file");
}

/// A command run by an ordinary user, `nobody`; `None`, having said so, where that cannot be.
pub fn as_nobody(test: &str, program: &Path) -> Option<Command> {
    if !is_root() {
        return Some(Command::new(program)); // these tests already run as an ordinary user
    }
    if !has("setpriv") {
        skip(test, "there is no setpriv to become an ordinary user with");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    Some(command)
}

/// The id of a user that nobody else is, not even another run of these tests at the same time.
pub fn lone_user(number: u32) -> u32 {
    20_000 + (std::process::id() * 4 + number) % 40_000
}

/// A command run by a user that nobody else is, so that only its own tasks count, who may have so many of them;
/// `None`, having said so, where that cannot be.
pub fn as_lone_user(test: &str, program: &Path, user: u32, tasks: u32) -> Option<Command> {
    as_nobody(test, program)?;
    if !is_root() {
        skip(test, "as this user other processes count too");
        return None;
    }
    let script = "ulimit -Su $0 && user=$1 && shift && \
                  exec setpriv --reuid=$user --regid=$user --clear-groups \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, &tasks.to_string(), &user.to_string()]).arg(program);
    Some(command)
}

/// Asks again and again until it is so.
///
/// # Panics
/// When it has not become so within a minute or more.
pub fn becomes(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not in a minute");
}

/// Processes whose command line contains this text.
pub fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .expect("procfs")
        .flatten()
        .filter(|entry| entry.file_name().to_str() != Some(own.as_str()))
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

/// A field that must be a number.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A file of numbered lines in which every seventh one says `keep`.
pub fn numbered_lines(folder: &Path, lines: u32) -> String {
    let mut content = String::new();
    for n in 0..lines {
        let word = if n % 7 == 0 { "keep" } else { "drop" };
        let _ =
            writeln!(content, "{} {word} a{}:b{}:c{}", (n % 1000) * 7919 % 1000, n % 10, n % 3, n);
    }
    let path = folder.join("input.txt");
    std::fs::write(&path, content).expect("room");
    path.to_str().expect("UTF-8").to_owned()
}

/// The changes in a record.
pub fn candidates(record: &Value) -> &Vec<Value> {
    record["candidates"].as_array().expect("a list")
}

/// What bash prints, and its status.
pub fn shell_output(command: &str) -> (Vec<u8>, Option<i32>) {
    let output = Command::new("bash").args(["-c", command]).stdin(Stdio::null()).output();
    let output = output.expect("bash starts");
    (output.stdout, output.status.code())
}

/// `contend lab` that keeps nothing.
pub fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    // Some take two minutes on an idle machine.
    command.deadline(Duration::from_mins(20));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

/// What it prints.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

/// Runs experiments and reads the record.
pub fn lab_record(arguments: &[&str]) -> Value {
    let mut command = lab(&["run"]);
    lab_record_of(command.args(arguments))
}

/// The record of a `contend lab run`.
pub fn lab_record_of(command: &mut Command) -> Value {
    let output = output(command.args(["--no-store", "--json", "-"]));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The cases of a record of the lab.
pub fn cases(record: &Value) -> &Vec<Value> {
    record["cases"].as_array().expect("a list")
}

/// The metric's median.
pub fn metric(case: &Value, name: &str) -> f64 {
    case["metrics"][name]["median"].as_f64().unwrap_or_else(|| panic!("no {name} in {case}"))
}

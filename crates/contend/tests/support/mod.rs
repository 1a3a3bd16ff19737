//! Support for tests: runs contend and the programs that it is compared with.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;

pub mod cluster;
#[cfg(feature = "object-store")]
pub mod hdfs;
mod process;
pub mod slurm;
pub mod spark;
#[cfg(feature = "object-store")]
pub mod store;

#[allow(unused_imports, reason = "each target uses some of them")]
pub use process::{Child, Command};

/// Returns the path of the executable to test.
pub fn contend() -> &'static str {
    env!("CARGO_BIN_EXE_contend")
}

/// Prints directly to standard error, bypassing the harness's capture, that a test was skipped and
/// why. CI counts these lines.
pub fn skip(test: &str, reason: &str) {
    report(&format!("SKIPPED {test}: {reason}"));
}

/// Prints a line directly to standard error, bypassing the harness's capture.
pub fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns `full` if the environment variable `CONTEND_TEST_EFFORT` is `full`, and `quick`
/// otherwise. Tests choose the number of cases with it.
pub fn by_effort<T>(quick: T, full: T) -> T {
    let is_full = std::env::var_os("CONTEND_TEST_EFFORT").is_some_and(|effort| effort == "full");
    if is_full { full } else { quick }
}

/// Returns whether a test tries the combination of a row and a column of a table: every combination
/// at full effort, otherwise one in `step`, spread evenly.
pub fn is_tried(row: usize, column: usize, step: usize) -> bool {
    by_effort((row + column).is_multiple_of(step), true)
}

/// Returns whether a program is in `PATH`.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command with `input` as its standard input, and returns its output.
pub fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()).is_ok()); // it may go unread
        child.wait_with_output().expect("it ends")
    })
}

/// Converts bytes, which must be UTF-8, into a string.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Returns a `contend pipe` command with the given arguments, whose report goes to `/dev/null`.
pub fn pipe(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["pipe", "--output", "/dev/null"]).args(arguments);
    command
}

/// Returns a command like `pipe`, but without advice, which takes time.
fn plain_pipe(arguments: &[&str]) -> Command {
    let mut command = pipe(&["--no-advice"]);
    command.args(arguments);
    command
}

/// Runs `contend pipe` with the given arguments, without advice or standard input, and returns the
/// record.
pub fn record(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let mut command = plain_pipe(&["--json", json.to_str().expect("UTF-8")]);
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("it starts");
    read_record(&json, &output)
}

/// Runs a `contend pipe` command with `input` as its standard input, and returns the record.
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

/// Returns the ids of the findings in a record.
pub fn finding_ids(record: &Value) -> Vec<String> {
    record["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|finding| finding["id"].as_str().expect("a name").to_owned())
        .collect()
}

/// A folder that every user may read and write, for copies of executables.
pub struct PublicFolder {
    folder: tempfile::TempDir,
}

impl PublicFolder {
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
        // If this process made the copy, a child that another test starts at the same time could
        // hold it open for writing, and it could not be executed.
        let copied = Command::new("cp").arg(program).arg(&target).status().expect("cp starts");
        assert!(copied.success(), "room");
        set_mode(&target, mode);
        target
    }
}

/// Writes an executable file, such as a script. Another process writes it, for the reason given in
/// [`PublicFolder::install`].
pub fn write_program(path: &Path, content: impl AsRef<[u8]>) {
    use std::io::Write as _;
    let mut command = Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().expect("sh starts");
    let mut to = writer.stdin.take().expect("piped");
    to.write_all(content.as_ref()).expect("it reads");
    drop(to);
    assert!(writer.wait().expect("it ends").success(), "room");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("own file");
}

/// Returns a command that runs a program as `nobody`, or as the current user if that is not root.
/// If `setpriv`, which changes the user, is not installed, skips the test with a message and
/// returns `None`.
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

/// Returns a user id that probably no other process has, including those of other runs of these
/// tests. `number`, from 0 to 3, distinguishes the users of this process.
pub fn unused_user(number: u32) -> u32 {
    20_000 + (std::process::id() * 4 + number) % 40_000
}

/// Returns a command that runs a program with the user id `user` and a limit of `tasks` tasks. No
/// other process may have this user id, so that only the program's own tasks count. If that is not
/// possible, skips the test with a message and returns `None`.
pub fn as_unused_user(test: &str, program: &Path, user: u32, tasks: u32) -> Option<Command> {
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

/// Polls until the condition holds. `what` describes it in the message of a panic.
///
/// # Panics
/// Panics if the condition does not hold within about a minute.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not in a minute");
}

/// Returns the command lines of other processes that contain the given text.
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

/// Returns the value of a field, which must be a number.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Creates a file of numbered lines, and returns its path. Every seventh line contains `keep`.
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

/// Returns the candidates in a record.
pub fn candidates(record: &Value) -> &Vec<Value> {
    record["candidates"].as_array().expect("a list")
}

/// Runs a command with bash, and returns its standard output, and its exit code unless a signal
/// killed it.
pub fn shell_output(command: &str) -> (Vec<u8>, Option<i32>) {
    let output = Command::new("bash").args(["-c", command]).stdin(Stdio::null()).output();
    let output = output.expect("bash starts");
    (output.stdout, output.status.code())
}

/// Returns a `contend lab` command with the given arguments and a long deadline.
pub fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    // Some runs take two minutes on an idle machine.
    command.deadline(Duration::from_mins(20));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command, which must start, and returns its output.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

/// Runs experiments without a store, and returns the record.
pub fn lab_record(arguments: &[&str]) -> Value {
    let mut command = lab(&["run"]);
    lab_record_of(command.args(arguments))
}

/// Runs a `contend lab run` command without a store, and returns the record.
pub fn lab_record_of(command: &mut Command) -> Value {
    let output = output(command.args(["--no-store", "--json", "-"]));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Returns the cases of a lab record.
pub fn cases(record: &Value) -> &Vec<Value> {
    record["cases"].as_array().expect("a list")
}

/// Returns the median of a metric of a case, which must have the metric.
pub fn metric(case: &Value, name: &str) -> f64 {
    case["metrics"][name]["median"].as_f64().unwrap_or_else(|| panic!("no {name} in {case}"))
}

/// Writes a program `xdg-open` to a folder, which writes its argument to a file. Returns a search path with the
/// folder, and that file, which exists once the program has run.
pub fn with_opener(folder: &Path) -> (String, PathBuf) {
    let opened = folder.join("opened");
    let name = opened.display();
    let script = format!("#!/bin/sh\nprintf %s \"$1\" >'{name}.new' && mv '{name}.new' '{name}'\n");
    let opener = folder.join("xdg-open");
    write_program(&opener, script);
    let path = std::env::var("PATH").expect("a search path");
    (format!("{}:{path}", folder.display()), opened)
}

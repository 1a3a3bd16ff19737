//! Running contend and its rivals.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The executable under test.
pub fn contend() -> &'static str {
    env!("CARGO_BIN_EXE_contend")
}

/// Says, past the test harness, that a test was not run and why. `.ci/run` counts these.
pub fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
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

/// The same when nothing else is at work, if a few tries can find such a moment: where others
/// use the CPUs, it is true that they set the pace.
pub fn record_in_quiet(arguments: &[&str]) -> Value {
    let mut tries = (0..8).map(|_| record(arguments));
    let disturbed = |record: &Value| {
        let warnings = record["warnings"].as_array().expect("a list");
        warnings.iter().any(|warning| warning["id"] == "other-load")
    };
    let first = tries.next().expect("some");
    if disturbed(&first) { tries.find(|record| !disturbed(record)).unwrap_or(first) } else { first }
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

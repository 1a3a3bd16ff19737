//! Runs the commands of one page in a temporary folder.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Command, contend, write_program};

/// Time limit of a command, after which it is killed and its test fails.
const DEADLINE: Duration = Duration::from_mins(5);

/// Width of reports, in characters.
const COLUMNS: &str = "100";

/// How extensively `contend lab` commands measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lab {
    /// Quick measurements with a small budget.
    Quick,
    /// Measurements exactly as the command specifies.
    AsTyped,
}

/// The output and exit code of a command. The code is -1 if a signal ended the command.
#[derive(Debug)]
pub struct Ran {
    /// Standard output and standard error, in the order of writing.
    pub output: String,
    pub exit_code: i32,
}

/// A temporary folder with a home directory and the program under test.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    path: OsString,
}

impl Sandbox {
    pub fn new(lab: Lab) -> Self {
        match lab {
            Lab::AsTyped => {
                Self::with_program(&format!("#!/bin/sh\nexec '{}' \"$@\"\n", contend()))
            }
            Lab::Quick => Self::with_program(&quick_lab()),
        }
    }

    /// Creates a sandbox in which the command `contend` runs the given script.
    fn with_program(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bin", "home", "work"] {
            fs::create_dir(folder.path().join(name)).expect("room");
        }
        let program = folder.path().join("bin/contend");
        write_program(&program, script);
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let folders = [folder.path().join("bin")].into_iter();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&inherited)))
            .expect("the temporary folder has no colon");
        Self { folder, path }
    }

    /// Runs a command with bash in the sandbox, without standard input.
    ///
    /// # Panics
    /// Panics if the command exceeds the time limit.
    pub fn run(&self, command: &str) -> Ran {
        let output = self.folder.path().join("output");
        let (stdout, stderr) = outputs(&output);
        let mut bash = Command::new("bash");
        bash.args(["-c", command]).current_dir(self.folder.path().join("work"));
        self.set_environment(&mut bash);
        bash.stdin(std::process::Stdio::null()).stdout(stdout).stderr(stderr);
        let status = bash.deadline(DEADLINE).status().expect("bash starts");
        let bytes = fs::read(&output).expect("it was created");
        let exit_code = status.code().unwrap_or(-1);
        Ran { output: String::from_utf8_lossy(&bytes).into_owned(), exit_code }
    }

    fn set_environment(&self, command: &mut Command) {
        let home = self.home();
        command.env("HOME", &home).env("PATH", &self.path).env("COLUMNS", COLUMNS);
        for name in ["CONFIG", "DATA", "CACHE", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), home.join(name.to_lowercase()));
        }
        command.env("TERM", "dumb").env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        for name in ["CONTEND_STORE", "BASH_ENV", "ENV", "NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }
}

/// Creates a file for standard output and standard error, which share its offset.
fn outputs(path: &Path) -> (File, File) {
    let file = OpenOptions::new().create(true).write(true).truncate(true).open(path);
    let file = file.expect("room");
    (file.try_clone().expect("a descriptor is free"), file)
}

/// Returns a script that makes `contend lab run` and `contend lab suite` measure quickly, and
/// passes other commands to contend unchanged.
fn quick_lab() -> String {
    format!(
        r#"#!/bin/sh
case "$1 $2" in
'lab run' | 'lab suite')
  verb=$2 count=$#
  while [ "$count" -gt 0 ]; do
    word=$1
    shift
    count=$((count - 1))
    case $word in
    lab | "$verb" | --quick | --budget=*) ;;
    --budget) shift && count=$((count - 1)) ;;
    *) set -- "$@" "$word" ;;
    esac
  done
  set -- lab "$verb" --quick --budget 1 "$@"
  ;;
esac
exec '{}' "$@"
"#,
        contend()
    )
}

#[test]
fn commands_share_a_folder_and_both_outputs_are_read() {
    let sandbox = Sandbox::new(Lab::AsTyped);
    assert_eq!(sandbox.run("echo one >file; cd /; x=1").exit_code, 0);
    let ran = sandbox.run("cat file; echo two >&2; echo ${x-three}; cat; exit 4");
    assert_eq!((ran.output.as_str(), ran.exit_code), ("one\ntwo\nthree\n", 4));
    let ran = sandbox.run("contend --version; command -v contend; echo $HOME");
    assert!(ran.output.starts_with("contend "), "{}", ran.output);
    let folder = sandbox.folder.path().to_str().expect("UTF-8");
    assert_eq!(ran.output.matches(folder).count(), 2, "{}", ran.output);
}

#[test]
fn lab_commands_always_run_with_quick() {
    let script = quick_lab().replace(&format!("exec '{}'", contend()), "echo");
    let sandbox = Sandbox::with_program(&script);
    let line = |command: &str| sandbox.run(command).output;
    let expected = "lab run --quick --budget 1 units/* --only n=1\n";
    assert_eq!(line("contend lab run 'units/*' --budget 60 --only n=1"), expected);
    assert_eq!(line("contend lab run --quick 'units/*' --only n=1 --budget=6"), expected);
    assert_eq!(line("contend lab list --budget"), "lab list --budget\n");
    assert_eq!(line("contend pipe 'a | b' --quick"), "pipe a | b --quick\n");
}

//! Helpers for tests of the executor: commands, inputs, and runs of groups.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

use contend_shell::environment::Paths;
use contend_sys::interrupt::Signals;

use super::error::GroupError;
use super::group;
use super::input::{Input, Slice};
use super::progress::Reader;
use super::{Context, Launcher, Tally};
use crate::plan::ir::{Combine, Command, Cut, Group, Guard, Records, StatusRule, Step};

/// Creates a launcher whose commands get the signal mask of the tests.
pub(super) fn launcher() -> Launcher {
    let signals = Signals::block().expect("signals");
    Launcher::new(signals.mask_before(), Paths::new(), Vec::new())
}

/// Creates a file with the given text, positioned at its beginning.
pub(super) fn file(text: &str) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("room");
    file.rewind().expect("a file");
    file
}

/// Returns the whole text of a file.
pub(super) fn read(mut file: File) -> String {
    file.rewind().expect("a file");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("text");
    text
}

/// Returns an input that consists of one file with the given text.
pub(super) fn file_input(text: &str) -> Input {
    Input::Files(vec![Slice::from_here(file(text)).expect("a file")])
}

/// Returns an input that comes through a pipe, to which a thread writes the given text.
pub(super) fn stream_input(text: &str) -> Input {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let text = text.to_owned();
    std::thread::spawn(move || writer.write_all(text.as_bytes()));
    Input::Stream(Vec::new(), File::from(OwnedFd::from(reader)))
}

/// Returns a command of stage 0.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    Command {
        stage: 0,
        variables: Vec::new(),
        program: program.to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        status: StatusRule::Zero,
        input: None,
        sorts: false,
        ascii_in_c: false,
        operator: None,
    }
}

/// Returns a shell command that runs the given script.
pub(super) fn shell(text: &str) -> Command {
    command("sh", &["-c", text])
}

/// Returns a group of one command over lines.
pub(crate) fn group(command: Command, combine: Combine) -> Group {
    Group {
        serial: vec![command.clone()],
        opening: None,
        cut: Cut::between(Records::Lines),
        guard: Guard::NONE,
        each: vec![command],
        combine,
        any_order: false,
        may_fail: true,
    }
}

/// The result of running a group.
pub(super) struct Ran {
    pub result: Result<Reader, GroupError>,
    pub output: String,
    pub notes: Vec<String>,
    pub chunks: u64,
}

/// The parameters of a group's run.
pub(super) struct Setting {
    pub launcher: Launcher,
    pub tally: Tally,
    pub jobs: usize,
    pub memory: u64,
    pub chunk_bytes: Option<usize>,
    pub folder: tempfile::TempDir,
}

impl Default for Setting {
    /// Returns parameters with two jobs and chunks of a few bytes.
    fn default() -> Self {
        Self {
            launcher: launcher(),
            tally: Tally::default(),
            jobs: 2,
            memory: 64 << 20,
            chunk_bytes: Some(4),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }
}

impl Setting {
    /// Returns the context of the only step of a plan.
    pub(super) fn context<'a>(&'a self, steps: &'a [Step], plain: &'a [AtomicBool]) -> Context<'a> {
        Context {
            launcher: &self.launcher,
            tally: &self.tally,
            is_first: true,
            is_last: false,
            jobs: self.jobs,
            memory: self.memory,
            chunk_bytes: self.chunk_bytes,
            folder: self.folder.path(),
            steps,
            at: 0,
            plain,
            rate: None,
        }
    }

    /// Calls `work` with the context of a group that is the only step.
    pub(super) fn with<T>(&self, group: &Group, work: impl FnOnce(&Context<'_>) -> T) -> T {
        let steps = [Step::Parallel(group.clone())];
        work(&self.context(&steps, &[AtomicBool::new(false)]))
    }

    /// Runs a group as the only step of a plan.
    pub(super) fn run(&self, group: &Group, input: Input) -> Ran {
        let output = tempfile::tempfile().expect("a file");
        let again = output.try_clone().expect("a descriptor");
        let result = self.with(group, |context| group::run(group, context, input, output));
        Ran { result, output: read(again), notes: self.tally.notes(), chunks: self.tally.chunks() }
    }
}

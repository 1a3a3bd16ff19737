//! Runs a command over bytes in memory.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};

use contend_commands::{Simple, Word};

/// A command that is ready to run in a locale.
pub(super) struct Program(Command);

/// The standard output, standard error and exit code of a command.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CommandOutput {
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
    pub(super) status: i32,
}

impl fmt::Debug for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (output, errors) = (self.output.escape_ascii(), self.errors.escape_ascii());
        write!(f, "{} {output} ({errors})", self.status)
    }
}

impl Program {
    pub(super) fn of(simple: &Simple, arguments: Option<&[Word]>, locale: &str) -> Self {
        let words = arguments.unwrap_or(&simple.arguments);
        Self::new(&simple.program.text, words.iter().map(|word| word.text.as_str()), locale)
    }

    pub(super) fn new<'a>(
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
        locale: &str,
    ) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", locale).env_remove("POSIXLY_CORRECT");
        Self(command)
    }

    pub(super) fn run(mut self, input: &[u8]) -> CommandOutput {
        let pipes = self.0.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let output = std::thread::scope(|scope| {
            // The command need not read its whole input.
            scope.spawn(move || stdin.write_all(input).is_ok());
            child.wait_with_output().expect("it ends")
        });
        let status = output.status.code().expect("no signal");
        CommandOutput { output: output.stdout, errors: output.stderr, status }
    }
}

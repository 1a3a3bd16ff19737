//! Errors in starting and supervising a run.

use std::io;
use std::path::PathBuf;

use crate::execute::ExecuteError;

/// An error that prevents a run from being started or supervised.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script cannot be read.
    #[error("cannot read {}", path.display())]
    Script {
        /// The path of the script.
        path: PathBuf,
        /// Why the script cannot be read.
        source: io::Error,
    },
    /// The script's first line names a program that is not a known shell.
    #[error(
        "'{}' is a script for '{program}': contend runs scripts of sh, bash, dash and ash; to run \
         it in one of them, add --shell",
        path.display()
    )]
    Interpreter {
        /// The path of the script.
        path: PathBuf,
        /// The program after `#!`, or after `env`.
        program: String,
    },
    /// The shell could not replace this process.
    #[error("cannot start the shell '{shell}'")]
    Shell {
        /// Name or path of the shell.
        shell: String,
        /// Why the shell could not be executed.
        source: io::Error,
    },
    /// The job of the pipeline cannot be written, since it runs on one machine only, for the given reason.
    #[error("--emit: the pipeline runs on one machine only: {0}")]
    NotDivided(String),
    /// The pipeline names an object in a store, which contend does not read, for the given reason.
    #[error("no command can read the object {name}, and contend does not read it: {why}")]
    Object {
        /// The name of the object.
        name: String,
        /// Why contend does not read it.
        why: String,
    },
    /// The executor failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The file in which `--check` keeps standard input cannot be created or written.
    #[error("--check cannot keep standard input in {}", folder.display())]
    KeepInput {
        /// The directory for temporary files.
        folder: PathBuf,
        /// Why the file cannot be created or written.
        source: io::Error,
    },
    /// The thread that waits for the original ended before the original.
    #[error("--check lost track of the original pipeline")]
    OriginalLost,
    /// The records of pipelines in shell source cannot be read or parsed.
    #[error("cannot read the records of pipelines")]
    Records(#[source] serde_json::Error),
    /// A value is not UTF-8 although it must be. The field names the value.
    #[error("{0} is not UTF-8")]
    NotText(&'static str),
    /// The command line of a stage in shell source is not one that contend wrote.
    #[error("{0}")]
    Stage(&'static str),
    /// A system call failed.
    #[error("{operation}")]
    Io {
        /// The failed operation, worded for users.
        operation: String,
        /// Why the operation failed.
        source: io::Error,
    },
}

/// An extension of `Result` that adds the failed operation to the error of a system call.
pub(super) trait Context<T> {
    /// Turns the error into a [`RunError::Io`] with the failed operation.
    ///
    /// # Errors
    /// Returns an error if `self` is one.
    fn context(self, operation: impl Into<String>) -> Result<T, RunError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, operation: impl Into<String>) -> Result<T, RunError> {
        self.map_err(|source| RunError::Io { operation: operation.into(), source: source.into() })
    }
}

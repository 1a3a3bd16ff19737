//! Errors of starting and supervising a run.

use std::io;
use std::path::PathBuf;

use crate::execute::ExecuteError;

/// Why a run cannot be started or supervised.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script cannot be read.
    #[error("cannot read {}", path.display())]
    Script {
        /// The path of the script.
        path: PathBuf,
        /// Why it cannot be read.
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
        /// The shell.
        shell: String,
        /// Why it could not be executed.
        source: io::Error,
    },
    /// The executor failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The file in which `--check` keeps standard input cannot be created or written.
    #[error("--check cannot keep standard input in {}", folder.display())]
    KeepInput {
        /// The directory for temporary files.
        folder: PathBuf,
        /// Why it cannot be created or written.
        source: io::Error,
    },
    /// The thread that waits for the original ended first.
    #[error("--check lost track of the original pipeline")]
    OriginalLost,
    /// Records of the pipelines in shell text are not JSON.
    #[error("cannot read the records of pipelines")]
    Records(#[source] serde_json::Error),
    /// A value that must be passed on as text is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotText(&'static str),
    /// The command line of a stage in shell text is not one that contend wrote.
    #[error("{0}")]
    Stage(&'static str),
    /// A system call failed.
    #[error("{operation}")]
    Io {
        /// The operation that failed, in words for people.
        operation: String,
        /// Why it could not be done.
        source: io::Error,
    },
}

/// Adds the failed operation to the error of a system call.
pub(super) trait Context<T> {
    /// Turns the error into a [`RunError::Io`] with the failed operation.
    ///
    /// # Errors
    /// The error of `self`.
    fn context(self, operation: impl Into<String>) -> Result<T, RunError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, operation: impl Into<String>) -> Result<T, RunError> {
        self.map_err(|source| RunError::Io { operation: operation.into(), source: source.into() })
    }
}

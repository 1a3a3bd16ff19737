//! Errors in the execution of a plan or of one of its groups.

use std::io;

use super::ended::Ended;

/// An error that ends the execution of a plan.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A file cannot be opened.
    #[error("cannot read {file}")]
    Open {
        /// The name of the file.
        file: String,
        /// Why opening failed.
        source: io::Error,
    },
    /// A command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Moving data between commands failed.
    #[error("I/O error while moving data between stages")]
    Transfer(#[from] io::Error),
    /// Commands failed over chunks of an input that cannot be read again, so they cannot run over
    /// the whole input instead.
    #[error("commands failed")]
    Failed {
        /// The commands' standard error.
        stderr: Vec<u8>,
        /// The exit code of the last command that failed, as a shell reports it.
        status: i32,
    },
}

/// The error of a command that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}")]
pub struct StartError {
    /// The name of the command's program.
    pub program: String,
    /// Why starting failed.
    pub source: io::Error,
}

/// An error that ends the run of a group.
#[derive(Debug, thiserror::Error)]
pub(super) enum GroupError {
    /// A command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Reading the input, moving data between commands, or preparing pipes or files failed.
    #[error("I/O error while moving data between stages")]
    Transfer(#[from] io::Error),
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Commands failed.
    #[error("commands failed")]
    Failed(Box<Ended>),
}

impl From<io::ErrorKind> for GroupError {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Transfer(kind.into())
    }
}

impl From<GroupError> for ExecuteError {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::Start(error) => Self::Start(error),
            GroupError::Transfer(error) => Self::Transfer(error),
            GroupError::Output(error) => Self::Output(error),
            GroupError::Failed(ended) => {
                let mut statuses = ended.statuses.iter().rev().map(|status| status.shell_code());
                let status = statuses.find(|&status| status != 0).unwrap_or(1);
                Self::Failed { status, stderr: ended.stderr }
            }
        }
    }
}

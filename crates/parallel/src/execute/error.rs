//! Errors in the execution of a plan or of one of its groups.

use std::error::Error;
use std::io;

use super::ended::Ended;

/// An error that ends the execution of a plan.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// An input file cannot be opened.
    #[error("cannot read {file}")]
    Open {
        /// The name of the file.
        file: String,
        /// Why opening failed.
        source: io::Error,
    },
    /// A command of a pipeline that runs without chunks cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Another I/O operation failed: reading the input, moving data, creating a pipe, thread or
    /// file, starting a command over chunks, or waiting for a command.
    #[error("I/O error while moving data between stages")]
    Transfer(#[from] io::Error),
    /// A part of the plan has no output from another machine.
    #[error(transparent)]
    Parts(Box<dyn Error + Send + Sync>),
    /// Commands failed over chunks of an input that cannot be read again, so they cannot run over
    /// the whole input instead.
    #[error("commands failed")]
    Failed {
        /// The beginning of the commands' standard error.
        stderr: Vec<u8>,
        /// The exit code, as a shell reports it, of the last command whose code is not 0, or 1 if
        /// there is none.
        status: i32,
    },
}

/// An error in starting a command.
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
    /// A command of a pipeline that runs without chunks cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Another I/O operation failed: reading the input, moving data, creating a pipe, thread or
    /// file, starting a command over chunks, or waiting for a command.
    #[error("I/O error while moving data between stages")]
    Transfer(#[from] io::Error),
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Commands failed, or wrote to captured standard error.
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

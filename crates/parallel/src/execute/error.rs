//! Errors of executing a plan, or a group of it.

use std::io;

use super::ended::Ended;

/// Why a plan cannot be executed.
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
    /// Commands failed over chunks of an input that cannot be read again, before anything was
    /// written.
    #[error("commands failed")]
    Failed {
        /// What the commands wrote to standard error.
        stderr: Vec<u8>,
        /// The exit code of the last command that failed, as a shell reports it.
        status: i32,
    },
}

/// A command cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}")]
pub struct StartError {
    /// The command's program.
    pub program: String,
    /// Why starting failed.
    pub source: io::Error,
}

/// Why a group cannot be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum GroupError {
    /// A command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Reading, writing between commands, or preparing their pipes and files failed.
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

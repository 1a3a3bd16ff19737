//! Why a plan, or a group of it, cannot be carried out.

use std::io;

use super::ended::Ended;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A file could not be opened.
    #[error("cannot read {file}")]
    Open {
        /// The file's name.
        file: String,
        /// Why it could not be opened.
        source: io::Error,
    },
    /// A command could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Standard output takes no more.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Data could not be moved.
    #[error("cannot go on")]
    Transfer(#[from] io::Error),
    /// Commands failed over parts of an input that cannot be read again, before anything was
    /// written.
    #[error("commands failed")]
    Failed {
        /// What they wrote to standard error.
        stderr: Vec<u8>,
        /// The status of the last one that failed, as a shell sees it.
        status: i32,
    },
}

/// A command could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}")]
pub struct StartError {
    /// The command's program.
    pub program: String,
    /// Why it could not be started.
    pub source: io::Error,
}

/// Why a group could not be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum GroupError {
    /// A command could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Reading, writing between commands, or making what they need failed.
    #[error("cannot go on")]
    Transfer(#[from] io::Error),
    /// Standard output takes no more.
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

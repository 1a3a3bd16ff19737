//! How contend ends: its exit statuses, and errors on their way out.

use std::process::ExitCode;

use contend_json::error::FilterError;
use contend_parallel::run::RunError;
use contend_profile::pipeline::launch::LaunchError;

use crate::{output, tips};

/// How contend ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well: 0.
    Success,
    /// The pipeline's own status.
    Pipeline(i32),
    /// The input of `contend json` is not JSON: 1.
    Input,
    /// The command line or the pipeline's text is wrong: 2.
    Usage,
    /// contend itself failed: 125, as with `env` and `timeout`.
    Failure,
    /// The shell could not be executed: 126, or 127 when it is not there.
    Shell(u8),
    /// This signal was to end contend, and does when everything is put in order.
    Signal(i32),
}

/// Something in what the user has given is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl Exit {
    /// The status that an error deserves.
    pub fn of_error(error: &anyhow::Error) -> Self {
        if error.is::<UsageError>() {
            return Self::Usage;
        }
        if let Some(FilterError::Malformed { .. }) = error.downcast_ref() {
            return Self::Input;
        }
        if let Some(RunError::Script { .. }) = error.downcast_ref() {
            return Self::Usage;
        }
        match error.downcast_ref::<LaunchError>() {
            Some(LaunchError::Shell { source, .. }) => match source.kind() {
                std::io::ErrorKind::NotFound => Self::Shell(127),
                _ => Self::Shell(126),
            },
            Some(LaunchError::Setup { status }) => Self::Pipeline(status.shell_code()),
            _ => Self::Failure,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Pipeline(status) => Self::from(u8::try_from(status & 0xff).unwrap_or(u8::MAX)),
            Exit::Input => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Failure => Self::from(125),
            Exit::Shell(status) => Self::from(status),
            Exit::Signal(signal) => {
                contend_sys::signal::end_by(signal);
                Self::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
            }
        }
    }
}

/// Prints what clap has to say: help and version to standard output with status 0,
/// mistakes to standard error with status 2. A reader that has gone is no failure.
pub fn of_usage(mut error: clap::Error) -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    tips::add(&mut error, &words);
    let text = error.render().ansi().to_string();
    let printed = if error.use_stderr() { output::stderr(&text) } else { output::stdout(&text) };
    match printed {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
        Err(failed) => {
            output::error(&format!("{failed:#}"));
            Exit::Failure.into()
        }
    }
}

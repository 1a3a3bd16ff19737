//! Exit statuses, and how errors map to them.
//!
//! | status | cause |
//! |---|---|
//! | 0 | success |
//! | 1 | input of `contend json` is not JSON; outputs differ in `contend run --check`; a condition of `contend pipe --fail-if` holds |
//! | 2 | the command line, or the text of a pipeline or script, is wrong |
//! | 125 | contend itself failed, as with `env` and `timeout` |
//! | 126, 127 | the shell or a command cannot be executed, or does not exist |
//! | 128 + N | signal N interrupted contend (as a shell reports it) |
//! | other | the exit status of the pipeline |

use std::io;
use std::process::ExitCode;

use contend_json::error::FilterError;
use contend_parallel::run::RunError;
use contend_profile::pipeline::launch::LaunchError;
use contend_shell::environment::in_path;

use crate::cli::ColorArg;
use crate::settings::SHELLS;
use crate::{output, suggest, tips};

/// The outcome of the process: an exit status, or death by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Status 0: success.
    Success,
    /// The exit status of the pipeline.
    Pipeline(i32),
    /// Status 1: the input of `contend json` is not JSON.
    Input,
    /// Status 1: a condition of `--fail-if` holds.
    Condition,
    /// Status 2: the command line, or the text of a pipeline or script, is wrong.
    Usage,
    /// Status 125: contend itself failed.
    Failure,
    /// Status 126 or 127: the shell or a command cannot be executed, or does not exist.
    Shell(u8),
    /// Death by the signal that interrupted contend, after it has cleaned up.
    Signal(i32),
}

/// A mistake in the command line, the configuration, or a file that they name, as a message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl Exit {
    /// Returns the exit for an error. An unknown error is a failure of contend itself.
    pub fn of_error(error: &anyhow::Error) -> Self {
        if error.is::<UsageError>() {
            return Self::Usage;
        }
        if let Some(FilterError::Malformed { .. }) = error.downcast_ref() {
            return Self::Input;
        }
        if let Some(RunError::Script { .. } | RunError::Interpreter { .. }) = error.downcast_ref() {
            return Self::Usage;
        }
        if let Some(RunError::Shell { source, .. }) = error.downcast_ref() {
            return Self::of_shell(source);
        }
        match error.downcast_ref::<LaunchError>() {
            Some(LaunchError::Shell { source, .. }) => Self::of_shell(source),
            Some(LaunchError::Setup { status }) => Self::Pipeline(status.shell_code()),
            _ => Self::Failure,
        }
    }

    /// Returns the outcome for a shell that cannot be executed: 127 if it does not exist, else 126.
    fn of_shell(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Shell(127),
            _ => Self::Shell(126),
        }
    }
}

impl Exit {
    /// Returns the exit code for `main`. For [`Exit::Signal`], ends the process by that signal, so
    /// that a shell sees how contend ended. In that case, returns only if the signal's default
    /// action does not end the process.
    pub fn terminate(self) -> ExitCode {
        let code = match self {
            Self::Success => 0,
            Self::Pipeline(status) => u8::try_from(status & 0xff).unwrap_or(u8::MAX),
            Self::Input | Self::Condition => 1,
            Self::Usage => 2,
            Self::Failure => 125,
            Self::Shell(status) => status,
            Self::Signal(signal) => {
                contend_sys::signal::end_by(signal);
                u8::try_from(128 + signal).unwrap_or(u8::MAX)
            }
        };
        ExitCode::from(code)
    }
}

/// Returns a suggestion to append to the message of an error: an installed shell with a name
/// similar to that of the missing shell. Returns an empty string for other errors, and if no
/// installed shell has a similar name.
pub fn hint(error: &anyhow::Error) -> String {
    let missing = |source: &io::Error| source.kind() == io::ErrorKind::NotFound;
    let shell = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(LaunchError::Shell { shell, source }), _) if missing(source) => shell,
        (_, Some(RunError::Shell { shell, source })) if missing(source) => shell,
        _ => return String::new(),
    };
    suggest::did_you_mean(shell, SHELLS.into_iter().filter(|name| in_path(name).is_some()))
}

/// Prints clap's message with our tips: help and version to standard output with status 0, mistakes
/// to standard error with status 2. A reader that closes the stream early is not an error; if the
/// message cannot be printed, the status is 125.
pub fn report_usage(mut error: clap::Error) -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    tips::add(&mut error, &words);
    // clap has rejected the command line, which may contain `--color` nevertheless.
    output::set_color(ColorArg::find(&words));
    let text = error.render().ansi().to_string();
    let printed = if error.use_stderr() { output::stderr(&text) } else { output::stdout(&text) };
    match printed {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
        Err(failed) => {
            output::error(&format!("{failed:#}"));
            Exit::Failure.terminate()
        }
    }
}

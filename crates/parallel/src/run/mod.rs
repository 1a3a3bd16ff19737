//! The engine of `contend run`: runs a pipeline or a script, with stages over chunks of their input
//! where the output stays byte-identical.
//!
//! [`run`] takes a [`Request`] and returns an [`End`]. [`stage`] runs one stage of shell source in
//! the process that a shell has started for it. During the run, an [`Observer`] is notified of
//! events that must be shown at once. The caller parses command lines, renders reports, and chooses
//! contend's own exit codes.
//!
//! ```text
//! text → Direct ─┬→ exec or plain run         decided without a plan where that is possible
//!                └→ Plan → supervise → End    the executor, supervised: signals, progress, memory
//! text → Prepared → shell → Stage × n → Direct
//! ```
//!
//! A run must start within a millisecond: nothing is computed, read or started before it is needed.

mod check;
mod direct;
mod end;
mod error;
mod interpreter;
mod limits;
mod observer;
mod outcome;
mod peek;
mod prepared;
mod program;
mod records;
mod settings;
mod shell;
mod shell_command;
mod shutdown;
pub mod stage;
mod standard_input;
mod supervise;
#[cfg(test)]
mod testing;
mod watch;

use crate::plan::text::{self, Reading};

pub use check::{BLOCK_BYTES, Difference};
use error::Context as _;

pub use end::{End, Report};
pub use error::RunError;
pub use interpreter::is_shell_script;
pub use observer::{Comparison, Notice, Observer};
pub use settings::{Request, Settings, Target};

/// Runs a request, or only plans it if its settings ask for that.
///
/// Does not return if the pipeline's only command, or the shell, replaces this process.
///
/// # Errors
/// Returns an error in these cases:
///
/// - The script cannot be read, or is not for a known shell.
/// - The run cannot be started, supervised or compared with the original.
pub fn run(request: &Request, observer: &mut dyn Observer) -> Result<End, RunError> {
    let settings = &request.settings;
    match &request.what {
        Target::Pipeline(text) => match text::read(text) {
            Reading::Commands { stages, inverted } => {
                match installed_locale().and_then(|()| direct::Direct::new(&stages)) {
                    Ok(direct) => direct.run(text, inverted, settings, observer),
                    Err(why) => shell::pipeline(text, &why, settings, observer),
                }
            }
            Reading::Shell(why) => shell::pipeline(text, &why, settings, observer),
        },
        Target::Job(job) => direct::resume(job, settings, observer),
        Target::Script(path, arguments) => shell::script(path, arguments, settings, observer),
    }
}

/// Says why a pipeline runs on this machine alone, if a cluster was requested.
///
/// # Errors
/// Returns an error if standard error cannot be written, or if the pipeline was to be written as a job.
fn not_divided(
    why: &str,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<(), RunError> {
    let Some(cluster) = settings.cluster.as_ref().filter(|_| !settings.explain) else {
        return Ok(());
    };
    if cluster.emit.is_some() {
        return Err(RunError::NotDivided(why.to_owned()));
    }
    observer.notify(Notice::NotDivided(why)).context("cannot write standard error")
}

/// Checks that bash would not warn about the locale that `LC_ALL` names, if any.
///
/// # Errors
/// Returns the reason why a shell is needed.
fn installed_locale() -> Result<(), String> {
    match std::env::var_os("LC_ALL") {
        Some(name) if !contend_sys::locale::exists(&name) => {
            Err("`LC_ALL` names a locale that is not installed, of which the shell warns"
                .to_owned())
        }
        _ => Ok(()),
    }
}

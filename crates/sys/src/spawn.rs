//! Starting a child as whoever started us would have.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::signal::{SignalFd, sigpipe_was_ignored};

/// Starts `command` with the SIGPIPE disposition that this process was started with
/// (Rust's own runtime changes it) and the signal mask from before `blocked`. The child gets SIGTERM if the
/// thread that started it ends first, so that nothing of a killed contend waits for ever.
///
/// # Errors
/// When the program cannot be started.
pub fn spawn(command: &mut Command, blocked: &SignalFd) -> io::Result<Child> {
    let mask = blocked.mask_before();
    let ignore_sigpipe = sigpipe_was_ignored();
    // SAFETY: the closure runs between fork and exec and only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            mask.restore();
            if ignore_sigpipe {
                ignore(libc::SIGPIPE);
            }
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
            Ok(())
        })
    };
    command.spawn()
}

fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition, and signal(2) is async-signal-safe.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

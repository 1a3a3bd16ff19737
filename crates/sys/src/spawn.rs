//! Starting a child as whoever started us would have.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::inherited;
use crate::signal::SignalFd;

/// Starts `command` with what this process was itself started with, where Rust's runtime
/// or we have changed it (ignored signals, closed standard descriptors unless `redirected` by the
/// command), and with the signal mask from before `blocked`. The child gets the signal
/// `orphaned` if the thread that started it ends first, so that nothing of a killed contend waits for ever.
///
/// # Errors
/// When the program cannot be started.
pub fn spawn(
    command: &mut Command,
    redirected: &[u8],
    blocked: &SignalFd,
    orphaned: Signal,
) -> io::Result<Child> {
    let mask = blocked.mask_before();
    let ignored = [
        inherited::sigpipe_ignored().then_some(libc::SIGPIPE),
        inherited::sigchld_ignored().then_some(libc::SIGCHLD),
    ];
    let close = [0, 1, 2].map(|fd| !inherited::was_open(fd) && !redirected.contains(&fd));
    // SAFETY: the closure runs between fork and exec and only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            mask.restore();
            ignored.into_iter().flatten().for_each(ignore);
            for (fd, _) in (0..).zip(close).filter(|(_, close)| *close) {
                close_descriptor(fd);
            }
            rustix::process::set_parent_process_death_signal(Some(orphaned))?;
            Ok(())
        })
    };
    command.spawn()
}

fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition, and signal(2) is async-signal-safe.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn close_descriptor(fd: libc::c_int) {
    // SAFETY: it runs in the child before exec; the descriptor is a standard one that
    // nothing in the child uses any more.
    unsafe { libc::close(fd) };
}

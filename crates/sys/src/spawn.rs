//! Starting a child as whoever started us would have.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;

use crate::inherited;
use crate::signal::Mask;

/// Starts `command` with what this process was itself started with, where Rust's runtime
/// or we have changed it (ignored signals, closed standard descriptors unless `redirected` by the
/// command), and with this signal `mask`. The child gets the signal
/// `orphaned` if the thread that started it ends first, so that nothing of a killed contend waits for ever.
///
/// # Errors
/// When the program cannot be started.
pub fn spawn(
    command: &mut Command,
    redirected: &[u8],
    mask: Mask,
    orphaned: Signal,
) -> io::Result<Child> {
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

/// Starts `command` with as little ado as may be: memory of this process, however large, is not
/// prepared for being copied. It is not told if this process ends, but finds its pipes closed.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_quickly(command: &mut Command, mask: Mask, orphaned: Signal) -> io::Result<Child> {
    let as_usual = mask.is_empty()
        && !inherited::sigpipe_ignored()
        && !inherited::sigchld_ignored()
        && (0..3).all(inherited::was_open);
    // The standard library forks if anything is to be done between.
    if as_usual { command.spawn() } else { spawn(command, &[0, 1, 2], mask, orphaned) }
}

/// Becomes `command`, which finds everything as whoever started this process left it.
///
/// # Errors
/// It returns only if the program cannot be started, with the reason.
pub fn become_command(command: &mut Command) -> io::Error {
    let ignored = [
        inherited::sigpipe_ignored().then_some(libc::SIGPIPE),
        inherited::sigchld_ignored().then_some(libc::SIGCHLD),
    ];
    for fd in (0..3).filter(|&fd| !inherited::was_open(fd)) {
        close_descriptor(fd.into());
    }
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            ignored.into_iter().flatten().for_each(ignore);
            Ok(())
        })
    };
    command.exec()
}

/// Starts `command` as a child that the kernel kills when the thread that started it ends.
///
/// # Errors
/// When the program cannot be started.
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call.
    unsafe {
        command
            .pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?))
    };
    command.spawn()
}

/// The signal that tells the process of a case that whoever started it has died.
pub const ORPHANED: Signal = Signal::USR1;

/// From now on [`ORPHANED`] does not end this process at once: it has `seconds` to put things
/// in order, and is ended then.
pub fn outlive_parent_by(seconds: u32) {
    static SECONDS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn begin_to_end(_: libc::c_int) {
        // SAFETY: alarm(2) is async-signal-safe and has no other requirements.
        unsafe { libc::alarm(SECONDS.load(Ordering::Relaxed)) };
    }
    SECONDS.store(seconds, Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = begin_to_end;
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros is a valid sigaction.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is initialised and its handler only makes async-signal-safe calls.
    unsafe { libc::sigaction(ORPHANED.as_raw(), action, std::ptr::null_mut()) };
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

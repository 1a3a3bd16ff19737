//! Signal state that a program inherits across execve(2): the ignored and the blocked signals.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Signal;

use crate::signal::Mask;

/// The ignored and the blocked signals of a process. A signal that is not ignored has its default
/// action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dispositions {
    /// Ignored signals: bit n - 1 is signal n, as in `/proc/PID/status`.
    ignored: u64,
    /// Blocked signals, in the same form.
    blocked: u64,
}

impl Dispositions {
    /// Returns the dispositions with `signal` also ignored.
    #[must_use]
    pub fn ignoring(self, signal: Signal) -> Self {
        Self { ignored: self.ignored | bit(signal.as_raw()), ..self }
    }

    /// Returns the dispositions with `signal` also blocked.
    #[must_use]
    pub fn blocking(self, signal: Signal) -> Self {
        Self { blocked: self.blocked | bit(signal.as_raw()), ..self }
    }

    /// Sets the dispositions of this process and the mask of the calling thread. Removes handlers.
    /// SIGKILL, SIGSTOP and the signals that the C library reserves stay as they are. Safe to call
    /// between fork and exec.
    pub fn apply(self) {
        for signal in (1..=64).filter(|&signal| is_settable(signal)) {
            let action =
                if self.ignored & bit(signal) == 0 { libc::SIG_DFL } else { libc::SIG_IGN };
            // SAFETY: both are valid dispositions, and signal(2) is async-signal-safe. The C
            // library refuses the numbers that it reserves.
            unsafe { libc::signal(signal, action) };
        }
        Mask::of_bits(self.blocked).restore();
    }

    /// Makes `command` start its program with these dispositions, regardless of those of this
    /// process.
    pub fn apply_to(self, command: &mut Command) -> &mut Command {
        // SAFETY: the closure runs between fork and exec and only makes async-signal-safe calls.
        unsafe {
            command.pre_exec(move || {
                self.apply();
                Ok(())
            })
        }
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn is_settable(signal: i32) -> bool {
    ![libc::SIGKILL, libc::SIGSTOP].contains(&signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `SigBlk` and `SigIgn` of a program started with `dispositions`.
    fn seen(dispositions: Dispositions) -> [u64; 2] {
        let mut command = Command::new("cat");
        let output = dispositions.apply_to(command.arg("/proc/self/status")).output();
        let status = String::from_utf8(output.expect("cat starts").stdout).expect("text");
        ["SigBlk:", "SigIgn:"].map(|name| {
            let set = status.lines().find_map(|line| line.strip_prefix(name)).expect("a set");
            u64::from_str_radix(set.trim(), 16).expect("a number")
        })
    }

    #[test]
    fn a_program_starts_with_the_given_dispositions_alone() {
        // The C library reserves signals 32 and 33.
        let settable = !(bit(32) | bit(33));
        assert_eq!(seen(Dispositions::default()).map(|set| set & settable), [0, 0]);
        let some = Dispositions::default()
            .ignoring(Signal::INT)
            .ignoring(Signal::PIPE)
            .blocking(Signal::CHILD)
            .blocking(Signal::INT);
        let blocked = bit(libc::SIGCHLD) | bit(libc::SIGINT);
        let ignored = bit(libc::SIGINT) | bit(libc::SIGPIPE);
        assert_eq!(seen(some).map(|set| set & settable), [blocked, ignored]);
    }
}

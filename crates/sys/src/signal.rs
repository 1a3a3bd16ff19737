//! Signals as events that can be polled for.
//!
//! [`SignalFd`] blocks a set of signals and reads them from a descriptor. [`Wake`] and [`Nudge`]
//! are real-time signals between threads: a `Wake` is blocked and waited for, a `Nudge` has a
//! handler and makes a blocking system call fail with `EINTR`.

use crate::inherited;
pub use crate::mask::Mask;
use crate::mask::empty_set;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A signal read from a [`SignalFd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    /// Number of the signal.
    pub signal: i32,
    /// Whether a process sent the signal (as kill(2) does), possibly to this process alone. A
    /// signal that the terminal generates comes from the kernel and goes to the whole foreground
    /// process group.
    pub from_process: bool,
}

impl ReceivedSignal {
    /// Returns whether the signal is a SIGINT or SIGQUIT from the terminal, which sends it to all
    /// foreground processes.
    pub fn is_from_keyboard(self) -> bool {
        let keyboard = [libc::SIGINT, libc::SIGQUIT];
        !self.from_process && keyboard.contains(&self.signal)
    }
}

/// A set of signals, blocked for this thread and read from a descriptor instead. Dropping the value
/// discards those of the signals that are pending, and restores the thread's signal mask.
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
    mask_before: Mask,
}

/// Returns whether `signal` is pending, for the calling thread or for the process.
pub(crate) fn is_pending(signal: i32) -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer refers to a set, which the call fills.
    let filled = unsafe { libc::sigpending(pending.as_mut_ptr()) } == 0;
    // SAFETY: initialised: all zeros is a valid set, too.
    filled && unsafe { libc::sigismember(pending.as_ptr(), signal) } == 1
}

impl SignalFd {
    /// Blocks `signals` for the calling thread and the threads that it creates. Leaves out signals
    /// that are ignored (as by `nohup`, and by shells for background jobs) or were blocked when
    /// this process started: as under a shell, these have no effect. SIGCHLD, if listed, is blocked
    /// in any case.
    ///
    /// # Errors
    /// Returns an error if the process has no free descriptor.
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        let is_heeded = |signal: &i32| {
            *signal == libc::SIGCHLD
                || !inherited::is_ignored(*signal) && !inherited::is_blocked(*signal)
        };
        let heeded: Vec<_> = signals.iter().copied().filter(is_heeded).collect();
        let mask = set_of(&heeded);
        let mut mask_before = Mask(empty_set());
        // SAFETY: both sets are initialised and outlive the call.
        let result = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const mask, &raw mut mask_before.0)
        };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: `mask` is initialised; -1 asks for a new descriptor.
        let fd =
            unsafe { libc::signalfd(-1, &raw const mask, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            mask_before.restore();
            return Err(error);
        }
        // SAFETY: signalfd returned a new descriptor that nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, mask_before })
    }

    /// Returns the thread's mask from before the signals were blocked, for starting children. As in
    /// bash, SIGCHLD is not blocked in that mask, even if it was blocked when this process started.
    pub fn mask_before(&self) -> Mask {
        self.mask_before.without(libc::SIGCHLD)
    }

    /// Reads the next pending signal, if any.
    pub fn next(&self) -> Option<ReceivedSignal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.fd, &mut bytes).ok()?;
        if read != bytes.len() {
            return None;
        }
        // SAFETY: source and target are distinct, and both are of this length.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), info.as_mut_ptr().cast(), bytes.len());
        }
        // SAFETY: the kernel has filled the whole structure, which has no invalid values.
        let info = unsafe { info.assume_init() };
        Some(ReceivedSignal {
            signal: info.ssi_signo.cast_signed(),
            from_process: info.ssi_code <= 0,
        })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SignalFd {
    fn drop(&mut self) {
        while self.next().is_some() {}
        self.mask_before.restore();
    }
}

/// Ends this process by the default action of `signal`, so that the wait status that the parent
/// gets names the signal. Returns only if that action does not end the process.
pub fn end_by(signal: i32) {
    let mask = set_of(&[signal]);
    // SAFETY: SIG_DFL is a valid disposition for every signal number.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: raise takes any number.
    unsafe { libc::raise(signal) };
    // SAFETY: `mask` is initialised; a null pointer discards the old mask.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const mask, std::ptr::null_mut()) };
}

/// Stops this process by `signal`, whose default action must be in effect. Unblocks the signal for
/// that, and blocks it afterwards. Returns when the process is continued, or at once if the signal
/// does not stop it.
pub fn stop_by(signal: i32) {
    let mask = set_of(&[signal]);
    // SAFETY: raise takes any number.
    unsafe { libc::raise(signal) };
    for how in [libc::SIG_UNBLOCK, libc::SIG_BLOCK] {
        // SAFETY: `mask` is initialised; a null pointer discards the old mask.
        unsafe { libc::pthread_sigmask(how, &raw const mask, std::ptr::null_mut()) };
    }
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = empty_set();
    for &signal in signals {
        // SAFETY: `set` is initialised; the call refuses invalid signal numbers.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// A real-time signal that wakes another thread, of this process or of another one. Signals that
/// arrive while one is pending are queued, not merged.
#[derive(Debug, Clone, Copy)]
pub struct Wake {
    signal: i32,
    /// PID of the process that called [`Wake::block`]. Queued signals carry it as the sender's PID.
    process: u32,
    user: u32,
}

impl Wake {
    /// Blocks the first real-time signal for the calling thread and the threads and processes that
    /// it creates, so that they can wait for it and it ends none of them.
    ///
    /// # Errors
    /// None is known.
    pub fn block() -> io::Result<Self> {
        let signal = libc::SIGRTMIN();
        let mask = set_of(&[signal]);
        // SAFETY: the set is initialised; a null pointer discards the old mask.
        let result = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const mask, std::ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        let user = rustix::process::getuid().as_raw();
        Ok(Self { signal, process: std::process::id(), user })
    }

    /// Consumes all instances of the signal that are pending for this thread, without blocking.
    pub fn drain(self) {
        let mask = set_of(&[self.signal]);
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: set and time are initialised; a null pointer discards the signal's information.
        while unsafe { libc::sigtimedwait(&raw const mask, std::ptr::null_mut(), &raw const now) }
            == self.signal
        {}
    }

    /// Blocks until the signal arrives at this thread, and consumes it.
    ///
    /// # Errors
    /// None is known.
    pub fn wait(self) -> io::Result<()> {
        let mask = set_of(&[self.signal]);
        loop {
            // SAFETY: the set is initialised; a null pointer discards the signal's information.
            let signal = unsafe { libc::sigwaitinfo(&raw const mask, std::ptr::null_mut()) };
            if signal == self.signal {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error); // EINTR follows a stop and SIGCONT
            }
        }
    }

    /// Blocks until the signal arrives at this thread, and returns the number that it carries. The
    /// number is arbitrary unless [`Wake::send_number`] sent the signal.
    ///
    /// # Errors
    /// `EINTR` if a handler of another signal ran, or the thread was stopped and continued.
    pub fn wait_for_number(self) -> io::Result<u64> {
        let mask = set_of(&[self.signal]);
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the set is initialised, and there is room for the signal's information.
        let signal = unsafe { libc::sigwaitinfo(&raw const mask, info.as_mut_ptr()) };
        if signal != self.signal {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: filled by the call.
        let info = unsafe { info.assume_init() };
        // SAFETY: the sender queued the signal with a value.
        Ok(unsafe { info.si_value() }.sival_ptr.addr() as u64)
    }

    /// Queues the signal with the value `number` for the thread with the TID `thread` of the
    /// process with the PID `process`, as `pthread_sigqueue(3)` does.
    ///
    /// # Errors
    /// `ESRCH` if the thread has ended; `EAGAIN` if `RLIMIT_SIGPENDING` signals are queued.
    pub fn send_number(self, process: u32, thread: u32, number: u64) -> io::Result<()> {
        let info = Queued {
            signal: self.signal,
            error: 0,
            code: libc::SI_QUEUE,
            pad: 0,
            process: self.process,
            user: self.user,
            number,
            rest: [0; 12],
        };
        // SAFETY: laid out as the kernel's siginfo_t, and read only.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_rt_tgsigqueueinfo,
                process,
                thread,
                self.signal,
                &raw const info,
            )
        };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends the signal to the thread with the TID `thread` of the process with the PID `process`.
    ///
    /// # Errors
    /// `ESRCH` if the thread has ended; `EAGAIN` if too many signals are queued.
    pub fn send(self, process: u32, thread: u32) -> io::Result<()> {
        // SAFETY: a call without pointers.
        match unsafe { libc::syscall(libc::SYS_tgkill, process, thread, self.signal) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The information of a queued signal, as the kernel lays out `siginfo_t` on 64-bit machines.
#[repr(C)]
struct Queued {
    signal: i32,
    error: i32,
    code: i32,
    /// Padding that aligns the following fields to 8 bytes.
    pad: i32,
    process: u32,
    user: u32,
    number: u64,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

/// A signal whose only effect is to interrupt a blocking system call of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Nudge(i32);

impl Nudge {
    /// Installs an empty handler for the second real-time signal, in this process and those forked
    /// from it. System calls that the signal interrupts fail with `EINTR`.
    ///
    /// # Errors
    /// None is known.
    pub fn prepare() -> io::Result<Self> {
        extern "C" fn nothing(_: libc::c_int) {}
        let signal = libc::SIGRTMIN() + 1;
        // SAFETY: all zeros is a valid action: the default, without flags such as SA_RESTART, so
        // that interrupted calls are not restarted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler does nothing, which is safe anywhere.
        match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
            0 => Ok(Self(signal)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Interrupts the blocking system call of the thread with the TID `thread` of this process, if
    /// it is in one.
    pub fn interrupt(self, thread: u32) {
        let process = std::process::id();
        // SAFETY: a call without pointers, which fails if the thread has ended.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_read_with_its_origin() {
        let signals = SignalFd::block(&[libc::SIGUSR1]).expect("a descriptor");
        assert_eq!(signals.next(), None);
        // SAFETY: raise takes any number; the signal is blocked.
        unsafe { libc::raise(libc::SIGUSR1) };
        let arrived = ReceivedSignal { signal: libc::SIGUSR1, from_process: true };
        assert_eq!(signals.next(), Some(arrived));
        assert_eq!(signals.next(), None);
    }

    #[test]
    fn a_queued_signal_brings_its_number_and_a_nudge_ends_the_wait() {
        let nudge = Nudge::prepare().expect("it works");
        let (tell, told) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            let wake = Wake::block().expect("it works");
            let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            tell.send((wake, thread)).expect("it is waited for");
            let number = wake.wait_for_number().expect("it comes");
            (number, wake.wait_for_number().expect_err("it is nudged"))
        });
        let (wake, thread) = told.recv().expect("it tells");
        wake.send_number(std::process::id(), thread, u64::MAX - 1).expect("sent");
        while !waiter.is_finished() {
            nudge.interrupt(thread);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (number, error) = waiter.join().expect("it ends");
        assert_eq!((number, error.kind()), (u64::MAX - 1, io::ErrorKind::Interrupted));
    }
}

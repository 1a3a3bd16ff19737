//! Process creation by methods that Linux and the C library offer: `fork(2)`, `clone(2)` with
//! shared memory, `posix_spawn(3)` and `execve(2)`.
//!
//! The standard library chooses one of them; here callers choose, to measure the differences.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::Pid;

use crate::pages::Pages;

/// Creates a process by `fork(2)` and returns its PID. The child runs `child` and exits with the
/// returned status, without running exit handlers. If `child` panics, the child ends as well: with
/// status 101, or by SIGABRT where panics abort.
///
/// If this process has several threads, `child` must neither allocate nor lock.
///
/// # Errors
/// As fork(2): `EAGAIN` if a limit is reached, `ENOMEM`.
pub fn fork(child: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: the restrictions on the child are documented; fork(2) requires nothing else.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let _guard = ExitOnDrop;
        let status = child();
        exit_now(status);
    }
    created(pid)
}

/// A guard that ends a panicking child, so that the child does not continue with its parent's code.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        exit_now(101);
    }
}

/// Ends this process at once: runs no destructors or exit handlers and flushes no buffers.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit has no requirements.
    unsafe { libc::_exit(status) }
}

fn created(pid: libc::pid_t) -> io::Result<Pid> {
    let pid = if pid > 0 { Pid::from_raw(pid) } else { None };
    pid.ok_or_else(io::Error::last_os_error)
}

/// Behaviour of the parent while the child runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentMode {
    /// The parent continues.
    Continues,
    /// The parent's calling thread is suspended until the child has ended or executed a program, as
    /// with `vfork(2)`.
    Suspended,
}

/// A stack for a process that shares its parent's memory.
#[derive(Debug)]
pub struct ChildStack(Pages);

impl ChildStack {
    /// Maps a stack of 16 KiB, which suffices for two system calls.
    ///
    /// # Errors
    /// Returns an error if there is no memory.
    pub fn new() -> io::Result<Self> {
        Pages::map(16 * 1024).map(Self)
    }
}

/// A child that shares this process's memory and runs on a stack in it. Dropping the value waits
/// until the child has ended.
#[derive(Debug)]
pub struct SharingChild {
    pid: Pid,
    /// Stack of the child, which must stay mapped until the child has been reaped; `None` from then
    /// on.
    stack: Option<ChildStack>,
}

impl SharingChild {
    /// Creates the child (`clone(CLONE_VM)`), which writes a byte to `to` and ends. With
    /// [`ParentMode::Suspended`], the call differs from `vfork(2)` only in the child's own stack.
    ///
    /// # Errors
    /// As clone(2).
    pub fn create(stack: ChildStack, mode: ParentMode, to: BorrowedFd<'_>) -> io::Result<Self> {
        extern "C" fn child(argument: *mut libc::c_void) -> libc::c_int {
            let descriptor = argument.addr() as libc::c_ulong;
            // SAFETY: the byte is static. The call touches errno, which both processes share, only
            // if it fails, and no failure is expected.
            unsafe { libc::syscall(libc::SYS_write, descriptor, c"x".as_ptr(), 1_usize) };
            // SAFETY: the call ends this process alone, which has nothing to clean up.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
            0
        }
        let wait = if mode == ParentMode::Suspended { libc::CLONE_VFORK } else { 0 };
        let flags = libc::CLONE_VM | wait | libc::SIGCHLD;
        let argument = std::ptr::without_provenance_mut(to.as_raw_fd().unsigned_abs() as usize);
        // SAFETY: the stack is kept until the child has been reaped; `child` makes two system calls
        // and touches nothing that this process uses.
        let pid = unsafe { libc::clone(child, stack.0.end(), flags, argument) };
        Ok(Self { pid: created(pid)?, stack: Some(stack) })
    }

    /// Waits for the child to end and returns its stack.
    ///
    /// # Errors
    /// `ECHILD` if the process is no longer a child of this one.
    pub fn reap(mut self) -> io::Result<ChildStack> {
        crate::child::reap(self.pid)?;
        self.stack.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for SharingChild {
    fn drop(&mut self) {
        // If the child cannot be waited for, its stack must stay mapped.
        if let Some(stack) = self.stack.take().filter(|_| crate::child::reap(self.pid).is_err()) {
            std::mem::forget(stack);
        }
    }
}

/// Starts the program at the path `program` by `posix_spawn(3)`, with this process's environment,
/// and returns its PID. `arguments` begin with the program's name.
///
/// # Errors
/// As `posix_spawn(3)`, which also reports that the program cannot be executed.
pub fn posix_spawn(program: &CStr, arguments: &[&CStr]) -> io::Result<Pid> {
    let arguments = pointers(arguments);
    let mut pid = 0;
    // SAFETY: the array ends with a null pointer and its strings outlive the call; there are
    // neither file actions nor attributes.
    let result = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            arguments.as_ptr().cast(),
            environment(),
        )
    };
    if result == 0 { created(pid) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Replaces this process by the program at the path `program`, with the same environment. Returns
/// only on failure, with the error. Does not allocate: `arguments` come from [`pointers`].
pub fn execute(program: &CStr, arguments: &Arguments<'_>) -> io::Error {
    // SAFETY: the array ends with a null pointer and its strings live at least as long.
    unsafe { libc::execve(program.as_ptr(), arguments.0.as_ptr(), environment().cast()) };
    io::Error::last_os_error()
}

/// The arguments of a program as a null-terminated array, as execve(2) needs them.
#[derive(Debug)]
pub struct Arguments<'a>(Vec<*const libc::c_char>, std::marker::PhantomData<&'a CStr>);

impl Arguments<'_> {
    fn as_ptr(&self) -> *const *const libc::c_char {
        self.0.as_ptr()
    }
}

/// Builds the null-terminated array for [`execute`] from the arguments, which begin with the
/// program's name.
pub fn pointers<'a>(arguments: &[&'a CStr]) -> Arguments<'a> {
    let strings = arguments.iter().map(|argument| argument.as_ptr());
    Arguments(strings.chain([std::ptr::null()]).collect(), std::marker::PhantomData)
}

fn environment() -> *const *mut libc::c_char {
    unsafe extern "C" {
        static environ: *const *mut libc::c_char;
    }
    // SAFETY: the C library keeps the pointer valid; no code in these programs changes the
    // environment concurrently.
    unsafe { environ }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ExitStatus, reap};
    use std::os::fd::AsFd;

    #[test]
    fn a_forked_process_returns_its_status() {
        let pid = fork(|| 7).expect("a process");
        assert_eq!(reap(pid).expect("a child").status, ExitStatus::Exited(7));
    }

    #[test]
    fn processes_that_share_memory_write_and_end() {
        for mode in [ParentMode::Suspended, ParentMode::Continues] {
            let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
            let stack = ChildStack::new().expect("memory");
            let child = SharingChild::create(stack, mode, writer.as_fd()).expect("a process");
            child.reap().expect("a child");
            assert_eq!(rustix::io::read(&reader, &mut [0; 8]), Ok(1));
        }
    }

    #[test]
    fn posix_spawn_starts_a_program_or_reports_the_error() {
        let pid = posix_spawn(c"/bin/sh", &[c"sh", c"-c", c"exit 3"]).expect("sh");
        assert_eq!(reap(pid).expect("a child").status, ExitStatus::Exited(3));
        let error = posix_spawn(c"/no/such/program", &[c"x"]).expect_err("it is not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let arguments = pointers(&[c"sh", c"-c", c"exit 4"]);
        let pid = fork(|| {
            execute(c"/bin/sh", &arguments);
            127
        });
        assert_eq!(reap(pid.expect("a process")).expect("a child").status, ExitStatus::Exited(4));
    }
}

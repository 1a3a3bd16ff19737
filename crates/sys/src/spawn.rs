//! Starts programs with the signal dispositions and standard descriptors that this process was
//! started with.
//!
//! Rust's runtime and contend change some of that state, and [`inherited`] has the original: whether
//! SIGPIPE and SIGCHLD were ignored, and which standard descriptors were closed. [`spawn`] and
//! [`Prepared::start`] create a child with the signal mask that the caller passes.
//! [`become_command`] replaces this process, which keeps its mask. [`spawn_bound`] restores nothing.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

use crate::inherited;
use crate::signal::Mask;

/// Starts `command`, and restores in the child what Rust's runtime or contend has changed since
/// this process started: SIGPIPE and SIGCHLD are ignored again if they were ignored, and standard
/// descriptors that were closed are closed again. Descriptors in `redirected` stay open, because
/// `command` has its own streams for them. The child gets the signal mask `mask`. It receives the
/// signal `orphaned` when the thread that started it ends (`PR_SET_PDEATHSIG`), so that no child
/// outlives a killed contend and waits forever.
///
/// # Errors
/// Returns an error if the program cannot be started.
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

/// Lets the program that `command` starts run only on the CPU with the number `cpu`, with all the
/// processes that it starts itself. The program is not started if it may not run there.
///
/// # Panics
/// Panics if `cpu` is `CpuSet::MAX_CPU` or more.
pub fn restrict_to_cpu(command: &mut Command, cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call.
    unsafe { command.pre_exec(move || Ok(rustix::thread::sched_setaffinity(None, &set)?)) };
}

/// A program with its arguments and environment, ready to be started without allocating.
#[derive(Debug)]
pub struct Prepared {
    path: CString,
    /// The program's name and its arguments.
    arguments: Strings,
    /// Variables, each as `NAME=VALUE`.
    environment: Strings,
    /// Message for standard error if the program cannot be started.
    error_message: Vec<u8>,
}

/// The memory of a child between clone(2) and execve(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildMemory {
    /// The memory of the parent, whose calling thread is suspended until the child calls execve(2)
    /// or ends, as with vfork(2). Nothing is copied, however large the parent is.
    Shared,
    /// A copy of the parent's memory, as with fork(2): the parent continues at once.
    Copied,
}

/// C strings, and an array of pointers to them that ends with a null pointer.
#[derive(Debug)]
struct Strings {
    list: Vec<*const libc::c_char>,
    _strings: Vec<CString>,
}

impl Strings {
    fn new(strings: Vec<CString>) -> Self {
        let list = strings.iter().map(|string| string.as_ptr());
        Self { list: list.chain([std::ptr::null()]).collect(), _strings: strings }
    }
}

impl Prepared {
    /// Prepares the program at the path that `command` names, with `name` as its argument 0, the
    /// command's arguments, and this process's environment with the variables that the command sets
    /// or removes. Other settings of `command`, such as `env_clear`, its current directory and its
    /// streams, have no effect. The path is not searched for in `PATH`. The child writes
    /// `error_message` to standard error if the program cannot be started.
    ///
    /// # Errors
    /// Returns an error if one of the strings contains a NUL.
    pub fn new(command: &Command, name: &str, error_message: String) -> io::Result<Self> {
        let arguments = std::iter::once(OsStr::new(name)).chain(command.get_args());
        let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            let place = variables.iter().position(|(known, _)| known == name);
            match (place, value) {
                (Some(place), Some(value)) => value.clone_into(&mut variables[place].1),
                (Some(place), None) => drop(variables.remove(place)),
                (None, Some(value)) => variables.push((name.to_owned(), value.to_owned())),
                (None, None) => {}
            }
        }
        let pairs = variables.into_iter().map(|(mut pair, value)| {
            pair.push("=");
            pair.push(value);
            pair
        });
        let arguments: Result<_, _> = arguments.map(|text| CString::new(text.as_bytes())).collect();
        let pairs: Result<_, _> = pairs.map(|pair| CString::new(pair.into_vec())).collect();
        Ok(Self {
            path: CString::new(command.get_program().as_bytes())?,
            arguments: Strings::new(arguments?),
            environment: Strings::new(pairs?),
            error_message: error_message.into_bytes(),
        })
    }

    /// Starts the program in a child, with the state that [`spawn`] describes, and returns the
    /// child's PID. `streams` become the child's standard streams; `None` is inherited from this
    /// process, or stays closed if it was closed when this process started.
    ///
    /// If the program cannot be executed, the child writes the message and exits with 126 or, if
    /// there is no such program, with 127, as in a shell. If the child cannot be set up, it exits
    /// with 126 and no message.
    ///
    /// # Errors
    /// Returns an error if no further process can be created.
    pub fn start(
        &self,
        streams: [Option<BorrowedFd<'_>>; 3],
        mask: Mask,
        orphaned: Signal,
        memory: ChildMemory,
    ) -> io::Result<Pid> {
        let parent = rustix::process::getpid();
        let close =
            [0, 1, 2].map(|fd| !inherited::was_open(fd) && streams[usize::from(fd)].is_none());
        let setup = ChildSetup { prepared: self, streams, close, mask, orphaned, parent };
        let mut stack: Vec<MaybeUninit<u128>> = Vec::with_capacity(STACK_UNITS);
        let sharing = match memory {
            ChildMemory::Shared => libc::CLONE_VM | libc::CLONE_VFORK,
            ChildMemory::Copied => 0,
        };
        let flags = sharing | libc::SIGCHLD;
        let argument = (&raw const setup).cast_mut().cast();
        // SAFETY: the pointer is the end of the reserved memory, from where the stack grows down.
        let top = unsafe { stack.as_mut_ptr().add(STACK_UNITS) }.cast();
        // SAFETY: this thread is suspended until a child that shares its memory has executed its
        // program or has ended, so such a child finds `setup` and its stack as long as it needs
        // them. It changes nothing of that memory but its stack and this thread's errno. Any other
        // child has copies of its own. Before it executes its program, a child only makes
        // async-signal-safe calls.
        let pid = unsafe { libc::clone(run_child, top, flags, argument) };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            pid => Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::Other.into()),
        }
    }

    /// Runs in the child: sets up descriptors and signals, and executes the program.
    fn set_up_and_execute(
        &self,
        streams: [Option<BorrowedFd<'_>>; 3],
        close: [bool; 3],
        mask: Mask,
        orphaned: Signal,
        parent: Pid,
    ) -> ! {
        for (place, stream) in (0..).zip(streams) {
            let Some(stream) = stream else { continue };
            // SAFETY: both numbers are descriptors; the child has a table of its own.
            if unsafe { libc::dup2(stream.as_raw_fd(), place) } < 0 {
                end(126);
            }
        }
        for (fd, _) in (0..).zip(close).filter(|(_, close)| *close) {
            close_descriptor(fd);
        }
        if !inherited::sigpipe_ignored() {
            // SAFETY: SIG_DFL is a valid disposition, and signal(2) is async-signal-safe.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        }
        if inherited::sigchld_ignored() {
            ignore(libc::SIGCHLD);
        }
        mask.restore();
        let told = rustix::process::set_parent_process_death_signal(Some(orphaned));
        // The parent may have ended before the death signal was set, in which case it is never
        // sent.
        if told.is_err() || rustix::process::getppid() != Some(parent) {
            end(126);
        }
        let (path, arguments) = (self.path.as_ptr(), self.arguments.list.as_ptr());
        // SAFETY: all of them are C strings or arrays of them that end with a null pointer.
        unsafe { libc::execve(path, arguments, self.environment.list.as_ptr()) };
        let status = if is_absent() { 127 } else { 126 };
        // SAFETY: the pointer and the length are those of a slice.
        unsafe { libc::write(2, self.error_message.as_ptr().cast(), self.error_message.len()) };
        end(status)
    }
}

/// The parameters of a child, passed through clone(2).
struct ChildSetup<'a> {
    prepared: &'a Prepared,
    streams: [Option<BorrowedFd<'a>>; 3],
    close: [bool; 3],
    mask: Mask,
    orphaned: Signal,
    parent: Pid,
}

/// Size of a child's stack until it executes its program, in units of 16 bytes.
const STACK_UNITS: usize = 4096;

extern "C" fn run_child(setup: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the pointer refers to the `ChildSetup` of the parent, which is suspended, or to this
    // process's copy of it.
    let setup = unsafe { &*setup.cast::<ChildSetup<'_>>() };
    let ChildSetup { prepared, streams, close, mask, orphaned, parent } = *setup;
    prepared.set_up_and_execute(streams, close, mask, orphaned, parent)
}

/// Returns whether the last failed call reported that there is no such file (`ENOENT`).
fn is_absent() -> bool {
    io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT)
}

/// Ends this process without running exit handlers or flushing buffers, which belong to the parent.
fn end(status: libc::c_int) -> ! {
    // SAFETY: _exit(2) has no requirements.
    unsafe { libc::_exit(status) }
}

/// Replaces this process with `command`. Ignored signals and closed standard descriptors are
/// restored as in [`spawn`]; the signal mask stays, but without SIGCHLD. Returns only if the
/// program cannot be executed, with the error; descriptors and signals of this process may then
/// have changed.
pub fn become_command(command: &mut Command) -> io::Error {
    let ignored = [
        inherited::sigpipe_ignored().then_some(libc::SIGPIPE),
        inherited::sigchld_ignored().then_some(libc::SIGCHLD),
    ];
    for fd in (0..3).filter(|&fd| !inherited::was_open(fd)) {
        close_descriptor(fd.into());
    }
    // As under bash, SIGCHLD is not blocked.
    let mask = Mask::current().without(libc::SIGCHLD);
    // SAFETY: the closure only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            mask.restore();
            ignored.into_iter().flatten().for_each(ignore);
            Ok(())
        })
    };
    command.exec()
}

/// Starts `command` as a child that the kernel kills when the thread that started it ends.
///
/// # Errors
/// Returns an error if the program cannot be started.
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call.
    unsafe {
        command
            .pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?))
    };
    command.spawn()
}

/// The signal to pass to [`spawn`] as `orphaned` for a process that calls [`outlive_parent_by`].
pub const ORPHANED: Signal = Signal::USR1;

/// Handles [`ORPHANED`] from now on: instead of ending at once, this process has `seconds` seconds
/// (at least 1) to clean up until SIGALRM ends it.
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
    // SAFETY: the descriptor is a standard one, closed just before exec, that nothing uses any
    // more.
    unsafe { libc::close(fd) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{self, ExitStatus};
    use crate::interrupt::Signals;
    use std::fs::File;
    use std::io::{Read as _, Seek as _, Write as _};
    use std::os::fd::AsFd as _;

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("room");
        file.rewind().expect("a file");
        file
    }

    fn read(mut file: File) -> String {
        file.rewind().expect("a file");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        text
    }

    /// Runs the program once with each kind of child memory, with `input` as its standard input,
    /// and asserts that the results are equal. Returns standard output, standard error and exit
    /// status.
    fn done(command: &Command, input: &str) -> (String, String, ExitStatus) {
        let [shared, copied] = [ChildMemory::Shared, ChildMemory::Copied]
            .map(|memory| done_with(command, input, memory));
        assert_eq!(shared, copied);
        shared
    }

    fn done_with(
        command: &Command,
        input: &str,
        memory: ChildMemory,
    ) -> (String, String, ExitStatus) {
        let signals = Signals::block().expect("signals");
        let [stdin, stdout, stderr] = [input, "", ""].map(file);
        let prepared = Prepared::new(command, "name", "no start\n".to_owned()).expect("no NUL");
        let streams = [&stdin, &stdout, &stderr].map(|file| Some(file.as_fd()));
        let pid = prepared.start(streams, signals.mask_before(), Signal::TERM, memory);
        let pid = pid.expect("a process");
        child::wait_for_end(pid).expect("ours");
        let reaped = child::reap(pid).expect("ours");
        (read(stdout), read(stderr), reaped.status)
    }

    #[test]
    fn a_prepared_program_gets_its_streams_arguments_and_variables() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat; echo $VALUE $HOME $0 $1 >&2; exit 3", "zero", "one"]);
        command.env("VALUE", "value").env_remove("HOME");
        let expected = ("in\n".to_owned(), "value zero one\n".to_owned(), ExitStatus::Exited(3));
        assert_eq!(done(&command, "in\n"), expected);
        // The program starts with the signal mask from before `Signals::block`.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "kill -TERM $$; echo alive"]);
        let (out, _, status) = done(&command, "");
        assert_eq!((out.as_str(), status), ("", ExitStatus::Signaled(libc::SIGTERM)));
    }

    #[test]
    fn a_restricted_program_has_one_cpu() {
        let cpu = crate::cpu::allowed_list().pop().expect("a CPU");
        let mut command = Command::new("/bin/grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]);
        restrict_to_cpu(&mut command, cpu);
        let signals = Signals::block().expect("signals");
        command.stdout(std::process::Stdio::piped());
        let child = spawn(&mut command, &[1], signals.mask_before(), Signal::TERM).expect("grep");
        let output = child.wait_with_output().expect("ours");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.trim(), format!("Cpus_allowed_list:\t{cpu}"));
    }

    #[test]
    fn a_program_that_cannot_be_executed_writes_the_complaint() {
        for (path, status) in [("/no/such/program", 127), ("/dev/null", 126), ("/", 126)] {
            let said = (String::new(), "no start\n".to_owned(), ExitStatus::Exited(status));
            assert_eq!(done(&Command::new(path), ""), said, "{path}");
        }
        let with_nul = Prepared::new(&Command::new("/bin/true"), "a\0b", String::new());
        assert!(with_nul.is_err());
    }
}

//! A thread under observation: its files in `/proc`, and the wait in which it was last found.

use std::io;

use contend_record::doctor::{Runtime, ThreadState};
use contend_sys::Pid;
use contend_sys::procfs::{self, InKernel, ProcFile, SchedStat, Stat};
use rustix::io::Errno;

use crate::wait::{self, Wait};

/// A thread that is sampled repeatedly. Its `schedstat` and `syscall` files stay open, or are opened for
/// each sample ([`Self::keep_open`], [`Self::close`]).
#[derive(Debug)]
pub struct ThreadFiles {
    process: Pid,
    /// The thread id.
    pub id: Pid,
    open: Option<OpenFiles>,
    /// Whether the thread's system calls may be read.
    shows_calls: bool,
    /// The scheduler's counters, as last read.
    pub sched: SchedStat,
    /// The state at the last sample: active, or a wait.
    pub state: Sampled,
}

/// The files of a thread that stay open.
#[derive(Debug)]
struct OpenFiles {
    schedstat: ProcFile,
    /// `None` if the thread's system calls may not be read.
    syscall: Option<ProcFile>,
}

/// Number of descriptors that the files of a thread take up while they stay open.
pub const DESCRIPTORS: usize = 2;

/// The state of a thread, as a sample finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// On a CPU or queued for one.
    Active,
    /// Waiting.
    Waiting(Wait),
}

/// The increase of the scheduler's counters since the last sample, and the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time on a CPU, in nanoseconds.
    pub on_cpu: u64,
    /// Time queued for a CPU, in nanoseconds.
    pub run_queue: u64,
    /// Number of times that the scheduler gave it the CPU.
    pub slices: u64,
    /// The state at the time of the sample.
    pub state: Sampled,
}

impl ThreadFiles {
    /// Reads the files of thread `id` of `process`, a program of `runtime`, for the first time. Keeps them
    /// open if `keep` says so and that is possible.
    ///
    /// # Errors
    /// Returns an error if the thread no longer exists, or no file can be opened.
    pub fn open(
        process: Pid,
        id: Pid,
        runtime: Option<Runtime>,
        keep: bool,
        buffer: &mut [u8],
    ) -> io::Result<Self> {
        let (sched, state) = (SchedStat::default(), Sampled::Active);
        let mut files = Self { process, id, open: None, shows_calls: true, sched, state };
        if keep {
            let _ = files.keep_open(); // otherwise, they are opened for each sample
        }
        files.sched = files.read_schedstat(buffer)?;
        let call = match files.call_text(buffer) {
            Err(error) if is_out_of_descriptors(&error) => return Err(error),
            Err(_) => None,
            Ok(text) => Some(InKernel::parse(text)),
        };
        files.shows_calls = call.is_some();
        if let Some(open) = files.open.as_mut().filter(|_| call.is_none()) {
            open.syscall = None;
        }
        files.state = files.state_in(call.flatten(), runtime, buffer)?;
        Ok(files)
    }

    /// Returns whether the thread's system calls may be read.
    pub fn shows_calls(&self) -> bool {
        self.shows_calls
    }

    /// Keeps the files open, which takes [`DESCRIPTORS`] descriptors.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened.
    pub fn keep_open(&mut self) -> io::Result<()> {
        let folder = folder(self.process, self.id);
        let schedstat = ProcFile::open(&format!("{folder}/schedstat"))?;
        let syscall = || ProcFile::open(&format!("{folder}/syscall"));
        let syscall = match self.shows_calls.then(syscall).transpose() {
            Err(error) if is_out_of_descriptors(&error) => return Err(error),
            syscall => syscall.unwrap_or(None),
        };
        self.open = Some(OpenFiles { schedstat, syscall });
        Ok(())
    }

    /// Closes the files until [`Self::keep_open`].
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Returns whether the files are open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether the last sample has found a wait by the name of a kernel function.
    pub fn shows_name(&self) -> bool {
        let by_letter = [ThreadState::Unknown, ThreadState::PageFault, ThreadState::Stopped];
        !self.shows_calls
            && matches!(self.state, Sampled::Waiting(wait) if !by_letter.contains(&wait.state))
    }

    /// Notes that the thread, which has not run since the last sample, is stopped.
    pub fn set_stopped(&mut self) {
        self.state = Sampled::Waiting(wait::STOPPED);
    }

    /// Returns the letter of the thread's state in its `stat`, such as `T`.
    ///
    /// # Errors
    /// Returns an error if the thread has ended, or no file can be opened.
    pub fn state_letter(&self, buffer: &mut [u8]) -> io::Result<u8> {
        let path = format!("{}/stat", folder(self.process, self.id));
        let stat = Stat::parse(procfs::read_once(&path, buffer)?);
        Ok(stat.ok_or(io::ErrorKind::InvalidData)?.state)
    }

    /// Returns a sample with the counters since the start of the thread.
    pub fn since_start(&self) -> Sample {
        self.sample_since(SchedStat::default())
    }

    fn read_schedstat(&self, buffer: &mut [u8]) -> io::Result<SchedStat> {
        let text = if let Some(files) = &self.open {
            files.schedstat.read(buffer)?
        } else {
            let path = format!("{}/schedstat", folder(self.process, self.id));
            procfs::read_once(&path, buffer)?
        };
        SchedStat::parse(text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the text of the file about the call in which the thread waits.
    fn call_text<'buffer>(&self, buffer: &'buffer mut [u8]) -> io::Result<&'buffer [u8]> {
        match &self.open {
            Some(files) => match &files.syscall {
                Some(file) => file.read(buffer),
                None => Err(io::ErrorKind::PermissionDenied.into()),
            },
            None => {
                procfs::read_once(&format!("{}/syscall", folder(self.process, self.id)), buffer)
            }
        }
    }

    /// Samples the thread. A thread that has not run since the last sample is still in the same wait,
    /// so its call is not read again.
    ///
    /// # Errors
    /// Returns an error if the thread has ended.
    pub fn sample(&mut self, runtime: Option<Runtime>, buffer: &mut [u8]) -> io::Result<Sample> {
        let before = self.sched;
        self.sched = self.read_schedstat(buffer)?;
        let is_same_wait =
            before.slices == self.sched.slices && matches!(self.state, Sampled::Waiting(_));
        if !is_same_wait {
            self.state = self.read_state(runtime, buffer)?;
        }
        Ok(self.sample_since(before))
    }

    fn sample_since(&self, before: SchedStat) -> Sample {
        Sample {
            on_cpu: self.sched.on_cpu.saturating_sub(before.on_cpu),
            run_queue: self.sched.run_queue.saturating_sub(before.run_queue),
            slices: self.sched.slices.saturating_sub(before.slices),
            state: self.state,
        }
    }

    fn read_state(&self, runtime: Option<Runtime>, buffer: &mut [u8]) -> io::Result<Sampled> {
        let text = self.shows_calls.then(|| self.call_text(buffer).ok()).flatten();
        self.state_in(text.and_then(InKernel::parse), runtime, buffer)
    }

    /// Returns the state of a thread in this call, or in an unknown one.
    fn state_in(
        &self,
        kernel: Option<InKernel>,
        runtime: Option<Runtime>,
        buffer: &mut [u8],
    ) -> io::Result<Sampled> {
        if kernel == Some(InKernel::Running) {
            return Ok(Sampled::Active);
        }
        if let Some(wait) = kernel.and_then(|kernel| wait::wait_of(self.process, runtime, &kernel))
        {
            return Ok(Sampled::Waiting(wait));
        }
        match self.state_letter(buffer)? {
            b'R' => Ok(Sampled::Active),
            b'Z' | b'X' => Err(io::ErrorKind::NotFound.into()),
            state => Ok(Sampled::Waiting(self.wait_by_name(state, buffer))),
        }
    }

    /// Returns the wait of a thread with the state letter `state` whose call is not known.
    fn wait_by_name(&self, state: u8, buffer: &mut [u8]) -> Wait {
        let known = wait::outside_calls(state);
        if known.state != ThreadState::Unknown || self.shows_calls {
            return known;
        }
        let path = format!("{}/wchan", folder(self.process, self.id));
        let name = procfs::read_once(&path, buffer).unwrap_or_default();
        std::str::from_utf8(name).map_or(known, Wait::in_function)
    }
}

/// Returns whether an error means that contend or the system has no free file descriptor.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| number == Some(errno.raw_os_error()))
}

fn folder(process: Pid, id: Pid) -> String {
    format!("/proc/{}/task/{}", process.as_raw_nonzero(), id.as_raw_nonzero())
}

/// Returns the name of a thread (`comm`), or an empty one if it has ended.
pub fn name(process: Pid, id: Pid, buffer: &mut [u8]) -> String {
    let path = format!("{}/comm", folder(process, id));
    let text = procfs::read_once(&path, buffer).unwrap_or_default();
    String::from_utf8_lossy(text).trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    fn started(script: &str) -> (Child, Pid) {
        let child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let pid = Pid::from_child(&child);
        (child, pid)
    }

    fn becomes(script: &str, expected: ThreadState) {
        let (mut child, pid) = started(script);
        let mut buffer = [0; 4096];
        let mut files = ThreadFiles::open(pid, pid, None, true, &mut buffer).expect("alive");
        let found = (0..5000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let sample = files.sample(None, &mut buffer).expect("alive");
            matches!(sample.state, Sampled::Waiting(wait) if wait.state == expected)
        });
        child.kill().and_then(|()| child.wait()).expect("a child");
        assert!(found, "{script}: at last {:?}", files.state);
    }

    #[test]
    fn waits_are_found() {
        becomes("exec sleep 100", ThreadState::Sleep);
        becomes("exec cat", ThreadState::Pipe);
        becomes("sleep 2; :", ThreadState::Child);
    }

    #[test]
    fn counters_are_increases_and_a_zombie_is_an_error() {
        let (mut child, pid) =
            started("i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; read x");
        let mut buffer = [0; 4096];
        let mut files = ThreadFiles::open(pid, pid, None, true, &mut buffer).expect("alive");
        let mut sum = 0;
        let first = files.sched;
        for _ in 0..5000 {
            std::thread::sleep(Duration::from_millis(1));
            let sample = files.sample(None, &mut buffer).expect("alive");
            sum += sample.on_cpu;
            if matches!(sample.state, Sampled::Waiting(wait) if wait.state == ThreadState::Pipe) {
                break;
            }
        }
        assert!(sum > 0);
        assert_eq!(first.on_cpu + sum, files.sched.on_cpu);
        drop(child.stdin.take());
        let ended = (0..5000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            files.sample(None, &mut buffer).is_err()
        });
        child.wait().expect("a child");
        assert!(ended);
    }
}

//! A task: one thread of a process, sampled through its files in `/proc`.

use std::io;
use std::time::{Duration, Instant};

use contend_sys::Pid;
use contend_sys::procfs::{self, InKernel, ProcFile, SchedStat, Stat};
use contend_sys::syscall::Waiting;

use super::{Ends, State, Wait};

/// A task that is sampled repeatedly. Its `schedstat` and `syscall` files stay open.
#[derive(Debug)]
pub struct Task {
    process: Pid,
    /// The thread id.
    pub id: Pid,
    schedstat: ProcFile,
    syscall: Option<ProcFile>,
    /// The scheduler's counters, as last read.
    pub sched: SchedStat,
    /// The task's state at the last sample; active before the first one.
    pub state: State,
    /// Recent read and write calls, each with its wait and the time at which it was found: a task
    /// tends to wait in the same few calls.
    waits: Vec<(Waiting, Wait, Instant)>,
    /// The last call in which the task was found waiting.
    last_call: Option<Waiting>,
    /// Whether the task has been found alive since it began to wait.
    confirmed: bool,
}

/// Time for which a descriptor is assumed to refer to the same object.
const TARGET_CACHE_TIME: Duration = Duration::from_millis(50);

impl Task {
    /// Opens the files of thread `id` of `process`.
    ///
    /// # Errors
    /// Returns an error if the thread no longer exists, not even as a zombie, or if its counters
    /// may not be read.
    pub fn open(process: Pid, id: Pid) -> io::Result<Self> {
        let folder = format!("/proc/{}/task/{}", process.as_raw_nonzero(), id.as_raw_nonzero());
        Ok(Self {
            process,
            id,
            schedstat: ProcFile::open(&format!("{folder}/schedstat"))?,
            syscall: ProcFile::open(&format!("{folder}/syscall")).ok(),
            sched: SchedStat::default(),
            state: State::Active,
            waits: Vec::new(),
            last_call: None,
            confirmed: false,
        })
    }

    /// Samples the current state of the task. `ends` are the input and output of its stage;
    /// `buffer` is memory for the contents of files.
    ///
    /// # Errors
    /// Returns an error if the task has ended.
    pub fn sample(&mut self, ends: &Ends, buffer: &mut [u8]) -> io::Result<State> {
        let before = self.sched;
        self.update_sched(buffer)?;
        let same_wait = before.slices == self.sched.slices && self.state != State::Active;
        if !same_wait {
            let unmoved = before == self.sched;
            self.state = self.read_state(ends, unmoved, buffer)?;
            self.confirmed = false;
        } else if !self.confirmed {
            // Until the kernel has freed the stack of a task that has ended, `syscall` still shows
            // its last call, and the task never runs again.
            self.check_alive(buffer)?;
            self.confirmed = true;
        }
        Ok(self.state)
    }

    /// Returns whether the task's system call may be read. It may also be unreadable because the
    /// task has ended.
    pub fn may_read_call(&self, buffer: &mut [u8]) -> bool {
        self.syscall.as_ref().is_some_and(|file| file.read(buffer).is_ok())
    }

    /// Updates the scheduler's counters without sampling the state.
    ///
    /// # Errors
    /// Returns an error if the task has ended and was reaped.
    pub fn update_sched(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.sched =
            SchedStat::parse(self.schedstat.read(buffer)?).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }

    fn wait_of(&mut self, ends: &Ends, waiting: Waiting) -> Wait {
        // After a stop, the kernel restarts a call that has a timeout through another call,
        // `restart_syscall`.
        let waiting = match (waiting, self.last_call) {
            (Waiting::Restarted, Some(last)) => last,
            (waiting, _) => waiting,
        };
        self.last_call = Some(waiting);
        let now = Instant::now();
        let known = self.waits.iter().find(|(call, _, found)| {
            *call == waiting && now.duration_since(*found) < TARGET_CACHE_TIME
        });
        if let Some((_, wait, _)) = known {
            return *wait;
        }
        let wait = ends.wait_of(self.process, waiting);
        self.waits.retain(|(call, _, found)| {
            *call != waiting && now.duration_since(*found) < TARGET_CACHE_TIME
        });
        // The meaning of a wait for several descriptors, or for moving data, changes with the
        // pipes' fill.
        if matches!(waiting, Waiting::Read(_) | Waiting::Write(_)) {
            self.waits.push((waiting, wait, now));
        }
        wait
    }

    fn read_state(&mut self, ends: &Ends, unmoved: bool, buffer: &mut [u8]) -> io::Result<State> {
        let in_kernel =
            self.syscall.as_ref().and_then(|file| file.read(buffer).ok()).and_then(InKernel::parse);
        match in_kernel {
            // A queued task has not run since the last sample, and `syscall` shows it as running;
            // on some kernels, so does that of a zombie.
            Some(InKernel::Running) if unmoved => self.check_alive(buffer).map(|()| State::Active),
            Some(InKernel::Running) => Ok(State::Active),
            Some(InKernel::Call { number, arguments }) => {
                let waiting = Waiting::from_call(number, &arguments);
                Ok(State::Waiting(self.wait_of(ends, waiting)))
            }
            // Outside of system calls, a task can only wait for a page, uninterruptibly.
            Some(InKernel::Outside) => self.state_by_stat(buffer, |state| match state {
                b'D' => Wait::Disk,
                _ => Wait::Unknown,
            }),
            None => self.state_by_stat(buffer, |state| match state {
                b'D' => Wait::Disk, // waits for a pipe are interruptible
                _ => ends.wait_by_fill(),
            }),
        }
    }

    /// Returns the state of a task that is in no call, or whose calls may not be read. `wait` maps
    /// the state letter in `stat` to the wait of a waiting task.
    ///
    /// # Errors
    /// Returns an error if the task has ended.
    fn state_by_stat(&self, buffer: &mut [u8], wait: impl Fn(u8) -> Wait) -> io::Result<State> {
        match self.read_stat(buffer)?.state {
            b'R' => Ok(State::Active),
            b'T' | b't' => Ok(State::Waiting(Wait::Stopped)),
            // The `syscall` file of a zombie reads like that of a task waiting for a page.
            b'Z' | b'X' => Err(io::ErrorKind::NotFound.into()),
            state => Ok(State::Waiting(wait(state))),
        }
    }

    /// Checks that the task is alive, that is, neither reaped nor a zombie.
    ///
    /// # Errors
    /// Returns an error if the task has ended.
    fn check_alive(&self, buffer: &mut [u8]) -> io::Result<()> {
        match self.read_stat(buffer)?.state {
            b'Z' | b'X' => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    fn read_stat(&self, buffer: &mut [u8]) -> io::Result<Stat> {
        let path = format!(
            "/proc/{}/task/{}/stat",
            self.process.as_raw_nonzero(),
            self.id.as_raw_nonzero()
        );
        Stat::parse(procfs::read_once(&path, buffer)?)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Samples the task until it is in the expected state, and panics if it does not get there.
    fn becomes(task: &mut Task, ends: &Ends, expected: State) {
        let mut buffer = [0; 4096];
        for _ in 0..5_000 {
            if task.sample(ends, &mut buffer).expect("alive") == expected {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("never {expected:?}, at last {:?}", task.state);
    }

    #[test]
    fn a_zombie_waits_for_nothing() {
        let mut child = Command::new("sh").args(["-c", "exec sleep 0.05"]).spawn().expect("sh");
        let pid = Pid::from_child(&child);
        let mut task = Task::open(pid, pid).expect("alive");
        let ends = Ends::of(pid);
        // The child stays a zombie until the end of this test.
        let gone = (0..5_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let state = task.sample(&ends, &mut [0; 4096]);
            assert_ne!(state.as_ref().ok(), Some(&State::Waiting(Wait::Unknown)));
            state.is_err()
        });
        assert!(gone, "at last {:?}", task.state);
        assert!(Task::open(pid, pid).expect("a zombie").sample(&ends, &mut [0; 4096]).is_err());
        child.wait().expect("a child");
    }

    /// Checks the case that `syscall` was read after the task had ended, but before the kernel had
    /// freed the task's stack: the task then seems to wait in its last call.
    #[test]
    fn a_task_that_ended_in_a_call_is_detected_at_the_next_sample() {
        let mut child = Command::new("sh").args(["-c", "exit"]).spawn().expect("sh");
        let pid = Pid::from_child(&child);
        let mut task = Task::open(pid, pid).expect("alive");
        let ends = Ends::of(pid);
        while Task::open(pid, pid).expect("a zombie").sample(&ends, &mut [0; 4096]).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        task.update_sched(&mut [0; 4096]).expect("not reaped");
        task.state = State::Waiting(Wait::Starved);
        assert!(task.sample(&ends, &mut [0; 4096]).is_err());
        child.wait().expect("a child");
    }

    #[test]
    fn sleeping_starving_and_blocking_are_seen() {
        let cases = [
            ("exec sleep 100", Wait::Sleep),
            ("exec cat", Wait::Starved),
            ("exec cat /dev/zero", Wait::Blocked),
        ];
        for (script, wait) in cases {
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("sh starts");
            let pid = Pid::from_child(&child);
            let ends = Ends::of(pid);
            let mut task = Task::open(pid, pid).expect("alive");
            becomes(&mut task, &ends, State::Waiting(wait));
            child.kill().expect("alive");
            child.wait().expect("a child");
            assert!(task.sample(&ends, &mut [0; 512]).is_err(), "the task has ended");
        }
    }
}

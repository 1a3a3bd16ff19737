//! One task (a thread, or the only one of a process).

use std::io;
use std::time::{Duration, Instant};

use contend_sys::Pid;
use contend_sys::procfs::{self, InKernel, ProcFile, SchedStat, Stat};
use contend_sys::syscall::Waiting;

use super::{Ends, State, Wait};

/// A task that is looked at again and again; its files are kept open.
#[derive(Debug)]
pub struct Task {
    process: Pid,
    /// Its thread id.
    pub id: Pid,
    schedstat: ProcFile,
    syscall: Option<ProcFile>,
    /// What the scheduler knew at the last look.
    pub sched: SchedStat,
    /// What it did at the last look.
    pub state: State,
    /// What a call waits for, as last found out, and when: a task waits in the same few
    /// calls again and again.
    waits: Vec<(Waiting, Wait, Instant)>,
}

/// How long it is taken for granted that a descriptor still leads where it did.
const SAME_TARGET: Duration = Duration::from_millis(50);

impl Task {
    /// Starts looking at thread `id` of `process`.
    ///
    /// # Errors
    /// When it has ended.
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
        })
    }

    /// Looks at what it does now.
    ///
    /// # Errors
    /// When it has ended.
    pub fn look(&mut self, ends: &Ends, buffer: &mut [u8]) -> io::Result<State> {
        let before = self.sched;
        self.update_sched(buffer)?;
        let same_wait = before.slices == self.sched.slices && self.state != State::Active;
        if !same_wait {
            let unmoved = before == self.sched;
            self.state = self.read_state(ends, unmoved, buffer)?;
        }
        Ok(self.state)
    }

    /// Reads the scheduler's figures alone.
    ///
    /// # Errors
    /// When it has ended and was reaped.
    pub fn update_sched(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.sched =
            SchedStat::parse(self.schedstat.read(buffer)?).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }

    fn wait_of(&mut self, ends: &Ends, waiting: Waiting) -> Wait {
        let now = Instant::now();
        let known = self
            .waits
            .iter()
            .find(|(call, _, found)| *call == waiting && now.duration_since(*found) < SAME_TARGET);
        if let Some((_, wait, _)) = known {
            return *wait;
        }
        let wait = ends.wait_of(self.process, waiting);
        self.waits.retain(|(call, _, found)| {
            *call != waiting && now.duration_since(*found) < SAME_TARGET
        });
        // What a wait for several descriptors or for moving data means depends on the moment.
        if matches!(waiting, Waiting::Read(_) | Waiting::Write(_)) {
            self.waits.push((waiting, wait, now));
        }
        wait
    }

    fn read_state(&mut self, ends: &Ends, unmoved: bool, buffer: &mut [u8]) -> io::Result<State> {
        let in_kernel =
            self.syscall.as_ref().and_then(|file| file.read(buffer).ok()).and_then(InKernel::parse);
        match in_kernel {
            // A zombie reads as running, and so does a task that has not moved since the
            // last look because it waits for a CPU: only `stat` tells them apart.
            Some(InKernel::Running) if unmoved => match self.read_stat(buffer)?.state {
                b'Z' | b'X' => Err(io::ErrorKind::NotFound.into()),
                _ => Ok(State::Active),
            },
            Some(InKernel::Running) => Ok(State::Active),
            Some(InKernel::Fault) => Ok(State::Waiting(Wait::Disk)),
            Some(InKernel::Call { number, arguments }) => {
                let waiting = Waiting::from_call(number, &arguments);
                Ok(State::Waiting(self.wait_of(ends, waiting)))
            }
            None => match self.read_stat(buffer)?.state {
                b'R' => Ok(State::Active),
                b'D' => Ok(State::Waiting(Wait::Disk)),
                b'T' | b't' => Ok(State::Waiting(Wait::Stopped)),
                b'Z' | b'X' => Err(io::ErrorKind::NotFound.into()),
                _ => Ok(State::Waiting(ends.wait_by_fill())),
            },
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

    /// Looks until the task is seen in this state.
    fn becomes(task: &mut Task, ends: &Ends, expected: State) {
        let mut buffer = [0; 4096];
        for _ in 0..5_000 {
            if task.look(ends, &mut buffer).expect("alive") == expected {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("never {expected:?}, at last {:?}", task.state);
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
            assert!(task.look(&ends, &mut [0; 512]).is_err(), "it has gone");
        }
    }
}

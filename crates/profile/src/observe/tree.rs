//! A stage as a whole: its process, all descendants, and all their threads.
//!
//! Each sample attributes the time since the last one to the state of the stage. Time during which
//! several tasks are active counts once for the stage; the number of active tasks is also recorded.

use std::collections::HashSet;
use std::time::Duration;

use contend_sys::Pid;
use contend_sys::procfs::{Io, ProcFile, SchedStat, Stat, Status, parse_pids};

use super::task::Task;
use super::{Ends, State, Wait};

/// Maximum number of sampled processes of a stage, and of sampled threads of a process.
const MAX_SAMPLED_TASKS: usize = 64;

/// The time of a stage, divided by the states found by samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampledTime {
    /// Time with at least one task running on a CPU or queued for one.
    pub active: Duration,
    /// Active time summed over the tasks: each period in `active`, multiplied by the number of
    /// tasks that were running or queued in it.
    pub active_tasks: Duration,
    /// Time waiting, indexed by [`Wait`].
    pub waiting: [Duration; Wait::COUNT],
    /// Number of samples.
    pub samples: u64,
    /// Number of samples that found the stage waiting.
    pub waiting_samples: u64,
}

impl SampledTime {
    /// Returns the time attributed to `wait`.
    pub fn waited(&self, wait: Wait) -> Duration {
        self.waiting[wait as usize]
    }

    fn add(&mut self, state: State, active_tasks: u32, time: Duration) {
        self.samples += 1;
        match state {
            State::Active => {
                self.active += time;
                self.active_tasks += time * active_tasks.max(1);
            }
            State::Waiting(wait) => {
                self.waiting_samples += 1;
                self.waiting[wait as usize] += time;
            }
        }
    }
}

/// A process of a stage, with the files in `/proc` that samples read.
#[derive(Debug)]
struct Process {
    id: Pid,
    tasks: Vec<Task>,
    stat: ProcFile,
    children: Option<ProcFile>,
    io: Option<ProcFile>,
    status: Option<ProcFile>,
    stopped: bool,
    /// `VmHWM` in bytes, as last read. The kernel resets it when the process executes another
    /// program.
    peak_rss: u64,
    /// The scheduler's counters summed over ended tasks.
    ended_sched: SchedStat,
}

/// A stage under observation.
#[derive(Debug)]
pub struct Tree {
    /// The stage's processes. The first is the stage's own process until that has been reaped.
    processes: Vec<Process>,
    /// Whether the stage's own process has not been reaped yet.
    has_leader: bool,
    /// Ids of all processes ever seen in the stage.
    known: HashSet<Pid>,
    /// Descendants of the stage that do not belong to it: contend itself, if a shell that is
    /// observed has started it, and other stages.
    excluded: HashSet<Pid>,
    /// Processes of the stage that have ended but, as of the last search for children, have not
    /// been waited for.
    zombies: HashSet<Pid>,
    ends: Ends,
    /// The stage's time by state, as found by samples.
    pub seen: SampledTime,
    /// Largest `VmHWM` of ended processes, in bytes.
    ended_peak_rss: u64,
    /// The scheduler's counters summed over the tasks of ended processes.
    ended_sched: SchedStat,
    /// Whether the stage was ever found with more than one task.
    pub several_tasks: bool,
    /// Whether the stage was ever found with more than one process.
    pub several_processes: bool,
    /// Whether any sample found a wait that could not be classified.
    pub unreadable: bool,
    state: State,
}

impl Tree {
    /// Starts observing the stage whose own process is `leader`. The standard input and output of
    /// `leader` are those of the stage.
    ///
    /// # Errors
    /// Returns an error if the process has been reaped, or `/proc` is not mounted.
    pub fn open(leader: Pid) -> std::io::Result<Self> {
        Ok(Self {
            processes: vec![Process::open(leader)?],
            has_leader: true,
            known: HashSet::from([leader]),
            excluded: HashSet::from([rustix::process::getpid()]),
            zombies: HashSet::new(),
            ends: Ends::of(leader),
            seen: SampledTime::default(),
            ended_peak_rss: 0,
            ended_sched: SchedStat::default(),
            several_tasks: false,
            several_processes: false,
            unreadable: false,
            state: State::Active,
        })
    }

    /// Returns the stage's input and output.
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Returns the state of the stage at the last sample, or active before the first one.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the ids of the stage's processes, as of the last [`Self::refresh`] or
    /// [`Self::sample`].
    pub fn process_ids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.processes.iter().map(|process| process.id)
    }

    /// Samples all tasks and attributes `time`, the time since the last sample, to the state of the
    /// stage.
    pub fn sample(&mut self, time: Duration, buffer: &mut [u8]) {
        self.sample_tasks(buffer);
        // If a process waits for a child, the child's state is that of the stage. A process waiting
        // at a pipe of its own also waits for a child, as a shell does for `$(…)`.
        if matches!(self.state, State::Waiting(Wait::Child | Wait::Pipe)) {
            self.find_children(buffer);
            self.sample_tasks(buffer);
        }
        let tasks = self.processes.iter().flat_map(|process| &process.tasks);
        let active = tasks.filter(|task| task.state == State::Active).count();
        self.unreadable |= self.state == State::Waiting(Wait::Unknown);
        self.seen.add(self.state, u32::try_from(active).unwrap_or(u32::MAX), time);
    }

    fn sample_tasks(&mut self, buffer: &mut [u8]) {
        let ends = &self.ends;
        for (index, process) in self.processes.iter_mut().enumerate() {
            // The counters of the stage's own process are needed until it has been reaped, so keep
            // its task even if it is a zombie.
            let leader = (self.has_leader && index == 0).then_some(process.id);
            let ended_sched = &mut process.ended_sched;
            process.tasks.retain_mut(|task| {
                let is_alive = task.sample(ends, buffer).is_ok() || leader == Some(task.id);
                if !is_alive {
                    *ended_sched += task.sched;
                }
                is_alive
            });
        }
        let ended = self.processes.iter().filter(|process| process.tasks.is_empty());
        self.zombies.extend(ended.map(|process| process.id));
        self.retain_processes(|process| !process.tasks.is_empty());
        let states = self.processes.iter().filter_map(Process::state);
        self.state = State::combine(states, Wait::rank_in_stage).unwrap_or(self.state);
    }

    fn retain_processes(&mut self, must_stay: impl Fn(&Process) -> bool) {
        let (ended_peak_rss, ended_sched) = (&mut self.ended_peak_rss, &mut self.ended_sched);
        self.processes.retain(|process| {
            let stays = must_stay(process);
            if !stays {
                *ended_peak_rss = process.peak_rss.max(*ended_peak_rss);
                *ended_sched += process.sched();
            }
            stays
        });
    }

    /// Removes the stage's own process, which must have been reaped. Of the processes that it has
    /// left running, only those that can write to the stage's output still belong to the stage.
    pub fn remove_leader(&mut self) {
        let leader = self.processes.first().map(|leader| leader.id);
        self.has_leader = false;
        let ends = std::mem::take(&mut self.ends);
        self.retain_processes(|process| {
            Some(process.id) != leader && ends.is_output_of(process.id)
        });
        self.ends = ends;
    }

    /// Returns the number of processes ever seen in the stage, without its own process.
    pub fn children_seen(&self) -> u64 {
        self.known.len() as u64 - 1
    }

    /// Returns whether process `pid` was ever seen in the stage.
    pub fn has_seen(&self, pid: Pid) -> bool {
        self.known.contains(&pid)
    }

    /// Adds process `pid`, which a stage has left running, if the standard output of the process is
    /// this stage's output pipe.
    pub fn adopt(&mut self, pid: Pid) {
        if self.ends.is_output_of(pid) {
            self.add(pid);
            self.several_processes = true;
            self.several_tasks = true;
        }
    }

    fn add(&mut self, pid: Pid) {
        if self.processes.len() < MAX_SAMPLED_TASKS
            && !self.excluded.contains(&pid)
            && !self.process_ids().any(|known| known == pid)
            && let Ok(process) = Process::open(pid)
        {
            self.known.insert(pid);
            self.processes.push(process);
        }
    }

    /// Searches for new descendants and threads, and reads which processes are stopped, and their
    /// peak memory.
    pub fn refresh(&mut self, buffer: &mut [u8]) {
        for process in &mut self.processes {
            process.refresh(buffer);
            process.read_peak_rss(buffer);
        }
        self.find_children(buffer);
        self.several_tasks |= self.task_count() > 1;
    }

    fn find_children(&mut self, buffer: &mut [u8]) {
        let mut index = 0;
        let mut zombies = HashSet::new();
        while index < self.processes.len() {
            for child in self.processes[index].child_ids(buffer) {
                if self.zombies.contains(&child) {
                    zombies.insert(child);
                } else {
                    self.add(child);
                }
            }
            index += 1;
        }
        // Keep only current zombies: the kernel may reuse the ids of others.
        self.zombies = zombies;
        self.several_processes |= self.processes.len() > 1;
        self.several_tasks |= self.several_processes;
    }

    /// Returns the bytes and calls so far of the stage's processes that have not been reaped,
    /// including those of children for which they have waited. Returns `None` if no process is
    /// left, or if the counters of the first one, usually the stage's own process, cannot be read.
    /// Leaves out other processes whose counters cannot be read.
    pub fn read_io(&self, buffer: &mut [u8]) -> Option<Io> {
        let (leader, others) = self.processes.split_first()?;
        let mut sum = leader.read_io(buffer)?;
        for io in others.iter().filter_map(|process| process.read_io(buffer)) {
            sum += io;
        }
        Some(sum)
    }

    /// Returns whether it is certain that no process of the stage has written anything yet. Returns
    /// `false` if counters cannot be read, no process is left, or there is an unknown child or a
    /// zombie, because the writes of a child appear only in its own counters until it has been
    /// waited for.
    pub fn check_nothing_written(&mut self, buffer: &mut [u8]) -> bool {
        self.find_children(buffer);
        let is_known = |id: &Pid| self.processes.iter().any(|process| process.id == *id);
        let all_known = self.processes.iter().all(|process| {
            process.children.is_some() && process.child_ids(buffer).iter().all(is_known)
        });
        let silent = |io: Option<Io>| io.is_some_and(|io| io.write_bytes == 0);
        !self.processes.is_empty()
            && all_known
            && self.processes.iter().all(|process| silent(process.read_io(buffer)))
    }

    /// Returns the scheduler's counters as last read, summed over all tasks that samples have found
    /// in the stage.
    pub fn sched(&self) -> SchedStat {
        let mut sum = self.ended_sched;
        self.processes.iter().for_each(|process| sum += process.sched());
        sum
    }

    /// Leaves the given processes out of the stage, with their descendants, unless they have been
    /// found already.
    pub fn exclude(&mut self, pids: impl IntoIterator<Item = Pid>) {
        self.excluded.extend(pids);
    }

    /// Returns whether `pid` was left out by [`Self::exclude`], or is contend itself.
    pub fn is_excluded(&self, pid: Pid) -> bool {
        self.excluded.contains(&pid)
    }

    /// Returns whether the stage has as many processes as are sampled at most, so that there may be
    /// more.
    pub fn is_full(&self) -> bool {
        self.processes.len() >= MAX_SAMPLED_TASKS
    }

    /// Returns whether the system calls of the stage's own process may be read.
    pub fn may_read_calls(&self, buffer: &mut [u8]) -> bool {
        let leader = self.processes.first().and_then(|leader| leader.tasks.first());
        leader.is_some_and(|task| task.may_read_call(buffer))
    }

    /// Returns the number of the stage's tasks as of the last search.
    pub fn task_count(&self) -> usize {
        self.processes.iter().map(|process| process.tasks.len()).sum()
    }

    /// Returns the time for which the stage's tasks have been queued for a CPU so far, summed over
    /// the tasks.
    pub fn run_queue(&self) -> Duration {
        Duration::from_nanos(self.sched().run_queue)
    }

    /// Returns the largest `VmHWM` of any process of the stage, as last read, in bytes.
    pub fn peak_rss(&self) -> u64 {
        self.processes.iter().map(|process| process.peak_rss).fold(self.ended_peak_rss, u64::max)
    }

    /// Reads the scheduler's counters and peak memory without attributing time. To be called before
    /// the stage starts its work, and again when the stage is about to end, or has ended but has
    /// not been reaped. Returns whether the peak of the stage's own process could still be read.
    pub fn read_counters(&mut self, buffer: &mut [u8]) -> bool {
        for task in self.processes.iter_mut().flat_map(|process| &mut process.tasks) {
            let _ = task.update_sched(buffer); // an ended task keeps its last counters
        }
        let mut processes = self.processes.iter_mut();
        let own = processes.next().is_some_and(|leader| leader.read_peak_rss(buffer));
        for process in processes {
            process.read_peak_rss(buffer);
        }
        own
    }

    /// Returns the scheduler's counters of the main thread of the stage's own process, as last
    /// read. Must be called before [`Self::remove_leader`]; afterwards, the result is `None` or
    /// that of another process.
    pub fn leader_sched(&self) -> Option<SchedStat> {
        Some(self.processes.first()?.tasks.first()?.sched)
    }

    /// Returns the status of the stage's own process, or `None` if it cannot be read. Must be
    /// called before [`Self::remove_leader`].
    pub fn leader_status(&self, buffer: &mut [u8]) -> Option<Status> {
        let status = self.processes.first()?.status.as_ref()?;
        Some(Status::parse(status.read(buffer).ok()?))
    }
}

impl Process {
    fn open(id: Pid) -> std::io::Result<Self> {
        let file = |name: &str| ProcFile::open(&format!("/proc/{}/{name}", id.as_raw_nonzero()));
        Ok(Self {
            id,
            tasks: vec![Task::open(id, id)?],
            stat: file("stat")?,
            children: file(&format!("task/{}/children", id.as_raw_nonzero())).ok(),
            io: file("io").ok(),
            status: file("status").ok(),
            stopped: false,
            peak_rss: 0,
            ended_sched: SchedStat::default(),
        })
    }

    /// Returns the scheduler's counters as last read, summed over all tasks ever found.
    fn sched(&self) -> SchedStat {
        let mut sum = self.ended_sched;
        self.tasks.iter().for_each(|task| sum += task.sched);
        sum
    }

    fn state(&self) -> Option<State> {
        if self.stopped {
            return Some(State::Waiting(Wait::Stopped));
        }
        State::combine(self.tasks.iter().map(|task| task.state), Wait::rank_in_process)
    }

    fn refresh(&mut self, buffer: &mut [u8]) {
        let Some(stat) = self.stat.read(buffer).ok().and_then(Stat::parse) else {
            return;
        };
        self.stopped = stat.state == b'T';
        if stat.threads != self.tasks.len() as u64 {
            self.find_threads();
        }
    }

    fn find_threads(&mut self) {
        let path = format!("/proc/{}/task", self.id.as_raw_nonzero());
        let Ok(folder) = std::fs::read_dir(path) else {
            return;
        };
        let ids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for id in ids.filter_map(Pid::from_raw) {
            let known = self.tasks.iter().any(|task| task.id == id);
            if !known
                && self.tasks.len() < MAX_SAMPLED_TASKS
                && let Ok(task) = Task::open(self.id, id)
            {
                self.tasks.push(task);
            }
        }
    }

    fn child_ids(&self, buffer: &mut [u8]) -> Vec<Pid> {
        let text = self.children.as_ref().and_then(|file| file.read(buffer).ok());
        text.map_or_else(Vec::new, |text| parse_pids(text).filter_map(Pid::from_raw).collect())
    }

    fn read_io(&self, buffer: &mut [u8]) -> Option<Io> {
        Io::parse(self.io.as_ref()?.read(buffer).ok()?)
    }

    /// Reads `VmHWM`. Returns whether it could be read. A zombie has no memory left, so its last
    /// peak is kept.
    fn read_peak_rss(&mut self, buffer: &mut [u8]) -> bool {
        let text = self.status.as_ref().and_then(|file| file.read(buffer).ok());
        let peak = text.map_or(0, |text| Status::parse(text).peak_rss);
        if peak > 0 {
            self.peak_rss = peak;
        }
        peak > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_sleeping_child_makes_the_stage_sleep() {
        let mut child = Command::new("sh").args(["-c", "sleep 100; :"]).spawn().expect("sh");
        let mut tree = Tree::open(Pid::from_child(&child)).expect("alive");
        let mut buffer = [0; 4096];
        let step = Duration::from_millis(1);
        for _ in 0..5_000 {
            tree.sample(step, &mut buffer);
            if tree.state() == State::Waiting(Wait::Sleep) {
                break;
            }
            std::thread::sleep(step);
        }
        assert_eq!(tree.state(), State::Waiting(Wait::Sleep));
        assert!(tree.several_tasks);
        assert_eq!(tree.process_ids().count(), 2);
        let total: Duration = tree.seen.waiting.iter().sum::<Duration>() + tree.seen.active;
        assert_eq!(total, step * u32::try_from(tree.seen.samples).expect("few"));
        for id in tree.process_ids() {
            let _ = rustix::process::kill_process(id, contend_sys::Signal::KILL);
        }
        child.wait().expect("a child");
    }

    #[test]
    fn bytes_are_counted() {
        let mut child = Command::new("sh")
            .args(["-c", "echo hello >/dev/null; sleep 100"])
            .spawn()
            .expect("sh");
        let mut tree = Tree::open(Pid::from_child(&child)).expect("alive");
        let mut buffer = [0; 4096];
        let written = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            tree.read_io(&mut buffer).is_some_and(|io| io.write_bytes == 6 && io.writes == 1)
        });
        assert!(written, "{:?}", tree.read_io(&mut buffer));
        tree.refresh(&mut buffer);
        assert!(tree.peak_rss() > 0);
        for id in tree.process_ids() {
            let _ = rustix::process::kill_process(id, contend_sys::Signal::KILL);
        }
        child.wait().expect("a child");
    }

    #[test]
    fn a_zombie_may_have_written() {
        let script = "echo x >/dev/null & read -r line";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut tree = Tree::open(Pid::from_child(&child)).expect("alive");
        let mut buffer = [0; 4096];
        let has_child = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            !tree.processes[0].child_ids(&mut buffer).is_empty()
        });
        assert!(has_child);
        let wrote = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            !tree.check_nothing_written(&mut buffer)
        });
        assert!(wrote, "its child has");
        drop(child.stdin.take());
        child.wait().expect("a child");
    }
}

//! Files of `/proc`. Those that the profiler samples are opened once, read with `pread`, and parsed
//! without allocating.
//!
//! Times in `schedstat` are nanoseconds of the scheduler's clock. The kernel updates those of a
//! running task at the next tick or context switch, so they lag by up to a few milliseconds while
//! it runs, and are exact while it waits.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::Pid;

/// A file of `/proc`, opened once and read repeatedly.
#[derive(Debug)]
pub struct ProcFile(OwnedFd);

impl ProcFile {
    /// Opens the file `path`, such as `/proc/PID/stat`.
    ///
    /// # Errors
    /// Returns an error if there is no such file, as when the process has been reaped, or if this
    /// user may not read it.
    pub fn open(path: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// Reads the file from its beginning, up to the size of `buffer`, and returns the bytes read.
    ///
    /// # Errors
    /// `ESRCH` if the process no longer exists; `EPERM` or `EACCES` if this user may not inspect
    /// the process, as after it has executed a set-user-ID program.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let length = rustix::io::pread(&self.0, &mut *buffer, 0)?;
        Ok(&buffer[..length])
    }
}

/// Reads the file `path` of `/proc` once, up to the size of `buffer`, and returns the bytes read.
///
/// # Errors
/// Returns an error if there is no such file, if the process no longer exists, or if this user may
/// not read the file.
pub fn read_once<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    ProcFile::open(path)?.read(buffer)
}

/// `schedstat` of a task: times from the scheduler, which may lag while the task runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a CPU, in nanoseconds.
    pub on_cpu: u64,
    /// Time runnable but waiting for a CPU, in nanoseconds.
    pub run_queue: u64,
    /// Number of times that the scheduler ran the task. While it stays the same, a waiting task is
    /// in the same wait.
    pub slices: u64,
}

impl SchedStat {
    /// Parses the three numbers of the file. Returns `None` if one is missing.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = Numbers(text);
        Some(Self { on_cpu: numbers.next()?, run_queue: numbers.next()?, slices: numbers.next()? })
    }
}

impl std::ops::AddAssign for SchedStat {
    fn add_assign(&mut self, other: Self) {
        self.on_cpu += other.on_cpu;
        self.run_queue += other.run_queue;
        self.slices += other.slices;
    }
}

/// `syscall` of a task: whether the task is blocked, and by which system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InKernel {
    /// Running or runnable.
    Running,
    /// Blocked outside of a system call, as by a page fault; or stopped, or a zombie.
    Outside,
    /// Blocked in this system call.
    Call {
        /// Number of the system call, on this architecture.
        number: libc::c_long,
        /// The six arguments of the system call.
        arguments: [u64; 6],
    },
}

impl InKernel {
    /// Parses `running`, `-1 SP PC`, or `NUMBER ARG1 … ARG6 SP PC`. Returns `None` for anything
    /// else.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.starts_with(b"running") {
            return Some(Self::Running);
        }
        if text.starts_with(b"-1 ") {
            return Some(Self::Outside);
        }
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let number = fields.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            let field = fields.next()?;
            *argument = u64::from_str_radix(field.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self::Call { number, arguments })
    }
}

/// `io` of a process: I/O counters of all its threads, and of the children that it has reaped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes returned by read-like calls, from any kind of file.
    pub read_bytes: u64,
    /// Bytes accepted by write-like calls.
    pub write_bytes: u64,
    /// Number of read-like calls.
    pub reads: u64,
    /// Number of write-like calls.
    pub writes: u64,
}

impl Io {
    /// Returns by how much each count exceeds that in `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
        }
    }

    /// Parses the first four lines: rchar, wchar, syscr and syscw. Returns `None` if one is
    /// missing.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = Numbers(text);
        Some(Self {
            read_bytes: numbers.next()?,
            write_bytes: numbers.next()?,
            reads: numbers.next()?,
            writes: numbers.next()?,
        })
    }
}

impl std::ops::AddAssign for Io {
    fn add_assign(&mut self, other: Self) {
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

/// The fields of `stat` that contend uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// State character: R, S, D, T, t, Z …
    pub state: u8,
    /// PID of the parent process.
    pub parent: i32,
    /// ID of the process group; 0 for a thread of the kernel.
    pub group: i32,
    /// Whether the main thread is exiting. If it is the last thread, the process's descriptors may
    /// be closed already, and it will soon be a zombie.
    pub exiting: bool,
    /// Whether it is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// Number of page faults of the process itself, without its children, that needed no I/O.
    pub minor_faults: u64,
    /// CPU time of the process in user mode, in clock ticks.
    pub user_ticks: u64,
    /// CPU time of the process in the kernel, in clock ticks.
    pub system_ticks: u64,
    /// CPU time in user mode of reaped children and of the descendants that they waited for, in
    /// clock ticks.
    pub children_user_ticks: u64,
    /// CPU time of the same processes in the kernel, in clock ticks.
    pub children_system_ticks: u64,
    /// Number of threads of the process.
    pub threads: u64,
    /// Start time of the process, in clock ticks since boot.
    pub started: u64,
}

/// Returns `count` clock ticks, the unit of times in `stat`, as a duration. A tick is usually 10 ms.
pub fn ticks(count: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_secs_f64(count as f64 / per_second as f64)
}

/// Flag of an exiting process, from the kernel's `sched.h`.
const PF_EXITING: u64 = 4;
/// Flag of a thread of the kernel.
const PF_KTHREAD: u64 = 0x20_0000;

impl Stat {
    /// Reads `/proc/PID/stat` of the process `pid`.
    ///
    /// # Errors
    /// Returns an error if there is no such process, or no file can be opened.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        Self::parse(read_once(&path, &mut [0; 1024])?)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses the file, in which the program's name may contain spaces and parentheses. Returns
    /// `None` if a field is missing or malformed.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let end_of_name = text.iter().rposition(|&b| b == b')')?;
        let rest = std::str::from_utf8(text.get(end_of_name + 2..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(3)?.parse().ok()?;
        let exiting = flags & PF_EXITING != 0;
        let is_kernel_thread = flags & PF_KTHREAD != 0;
        let minor_faults = fields.next()?.parse().ok()?;
        let user_ticks = fields.nth(3)?.parse().ok()?;
        let system_ticks = fields.next()?.parse().ok()?;
        let children_user_ticks = fields.next()?.parse().ok()?;
        let children_system_ticks = fields.next()?.parse().ok()?;
        let threads = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        Some(Self {
            state,
            parent,
            group,
            exiting,
            is_kernel_thread,
            minor_faults,
            user_ticks,
            system_ticks,
            children_user_ticks,
            children_system_ticks,
            threads,
            started,
        })
    }
}

/// Returns the largest resident set of this process since it began to execute its program (`VmHWM`), in bytes; 0 if it cannot be
/// read. `ru_maxrss` would start with the value of the process that started it.
pub fn own_peak_rss() -> u64 {
    Status::of(rustix::process::getpid()).map_or(0, |status| status.peak_rss)
}

/// The fields of `status` that contend uses. A field is 0 if the file lacks its line; that of a
/// zombie lacks the lines about memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Largest resident set of the current program (`VmHWM`), in bytes; 0 for a zombie.
    pub peak_rss: u64,
    /// Size of the page tables (`VmPTE`), in bytes.
    pub page_tables: u64,
    /// Size of the address space (`VmSize`), in bytes.
    pub address_space: u64,
    /// Private writable address space without stacks (`VmData`), in bytes.
    pub data: u64,
    /// Voluntary context switches of the main thread: it waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches of the main thread: the scheduler preempted it.
    pub involuntary_switches: u64,
}

impl Status {
    /// Reads `/proc/PID/status` of the process `pid`.
    ///
    /// # Errors
    /// Returns an error if there is no such process.
    pub fn of(pid: Pid) -> io::Result<Self> {
        read_once(&format!("/proc/{}/status", pid.as_raw_nonzero()), &mut [0; 4096])
            .map(Self::parse)
    }

    /// Parses the file; values of missing lines are 0.
    pub fn parse(text: &[u8]) -> Self {
        let mut status = Self::default();
        for (name, value) in lines(text) {
            match name {
                b"VmHWM" => status.peak_rss = value * 1024,
                b"VmPTE" => status.page_tables = value * 1024,
                b"VmSize" => status.address_space = value * 1024,
                b"VmData" => status.data = value * 1024,
                b"voluntary_ctxt_switches" => status.voluntary_switches = value,
                b"nonvoluntary_ctxt_switches" => status.involuntary_switches = value,
                _ => {}
            }
        }
        status
    }
}

/// `smaps_rollup` of a process: its resident memory, in total and divided into shared and private
/// pages, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollup {
    /// Resident set: shared pages count in full.
    pub rss: u64,
    /// Proportional set: a page that n processes map counts as 1/n of a page.
    pub pss: u64,
    /// The part of `pss` in pages of mapped files, such as the code of programs and libraries. 0
    /// before Linux 5.2, which does not report it.
    pub pss_file: u64,
    /// Memory in pages that other processes map too.
    pub shared: u64,
    /// Memory in pages that only this process maps (unique set).
    pub private: u64,
}

impl Rollup {
    /// Reads `/proc/PID/smaps_rollup` of the process `pid`.
    ///
    /// # Errors
    /// Returns an error if the process has ended, if this user may not read the file, or if the
    /// kernel lacks it.
    pub fn of(pid: Pid) -> io::Result<Self> {
        read_once(&format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero()), &mut [0; 4096])
            .map(Self::parse)
    }

    /// Parses the file; values of missing lines are 0.
    pub fn parse(text: &[u8]) -> Self {
        let mut rollup = Self::default();
        for (name, value) in lines(text) {
            match name {
                b"Rss" => rollup.rss = value * 1024,
                b"Pss" => rollup.pss = value * 1024,
                b"Pss_File" => rollup.pss_file = value * 1024,
                b"Shared_Clean" | b"Shared_Dirty" => rollup.shared += value * 1024,
                b"Private_Clean" | b"Private_Dirty" => rollup.private += value * 1024,
                _ => {}
            }
        }
        rollup
    }

    /// Returns the proportional set without pages of mapped files, in bytes. The share of those pages
    /// changes whenever an unrelated process that maps the same file starts or ends.
    pub fn pss_without_files(&self) -> u64 {
        self.pss.saturating_sub(self.pss_file)
    }
}

/// `/proc/meminfo`: the memory of the machine and its use, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// All usable memory.
    pub total: u64,
    /// Memory that is available without swapping.
    pub available: u64,
    /// Kernel stacks of all tasks.
    pub kernel_stacks: u64,
    /// Page tables of all processes.
    pub page_tables: u64,
    /// Kernel objects that cannot be reclaimed under memory pressure.
    pub slab_unreclaimable: u64,
    /// Limit of committed memory, enforced under strict overcommit.
    pub commit_limit: u64,
    /// Memory that has been promised to processes (`Committed_AS`).
    pub committed: u64,
}

impl MemInfo {
    /// Parses the file; values of missing lines are 0.
    pub fn parse(text: &[u8]) -> Self {
        let mut info = Self::default();
        for (name, value) in lines(text) {
            let field = match name {
                b"MemTotal" => &mut info.total,
                b"MemAvailable" => &mut info.available,
                b"KernelStack" => &mut info.kernel_stacks,
                b"PageTables" => &mut info.page_tables,
                b"SUnreclaim" => &mut info.slab_unreclaimable,
                b"CommitLimit" => &mut info.commit_limit,
                b"Committed_AS" => &mut info.committed,
                _ => continue,
            };
            *field = value * 1024;
        }
        info
    }

    /// Returns the kernel memory that grows with the number of tasks, in bytes: stacks, page tables
    /// and all unreclaimable objects.
    pub fn of_tasks(&self) -> u64 {
        self.kernel_stacks + self.page_tables + self.slab_unreclaimable
    }

    /// Reads `/proc/meminfo`. All values are 0 if it cannot be read.
    pub fn read() -> Self {
        read_once("/proc/meminfo", &mut [0; 4096]).map_or_else(|_| Self::default(), Self::parse)
    }
}

/// Returns the name and the number of each line of the form `Name: number …`. Skips other lines.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    text.split(|&b| b == b'\n').filter_map(|line| {
        let colon = line.iter().position(|&b| b == b':')?;
        Some((&line[..colon], Numbers(&line[colon..]).next()?))
    })
}

/// Parses a list of PIDs or TIDs, such as `task/TID/children`; skips numbers that are too large.
pub fn parse_pids(text: &[u8]) -> impl Iterator<Item = i32> + '_ {
    Numbers(text).filter_map(|number| i32::try_from(number).ok())
}

/// Returns the PIDs of the processes that hold a file lock (`/proc/locks`), each once for every lock.
/// Locks of open file descriptions belong to no process. Returns none if the file cannot be read.
pub fn lock_holders() -> Vec<i32> {
    std::fs::read_to_string("/proc/locks").map_or_else(|_| Vec::new(), |text| parse_locks(&text))
}

/// Parses lines such as `1: POSIX  ADVISORY  WRITE 42 08:01:7 0 EOF`. A line with an arrow is a process
/// that waits for a lock.
fn parse_locks(text: &str) -> Vec<i32> {
    let holder = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_waiting = fields.next()? == "->";
        let pid: i32 = fields.nth(2)?.parse().ok()?;
        (!is_waiting && pid > 0).then_some(pid)
    };
    text.lines().filter_map(holder).collect()
}

/// Returns `root` and all descendants that can be reached through living processes. When a process
/// ends, its children become those of the nearest subreaper, or of init, so the result may lack
/// them.
pub fn with_descendants(root: Pid) -> Vec<Pid> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        all.extend(children(pid));
        next += 1;
    }
    all
}

/// Returns the children of all threads of the process `pid`; none if the process has ended.
pub fn children(pid: Pid) -> Vec<Pid> {
    let threads = threads(pid);
    // Each thread has a list of its own. With many threads, it is quicker to ask all processes.
    if threads.len() > MAX_LISTS {
        let all = processes();
        if all.len() < threads.len() {
            let is_child = |other: &Pid| {
                Stat::of(*other).is_ok_and(|stat| Pid::from_raw(stat.parent) == Some(pid))
            };
            return all.into_iter().filter(is_child).collect();
        }
    }
    let path = |thread: Pid| {
        format!("/proc/{}/task/{}/children", pid.as_raw_nonzero(), thread.as_raw_nonzero())
    };
    let lists = threads.into_iter().filter_map(|thread| std::fs::read(path(thread)).ok());
    lists.flat_map(|list| parse_pids(&list).filter_map(Pid::from_raw).collect::<Vec<_>>()).collect()
}

/// Number of threads from which children may be found by their parents.
const MAX_LISTS: usize = 100;

/// Returns the threads of the process `pid`; none if it has ended.
pub fn threads(pid: Pid) -> Vec<Pid> {
    ids_in(&format!("/proc/{}/task", pid.as_raw_nonzero()))
}

/// Returns all processes that this user may see; none without `/proc`.
pub fn processes() -> Vec<Pid> {
    ids_in("/proc")
}

fn ids_in(folder: &str) -> Vec<Pid> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Pid::from_raw).collect()
}

/// An iterator over the unsigned decimal numbers in a text, with any separators.
struct Numbers<'a>(&'a [u8]);

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let start = self.0.iter().position(u8::is_ascii_digit)?;
        let rest = &self.0[start..];
        let length = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
        self.0 = &rest[length..];
        let digits = &rest[..length];
        Some(digits.iter().fold(0_u64, |value, &digit| {
            value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_a_process_with_many_threads_are_found() {
        let end = std::sync::Barrier::new(2 * MAX_LISTS + 1);
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let pid = Pid::from_child(&child);
        let found = std::thread::scope(|scope| {
            (0..2 * MAX_LISTS).for_each(|_| drop(scope.spawn(|| end.wait())));
            let own = Pid::from_raw(std::process::id().cast_signed()).expect("an ID");
            let found = children(own);
            end.wait();
            found
        });
        child.kill().and_then(|()| child.wait()).expect("a child");
        assert!(found.contains(&pid), "{found:?}");
    }

    #[test]
    fn schedstat_has_three_numbers() {
        let parsed = SchedStat::parse(b"1234567 89 10\n");
        assert_eq!(parsed, Some(SchedStat { on_cpu: 1_234_567, run_queue: 89, slices: 10 }));
        assert_eq!(SchedStat::parse(b"1 2\n"), None);
    }

    #[test]
    fn numbers_that_are_no_pids_are_skipped() {
        // 2^64 + 5 does not wrap to 5.
        let text = b"1 4294967296 18446744073709551621 2\n";
        assert_eq!(parse_pids(text).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_wait_names_its_call_and_arguments() {
        assert_eq!(InKernel::parse(b"running\n"), Some(InKernel::Running));
        assert_eq!(InKernel::parse(b"-1 0x7ffe 0x7f00\n"), Some(InKernel::Outside));
        let text = b"0 0x3 0x7ffd 0x1000 0x0 0x0 0xff 0x7ffd 0x7f9\n";
        let arguments = [3, 0x7ffd, 0x1000, 0, 0, 0xff];
        assert_eq!(InKernel::parse(text), Some(InKernel::Call { number: 0, arguments }));
        assert_eq!(InKernel::parse(b""), None);
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse_stat() {
        let text = b"42 (a) b) (c) S 7 42 42 0 -1 4194304 1 0 0 0 3 4 6 7 20 0 5 0 9876 1 2 3\n";
        let stat = Stat {
            state: b'S',
            parent: 7,
            group: 42,
            exiting: false,
            is_kernel_thread: false,
            minor_faults: 1,
            user_ticks: 3,
            system_ticks: 4,
            children_user_ticks: 6,
            children_system_ticks: 7,
            threads: 5,
            started: 9876,
        };
        assert_eq!(Stat::parse(text), Some(stat));
    }

    #[test]
    fn status_is_read_line_by_line() {
        let text = b"Name:\tx\nVmHWM:\t    3456 kB\nvoluntary_ctxt_switches:\t12\n\
                     nonvoluntary_ctxt_switches:\t3\n";
        let status = Status {
            peak_rss: 3456 * 1024,
            voluntary_switches: 12,
            involuntary_switches: 3,
            ..Status::default()
        };
        assert_eq!(Status::parse(text), status);
    }

    #[test]
    fn shared_memory_is_distinguished_from_private() {
        let text = b"00400000-7ffd ---p 00000000 00:00 0  [rollup]\nRss:  100 kB\nPss:  60 kB\n\
                     Pss_Dirty: 7 kB\nPss_File: 45 kB\nShared_Clean: 70 kB\nShared_Dirty: 10 kB\n\
                     Private_Clean: 5 kB\nPrivate_Dirty: 15 kB\n";
        let kib = 1024;
        let (rss, pss, shared, private) = (100 * kib, 60 * kib, 80 * kib, 20 * kib);
        let rollup = Rollup { rss, pss, pss_file: 45 * kib, shared, private };
        assert_eq!(Rollup::parse(text), rollup);
        assert_eq!(rollup.pss_without_files(), 15 * kib);
        let info = MemInfo::read();
        assert!(info.available > 0 && info.kernel_stacks > 0 && info.page_tables > 0);
    }

    #[test]
    fn holders_of_locks_are_distinguished_from_waiters() {
        let text = "1: POSIX  ADVISORY  WRITE 42 08:01:7 0 EOF\n\
                    1: -> POSIX  ADVISORY  WRITE 43 08:01:7 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 44 08:01:8 0 EOF\n\
                    3: OFDLCK ADVISORY  READ -1 08:01:9 0 EOF\n";
        assert_eq!(parse_locks(text), [42, 44]);
        assert_eq!(parse_locks(""), []);
    }

    #[test]
    fn own_files_can_be_read() {
        let mut buffer = [0; 4096];
        let schedstat = ProcFile::open("/proc/self/schedstat").expect("procfs");
        let first = SchedStat::parse(schedstat.read(&mut buffer).expect("readable"));
        assert!(first.is_some_and(|s| s.slices > 0));
        let io = ProcFile::open("/proc/self/io").expect("procfs");
        let io = Io::parse(io.read(&mut buffer).expect("readable")).expect("four numbers");
        assert!(io.reads > 0 && io.read_bytes > 0);
        let stat = Stat::parse(read_once("/proc/self/stat", &mut buffer).expect("readable"));
        assert!(stat.is_some_and(|s| s.threads > 0 && s.started > 0));
    }
}

//! The CPUs that this process may use, thread scheduling, CPU-time clocks, and the version of the C
//! library.

use std::fs;
use std::marker::PhantomData;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

use crate::cgroup::{self, Group};

/// Returns the name of the C library: `glibc` and its version (such as `glibc 2.36`), `musl`, or
/// `unknown`.
pub fn libc_version() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes no arguments and returns a static string.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: the string is static and ends with a NUL.
        let version = unsafe { std::ffi::CStr::from_ptr(version) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    if cfg!(target_env = "musl") { "musl".to_owned() } else { "unknown".to_owned() }
}

/// Returns the number of CPUs in the calling thread's affinity mask, or 1 if the mask cannot be
/// read.
pub fn allowed() -> usize {
    rustix::thread::sched_getaffinity(None)
        .map_or(1, |set| usize::try_from(set.count()).unwrap_or(1).max(1))
}

/// Returns the number of CPUs that at least one of the threads may use, by their affinity masks; `None`
/// if none of the masks can be read. The ID of a process is that of its main thread.
pub fn allowed_to(threads: &[Pid]) -> Option<usize> {
    let sets: Vec<_> = threads
        .iter()
        .filter_map(|&pid| rustix::thread::sched_getaffinity(Some(pid)).ok())
        .collect();
    let is_allowed = |cpu: &usize| sets.iter().any(|set| set.is_set(*cpu));
    Some((0..CpuSet::MAX_CPU).filter(is_allowed).count()).filter(|&count| count > 0)
}

/// Returns the numbers of the CPUs in the calling thread's affinity mask, or none if it cannot be
/// read.
pub fn allowed_list() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Returns the numbers of the CPUs that are online; those of the calling thread's affinity mask if
/// the kernel does not report them.
pub fn online_list() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let list = parse_list(text.trim()).unwrap_or_default();
    if list.is_empty() { allowed_list() } else { list }
}

/// Parses a list of CPUs such as `0-3,5`. Returns `None` if it is malformed.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        list.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(list)
}

/// Binds the calling thread to the CPU with the number `cpu`.
///
/// # Errors
/// `EINVAL` if the thread may not run there.
///
/// # Panics
/// Panics if `cpu` is `CpuSet::MAX_CPU` or more.
pub fn pin(cpu: usize) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Binds the thread that created it to one CPU until it is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
    /// Only that thread may restore its affinity mask.
    _not_send: PhantomData<*const ()>,
}

impl Pinned {
    /// Binds the calling thread to the CPU on which it runs.
    ///
    /// # Errors
    /// Returns an error if the affinity mask cannot be read or set, as in a sandbox.
    pub fn here() -> std::io::Result<Self> {
        let before = rustix::thread::sched_getaffinity(None)?;
        pin(rustix::thread::sched_getcpu())?;
        Ok(Self { before, _not_send: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Fails only if all these CPUs have gone offline.
        let _ = rustix::thread::sched_setaffinity(None, &self.before);
    }
}

/// Requests a time slice of `length`, which the kernel limits to 0.1 to 100 ms, for the calling
/// thread. A thread usually runs for its slice before other runnable threads get the CPU; with a
/// shorter slice, it runs sooner after a wake-up. The request has an effect since Linux 6.12, and
/// is inherited by threads and processes that the thread creates. Threads with a real-time or idle
/// policy are left unchanged.
///
/// # Errors
/// `EPERM` or `ENOSYS` in a sandbox that does not allow it.
pub fn request_slice(length: Duration) -> std::io::Result<()> {
    let mut attributes = attributes()?;
    if [libc::SCHED_OTHER, libc::SCHED_BATCH]
        .map(i32::cast_unsigned)
        .contains(&attributes.sched_policy)
    {
        attributes.sched_runtime = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the kernel only reads the structure, and only the length that it states; 0 is the
        // calling thread.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Returns the scheduling attributes of the calling thread.
fn attributes() -> std::io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    let mut attributes = libc::sched_attr {
        size: u32::try_from(size).unwrap_or(u32::MAX),
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) } {
        0 => Ok(attributes),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Runs the calling thread only when a CPU is otherwise idle (`SCHED_IDLE`). Any thread may set
/// this policy, but not every thread may leave it.
///
/// # Errors
/// `EPERM` in a sandbox that does not allow it.
pub fn set_idle_policy() -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are only read; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The CPU-time clock of a process, or of a thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock(libc::clockid_t);

impl Clock {
    /// Returns the clock of the process `pid`, or `None` if there is no such process.
    pub fn of_process(pid: Pid) -> Option<Self> {
        let mut clock = 0;
        let pid = pid.as_raw_nonzero().get();
        // SAFETY: `clock` is valid for writes.
        (unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } == 0).then_some(Self(clock))
    }

    /// Returns the clock of the calling thread, which other threads of this process may read;
    /// `None` if the thread has no such clock.
    pub fn of_this_thread() -> Option<Self> {
        let mut clock = 0;
        // SAFETY: the call has no parameters, and returns the calling thread.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the calling thread is alive; `clock` is valid for writes.
        (unsafe { libc::pthread_getcpuclockid(this, &raw mut clock) } == 0).then_some(Self(clock))
    }

    /// Returns the CPU time used so far, exact to the nanosecond; `None` if the process or thread
    /// of the clock no longer exists.
    pub fn time(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writes; the call fails for a clock whose owner has ended.
        if unsafe { libc::clock_gettime(self.0, &raw mut time) } != 0 {
            return None;
        }
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }
}

/// Returns the CPU time of the process `pid` so far, exact to the nanosecond; `None` if there is no
/// such process.
pub fn time_of(pid: Pid) -> Option<Duration> {
    Clock::of_process(pid)?.time()
}

/// Returns the CPU time of this process so far, exact to the nanosecond
/// (`CLOCK_PROCESS_CPUTIME_ID`).
pub fn own_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Returns the CPU time of the calling thread so far, exact to the nanosecond
/// (`CLOCK_THREAD_CPUTIME_ID`). The value from getrusage(2) may lag by a few milliseconds for a
/// running thread.
pub fn own_thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Returns the tightest CPU quota of this process's cgroups up to the root, as a number of CPUs;
/// `None` without a quota.
pub fn quota() -> Option<f64> {
    tightest(&cgroup::of("cpu"))
}

/// Returns the tightest CPU quota of the cgroups of process `pid`, as [`quota`] does.
pub fn quota_of(pid: Pid) -> Option<f64> {
    tightest(&cgroup::of_process(pid, "cpu"))
}

/// Returns the tightest CPU quota of the groups, as a number of CPUs; `None` without a quota.
pub fn tightest(groups: &[Group]) -> Option<f64> {
    groups.iter().filter_map(Group::cpu_quota).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_parsed() {
        assert_eq!(parse_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("7"), Some(vec![7]));
        assert_eq!(parse_list(""), None);
        assert!(online_list().len() >= allowed());
    }

    #[test]
    fn a_thread_is_bound_to_its_cpu_for_a_time() {
        let before = allowed_list();
        let pinned = Pinned::here().expect("allowed");
        assert_eq!(allowed_list(), [rustix::thread::sched_getcpu()]);
        drop(pinned);
        assert_eq!(allowed_list(), before);
    }

    #[test]
    fn the_kernel_reports_the_requested_slice() {
        const LENGTH: Duration = Duration::from_micros(300);
        let asked = std::thread::spawn(|| {
            let before = attributes()?;
            request_slice(LENGTH)?;
            Ok::<_, std::io::Error>((before, attributes()?))
        });
        let (before, after) = asked.join().expect("no panic").expect("a usual thread");
        // Kernels before 6.12 report no slice, and ignore the request.
        let expected = if before.sched_runtime == 0 { 0 } else { LENGTH.as_nanos() };
        assert_eq!(u128::from(after.sched_runtime), expected);
        assert_eq!(
            (after.sched_policy, after.sched_nice),
            (before.sched_policy, before.sched_nice)
        );
    }

    #[test]
    fn the_time_of_a_process_is_that_of_its_own_clock() {
        let before = own_time();
        let seen = time_of(rustix::process::getpid()).expect("it is there");
        assert!(before <= seen && seen <= own_time());
        let thread = Clock::of_this_thread().and_then(Clock::time).expect("it is there");
        assert!(Duration::ZERO < thread && thread <= own_time());
        assert_eq!(allowed_list().len(), allowed());
    }

    #[test]
    fn there_is_a_cpu_to_run_on() {
        assert!(allowed() >= 1);
    }
}

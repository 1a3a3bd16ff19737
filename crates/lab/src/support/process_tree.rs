//! Memory and CPU time of a process and all its descendants.

use std::time::Duration;

use contend_sys::procfs::{self, MemInfo, Rollup, Stat, Status, read_once, with_descendants};
use contend_sys::{Pid, cpu};

use crate::engine::experiment::{ErrorContext, SubjectError};

/// Memory of a process tree, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Sum of the proportional set sizes of the processes, without pages of mapped files.
    pub user: u64,
    /// Page tables of the processes, plus the kernel stacks and unreclaimable slabs of the whole
    /// machine.
    pub kernel: u64,
}

/// Returns the memory of the process `root` and its descendants.
///
/// # Errors
/// Returns an error if the memory of one of the processes cannot be read, for example because it
/// has just ended.
pub fn memory_use(root: Pid) -> Result<MemoryUse, SubjectError> {
    let machine = MemInfo::read(); // first: reading processes takes kernel memory
    let mut taken = MemoryUse {
        kernel: machine.kernel_stacks + machine.slab_unreclaimable,
        ..MemoryUse::default()
    };
    for pid in with_descendants(root) {
        let rollup = Rollup::of(pid).context("read the memory of a process")?;
        let status = Status::of(pid).context("read the page tables of a process")?;
        taken.user += rollup.pss_without_files();
        taken.kernel += status.page_tables;
    }
    Ok(taken)
}

/// Calls `read` every 50 ms until the user memory of two consecutive results differs by at most 64
/// KiB, or about a second has passed. Returns the last result. The kernel and language
/// runtimes defer some of their memory management.
///
/// # Errors
/// Returns the error of `read`.
pub fn read_until_stable(
    read: impl Fn() -> Result<MemoryUse, SubjectError>,
) -> Result<MemoryUse, SubjectError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(50);
    const MAX_POLLS: usize = 20;
    const TOLERANCE_BYTES: u64 = 64 << 10;
    let mut before = read()?;
    for _ in 0..MAX_POLLS {
        std::thread::sleep(POLL_INTERVAL);
        let now = read()?;
        if now.user.abs_diff(before.user) <= TOLERANCE_BYTES {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}

/// Returns the CPU time so far of the process `root`, its living descendants, and the children that
/// `root` has waited for. The time of those children has the resolution of a clock tick, usually 10
/// ms, and counts as zero if it cannot be read.
pub fn cpu(root: Pid) -> Duration {
    let living: Duration = with_descendants(root).into_iter().filter_map(cpu::time_of).sum();
    living + reaped_children_cpu(root).unwrap_or_default()
}

/// Returns the CPU time of the children that a process has waited for, or `None` if it cannot be
/// read.
fn reaped_children_cpu(pid: Pid) -> Option<Duration> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = Stat::parse(read_once(&path, &mut [0; 1024]).ok()?)?;
    Some(procfs::ticks(stat.children_user_ticks + stat.children_system_ticks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    #[test]
    fn processes_of_the_same_program_do_not_change_the_memory() {
        let start = || {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("cat");
            // An answer shows that it has started, so that its pages are mapped.
            child.stdin.as_mut().expect("piped").write_all(b"x").expect("it reads");
            let output = child.stdout.as_mut().expect("piped");
            output.read_exact(&mut [0]).expect("it answers");
            child
        };
        let first = start();
        let pid = Pid::from_child(&first);
        let memory = || (Rollup::of(pid).expect("ours").pss, memory_use(pid).expect("ours").user);
        let (pss, user) = memory();
        let others: Vec<_> = (0..10).map(|_| start()).collect();
        let (shared_pss, shared_user) = memory();
        assert!(shared_pss < pss, "they share the pages of the program: {pss}, {shared_pss}");
        assert_eq!(shared_user, user);
        for mut child in others.into_iter().chain([first]) {
            drop(child.stdin.take());
            child.wait().expect("it exits");
        }
    }

    #[test]
    fn descendants_count_even_after_they_have_ended() {
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{work}'; echo; sh -c 'read x'; :");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut line)
            .expect("a line");
        let pid = Pid::from_child(&child);
        while with_descendants(pid).len() < 2 {
            std::thread::yield_now();
        }
        assert!(cpu(pid) > cpu::time_of(pid).expect("a living process"));
        let shell = Rollup::of(pid).expect("ours").pss_without_files();
        assert!(memory_use(pid).expect("ours").user > shell, "the shell has a child");
        drop(child.stdin.take());
        assert!(child.wait().expect("it exits").success());
    }
}

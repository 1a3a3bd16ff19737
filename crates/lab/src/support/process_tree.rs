//! A process with all that it has started: what they take and use.

use std::time::Duration;

use contend_sys::procfs::{MemInfo, Rollup, Stat, Status, read_once, with_descendants};
use contend_sys::{Pid, cpu};

use crate::engine::experiment::{Attempt, SubjectError};

/// What processes take, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Their proportional sets.
    pub pss: u64,
    /// Page tables of theirs, and the stacks and objects of the kernel, which are those of the whole machine.
    pub kernel: u64,
}

/// What a process and those that it has started take now.
///
/// # Errors
/// When this user may not see it.
pub fn taken(root: Pid) -> Result<Taken, SubjectError> {
    let machine = MemInfo::read(); // first: to look at processes takes kernel memory itself
    let mut taken =
        Taken { kernel: machine.kernel_stacks + machine.slab_unreclaimable, ..Taken::default() };
    for pid in with_descendants(root) {
        let rollup = Rollup::of(pid).attempt("read the memory of a process")?;
        let status = Status::of(pid).attempt("read the page tables of a process")?;
        taken.pss += rollup.pss;
        taken.kernel += status.page_tables;
    }
    Ok(taken)
}

/// What processes take when the kernel and the runtime have done what they do some time later: when two looks
/// in a row agree, or a second is over.
///
/// # Errors
/// When they cannot be looked at.
pub fn settled(look: impl Fn() -> Result<Taken, SubjectError>) -> Result<Taken, SubjectError> {
    const STEP: Duration = Duration::from_millis(50);
    const STEPS: usize = 20;
    const CLOSE: u64 = 64 << 10;
    let mut before = look()?;
    for _ in 0..STEPS {
        std::thread::sleep(STEP);
        let now = look()?;
        if now.pss.abs_diff(before.pss) <= CLOSE {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}

/// CPU time so far of a process and of those that it has started. Of those that it has waited for, the
/// kernel tells it in hundredths of a second.
pub fn cpu(root: Pid) -> Duration {
    let living: Duration = with_descendants(root).into_iter().filter_map(cpu::time_of).sum();
    living + waited_for(root).unwrap_or_default()
}

/// CPU time of the children that a process has waited for.
fn waited_for(pid: Pid) -> Option<Duration> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let ticks = Stat::parse(read_once(&path, &mut [0; 1024]).ok()?)?.children_ticks;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn whoever_was_started_counts_also_when_it_has_ended() {
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
        assert!(cpu(pid) > cpu::time_of(pid).expect("it lives"));
        assert!(taken(pid).expect("ours").pss > Rollup::of(pid).expect("ours").private);
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    }
}

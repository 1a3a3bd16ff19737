//! Activity of all CPUs of the machine, to distinguish the pipeline's load from that of other
//! programs.

use std::time::Duration;

use crate::cgroup;

/// CPU time, forks and throttling: totals, or their increase ([`Load::since`]). All but the
/// throttling come from `/proc/stat`, which counts CPU time in clock ticks since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// CPU time of all processes and interrupts, on all CPUs or on those passed to
    /// [`Load::read_on`].
    pub busy: Duration,
    /// CPU time of the same CPUs that the hypervisor gave to other virtual machines (steal).
    pub steal: Duration,
    /// Number of processes and threads created.
    pub forks: u64,
    /// Time for which CPU quotas have throttled this process's cgroup or an ancestor (the longest
    /// of these times); 0 if no cgroup reports it.
    pub throttled: Duration,
}

impl Load {
    /// Reads the totals; zeros if the kernel does not provide them.
    pub fn read() -> Self {
        let mut load = std::fs::read_to_string("/proc/stat")
            .map_or_else(|_| Self::default(), |text| Self::parse(&text, ticks_per_second()));
        load.throttled = throttled();
        load
    }

    /// Reads the totals, with busy and steal time of the CPUs numbered `cpus` alone; zeros if the
    /// kernel does not provide them.
    pub fn read_on(cpus: &[usize]) -> Self {
        let Ok(text) = std::fs::read_to_string("/proc/stat") else { return Self::default() };
        let ticks = ticks_per_second();
        let mut load = Self::parse(&text, ticks);
        (load.busy, load.steal) = cpus
            .iter()
            .map(|cpu| Self::times(&text, &format!("cpu{cpu}"), ticks))
            .fold((Duration::ZERO, Duration::ZERO), |sum, times| {
                (sum.0 + times.0, sum.1 + times.1)
            });
        load.throttled = throttled();
        load
    }

    /// Returns the increase since `earlier`; 0 where a number has decreased.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            steal: self.steal.saturating_sub(earlier.steal),
            forks: self.forks.saturating_sub(earlier.forks),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }

    fn parse(text: &str, ticks_per_second: f64) -> Self {
        let (busy, steal) = Self::times(text, "cpu", ticks_per_second);
        let forks = numbers(text, "processes").first().copied().unwrap_or(0);
        Self { busy, steal, forks, throttled: Duration::ZERO }
    }

    /// Returns busy and steal time from the line `name`; zeros if there is no such line.
    fn times(text: &str, name: &str, ticks_per_second: f64) -> (Duration, Duration) {
        let cpu = numbers(text, name);
        let ticks = |indices: &[usize]| {
            let sum: u64 = indices.iter().filter_map(|&index| cpu.get(index)).sum();
            Duration::from_secs_f64(sum as f64 / ticks_per_second)
        };
        // user, nice, system, (idle, iowait), irq, softirq, steal
        (ticks(&[0, 1, 2, 5, 6]), ticks(&[7]))
    }
}

/// Returns the numbers in the line that begins with `name`, or none if there is no such line.
fn numbers(text: &str, name: &str) -> Vec<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .map(|rest| rest.split_whitespace().filter_map(|n| n.parse().ok()).collect())
        .unwrap_or_default()
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// Returns the longest throttled time among this process's cgroups, or zero if none reports it.
fn throttled() -> Duration {
    cgroup::of("cpu")
        .iter()
        .filter_map(|group| Some(group.throttling()?.time))
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_leaves_out_idle_and_steal() {
        let text = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 2 3 4\nctxt 9\nprocesses 1234\n";
        let load = Load::parse(text, 100.0);
        assert_eq!(load.busy, Duration::from_millis(1630));
        assert_eq!(load.steal, Duration::from_millis(800));
        assert_eq!(load.forks, 1234);
        let (busy, _) = Load::times(text, "cpu0", 100.0);
        assert_eq!(busy, Duration::from_millis(60));
    }
}

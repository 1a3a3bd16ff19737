//! Which CPUs the program may use: the affinity masks of the processes that work, and the quotas of their
//! cgroups.
//!
//! A command may start the program on other CPUs or in another cgroup than its own, as `taskset` and
//! container runtimes do. So the processes that use the CPUs count, rather than the named ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use contend_sys::cgroup::{self, Group, Throttling};
use contend_sys::{Pid, cpu};

/// The limits of a program.
#[derive(Debug)]
pub struct Limits {
    cpus: f64,
    are_known: bool,
    /// How often a quota has stopped each cgroup: when it was first seen, and now.
    throttling: BTreeMap<PathBuf, (Throttling, Throttling)>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cpus: 1.0, are_known: false, throttling: BTreeMap::new() }
    }
}

impl Limits {
    /// Reads the limits of the processes that work, which may change, and of their busy threads.
    pub fn update(&mut self, workers: &[Pid], threads: &[Pid]) {
        let Some(allowed) = cpu::allowed_to(threads) else { return }; // all have ended
        self.are_known = true;
        let groups: Vec<Vec<Group>> =
            workers.iter().map(|pid| cgroup::of_process(*pid, "cpu")).collect();
        let quotas = groups.iter().map(|groups| cpu::tightest(groups).unwrap_or(f64::INFINITY));
        // They use as many CPUs as the largest quota permits.
        let quota = quotas.reduce(f64::max).unwrap_or(f64::INFINITY);
        self.cpus = quota.min(allowed as f64);
        for group in groups.into_iter().flatten() {
            let Some(now) = group.throttling() else { continue };
            self.throttling.entry(group.folder).or_insert((now, now)).1 = now;
        }
    }

    /// Returns whether limits have been read.
    pub fn are_known(&self) -> bool {
        self.are_known
    }

    /// Returns how many CPUs the program may use at the same time.
    pub fn cpus(&self) -> f64 {
        self.cpus
    }

    /// Returns how often a quota has stopped the program's cgroup since it was first seen: the one that
    /// was stopped most often, if there are several.
    pub fn throttling(&self) -> Throttling {
        let increases = self.throttling.values().map(|(first, last)| last.since(*first));
        increases.max_by_key(|increase| increase.throttled_periods).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;

    #[test]
    fn the_processes_that_work_limit_the_program() {
        let all = cpu::allowed_list();
        let mut command = Command::new("sleep");
        let mut child = command.arg("1000").stdin(Stdio::null()).spawn().expect("sleep starts");
        let own = Pid::from_raw(std::process::id().cast_signed()).expect("an ID");
        let pinned = Pid::from_child(&child);
        let mut one = CpuSet::new();
        one.set(*all.first().expect("a CPU"));
        sched_setaffinity(Some(pinned), &one).expect("a child of this user");
        let cpus_of = |workers: &[Pid]| {
            let mut limits = Limits::default();
            limits.update(workers, workers);
            limits.cpus()
        };
        let (of_pinned, of_both, of_own) =
            (cpus_of(&[pinned]), cpus_of(&[pinned, own]), cpus_of(&[own]));
        child.kill().and_then(|()| child.wait()).expect("a child");
        assert!(of_pinned <= 1.0, "{of_pinned}");
        // They may be in different groups, but not on more CPUs than there are.
        assert!(of_both >= of_own && of_both <= all.len() as f64, "{of_both} {of_own}");
    }

    #[test]
    fn periods_before_the_observation_do_not_count() {
        let counts = |throttled_periods| Throttling {
            periods: 2 * throttled_periods,
            throttled_periods,
            time: Duration::from_millis(throttled_periods),
        };
        let mut limits = Limits::default();
        assert_eq!(limits.throttling(), Throttling::default());
        limits.throttling.insert("/a".into(), (counts(100), counts(101)));
        limits.throttling.insert("/b".into(), (counts(1), counts(3)));
        assert_eq!(limits.throttling(), counts(2));
    }
}

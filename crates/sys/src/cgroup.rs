//! The control groups of a process, version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;

use crate::procfs::MemInfo;

/// Version of the kernel's interface for control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 1: a hierarchy for each controller.
    One,
    /// Version 2: one hierarchy for all controllers.
    Two,
}

/// A control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Directory of the group in the mounted hierarchy.
    pub folder: PathBuf,
    /// Version of the group's interface.
    pub version: Version,
}

impl Group {
    /// Returns the number in `file` of the group, or `None` if the file cannot be read or holds no
    /// unsigned number (`max` and `-1` mean no limit).
    pub fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }

    /// Returns the number in the line `name` of the group's `file`; `None` if the file cannot be
    /// read or has no such line with a number.
    pub fn field(&self, file: &str, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(file)).ok()?;
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        rest.trim().parse().ok()
    }
}

impl Group {
    /// Returns the CPU quota of this group alone, as a number of CPUs; `None` without a quota.
    pub fn cpu_quota(&self) -> Option<f64> {
        match self.version {
            Version::Two => parse_max(&fs::read_to_string(self.folder.join("cpu.max")).ok()?),
            Version::One => {
                let (quota, period) =
                    (self.number("cpu.cfs_quota_us")?, self.number("cpu.cfs_period_us")?);
                (period > 0).then_some(quota as f64 / period as f64)
            }
        }
    }

    /// Returns how often and for how long a CPU quota has stopped this group, since its creation; `None`
    /// if the kernel does not report it.
    pub fn throttling(&self) -> Option<Throttling> {
        let field = |name| self.field("cpu.stat", name);
        Some(Throttling {
            periods: field("nr_periods")?,
            throttled_periods: field("nr_throttled")?,
            time: match self.version {
                Version::Two => Duration::from_micros(field("throttled_usec")?),
                Version::One => Duration::from_nanos(field("throttled_time")?),
            },
        })
    }
}

/// How often and for how long a CPU quota has stopped a control group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Number of periods of the quota in which the group was active.
    pub periods: u64,
    /// Number of these periods in which it was stopped.
    pub throttled_periods: u64,
    /// Time for which it was stopped. Linux 6.18 counts only a part of that time.
    pub time: Duration,
}

impl Throttling {
    /// Returns the increase since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self.throttled_periods.saturating_sub(earlier.throttled_periods),
            time: self.time.saturating_sub(earlier.time),
        }
    }

    /// Returns the share of the periods in which the group was stopped, from 0 to 1.
    pub fn share(self) -> f64 {
        (self.throttled_periods as f64 / self.periods.max(1) as f64).min(1.0)
    }
}

/// Parses `cpu.max`, `QUOTA PERIOD` in microseconds, and returns the quota as a number of CPUs;
/// `None` for `max PERIOD` (no quota) and malformed text.
fn parse_max(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let quota: f64 = fields.next()?.parse().ok()?;
    let period: f64 = fields.next()?.parse().ok()?;
    (period > 0.0).then_some(quota / period)
}

/// Returns this process's groups in the hierarchies of `controller`, including that of version 2,
/// which serves all controllers. In each hierarchy, the process's own group comes first, then the
/// ancestors. Empty if there is no such hierarchy.
pub fn of(controller: &str) -> Vec<Group> {
    in_file("/proc/self/cgroup", controller)
}

/// Returns the groups of process `pid` in the hierarchies of `controller`, as [`of`] does.
pub fn of_process(pid: Pid, controller: &str) -> Vec<Group> {
    in_file(&format!("/proc/{}/cgroup", pid.as_raw_nonzero()), controller)
}

fn in_file(path: &str, controller: &str) -> Vec<Group> {
    let membership = fs::read_to_string(path).unwrap_or_default();
    membership.lines().filter_map(|line| hierarchy(line, controller)).flatten().collect()
}

/// Returns the tightest memory limit of this process's cgroups, in bytes; `None` if no limit is
/// below the machine's memory.
pub fn memory_limit() -> Option<u64> {
    let total = MemInfo::read().total;
    let limit = |group: &Group| match group.version {
        Version::Two => group.number("memory.max"),
        Version::One => group.number("memory.limit_in_bytes"),
    };
    // Version 1 reports "no limit" as a number larger than any machine's memory.
    of("memory").iter().filter_map(limit).filter(|&limit| limit < total).min()
}

/// Parses a line of `/proc/self/cgroup`, `NUMBER:CONTROLLERS:PATH`, and returns its group and the
/// group's ancestors; `None` if the line is malformed or not for `controller`. A line of version 2
/// is for all controllers.
fn hierarchy(line: &str, controller: &str) -> Option<Vec<Group>> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (root, version) = if number == "0" && controllers.is_empty() {
        // If version 1 is mounted as well, version 2 has a directory next to those of version 1's
        // controllers.
        let beside = Path::new("/sys/fs/cgroup/unified");
        let root = if beside.is_dir() { beside } else { Path::new("/sys/fs/cgroup") };
        (root.to_owned(), Version::Two)
    } else if controllers.split(',').any(|name| name == controller) {
        (Path::new("/sys/fs/cgroup").join(controller), Version::One)
    } else {
        return None;
    };
    let own = root.join(path.trim_start_matches('/'));
    let up = own.ancestors().take_while(|folder| folder.starts_with(&root));
    Some(up.map(|folder| Group { folder: folder.to_owned(), version }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_up_to_the_root() {
        let groups = hierarchy("4:memory,x:/a/b", "memory").expect("its controller");
        let folders: Vec<_> = groups.iter().map(|g| g.folder.display().to_string()).collect();
        let root = "/sys/fs/cgroup/memory";
        assert_eq!(folders, [format!("{root}/a/b"), format!("{root}/a"), root.to_owned()]);
        assert!(groups.iter().all(|group| group.version == Version::One));
        assert_eq!(hierarchy("4:cpu:/a", "memory"), None);
        let groups = hierarchy("0::/", "memory").expect("all controllers");
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].version, Version::Two);
    }

    #[test]
    fn quota_is_a_number_of_cpus() {
        assert_eq!(parse_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_max("max 100000\n"), None);
        assert_eq!(parse_max(""), None);
    }
}

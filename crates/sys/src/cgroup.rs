//! The control groups of a process, version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};

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
}

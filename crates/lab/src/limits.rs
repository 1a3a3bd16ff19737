//! The limits on how many processes or threads can exist at once: where each is set, how much
//! of it is in use, and how many more it allows.
//!
//! Several of them make creation fail with the same error, so which one it was has to be found
//! out: by counters that the kernel keeps for one of them, or by what is in use when it fails.

use std::fs;
use std::path::{Path, PathBuf};

pub use contend_record::lab::Limit;
use contend_sys::procfs::{MemInfo, Status, read_once};
use rustix::process::{Resource, getrlimit, getuid};

/// What is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Processes, by fork.
    Process,
    /// Threads of one process.
    Thread,
}

/// What one unit takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfUnit {
    /// Memory, the kernel's included, in bytes.
    pub memory: f64,
    /// Address space of a thread's stack, in bytes.
    pub stack: u64,
}

/// What a unit takes on common machines, where it has not been measured.
pub fn usual_unit(kind: Kind) -> OfUnit {
    let memory = match kind {
        Kind::Process => 130e3,
        Kind::Thread => 40e3,
    };
    OfUnit { memory, stack: 8 << 20 }
}

/// A limit, and how to see how much of it is in use at any moment.
pub struct Watched {
    /// The limit as it is now.
    pub limit: Limit,
    in_use: Box<dyn Fn() -> Option<u64>>,
    /// How often it has refused, where the kernel counts that.
    refusals: Option<PathBuf>,
    refused_before: u64,
    /// The kernel cannot use all of it.
    slack: u64,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Whether a limit is at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spent {
    /// The kernel has counted a refusal.
    Refused(String),
    /// Nothing is left of it.
    Full(String),
    /// There is room.
    No,
}

impl Watched {
    fn new(
        name: &str,
        source: impl Into<String>,
        value: u64,
        per_unit: f64,
        slack: u64,
        in_use: impl Fn() -> Option<u64> + 'static,
    ) -> Option<Self> {
        let used = in_use()?;
        let left = value.saturating_sub(slack).saturating_sub(used) as f64;
        // Positive, and far below what the type holds.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let allows = (left / per_unit.max(1e-9)).min(1e18) as u64;
        let (name, source) = (name.to_owned(), source.into());
        let limit = Limit { name, source, value, in_use: used, per_unit, allows };
        Some(Self { limit, in_use: Box::new(in_use), refusals: None, refused_before: 0, slack })
    }

    fn counting_refusals(mut self, file: PathBuf) -> Self {
        self.refused_before = counted(&file).unwrap_or(0);
        self.refusals = Some(file);
        self
    }

    /// Whether it is what stands in the way now.
    pub fn spent(&self) -> Spent {
        let Limit { name, value, per_unit, .. } = &self.limit;
        let refused = self.refusals.as_deref().and_then(counted).unwrap_or(0);
        if refused > self.refused_before {
            let more = refused - self.refused_before;
            return Spent::Refused(format!(
                "{name}: the kernel has counted {more} refusal{} in {}",
                if more == 1 { "" } else { "s" },
                self.refusals.as_deref().unwrap_or(Path::new("")).display()
            ));
        }
        let Some(used) = (self.in_use)() else { return Spent::No };
        // A part of one thousandth may come and go meanwhile: others create and end too.
        let near = value.saturating_sub(self.slack).saturating_sub(value / 1000);
        if used as f64 + per_unit > near as f64 {
            return Spent::Full(format!("{name}: {used} of {value} were in use"));
        }
        Spent::No
    }
}

/// The number after `max` in a cgroup's events.
fn counted(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("max "))?.trim().parse().ok()
}

/// Memory that is left for whatever else runs here.
pub fn memory_floor() -> u64 {
    (MemInfo::read().total / 20).max(256 << 20)
}

/// Memory that could be used, by the machine and by the cgroups of this process.
pub fn memory_available() -> u64 {
    let machine = MemInfo::read().available;
    let left = |(max, current, _): (PathBuf, PathBuf, PathBuf)| {
        Some(number(&max)?.saturating_sub(number(&current)?))
    };
    cgroup_files("memory", "memory.max", "memory.current")
        .chain(cgroup_files("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))
        .filter_map(left)
        .fold(machine, u64::min)
}

/// The least limit on memory of this process's cgroups; `None` when there is none.
pub fn cgroup_memory_limit() -> Option<u64> {
    let total = MemInfo::read().total;
    cgroup_files("memory", "memory.max", "memory.current")
        .chain(cgroup_files("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))
        .filter_map(|(max, _, _)| number(max))
        // Version 1 says "none" by a number that no machine has.
        .filter(|&limit| limit < total)
        .min()
}

/// Every limit that applies to this process, the tightest first.
pub fn applying(kind: Kind, unit: OfUnit) -> Vec<Watched> {
    let mut all: Vec<Watched> = Vec::new();
    all.extend(processes_of_user());
    all.extend(cgroup_pids());
    all.extend(Watched::new(
        "kernel.threads-max",
        "/proc/sys/kernel/threads-max",
        number("/proc/sys/kernel/threads-max").unwrap_or(u64::MAX),
        1.0,
        0,
        tasks,
    ));
    // The kernel does not give out the numbers below 300 a second time.
    let early = (1..300).filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).count() as u64;
    all.extend(number("/proc/sys/kernel/pid_max").and_then(|value| {
        let path = "/proc/sys/kernel/pid_max";
        Watched::new("kernel.pid_max", path, value, 1.0, 300 - early, tasks)
    }));
    all.extend(memory(unit));
    if kind == Kind::Thread {
        all.extend(of_address_space(unit));
    }
    all.sort_by_key(|watched| watched.limit.allows);
    all
}

fn memory(unit: OfUnit) -> Option<Watched> {
    let available = memory_available();
    let floor = memory_floor();
    let total = available.max(floor);
    let used = move || Some(total.saturating_sub(memory_available()));
    let source = "MemAvailable and the cgroup, less a twentieth";
    Watched::new("memory", source, total, unit.memory.max(1.0), floor, used)
}

/// Limits on the memory map of one process, which all its threads share.
fn of_address_space(unit: OfUnit) -> Vec<Watched> {
    let guard = 4096;
    let maps = || Some(fs::read_to_string("/proc/self/maps").ok()?.lines().count() as u64);
    let path = "/proc/sys/vm/max_map_count";
    let mappings = number(path)
        // The stack and its guard page.
        .and_then(|value| Watched::new("vm.max_map_count", path, value, 2.0, 0, maps));
    let status = |field: fn(Status) -> u64| {
        move || {
            let mut buffer = [0; 4096];
            Some(field(Status::parse(read_once("/proc/self/status", &mut buffer).ok()?)))
        }
    };
    let rlimit = |name, resource, per_unit: u64, field: fn(Status) -> u64| {
        let value = getrlimit(resource).current?;
        Watched::new(name, "getrlimit(2)", value, per_unit as f64, 0, status(field))
    };
    let address_space = rlimit("RLIMIT_AS", Resource::As, unit.stack + guard, |s| s.address_space);
    let data = rlimit("RLIMIT_DATA", Resource::Data, unit.stack + guard, |s| s.data);
    let strict = number("/proc/sys/vm/overcommit_memory") == Some(2);
    let commit = strict.then(MemInfo::read).and_then(|info| {
        let used = || Some(MemInfo::read().committed);
        let source = "CommitLimit of /proc/meminfo, since vm.overcommit_memory is 2";
        Watched::new("vm.overcommit", source, info.commit_limit, unit.stack as f64, 0, used)
    });
    [mappings, address_space, data, commit].into_iter().flatten().collect()
}

/// `RLIMIT_NPROC` counts the tasks of a user, and does not hold root or whoever has
/// `CAP_SYS_RESOURCE` or `CAP_SYS_ADMIN`.
fn processes_of_user() -> Option<Watched> {
    const EXEMPTING: u64 = 1 << 24 | 1 << 21;
    if getuid().is_root() || capabilities() & EXEMPTING != 0 {
        return None;
    }
    let value = getrlimit(Resource::Nproc).current?;
    Watched::new("RLIMIT_NPROC", "ulimit -u", value, 1.0, 0, tasks_of_user)
}

fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Tasks of this user that can be seen, threads included.
fn tasks_of_user() -> Option<u64> {
    let user = getuid().as_raw();
    let mut buffer = [0; 4096];
    let mut count = 0;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else { continue };
        let Ok(text) = read_once(&format!("/proc/{pid}/status"), &mut buffer) else { continue };
        let text = String::from_utf8_lossy(text);
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u32>().ok()
        };
        if field("Uid:") == Some(user) {
            count += u64::from(field("Threads:").unwrap_or(1));
        }
    }
    Some(count)
}

/// Tasks of the whole machine.
fn tasks() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn cgroup_pids() -> impl Iterator<Item = Watched> {
    cgroup_files("pids", "pids.max", "pids.current").filter_map(|(max, current, folder)| {
        let value = number(&max)?;
        let source = max.display().to_string();
        let watched =
            Watched::new("cgroup pids.max", source, value, 1.0, 0, move || number(&current))?;
        Some(watched.counting_refusals(folder.join("pids.events")))
    })
}

/// The limit and its use in each cgroup from this process's up to the root, version 2 or 1.
fn cgroup_files(
    controller: &str,
    max: &'static str,
    current: &'static str,
) -> impl Iterator<Item = (PathBuf, PathBuf, PathBuf)> + use<> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path_of = |line: &str| -> Option<(PathBuf, String)> {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let root = if number == "0" && controllers.is_empty() {
            // Where version 1 is mounted too, version 2 has a folder beside its controllers.
            let beside = PathBuf::from("/sys/fs/cgroup/unified");
            if beside.is_dir() { beside } else { PathBuf::from("/sys/fs/cgroup") }
        } else if controllers.split(',').any(|name| name == controller) {
            Path::new("/sys/fs/cgroup").join(controller)
        } else {
            return None;
        };
        Some((root, path.trim_start_matches('/').to_owned()))
    };
    let folders: Vec<PathBuf> = membership
        .lines()
        .filter_map(path_of)
        .flat_map(|(root, path)| {
            let own = root.join(path);
            let up = own.ancestors().take_while(|folder| folder.starts_with(&root));
            up.map(Path::to_owned).collect::<Vec<_>>()
        })
        .collect();
    folders.into_iter().map(move |folder| (folder.join(max), folder.join(current), folder))
}

/// A file with one number; `max` is none.
fn number(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_comes_first_and_all_have_room_now() {
        for kind in [Kind::Process, Kind::Thread] {
            let all = applying(kind, usual_unit(kind));
            assert!(all.is_sorted_by_key(|watched| watched.limit.allows));
            let names: Vec<_> = all.iter().map(|watched| watched.limit.name.as_str()).collect();
            assert!(names.contains(&"kernel.pid_max") && names.contains(&"memory"), "{names:?}");
            assert_eq!(names.contains(&"vm.max_map_count"), kind == Kind::Thread);
            assert!(all.iter().all(|watched| watched.spent() == Spent::No), "{all:?}");
        }
    }

    #[test]
    fn a_limit_is_spent_when_nothing_is_left_of_it() {
        let full = Watched::new("x", "y", 100, 1.0, 0, || Some(100)).expect("readable");
        assert_eq!(full.limit.allows, 0);
        assert_eq!(full.spent(), Spent::Full("x: 100 of 100 were in use".to_owned()));
        let half = Watched::new("x", "y", 100, 2.0, 10, || Some(50)).expect("readable");
        assert_eq!((half.limit.allows, half.spent()), (20, Spent::No));
    }

    #[test]
    fn refusals_are_counted_by_the_kernel() {
        let file = std::env::temp_dir().join(format!("contend-events-{}", std::process::id()));
        fs::write(&file, "max 3\n").expect("room");
        let limit = Watched::new("x", "y", 100, 1.0, 0, || Some(5)).expect("readable");
        let limit = limit.counting_refusals(file.clone());
        assert_eq!(limit.spent(), Spent::No);
        fs::write(&file, "max 5\n").expect("room");
        assert!(matches!(limit.spent(), Spent::Refused(_)));
        fs::remove_file(file).expect("it is there");
    }
}

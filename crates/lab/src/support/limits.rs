//! Limits on the number of processes and threads (units): the source of each limit, its current
//! use, and the number of units that it still allows.
//!
//! Several limits make the creation of a unit fail with the same error. For some limits, the kernel
//! counts refusals, and a higher count identifies the limit. Otherwise, the cause is a limit that
//! is full when creation fails.

use std::fs;
use std::path::{Path, PathBuf};

pub use contend_record::lab::Limit;
use contend_sys::cgroup::{self, Group, Version};
use contend_sys::procfs::{MemInfo, Status, read_once};
use rustix::process::{Resource, getpid, getrlimit, getuid};

/// The kind of units: processes or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// Processes, created by `fork(2)`.
    Process,
    /// Threads of one process.
    Thread,
}

/// The resources that one unit takes, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitResources {
    /// Memory in bytes, including kernel memory.
    pub memory: f64,
    /// Address space of a thread's stack, in bytes.
    pub stack: u64,
    /// Number of memory mappings of a thread.
    pub mappings: f64,
}

/// Returns typical resources of a unit of the given kind, for units that have not been measured.
pub fn typical_resources(kind: UnitKind) -> UnitResources {
    let memory = match kind {
        UnitKind::Process => 130e3,
        UnitKind::Thread => 40e3,
    };
    UnitResources { memory, stack: 8 << 20, mappings: 2.0 }
}

/// A limit with a function that reads its current use.
pub struct WatchedLimit {
    /// The limit, with its use when this value was created.
    pub limit: Limit,
    in_use: Box<dyn Fn() -> Option<u64> + Send>,
    /// File in which the kernel counts refusals, if it does.
    refusals: Option<PathBuf>,
    refused_before: u64,
    /// Part of the limit's value that units cannot use.
    slack: u64,
}

impl std::fmt::Debug for WatchedLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedLimit").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The result of checking whether a limit on units is exhausted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exhaustion {
    /// The kernel has counted refusals since the limit was first read.
    Refused {
        /// Message with the number of refusals and the file that counts them.
        evidence: String,
        /// Whether the limit is also full.
        is_full: bool,
    },
    /// The limit is full, without a counted refusal; the message has its name, use and value.
    Full(String),
    /// The kernel has counted no refusal, and either the limit allows more units or its use cannot
    /// be read.
    No,
}

impl WatchedLimit {
    fn new(
        name: &str,
        source: impl Into<String>,
        value: u64,
        per_unit: f64,
        slack: u64,
        in_use: impl Fn() -> Option<u64> + Send + 'static,
    ) -> Option<Self> {
        let used = in_use()?;
        let left = value.saturating_sub(slack).saturating_sub(used) as f64;
        // Between 0 and 1e18, which `u64` can represent.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let allows = (left / per_unit.max(1e-9)).min(1e18) as u64;
        let (name, source) = (name.to_owned(), source.into());
        let limit = Limit { name, source, value, in_use: used, per_unit, allows };
        Some(Self { limit, in_use: Box::new(in_use), refusals: None, refused_before: 0, slack })
    }

    fn counting_refusals(mut self, file: PathBuf) -> Self {
        self.refused_before = refusal_count(&file).unwrap_or(0);
        self.refusals = Some(file);
        self
    }

    /// Reads the current use and the refusals, and returns whether the limit is exhausted. A limit
    /// counts as full if less than a thousandth of it would be left after one more unit.
    pub fn read_exhaustion(&self) -> Exhaustion {
        let Limit { name, value, per_unit, .. } = &self.limit;
        let used = (self.in_use)();
        // Other programs create and end units too, so up to a thousandth of the limit may be free
        // just after it has refused a unit.
        let near = value.saturating_sub(self.slack).saturating_sub(value / 1000);
        let is_full = used.is_some_and(|used| used as f64 + per_unit > near as f64);
        let refused = self.refusals.as_deref().and_then(refusal_count).unwrap_or(0);
        let more = refused.saturating_sub(self.refused_before);
        match (more, used) {
            (0, Some(used)) if is_full => {
                Exhaustion::Full(format!("{name}: {used} of {value} were in use"))
            }
            (0, _) => Exhaustion::No,
            (more, _) => {
                let file = self.refusals.as_deref().unwrap_or(Path::new("")).display();
                let plural = if more == 1 { "" } else { "s" };
                let evidence = format!("the kernel counted {more} refusal{plural} in {file}");
                Exhaustion::Refused { evidence, is_full }
            }
        }
    }
}

/// Returns the number of refusals in `file`, the `pids.events` of a cgroup, or `None` if it is
/// unreadable or lacks the number.
fn refusal_count(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("max "))?.trim().parse().ok()
}

/// Returns the memory to leave free for other programs, in bytes: a twentieth of the machine's
/// memory or of the tightest limit of this process's cgroups, whichever is lower, but at least 64
/// MiB.
pub fn memory_floor() -> u64 {
    let all = cgroup::memory_limit().unwrap_or(u64::MAX).min(MemInfo::read().total);
    (all / 20).max(64 << 20)
}

/// Returns the available memory of the machine or of this process's cgroups, whichever is lowest,
/// in bytes. Page cache that the kernel can drop counts as available.
pub fn memory_available() -> u64 {
    let left = |group: &Group| {
        let (limit, used, files) = match group.version {
            Version::Two => ("memory.max", "memory.current", "inactive_file"),
            Version::One => {
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            }
        };
        let droppable = group.field("memory.stat", files).unwrap_or(0);
        let used = group.number(used)?.saturating_sub(droppable);
        Some(group.number(limit)?.saturating_sub(used))
    };
    cgroup::of("memory").iter().filter_map(left).fold(MemInfo::read().available, u64::min)
}

/// Returns the known limits on units that this process creates, if each unit takes the resources
/// `unit`. The limit that allows the fewest units comes first. Omits limits that are not set, or
/// whose use cannot be read.
pub fn limits_on(kind: UnitKind, unit: UnitResources) -> Vec<WatchedLimit> {
    let mut all: Vec<WatchedLimit> = Vec::new();
    all.extend(user_task_limit());
    all.extend(cgroup_pids());
    all.extend(WatchedLimit::new(
        "kernel.threads-max",
        "/proc/sys/kernel/threads-max",
        read_number("/proc/sys/kernel/threads-max").unwrap_or(u64::MAX),
        1.0,
        0,
        tasks,
    ));
    // The kernel does not reuse process ids below 300.
    let early = (1..300).filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).count() as u64;
    all.extend(read_number("/proc/sys/kernel/pid_max").and_then(|value| {
        let path = "/proc/sys/kernel/pid_max";
        WatchedLimit::new("kernel.pid_max", path, value, 1.0, 300 - early, tasks)
    }));
    all.extend(memory(unit));
    if kind == UnitKind::Thread {
        all.extend(address_space_limits(unit));
    }
    all.sort_by_key(|watched| watched.limit.allows);
    all
}

/// Names of the limits that all processes of the user, of the cgroup or of the machine share. A
/// process that exhausts one keeps the other processes from creating units. The list omits limits
/// on the memory map, which affect only their own process, and the memory of the machine, which
/// `memory_floor` protects.
const SHARED_LIMIT_NAMES: [&str; 5] =
    [NPROC, CGROUP_PIDS, "kernel.threads-max", "kernel.pid_max", "vm.overcommit"];

/// Returns the tightest limit that this process shares with other programs, for units of typical
/// size, or `None` if there is none.
pub fn tightest_shared(kind: UnitKind) -> Option<Limit> {
    let all = limits_on(kind, typical_resources(kind)).into_iter().map(|watched| watched.limit);
    all.into_iter().find(|limit| SHARED_LIMIT_NAMES.contains(&limit.name.as_str()))
}

/// Returns the number of units that a limit allows, less those to leave free for other programs.
pub fn usable(limit: &Limit) -> u64 {
    limit.allows.saturating_sub(spare_units(limit))
}

/// Returns the number of units to leave free for other programs: a twentieth of those that a shared
/// limit allows, and 0 for other limits.
fn spare_units(limit: &Limit) -> u64 {
    if SHARED_LIMIT_NAMES.contains(&limit.name.as_str()) { limit.allows.div_ceil(20) } else { 0 }
}

/// Returns why `n` more units of typical size would exhaust a limit, or `None` if all limits allow
/// more than `n`. Units to leave free for other programs count as used.
pub fn shortage(kind: UnitKind, n: u64) -> Option<String> {
    shortage_for(kind, typical_resources(kind), n)
}

/// Returns why `n` more units with the resources `unit` would exhaust a limit, or `None` if all
/// limits allow more than `n`. Units to leave free for other programs count as used.
pub fn shortage_for(kind: UnitKind, unit: UnitResources, n: u64) -> Option<String> {
    let limits = limits_on(kind, unit).into_iter().map(|watched| watched.limit);
    let mut short = limits.filter(|limit| usable(limit) <= n);
    short.next().map(|limit| refusal(&limit, n))
}

fn refusal(limit: &Limit, n: u64) -> String {
    let Limit { name, value, allows, .. } = limit;
    let spare = match spare_units(limit) {
        spare if *allows > n => format!(", of which {spare} stay free for other programs"),
        _ => String::new(),
    };
    format!("{name} = {value} allows {allows} more{spare}, but {n} are needed")
}

fn memory(unit: UnitResources) -> Option<WatchedLimit> {
    let available = memory_available();
    let floor = memory_floor();
    let used = move || Some(available.saturating_sub(memory_available()));
    let source = "MemAvailable and the cgroup, less a twentieth";
    WatchedLimit::new("memory", source, available, unit.memory.max(1.0), floor, used)
}

/// Returns the number of memory mappings of this process, or 0 if it cannot be read.
pub fn own_mappings() -> u64 {
    fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count() as u64)
}

/// Returns the limits on the memory map of this process, which all its threads share, and the limit
/// on the committed memory of the machine if the kernel enforces one. Each applies to threads with
/// the resources `unit`.
fn address_space_limits(unit: UnitResources) -> Vec<WatchedLimit> {
    let guard = 4096;
    let path = "/proc/sys/vm/max_map_count";
    let mappings = read_number(path).and_then(|value| {
        let each = unit.mappings.max(0.1);
        WatchedLimit::new("vm.max_map_count", path, value, each, 0, || Some(own_mappings()))
    });
    let status = |field: fn(Status) -> u64| move || Some(field(Status::of(getpid()).ok()?));
    let rlimit = |name, resource, per_unit: u64, field: fn(Status) -> u64| {
        let value = getrlimit(resource).current?;
        WatchedLimit::new(name, "getrlimit(2)", value, per_unit as f64, 0, status(field))
    };
    let address_space = rlimit("RLIMIT_AS", Resource::As, unit.stack + guard, |s| s.address_space);
    let data = rlimit("RLIMIT_DATA", Resource::Data, unit.stack + guard, |s| s.data);
    let strict = read_number("/proc/sys/vm/overcommit_memory") == Some(2);
    let commit = strict.then(MemInfo::read).and_then(|info| {
        let used = || Some(MemInfo::read().committed);
        let source = "CommitLimit of /proc/meminfo, since vm.overcommit_memory is 2";
        WatchedLimit::new("vm.overcommit", source, info.commit_limit, unit.stack as f64, 0, used)
    });
    [mappings, address_space, data, commit].into_iter().flatten().collect()
}

/// Returns the limit `RLIMIT_NPROC` on the tasks of the user, or `None` if it is unlimited,
/// unreadable or does not apply: in the initial user namespace, root and holders of
/// `CAP_SYS_RESOURCE` or `CAP_SYS_ADMIN` are exempt.
fn user_task_limit() -> Option<WatchedLimit> {
    const EXEMPTING_CAPABILITIES: u64 = 1 << 24 | 1 << 21;
    if in_first_user_namespace()
        && (getuid().is_root() || capabilities() & EXEMPTING_CAPABILITIES != 0)
    {
        return None;
    }
    let value = getrlimit(Resource::Nproc).current?;
    let source = "ulimit -u; tasks of this user elsewhere count too";
    WatchedLimit::new(NPROC, source, value, 1.0, 0, tasks_of_user)
}

/// Name of the limit on the tasks of a user.
pub const NPROC: &str = "RLIMIT_NPROC";

/// Name of the limit on the tasks of a cgroup.
const CGROUP_PIDS: &str = "cgroup pids.max";

/// Returns whether the user namespace of this process maps all ids to themselves, as the initial
/// one does. Also returns `true` if the map is unreadable.
fn in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let numbers: Vec<&str> = map.split_whitespace().collect();
    map.is_empty() || numbers == ["0", "0", "4294967295"]
}

fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Returns the number of tasks (processes and their threads) that procfs shows for the real user of
/// this process, or `None` if procfs is unreadable.
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

/// Returns the number of tasks (processes and their threads) on the machine, or `None` if it cannot
/// be read.
pub fn tasks() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn cgroup_pids() -> Vec<WatchedLimit> {
    let watched = |group: Group| {
        let value = group.number("pids.max")?;
        let source = group.folder.join("pids.max").display().to_string();
        let events = group.folder.join("pids.events");
        let current = move || group.number("pids.current");
        let watched = WatchedLimit::new(CGROUP_PIDS, source, value, 1.0, 0, current)?;
        Some(watched.counting_refusals(events))
    };
    cgroup::of("pids").into_iter().filter_map(watched).collect()
}

/// Returns the number in a file, or `None` if the file is unreadable or contains something else,
/// such as `max`.
fn read_number(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_comes_first_and_all_have_room_now() {
        for kind in [UnitKind::Process, UnitKind::Thread] {
            let all = limits_on(kind, typical_resources(kind));
            assert!(all.is_sorted_by_key(|watched| watched.limit.allows));
            let names: Vec<_> = all.iter().map(|watched| watched.limit.name.as_str()).collect();
            assert!(names.contains(&"kernel.pid_max") && names.contains(&"memory"), "{names:?}");
            assert_eq!(names.contains(&"vm.max_map_count"), kind == UnitKind::Thread);
            assert!(
                all.iter().all(|watched| watched.read_exhaustion() == Exhaustion::No),
                "{all:?}"
            );
        }
    }

    #[test]
    fn a_shared_limit_keeps_units_free_for_other_programs() {
        let limit = |name: &str| Limit {
            name: name.to_owned(),
            source: String::new(),
            value: 1000,
            in_use: 0,
            per_unit: 1.0,
            allows: 1000,
        };
        let (shared, own) = (limit(NPROC), limit("vm.max_map_count"));
        assert_eq!((spare_units(&shared), spare_units(&own)), (50, 0));
        assert_eq!(
            refusal(&shared, 999),
            "RLIMIT_NPROC = 1000 allows 1000 more, of which 50 stay free for other programs, but 999 \
             are needed"
        );
        assert_eq!(
            refusal(&own, 2000),
            "vm.max_map_count = 1000 allows 1000 more, but 2000 are needed"
        );
        for kind in [UnitKind::Process, UnitKind::Thread] {
            let tightest = tightest_shared(kind).expect("Linux has some");
            assert!(shortage(kind, tightest.allows.saturating_sub(1)).is_some(), "{tightest:?}");
            assert!(shortage(kind, 2 * tightest.allows).is_some(), "{tightest:?}");
        }
    }

    #[test]
    fn a_limit_is_exhausted_when_nothing_is_left_of_it() {
        let full = WatchedLimit::new("x", "y", 100, 1.0, 0, || Some(100)).expect("readable");
        assert_eq!(full.limit.allows, 0);
        assert_eq!(
            full.read_exhaustion(),
            Exhaustion::Full("x: 100 of 100 were in use".to_owned())
        );
        let half = WatchedLimit::new("x", "y", 100, 2.0, 10, || Some(50)).expect("readable");
        assert_eq!((half.limit.allows, half.read_exhaustion()), (20, Exhaustion::No));
    }

    #[test]
    fn refusals_are_counted_by_the_kernel() {
        let file = std::env::temp_dir().join(format!("contend-events-{}", std::process::id()));
        fs::write(&file, "max 3\n").expect("room");
        let limit = WatchedLimit::new("x", "y", 100, 1.0, 0, || Some(5)).expect("readable");
        let limit = limit.counting_refusals(file.clone());
        assert_eq!(limit.read_exhaustion(), Exhaustion::No);
        fs::write(&file, "max 5\n").expect("room");
        assert!(matches!(limit.read_exhaustion(), Exhaustion::Refused { is_full: false, .. }));
        fs::remove_file(file).expect("it is there");
    }
}

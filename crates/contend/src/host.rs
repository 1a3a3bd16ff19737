//! Describes the machine for a record.

use std::fs;

use contend_record::warning::WarningId;
use contend_record::{Host, Warning};
use contend_sys::procfs::MemInfo;
use contend_sys::{cgroup, cpu};

/// Returns a description of this machine. If the kernel does not report a property, its field is
/// empty, `None`, `false` or 0; the numbers of CPUs are at least 1.
pub fn describe() -> Host {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    Host {
        name: name(),
        cpu_model: field(&cpuinfo, "model name").unwrap_or_default(),
        cpus_online: std::thread::available_parallelism().map_or(1, usize::from).max(online()),
        cpus_allowed: cpu::allowed(),
        cpu_quota: cpu::quota(),
        memory_bytes: MemInfo::read().total,
        kernel: [uname.sysname(), uname.release(), uname.machine()].map(text).join(" "),
        virtual_machine: field(&cpuinfo, "flags")
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        clocksource: trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default(),
        cores: cores(),
        memory_limit_bytes: cgroup::memory_limit(),
        mitigations: mitigations(),
        libc: contend_sys::cpu::libc_version(),
        huge_pages: trimmed("/sys/kernel/mm/transparent_hugepage/enabled")
            .as_deref()
            .and_then(chosen),
        governor: trimmed("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
}

/// Returns the network name of this machine.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns warnings about properties of the machine that make measurements uncertain.
pub fn unfavourable(host: &Host) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(quota) = host.cpu_quota.filter(|&quota| quota < host.cpus_allowed as f64) {
        let message = format!(
            "the cgroup's quota is {quota} of {} CPUs: programs that use more are throttled",
            host.cpus_allowed
        );
        warnings.push(Warning::new(WarningId::Quota, message));
    }
    if let Some(governor) = host.governor.as_deref().filter(|&name| name != "performance") {
        let message =
            format!("the frequency governor is '{governor}': CPU speed may vary during a run");
        warnings.push(Warning::new(WarningId::Frequency, message));
    }
    warnings
}

/// Returns the number of cores, counted as distinct sets of sibling CPUs, or `None` if the kernel
/// does not report the siblings.
fn cores() -> Option<usize> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?.flatten();
    let siblings = cpus.filter_map(|cpu| {
        let path = cpu.path().join("topology/thread_siblings_list");
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    });
    let different: std::collections::HashSet<_> = siblings.collect();
    Some(different.len()).filter(|&count| count > 0)
}

fn mitigations() -> std::collections::BTreeMap<String, String> {
    let files = fs::read_dir("/sys/devices/system/cpu/vulnerabilities");
    files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| {
            let text = fs::read_to_string(file.path()).ok()?.trim().to_owned();
            let name = file.file_name().to_string_lossy().into_owned();
            (text != "Not affected").then_some((name, text))
        })
        .collect()
}

/// Returns the selected value of a kernel setting, the one in brackets: `madvise` if `list` is
/// `always [madvise] never`. Returns `None` without brackets.
fn chosen(list: &str) -> Option<String> {
    Some(list.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn trimmed(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns the number of CPUs that are online, or 0 if the kernel does not report it.
fn online() -> usize {
    trimmed("/sys/devices/system/cpu/online").map_or(0, |list| count_list(&list))
}

/// Counts the CPUs in a list such as `0-3,5`. Malformed ranges do not count.
fn count_list(list: &str) -> usize {
    list.split(',')
        .filter_map(|range| match range.split_once('-') {
            Some((first, last)) => {
                Some(last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1)
            }
            None => range.parse::<usize>().ok().map(|_| 1),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(count_list("0-3,5"), 5);
        assert_eq!(count_list("0"), 1);
        assert_eq!(count_list(""), 0);
    }

    #[test]
    fn the_machine_is_described() {
        let host = describe();
        assert!(host.cpus_online >= host.cpus_allowed && host.memory_bytes > 0);
        assert!(host.kernel.starts_with("Linux "));
    }
}

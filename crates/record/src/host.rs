//! The machine that a measurement was made on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine, as far as it can affect a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Network name of the machine; empty in records of older versions.
    #[serde(default)]
    pub name: String,
    /// Model name of the processor, as in `/proc/cpuinfo`; empty if it is not there.
    pub cpu_model: String,
    /// Number of CPUs that are online.
    pub cpus_online: usize,
    /// Number of CPUs that contend may use, by its CPU affinity. In a record of a pipeline that was
    /// already running: the number that its stages may use.
    pub cpus_allowed: usize,
    /// Smallest CPU quota of contend's cgroups, as a number of CPUs; null without a quota. In a
    /// record of a pipeline that was already running: that of the first stage's cgroups.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Name and release of the kernel and the machine's architecture, as `uname -srm` prints them.
    pub kernel: String,
    /// Whether the processor reports that it runs under a hypervisor.
    pub virtual_machine: bool,
    /// Clock source of the kernel, such as `tsc`; empty if sysfs does not report it.
    pub clocksource: String,
    /// Number of physical cores that are online, each with one or more CPUs; null if sysfs does not
    /// report it, and in records of older versions.
    #[serde(default)]
    pub cores: Option<usize>,
    /// Smallest memory limit of contend's cgroups, in bytes; null without a limit below the
    /// machine's memory, and in records of older versions.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// State of each processor vulnerability, such as its mitigation, as the kernel reports it, by
    /// the name of the vulnerability. Vulnerabilities that do not affect the processor are left
    /// out.
    #[serde(default)]
    pub mitigations: BTreeMap<String, String>,
    /// Name of the C library, with its version if it is glibc; empty in records of older versions.
    #[serde(default)]
    pub libc: String,
    /// When the kernel uses transparent huge pages: `always`, `madvise` or `never`; null if the
    /// kernel does not report it, and in records of older versions.
    #[serde(default)]
    pub huge_pages: Option<String>,
    /// Frequency governor of CPU 0, such as `performance`; null if the kernel does not report it.
    pub governor: Option<String>,
}

impl Host {
    /// Returns the number of CPUs that contend can use at the same time: the allowed ones, at least
    /// 1, or the quota if it is smaller.
    pub fn usable_cpus(&self) -> f64 {
        let allowed = self.cpus_allowed.max(1) as f64;
        self.cpu_quota.map_or(allowed, |quota| quota.min(allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_below_the_allowed_cpus_counts() {
        let host = Host { cpus_allowed: 4, cpu_quota: Some(1.5), ..Host::default() };
        assert!((host.usable_cpus() - 1.5).abs() < 1e-9);
        let host = Host { cpus_allowed: 2, cpu_quota: Some(8.0), ..Host::default() };
        assert!((host.usable_cpus() - 2.0).abs() < 1e-9);
    }
}

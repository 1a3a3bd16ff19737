//! The machine that a measurement was made on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine, as far as it can affect a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Model name of the processor, as in `/proc/cpuinfo`.
    pub cpu_model: String,
    /// Number of CPUs that are online.
    pub cpus_online: usize,
    /// Number of CPUs that this process may use, by its CPU affinity.
    pub cpus_allowed: usize,
    /// CPU quota of the cgroup, as a number of CPUs; null without a quota.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Name and release of the kernel and the machine's architecture, as `uname -srm` prints them.
    pub kernel: String,
    /// Whether the processor reports that it runs under a hypervisor.
    pub virtual_machine: bool,
    /// Clock source of the kernel, as in sysfs.
    pub clocksource: String,
    /// Number of physical cores that are online, each with one or more CPUs; null if sysfs does not
    /// report it.
    #[serde(default)]
    pub cores: Option<usize>,
    /// Smallest memory limit of this process's cgroups, in bytes; null without a limit.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Mitigations of processor vulnerabilities that the kernel applies, by vulnerability.
    /// Vulnerabilities that do not affect this processor are left out.
    #[serde(default)]
    pub mitigations: BTreeMap<String, String>,
    /// Name and version of the C library.
    #[serde(default)]
    pub libc: String,
    /// When the kernel uses transparent huge pages: `always`, `madvise` or `never`; null if the
    /// kernel does not report it.
    #[serde(default)]
    pub huge_pages: Option<String>,
    /// Frequency governor of the first CPU; null if the machine does not report it.
    pub governor: Option<String>,
}

impl Host {
    /// Returns the number of CPUs that can be used at the same time: the allowed ones, or the quota
    /// if that is smaller.
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

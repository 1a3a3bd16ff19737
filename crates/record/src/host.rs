//! The machine that something was measured on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine, as far as it can change a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The processor's name, as in `/proc/cpuinfo`.
    pub cpu_model: String,
    /// CPUs that are online.
    pub cpus_online: usize,
    /// CPUs that this process was allowed to use.
    pub cpus_allowed: usize,
    /// The cgroup's CPU quota in CPUs; null when there is none.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Name, release and machine of the kernel, as `uname -srm` prints them.
    pub kernel: String,
    /// Whether the processor says that it is virtual.
    pub virtual_machine: bool,
    /// The kernel's source of time, as in sysfs.
    pub clocksource: String,
    /// Cores that are online, each with one or more CPUs; null where sysfs does not tell.
    #[serde(default)]
    pub cores: Option<usize>,
    /// The least limit on memory of this process's cgroups, in bytes; null when there is none.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// What the kernel does against flaws of the processor, by flaw; those that do not
    /// concern it are left out.
    #[serde(default)]
    pub mitigations: BTreeMap<String, String>,
    /// The C library and its version.
    #[serde(default)]
    pub libc: String,
    /// When the kernel uses huge pages by itself: always, madvise or never.
    #[serde(default)]
    pub huge_pages: Option<String>,
    /// The frequency governor of the first CPU; null where the machine does not tell.
    pub governor: Option<String>,
}

impl Host {
    /// CPUs that could work at the same time: the allowed ones, or the quota if it is smaller.
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

//! How the machine's CPUs share cores, caches and packages, from sysfs. In a virtual machine the
//! hypervisor decides what sysfs shows.

use std::fs;
use std::path::Path;

use crate::cpu;

/// The position of a CPU in the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Number of the CPU, as the kernel counts it.
    pub number: usize,
    /// Core of the CPU, as the lowest CPU number in it; the CPU's own number if unknown. Several
    /// CPUs may be hardware threads of one core.
    pub core: usize,
    /// Last-level cache, as the lowest number of the CPUs that share it; without a third level, the
    /// lowest number of the package's CPUs; 0 if that is unknown.
    pub last_cache: usize,
    /// Number of the package (socket); 0 if unknown.
    pub package: usize,
    /// Number of the NUMA node; 0 if unknown.
    pub node: usize,
}

/// The closest level that two CPUs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// Both are the same CPU.
    Same,
    /// Hardware threads of one core.
    Core,
    /// Cores that share a last-level cache.
    Cache,
    /// Cores of one package that share no last-level cache.
    Package,
    /// Cores of two packages.
    Machine,
}

impl Distance {
    /// Returns a description for reports, such as "two packages".
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "the same CPU",
            Self::Core => "two hardware threads of a core",
            Self::Cache => "two cores with a common cache",
            Self::Package => "two cores of a package without a common cache",
            Self::Machine => "two packages",
        }
    }
}

impl Cpu {
    /// Returns the distance to `other`.
    pub fn distance(&self, other: &Self) -> Distance {
        if self.number == other.number {
            Distance::Same
        } else if self.core == other.core {
            Distance::Core
        } else if self.last_cache == other.last_cache {
            Distance::Cache
        } else if self.package == other.package {
            Distance::Package
        } else {
            Distance::Machine
        }
    }
}

/// Returns the CPUs that the calling thread may use, in the order of their numbers. Where sysfs
/// lacks information, CPUs are taken to be cores of one package that share a cache.
pub fn allowed() -> Vec<Cpu> {
    cpu::allowed_list().into_iter().map(|number| read(Path::new(ROOT), number)).collect()
}

const ROOT: &str = "/sys/devices/system/cpu";

/// Returns the numbers of the first pair of `cpus` at `distance` (twice the same for
/// [`Distance::Same`]), or `None` if there is no such pair.
pub fn pair(cpus: &[Cpu], distance: Distance) -> Option<[usize; 2]> {
    let pairs = cpus.iter().enumerate().flat_map(|(i, a)| cpus[i..].iter().map(move |b| (a, b)));
    let mut alike = pairs.filter(|(a, b)| a.distance(b) == distance);
    alike.next().map(|(a, b)| [a.number, b.number])
}

/// Returns the numbers of two CPUs whose cores are as close as possible, preferably with a common
/// cache; `None` with fewer than two CPUs. Hardware threads of one core, which share the core's
/// other caches too, are the last choice.
pub fn nearest_cores(cpus: &[Cpu]) -> Option<[usize; 2]> {
    let nearest_first = [Distance::Cache, Distance::Package, Distance::Machine, Distance::Core];
    nearest_first.into_iter().find_map(|distance| pair(cpus, distance))
}

/// Returns `most` of `cpus`, or all if there are fewer, that cover as many packages, caches and
/// cores as possible, sorted by number.
pub fn spread(cpus: &[Cpu], most: usize) -> Vec<Cpu> {
    // One CPU of every package, then of every cache, of every core, then the others.
    let ranks: [fn(&Cpu) -> usize; 4] =
        [|cpu| cpu.package, |cpu| cpu.last_cache, |cpu| cpu.core, |cpu| cpu.number];
    let mut chosen: Vec<Cpu> = Vec::new();
    for of in ranks {
        for cpu in cpus {
            if chosen.len() < most && chosen.iter().all(|other| of(other) != of(cpu)) {
                chosen.push(cpu.clone());
            }
        }
    }
    chosen.sort_by_key(|cpu| cpu.number);
    chosen
}

/// Returns how many CPUs, cores, caches, packages and nodes there are, as text such as "4 CPUs, 2
/// cores, …".
pub fn describe(cpus: &[Cpu]) -> String {
    let count = |of: fn(&Cpu) -> usize, name: &str| {
        let different: std::collections::BTreeSet<usize> = cpus.iter().map(of).collect();
        let plural = if different.len() == 1 { "" } else { "s" };
        format!("{} {name}{plural}", different.len())
    };
    [
        count(|cpu| cpu.number, "CPU"),
        count(|cpu| cpu.core, "core"),
        count(|cpu| cpu.last_cache, "last-level cache"),
        count(|cpu| cpu.package, "package"),
        count(|cpu| cpu.node, "memory node"),
    ]
    .join(", ")
}

fn read(root: &Path, number: usize) -> Cpu {
    let folder = root.join(format!("cpu{number}"));
    let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let first = |file: &str| first_of_list(text(file)?.trim());
    let package = text("topology/physical_package_id").and_then(|text| text.trim().parse().ok());
    let core = first("topology/core_cpus_list").or_else(|| first("topology/thread_siblings_list"));
    // Caches are numbered from the first level up; instruction caches need no exclusion, since only
    // the highest level counts.
    let caches = (0..10).map_while(|index| {
        let cache = format!("cache/index{index}");
        Some((first(&format!("{cache}/shared_cpu_list"))?, text(&format!("{cache}/level"))?))
    });
    let level = |text: &str| text.trim().parse::<u32>().unwrap_or(0);
    let last = caches.max_by_key(|(_, text)| level(text)).filter(|(_, text)| level(text) >= 3);
    Cpu {
        number,
        core: core.unwrap_or(number),
        // Without a third-level cache, cores of one package count as sharing a cache.
        last_cache: last
            .map_or_else(|| first("topology/package_cpus_list").unwrap_or(0), |(first, _)| first),
        package: package.unwrap_or(0),
        node: node(&folder).unwrap_or(0),
    }
}

/// Returns the NUMA node of the CPU with the directory `folder`, or `None` if sysfs does not have
/// it.
fn node(folder: &Path) -> Option<usize> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let number = |name: &str| name.strip_prefix("node")?.parse().ok();
    entries.into_iter().find_map(|entry| number(entry.file_name().to_str()?))
}

/// Returns the first number of a list such as `0-3,8-11`, or `None` if the list does not begin with
/// a number.
fn first_of_list(list: &str) -> Option<usize> {
    list.split([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates and reads the sysfs files of a machine with two packages. Each package has two cores
    /// with two hardware threads each, numbered as on PCs. The cores of the first package share a
    /// last-level cache; those of the second have one each.
    fn machine(root: &Path) -> Vec<Cpu> {
        for number in 0..8_usize {
            let (package, core) = (number / 2 % 2, number % 4);
            let folder = root.join(format!("cpu{number}"));
            let write = |file: &str, text: String| {
                let path = folder.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("room");
                fs::write(path, text + "\n").expect("room");
            };
            write("topology/physical_package_id", package.to_string());
            write("topology/core_cpus_list", format!("{core},{}", core + 4));
            write("cache/index0/level", "1".to_owned());
            write("cache/index0/shared_cpu_list", format!("{core},{}", core + 4));
            let shared = if package == 0 { "0-1,4-5".to_owned() } else { format!("{core}") };
            write("cache/index1/level", "3".to_owned());
            write("cache/index1/shared_cpu_list", shared);
            fs::create_dir_all(folder.join(format!("node{package}"))).expect("room");
        }
        (0..8).map(|number| read(root, number)).collect()
    }

    #[test]
    fn distances_are_those_of_sysfs() {
        use Distance::{Cache, Core, Machine, Package, Same};
        let root = std::env::temp_dir().join(format!("contend-topology-{}", std::process::id()));
        let cpus = machine(&root);
        fs::remove_dir_all(&root).expect("it is there");
        assert_eq!(cpus[7], Cpu { number: 7, core: 3, last_cache: 3, package: 1, node: 1 });
        let from_0 = [0, 4, 1, 5, 2, 7].map(|other: usize| cpus[0].distance(&cpus[other]));
        assert_eq!(from_0, [Same, Core, Cache, Cache, Machine, Machine]);
        assert_eq!(cpus[2].distance(&cpus[3]), Package);
        let numbers = |cpus: Vec<Cpu>| cpus.iter().map(|cpu| cpu.number).collect::<Vec<_>>();
        assert_eq!(numbers(spread(&cpus, 3)), [0, 2, 3], "packages, then caches");
        assert_eq!(numbers(spread(&cpus, 9)).len(), 8);
        let said = "8 CPUs, 4 cores, 3 last-level caches, 2 packages, 2 memory nodes";
        assert_eq!(describe(&cpus), said);
        let pairs = [Same, Core, Cache, Package, Machine].map(|far| pair(&cpus, far));
        assert_eq!(pairs, [[0, 0], [0, 4], [0, 1], [2, 3], [0, 2]].map(Some));
        assert_eq!(pair(&cpus[..2], Machine), None);
        assert_eq!(
            (nearest_cores(&cpus), nearest_cores(&[cpus[0].clone(), cpus[4].clone()])),
            (Some([0, 1]), Some([0, 4]))
        );
    }

    #[test]
    fn missing_sysfs_entries_mean_cores_with_a_common_cache() {
        let nowhere = Path::new("/nonexistent");
        let two = [0, 1].map(|number| read(nowhere, number));
        assert_eq!(two[0].distance(&two[1]), Distance::Cache);
    }

    #[test]
    fn this_machine_has_cpus() {
        let cpus = allowed();
        assert_eq!(cpus.iter().map(|cpu| cpu.number).collect::<Vec<_>>(), cpu::allowed_list());
    }
}

//! Assignment of two partners to CPUs.

use contend_sys::topology::{self, Cpu, Distance};

/// The CPUs on which two partners run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Any CPUs, chosen by the scheduler.
    Free,
    /// One CPU for both partners.
    Same,
    /// Two CPUs, on different cores if possible, preferably with a common cache. Each may idle
    /// while its partner waits.
    TwoCpus,
    /// The CPUs of `Placement::TwoCpus`, kept awake by spinning threads of the lowest priority.
    TwoAwakeCpus,
    /// Two hardware threads of one core.
    Sibling,
    /// Two cores without a common cache.
    OtherCache,
    /// The CPUs with these numbers, for main and for sub.
    On([usize; 2]),
}

impl Placement {
    /// Placements that users can choose, by name.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("free", Self::Free),
        ("same-cpu", Self::Same),
        ("two-cpus", Self::TwoCpus),
        ("two-awake", Self::TwoAwakeCpus),
        ("smt-sibling", Self::Sibling),
        ("other-cache", Self::OtherCache),
    ];

    /// Returns the names of all placements in `Placement::NAMED`.
    pub fn names() -> Vec<&'static str> {
        Self::NAMED.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the name of the placement, or an empty string for `Placement::On`.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.into_iter().find(|(_, known)| *known == self);
        named.map_or("", |(name, _)| name)
    }

    /// Returns the placement with the given name, or `None` if there is none.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, placement)| placement)
    }

    /// Returns why this machine does not allow the placement, or `None` if it does. Does not check
    /// the CPUs of `Placement::On`.
    pub fn unavailable(self) -> Option<String> {
        let missing = match self {
            Self::Free | Self::Same | Self::On(_) => return None,
            Self::TwoCpus | Self::TwoAwakeCpus => "needs two CPUs, and only one may be used",
            Self::Sibling => {
                "needs two hardware threads of one core, but no two available CPUs share a core"
            }
            Self::OtherCache => {
                "needs two cores without a common cache, but all available CPUs share one"
            }
        };
        self.cpus().is_none().then(|| missing.to_owned())
    }

    /// Returns whether the placement binds the partners to different CPUs. Without a binding, they
    /// may still run on different ones.
    pub fn uses_two_cpus(self) -> bool {
        match self {
            Self::Free | Self::Same => false,
            Self::On([main, sub]) => main != sub,
            Self::TwoCpus | Self::TwoAwakeCpus | Self::Sibling | Self::OtherCache => true,
        }
    }

    /// Returns the CPUs of main and sub, or `None` if the placement does not bind them or this
    /// process may not use such CPUs. Those of `Placement::On` are not checked.
    pub fn cpus(self) -> Option<[usize; 2]> {
        self.of(&topology::allowed())
    }

    fn of(self, cpus: &[Cpu]) -> Option<[usize; 2]> {
        match self {
            Self::Free => None,
            Self::Same => topology::pair(cpus, Distance::Same),
            Self::TwoCpus | Self::TwoAwakeCpus => topology::nearest_cores(cpus),
            Self::Sibling => topology::pair(cpus, Distance::Core),
            Self::OtherCache => topology::pair(cpus, Distance::Package)
                .or_else(|| topology::pair(cpus, Distance::Machine)),
            Self::On(pair) => Some(pair),
        }
    }

    /// Returns the numbers of the CPUs and their distance as text, or `None` if the partners are
    /// not bound or this process may not use the CPUs.
    pub fn describe(self) -> Option<String> {
        let cpus = topology::allowed();
        let [main, sub] = self.of(&cpus)?;
        let find = |number| cpus.iter().find(|cpu| cpu.number == number);
        let distance = find(main)?.distance(find(sub)?).name();
        Some(format!("{main} and {sub}, {distance}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(cores: &[usize], caches: &[usize]) -> Vec<Cpu> {
        let one =
            |(number, (&core, &last_cache))| Cpu { number, core, last_cache, ..Cpu::default() };
        cores.iter().zip(caches).enumerate().map(one).collect()
    }

    #[test]
    fn separate_cores_come_before_hardware_threads() {
        let large = cpus(&[0, 0, 2, 2, 4], &[0, 0, 0, 0, 4]);
        let of = |placement: Placement, cpus: &[Cpu]| placement.of(cpus);
        assert_eq!(of(Placement::TwoCpus, &large), Some([0, 2]));
        assert_eq!(of(Placement::Sibling, &large), Some([0, 1]));
        assert_eq!(of(Placement::OtherCache, &large), Some([0, 4]));
        assert_eq!(of(Placement::Same, &large), Some([0, 0]));
        assert_eq!(of(Placement::Free, &large), None);
        let one_core = cpus(&[0, 0], &[0, 0]);
        assert_eq!(of(Placement::TwoCpus, &one_core), Some([0, 1]));
        assert_eq!(of(Placement::OtherCache, &one_core), None);
        assert_eq!(of(Placement::TwoCpus, &one_core[..1]), None);
    }

    #[test]
    fn every_placement_has_cpus_or_a_reason() {
        for (name, placement) in Placement::NAMED {
            assert_eq!(Placement::find(name), Some(placement));
            let placed = placement.cpus().is_some() || placement == Placement::Free;
            assert_eq!(placement.unavailable().is_none(), placed, "{name}");
        }
    }
}

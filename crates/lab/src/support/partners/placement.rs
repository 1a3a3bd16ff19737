//! Where two partners run.

use contend_sys::topology::{self, Cpu, Distance};

/// Where the partners run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the scheduler puts them.
    Free,
    /// Both on the same CPU.
    Same,
    /// Each on a core of its own, which is idle while its partner waits.
    Apart,
    /// The same, but something that yields to all others keeps both CPUs awake.
    Awake,
    /// On two hardware threads of one core.
    Sibling,
    /// On two cores without a common cache.
    OtherCache,
    /// On these CPUs.
    On([usize; 2]),
}

impl Placement {
    /// Those with a name.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("free", Self::Free),
        ("same-cpu", Self::Same),
        ("two-cpus", Self::Apart),
        ("two-awake", Self::Awake),
        ("smt-sibling", Self::Sibling),
        ("other-cache", Self::OtherCache),
    ];

    /// The names.
    pub fn names() -> Vec<&'static str> {
        Self::NAMED.iter().map(|(name, _)| *name).collect()
    }

    /// Its name; nothing for one of certain CPUs.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.into_iter().find(|(_, known)| *known == self);
        named.map_or("", |(name, _)| name)
    }

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, placement)| placement)
    }

    /// Why partners cannot be placed so here, if so.
    pub fn unavailable(self) -> Option<String> {
        let missing = match self {
            Self::Free | Self::Same | Self::On(_) => return None,
            Self::Apart | Self::Awake => "needs two CPUs, and only one may be used",
            Self::Sibling => {
                "needs two hardware threads of one core, and no two of the CPUs that may be used are"
            }
            Self::OtherCache => {
                "needs two cores without a common cache, and all CPUs that may be used have one"
            }
        };
        self.cpus().is_none().then(|| missing.to_owned())
    }

    /// Whether the partners are on two CPUs for sure.
    pub fn crosses(self) -> bool {
        match self {
            Self::Free | Self::Same => false,
            Self::On([main, sub]) => main != sub,
            Self::Apart | Self::Awake | Self::Sibling | Self::OtherCache => true,
        }
    }

    /// The CPUs of main and sub, if they are bound to any.
    pub fn cpus(self) -> Option<[usize; 2]> {
        self.of(&topology::allowed())
    }

    fn of(self, cpus: &[Cpu]) -> Option<[usize; 2]> {
        match self {
            Self::Free => None,
            Self::Same => topology::pair(cpus, Distance::Same),
            Self::Apart | Self::Awake => topology::apart(cpus),
            Self::Sibling => topology::pair(cpus, Distance::Core),
            Self::OtherCache => topology::pair(cpus, Distance::Package)
                .or_else(|| topology::pair(cpus, Distance::Machine)),
            Self::On(pair) => Some(pair),
        }
    }

    /// In some words: which CPUs, and how far they are apart.
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
    fn cores_of_their_own_come_before_threads_of_one() {
        let large = cpus(&[0, 0, 2, 2, 4], &[0, 0, 0, 0, 4]);
        let of = |placement: Placement, cpus: &[Cpu]| placement.of(cpus);
        assert_eq!(of(Placement::Apart, &large), Some([0, 2]));
        assert_eq!(of(Placement::Sibling, &large), Some([0, 1]));
        assert_eq!(of(Placement::OtherCache, &large), Some([0, 4]));
        assert_eq!(of(Placement::Same, &large), Some([0, 0]));
        assert_eq!(of(Placement::Free, &large), None);
        let one_core = cpus(&[0, 0], &[0, 0]);
        assert_eq!(of(Placement::Apart, &one_core), Some([0, 1]));
        assert_eq!(of(Placement::OtherCache, &one_core), None);
        assert_eq!(of(Placement::Apart, &one_core[..1]), None);
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

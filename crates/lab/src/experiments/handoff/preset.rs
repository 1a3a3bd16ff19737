//! Presets: default parameters that reproduce the programs of the test report on inter-process
//! synchronisation.

use super::primitives::{Mechanism, SEMAPHORE};
use crate::support::partners::Placement;

/// A program of the test report, as defaults for parameters that the user does not set.
#[derive(Debug)]
pub struct Preset {
    /// Mechanisms for `start`, `to_sub`, `to_main` and `end` of a session, in this order.
    pub mechanisms: [&'static Mechanism; 4],
    /// Factor by which the work of a turn is multiplied.
    pub factor: u64,
    /// Whether main computes as much as sub in each turn.
    pub main_works: bool,
    /// Placement of the partners, which the test report specifies for two programs only.
    pub placement: Placement,
}

impl Preset {
    /// Creates a preset with the given mechanisms, in which sub announces its start with a
    /// semaphore, only sub works, with a factor of 1, and the scheduler places the partners.
    pub const fn new(
        to_sub: &'static Mechanism,
        to_main: &'static Mechanism,
        end: &'static Mechanism,
    ) -> Self {
        let mechanisms = [SEMAPHORE, to_sub, to_main, end];
        Self { mechanisms, factor: 1, main_works: false, placement: Placement::Free }
    }

    pub const fn with_factor_100(self) -> Self {
        Self { factor: 100, ..self }
    }

    pub const fn with_main_working(self) -> Self {
        Self { main_works: true, ..self }
    }

    pub const fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }
}

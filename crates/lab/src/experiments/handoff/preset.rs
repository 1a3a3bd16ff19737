//! What a program of the test report consists of.

use super::primitives::{Mechanism, SEMAPHORE};
use crate::support::partners::Placement;

/// A program of the test report: the values of parameters that are not set.
#[derive(Debug)]
pub struct Preset {
    /// The mechanisms `start`, `to_sub`, `to_main` and `end`.
    pub mechanisms: [&'static Mechanism; 4],
    /// Factor on the default work of sub in a turn.
    pub factor: u64,
    /// Main computes in its turn as much as sub.
    pub main_works: bool,
    /// Placement. The test report specifies it for two programs only.
    pub placement: Placement,
}

impl Preset {
    /// A preset whose sub announces its start by a semaphore.
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

//! What a case of the document consists of.

use super::primitives::{Mechanism, SEMAPHORE};
use crate::support::pair::Placement;

/// One of the document's cases, or what stands for whatever is not chosen.
#[derive(Debug)]
pub struct Preset {
    /// Its mechanisms: start, main to sub, sub to main, end.
    pub mechanisms: [&'static Mechanism; 4],
    /// How many times the usual work sub does in a turn.
    pub factor: u64,
    /// Main computes in its turn, too, as much as sub.
    pub main_works: bool,
    /// Where it runs; the document says it of two of them only.
    pub placement: Placement,
}

impl Preset {
    /// Sub tells main by a semaphore, and main looks whether it is its turn as the others say.
    pub const fn of(
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

    pub const fn on(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }
}

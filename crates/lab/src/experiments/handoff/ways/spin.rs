//! Looking without a pause.

use std::io;

use super::flag::Flag;
use super::{Mechanism, Waited, Way};
use crate::experiment::Attempt;

/// The quickest there is between two CPUs, and the worst on one.
pub const MECHANISM: Mechanism = Mechanism {
    name: "spin",
    summary: "looking again and again, without a pause",
    make: |_| Ok(Box::new(Spin(Flag::new().attempt("map shared memory")?))),
};

struct Spin(Flag);

impl Way for Spin {
    fn post(&self) -> io::Result<()> {
        self.0.post();
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        let mut in_vain = 0;
        while !self.0.take() {
            in_vain += 1;
            std::hint::spin_loop();
        }
        Ok(Waited { in_vain })
    }
}

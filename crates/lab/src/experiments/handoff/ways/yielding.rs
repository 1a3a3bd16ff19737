//! Looking, and letting others run in between.

use std::io;

use super::flag::Flag;
use super::{Mechanism, Waited, Way};
use crate::experiment::Attempt;

/// It looks idle to no scheduler, and waits for others on the same CPU alone.
pub const MECHANISM: Mechanism = Mechanism {
    name: "yield",
    summary: "looking, with sched_yield in between",
    make: |_| Ok(Box::new(Yield(Flag::new().attempt("map shared memory")?))),
};

struct Yield(Flag);

impl Way for Yield {
    fn post(&self) -> io::Result<()> {
        self.0.post();
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        let mut in_vain = 0;
        while !self.0.take() {
            in_vain += 1;
            rustix::thread::sched_yield();
        }
        Ok(Waited { in_vain })
    }
}

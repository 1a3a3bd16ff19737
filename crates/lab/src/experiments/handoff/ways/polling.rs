//! Looking again and again, with something in between.

use std::io;

use super::flag::Flag;
use super::{Waited, Way};
use crate::engine::experiment::{Attempt, SubjectError};

struct Polling<P> {
    flag: Flag,
    /// What is done between two looks.
    between: P,
}

/// A way whose waiter does this between two looks.
pub fn polling<P>(between: P) -> Result<Box<dyn Way>, SubjectError>
where
    P: Fn() -> io::Result<()> + Sync + 'static,
{
    let flag = Flag::new().attempt("map shared memory")?;
    Ok(Box::new(Polling { flag, between }))
}

impl<P: Fn() -> io::Result<()> + Sync> Way for Polling<P> {
    fn post(&self) -> io::Result<()> {
        self.flag.post();
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        let mut in_vain = 0;
        while !self.flag.take() {
            in_vain += 1;
            (self.between)()?;
        }
        Ok(Waited { in_vain })
    }
}

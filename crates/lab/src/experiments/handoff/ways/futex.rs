//! A futex, and nothing around it.

use std::io;

use rustix::io::Errno;
use rustix::thread::futex;

use super::flag::Flag;
use super::{Mechanism, Waited, Way};
use crate::engine::experiment::Attempt;

/// What the C library's semaphores and mutexes are made of.
pub const MECHANISM: Mechanism = Mechanism {
    name: "futex",
    summary: "bare futex: woken for every turn",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(Futex(Flag::new().attempt("map shared memory")?))),
};

struct Futex(Flag);

impl Way for Futex {
    fn post(&self) -> io::Result<()> {
        self.0.post();
        futex::wake(self.0.posted(), futex::Flags::empty(), 1)?;
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        while !self.0.take() {
            sleep(&self.0)?;
        }
        Ok(Waited::default())
    }
}

/// Sleeps until something has been posted, or for no reason.
pub(super) fn sleep(flag: &Flag) -> io::Result<()> {
    match futex::wait(flag.posted(), futex::Flags::empty(), flag.taken(), None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

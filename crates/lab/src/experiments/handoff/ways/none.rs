//! No synchronisation at all.

use std::io;

use super::sleep::pause;
use super::{Mechanism, Terms, Waited, Way};

/// Nobody waits for anybody.
pub const MECHANISM: Mechanism = Mechanism {
    name: "none",
    summary: "nothing: both go on",
    waits: false,
    sleeps: false,
    counts: true,
    make: |_| Ok(Box::new(Nothing)),
};

/// Nobody waits for anybody, but sleeps: what is left of polling when nothing is looked at.
pub const PAUSE: Mechanism = Mechanism {
    name: "pause",
    summary: "nothing but a sleep of a period",
    waits: false,
    sleeps: true,
    counts: true,
    make: |terms| Ok(Box::new(Pause(terms))),
};

struct Nothing;

impl Way for Nothing {
    fn post(&self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        Ok(Waited::default())
    }
}

struct Pause(Terms);

impl Way for Pause {
    fn post(&self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self) -> io::Result<Waited> {
        pause(self.0).map(|()| Waited { in_vain: 1 })
    }
}

//! Who is told when a callback thread ends.
//!
//! A relation between two units is noted with both, under the same token, so that neither keeps
//! anything of one that has ended.

use std::collections::HashMap;

use crate::key::{Id, Key};
use crate::message::Envelope;
use crate::reason::{Down, Reason};

/// Names a relation, across all Workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

/// Makes a message of the end of a unit.
pub(crate) type Teller = Box<dyn FnOnce(Down) -> Envelope + Send>;

/// What is noted with a unit.
pub(crate) enum Relation {
    /// This one is told when it ends.
    Monitored { by: Key, tell: Teller },
    /// It is told when that one ends.
    Monitors { whom: Key },
    /// It ends if that one fails, and the other way round.
    Linked { to: Key },
}

/// The relations of one Worker's units.
#[derive(Default)]
pub(crate) struct Watchers {
    relations: HashMap<Key, Vec<(Token, Relation)>>,
    tokens: u64,
}

impl Watchers {
    /// A token that no other relation has.
    pub fn token(&mut self, worker: u8) -> Token {
        self.tokens += 1;
        Token(self.tokens << 8 | u64::from(worker))
    }

    /// Notes a relation with a unit.
    pub fn add(&mut self, unit: Key, token: Token, relation: Relation) {
        self.relations.entry(unit).or_default().push((token, relation));
    }

    /// Forgets a relation of a unit.
    pub fn forget(&mut self, unit: Key, token: Token) {
        if let Some(relations) = self.relations.get_mut(&unit) {
            relations.retain(|(noted, _)| *noted != token);
            if relations.is_empty() {
                self.relations.remove(&unit);
            }
        }
    }

    /// Forgets a unit that has ended. Returns what is to be sent to those that were related to it.
    pub fn tell(&mut self, id: Id, reason: &Reason) -> Vec<Envelope> {
        let relations = self.relations.remove(&id.0).unwrap_or_default();
        let told = |(token, relation)| match relation {
            Relation::Monitored { by, tell } => {
                let down = Down { id, reason: reason.clone() };
                Envelope::control(by.worker(), move |core| {
                    core.watchers.forget(by, token);
                    core.accept(tell(down));
                })
            }
            Relation::Monitors { whom } => Envelope::control(whom.worker(), move |core| {
                core.watchers.forget(whom, token);
            }),
            Relation::Linked { to } => {
                let failed = !reason.is_done();
                Envelope::control(to.worker(), move |core| {
                    core.watchers.forget(to, token);
                    if failed {
                        core.cancel(to, &Reason::Linked(id));
                    }
                })
            }
        };
        relations.into_iter().map(told).collect()
    }
}

//! Who is told when a callback thread ends.
//!
//! A relation between two units is noted with both, under the same token, so that neither keeps
//! anything of one that has ended.

use std::collections::{BTreeMap, VecDeque};

use crate::key::{Home, Key};
use crate::message::Envelope;
use crate::reason::{Down, Reason};

/// Units that have failed, of which it is known why.
const MAX_REMEMBERED_FAILURES: usize = 256;

/// Names a relation, across all Workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// In one tree, so that one of many is forgotten as quickly as one of few, and memory follows.
    relations: BTreeMap<(Key, Token), Relation>,
    tokens: u64,
    /// Those that have ended last other than as they should, and why: somebody may ask later.
    failed: VecDeque<(Key, Reason)>,
}

impl Watchers {
    /// A token that no other relation has.
    pub fn token(&mut self, home: Home) -> Token {
        self.tokens += 1;
        Token(self.tokens << 8 | u64::from(home.worker()))
    }

    /// Notes a relation with a unit.
    pub fn add(&mut self, unit: Key, token: Token, relation: Relation) {
        self.relations.insert((unit, token), relation);
    }

    /// Forgets a relation of a unit.
    pub fn forget(&mut self, unit: Key, token: Token) -> Option<Relation> {
        self.relations.remove(&(unit, token))
    }

    /// Notes why a unit has ended.
    pub fn note_failed(&mut self, unit: Key, reason: &Reason) {
        if self.failed.len() == MAX_REMEMBERED_FAILURES {
            self.failed.pop_front();
        }
        self.failed.push_back((unit, reason.clone()));
    }

    /// Why a unit has ended that is no more, if that is still known.
    pub fn reason_of(&self, unit: Key) -> Reason {
        let known = self.failed.iter().rfind(|(failed, _)| *failed == unit);
        known.map_or(Reason::Unknown, |(_, reason)| reason.clone())
    }

    /// Takes out all there are.
    pub fn take_all(&mut self) -> impl Iterator<Item = Relation> + use<> {
        std::mem::take(&mut self.relations).into_values()
    }

    /// Takes out those of a unit, in the order in which they were noted.
    pub fn take(&mut self, unit: Key) -> Vec<(Token, Relation)> {
        let all = (unit, Token(0))..=(unit, Token(u64::MAX));
        let tokens: Vec<Token> = self.relations.range(all).map(|(&(_, token), _)| token).collect();
        let taken = |token| self.relations.remove(&(unit, token)).map(|relation| (token, relation));
        tokens.into_iter().filter_map(taken).collect()
    }
}

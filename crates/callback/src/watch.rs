//! The monitors and links of one Worker's units.
//!
//! A relation between two units is recorded with both, under the same token, so that neither side
//! keeps a record of a relation that has ended.

use std::collections::{BTreeMap, VecDeque};

use crate::key::{Key, WorkerNumber};
use crate::message::Envelope;
use crate::reason::{Down, Reason};

/// Maximum number of most recent failures whose reasons are kept.
const MAX_REMEMBERED_FAILURES: usize = 256;

/// The identity of a relation, unique within its runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(u64);

/// A closure that creates the message to a monitoring unit about the end of the monitored one.
pub(crate) type ToEnvelope = Box<dyn FnOnce(Down) -> Envelope + Send>;

/// One side of a relation, as recorded with a unit.
pub(crate) enum Relation {
    /// Unit `by` is notified when this unit ends.
    Monitored { by: Key, to_envelope: ToEnvelope },
    /// This unit is notified when unit `whom` ends or, for a one-way link, cancelled when `whom`
    /// fails.
    Monitors { whom: Key },
    /// Unit `to` is cancelled when this unit fails. For a mutual link, `to` has the same relation.
    Linked { to: Key },
}

/// The relations of one Worker's units.
#[derive(Default)]
pub(crate) struct Watchers {
    /// All relations, in one tree: removing one of many is fast, and memory use is proportional to
    /// their number.
    relations: BTreeMap<(Key, Token), Relation>,
    tokens: u64,
    /// The units that failed most recently, with their reasons, oldest first, for monitors that are
    /// set later.
    failed: VecDeque<(Key, Reason)>,
}

impl Watchers {
    /// Returns a token that no other relation of the runtime has. `worker_number` is that of this
    /// Worker.
    pub fn token(&mut self, worker_number: WorkerNumber) -> Token {
        self.tokens += 1;
        Token(self.tokens << 8 | u64::from(worker_number.index()))
    }

    /// Records one side of a relation with a unit. `token` is that of the relation.
    pub fn add(&mut self, unit: Key, token: Token, relation: Relation) {
        self.relations.insert((unit, token), relation);
    }

    /// Removes and returns this unit's side of a relation, or `None` if it is not recorded.
    pub fn forget(&mut self, unit: Key, token: Token) -> Option<Relation> {
        self.relations.remove(&(unit, token))
    }

    /// Records the reason for which a unit has failed.
    pub fn record_failure(&mut self, unit: Key, reason: &Reason) {
        if self.failed.len() == MAX_REMEMBERED_FAILURES {
            self.failed.pop_front();
        }
        self.failed.push_back((unit, reason.clone()));
    }

    /// Returns the reason for which a unit has ended; [`Reason::Unknown`] if it is not among the
    /// most recent failures.
    pub fn reason_of(&self, unit: Key) -> Reason {
        let known = self.failed.iter().rfind(|(failed, _)| *failed == unit);
        known.map_or(Reason::Unknown, |(_, reason)| reason.clone())
    }

    /// Removes and returns the relations of all units.
    pub fn take_all(&mut self) -> impl Iterator<Item = Relation> + use<> {
        std::mem::take(&mut self.relations).into_values()
    }

    /// Removes and returns the relations of a unit, in the order of their tokens.
    pub fn take(&mut self, unit: Key) -> Vec<(Token, Relation)> {
        let all = (unit, Token(0))..=(unit, Token(u64::MAX));
        let tokens: Vec<Token> = self.relations.range(all).map(|(&(_, token), _)| token).collect();
        let taken = |token| self.relations.remove(&(unit, token)).map(|relation| (token, relation));
        tokens.into_iter().filter_map(taken).collect()
    }
}

//! Monitors and links between units: registers them, and notifies the other side when a unit ends.

use super::Core;
use crate::control::control;
use crate::key::{Id, Key};
use crate::message::Envelope;
use crate::panics::drop_quietly;
use crate::reason::{Down, Reason};
use crate::watch::{Relation, Token};

impl Core {
    /// Records a relation with `unit`. If the unit has ended, removes the relation again and
    /// notifies the other side at once.
    pub fn relate(&mut self, unit: Key, token: Token, relation: Relation) {
        self.watchers.add(unit, token, relation);
        if let Some(place) = self.slab.find(unit) {
            place.page().header_mut().watched = true;
            return;
        }
        let reason = self.watchers.reason_of(unit);
        self.notify_related(unit, &reason);
    }

    /// Removes a relation of a unit, if it is recorded, without notifying the other side.
    pub fn forget(&mut self, unit: Key, token: Token) {
        let forgotten = self.watchers.forget(unit, token);
        self.counts.panics += drop_quietly(|| drop(forgotten));
    }

    /// Removes all relations of the ended unit `key`, and notifies their other sides.
    pub(super) fn notify_related(&mut self, key: Key, reason: &Reason) {
        for (token, relation) in self.watchers.take(key) {
            self.post(notice(Id(key), reason, token, relation));
        }
    }
}

/// Returns the envelope that notifies the other side of a relation that unit `id` has ended with
/// `reason`. The other side then removes its record of the relation.
fn notice(id: Id, reason: &Reason, token: Token, relation: Relation) -> Envelope {
    match relation {
        Relation::Monitored { by, to_envelope } => {
            let down = Down { id, reason: reason.clone() };
            control(by.worker_number(), move |core| {
                core.forget(by, token);
                core.accept(to_envelope(down));
            })
        }
        Relation::Monitors { whom } => {
            control(whom.worker_number(), move |core| core.forget(whom, token))
        }
        Relation::Linked { to } => {
            let failed = !reason.is_done();
            control(to.worker_number(), move |core| {
                core.forget(to, token);
                if failed {
                    core.cancel(to, &Reason::Linked(id));
                }
            })
        }
    }
}

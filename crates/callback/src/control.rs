//! Actions on a core, sent by another Worker or another thread.
//!
//! Only this module knows that an action is a closure that takes a core. `message.rs` carries it as
//! a value of any type, so that neither envelopes nor the queues that carry them import the core.
//! See `core.rs` on imports.

use crate::core::Core;
use crate::key::WorkerNumber;
use crate::message::Envelope;

/// An action on a core, which any thread can send.
type Control = Box<dyn FnOnce(&mut Core) + Send>;

/// Creates an envelope that runs `action` on the core of the Worker `worker_number`.
pub(crate) fn control(
    worker_number: WorkerNumber,
    action: impl FnOnce(&mut Core) + Send + 'static,
) -> Envelope {
    let action: Control = Box::new(action);
    Envelope::control(worker_number, action)
}

/// Runs the action of a control envelope on `core`.
///
/// # Panics
/// Panics if the envelope was not created by [`control`], or if the action panics.
pub(crate) fn run(envelope: Envelope, core: &mut Core) {
    envelope.into_action::<Control>()(core);
}

//! Actions on a core that another Worker or another thread sends.
//!
//! Only this module knows that an action is a closure over a core. `message.rs` carries it as a value of some type,
//! so that neither envelopes nor the queues that pass them on import the core. See `core.rs` on imports.

use crate::core::Core;
use crate::key::Home;
use crate::message::Envelope;

/// An action on a core, from any thread.
type Control = Box<dyn FnOnce(&mut Core) + Send>;

/// Creates an envelope that runs an action on the core of a Worker.
pub(crate) fn control(home: Home, action: impl FnOnce(&mut Core) + Send + 'static) -> Envelope {
    let action: Control = Box::new(action);
    Envelope::control(home, action)
}

/// Runs the action of such an envelope.
///
/// # Panics
/// Panics if the envelope was not created by [`control`].
pub(crate) fn run(envelope: Envelope, core: &mut Core) {
    envelope.into_action::<Control>()(core);
}

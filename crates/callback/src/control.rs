//! Actions on a core that another Worker or another thread sends.
//!
//! This is the only part of an envelope that knows the core. `message.rs` carries an action as a value of some type,
//! so that neither it nor what passes envelopes on imports the core.

use crate::core::Core;
use crate::key::Home;
use crate::message::Envelope;

/// An action on a core, from anywhere.
type Control = Box<dyn FnOnce(&mut Core) + Send>;

/// An envelope that has the core of a Worker run an action.
pub(crate) fn control(home: Home, action: impl FnOnce(&mut Core) + Send + 'static) -> Envelope {
    let action: Control = Box::new(action);
    Envelope::control(home, action)
}

/// Runs the action of such an envelope.
///
/// # Panics
/// Panics if [`control`] has not made the envelope.
pub(crate) fn run(envelope: Envelope, core: &mut Core) {
    envelope.into_action::<Control>()(core);
}

//! What a change would bring, before it is made.
//!
//! [`model`] turns the stages' service times into the pipeline's wall time. Those of changed
//! stages come from a [`pilot`], which runs them alone on a small part of their own input, or
//! from the original's service times and what pipes and starting cost here ([`calibration`]).
//! [`what_if`] answers questions from the model alone.

pub mod advise;
pub mod calibration;
pub mod model;
pub mod pilot;
pub mod what_if;

//! Predicts the gain of a change.
//!
//! [`model`] computes the pipeline's wall time from its stages' service times. The service times of
//! changed stages come from a [`pilot`], which runs them alone on a sample of their own input, or
//! from the original's service times and the costs of pipes and program starts on this machine
//! ([`calibration`]). `advise` turns both into candidates, and [`what_if`] answers hypothetical
//! questions with the model alone.

pub mod advise;
pub mod calibration;
pub mod model;
pub mod pilot;
pub mod what_if;

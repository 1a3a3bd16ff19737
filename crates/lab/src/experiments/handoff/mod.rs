//! Family `handoff`: two partners hand a turn to each other.

pub mod mechanisms;
mod partners;
pub mod presets;
mod ways;
mod work;

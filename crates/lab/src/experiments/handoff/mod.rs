//! Family `handoff`: two partners hand a turn to each other.

mod load;
pub mod mechanisms;
pub mod partners;
mod preset;
pub mod presets;
mod settings;
mod turns;
mod ways;

//! Family `handoff`: two partners hand a turn to each other.

mod load_meter;
pub mod mechanisms;
pub mod partners;
mod preset;
pub mod presets;
mod primitives;
mod settings;
mod turn_taking;

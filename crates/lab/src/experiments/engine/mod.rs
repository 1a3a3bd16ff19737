//! Family `engine`: the accuracy of the lab, and elementary costs as a reference for other
//! experiments.

pub mod cache_line;
pub mod clock;
pub mod empty;
pub mod futex;
pub mod handed_copy;
mod ping_pong;

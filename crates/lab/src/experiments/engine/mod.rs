//! Family `engine`: the accuracy of the lab, and the elementary costs that other figures are
//! compared with.

pub mod cache_line;
pub mod clock;
pub mod empty;
pub mod futex;
pub mod handed_copy;
mod ping_pong;

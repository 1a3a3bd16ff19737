//! Family `engine`: how well the lab itself measures.

pub mod cache_line;
pub mod clock;
pub mod empty;
pub mod futex;
pub mod handed_copy;
mod ping_pong;

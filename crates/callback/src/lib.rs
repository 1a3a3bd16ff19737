//! Units of concurrency without a stack.

#![allow(unsafe_code)] // closures of all types stand in pages; every block says why it is sound

mod blocking;
mod clock;
mod code;
mod context;
mod core;
mod door;
mod inbox;
mod io;
mod key;
mod message;
mod parker;
mod queue;
mod reason;
mod receptor;
mod reply;
mod slab;
mod supervisor;
mod sync;
mod watch;
mod watchdog;
mod worker;

pub use context::{Context, Monitor, Next, Nothing, SendError, SpawnError};
pub use core::Counts;
pub use io::{Interest, Source};
pub use key::{Address, Id};
pub use reason::{Down, Reason};
pub use receptor::{Builder, Handle, Receptor};
pub use reply::{NoReply, Promise, Reply};
pub use supervisor::{Restart, Strategy, Supervisor};
pub use watchdog::Slow;

//! What contend asks of the kernel, and all of its unsafe code.
//!
//! Each module wraps one facility and nothing else: no policy, no printing, no
//! knowledge of pipelines. What a figure means is decided by the callers.

#![allow(unsafe_code)] // the one crate in which it is allowed; every block says why it is sound

pub mod allocation;
pub mod cgroup;
pub mod child;
pub mod condition;
pub mod cpu;
pub mod dispositions;
pub mod environment;
pub mod inherited;
pub mod interrupt;
mod kept;
pub mod lease;
pub mod load;
pub mod locale;
pub mod mapping;
mod mask;
pub mod memory;
pub mod pages;
pub mod pipe;
pub mod process;
pub mod procfs;
pub mod program;
pub mod queue;
pub mod remote;
pub mod reserve;
pub mod ring;
pub mod semaphore;
pub mod shared;
pub mod signal;
pub mod spawn;
pub mod splice;
pub mod stdio;
pub mod syscall;
pub mod thread;
pub mod topology;
pub mod trace;
#[cfg(feature = "uring")]
pub mod uring;

pub use rustix::process::{Pid, Signal};

//! Safe wrappers around the Linux facilities that contend needs: signals, waiting, tracing,
//! `/proc`, pipes, shared memory and scheduling.
//!
//! Each module wraps one facility and nothing else: no policy, no printing, no knowledge of
//! pipelines. Interpreting the measurements is up to the callers.
//!
//! | modules | facility |
//! |---|---|
//! | [`signal`], [`interrupt`], `mask` | signal masks, signalfd, the signals that end contend |
//! | [`dispositions`], [`inherited`] | signal state and descriptors inherited across execve(2) |
//! | [`spawn`], [`process`], [`thread`] | creating processes and threads |
//! | [`child`], [`trace`] | waiting for children, and stopping them with ptrace(2) as they exit |
//! | [`procfs`], [`syscall`], [`pipe`], [`memory`], [`descriptor`], [`perf`], [`waking`] | observing other processes |
//! | [`cpu`], [`load`], [`topology`], [`cgroup`] | CPUs, their load, quotas and limits |
//! | [`mapping`], [`pages`], [`reserve`], [`shared`], [`allocation`] | memory |
//! | [`ring`], [`queue`], [`remote`], [`splice`], `uring` | moving data between processes |
//! | [`semaphore`], [`condition`], [`lease`], `sysv_guard` | synchronising processes |
//! | [`environment`], [`locale`], [`program`], [`stdio`] | the C library and program files |

#![allow(unsafe_code)] // only here and in the crate `callback`; every block says why it is sound

pub mod allocation;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod condition;
pub mod cpu;
pub mod descriptor;
pub mod dispositions;
pub mod environment;
pub mod inherited;
pub mod interrupt;
pub mod lease;
pub mod load;
pub mod locale;
pub mod mapping;
mod mask;
pub mod memory;
pub mod pages;
pub mod perf;
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
mod sysv_guard;
pub mod thread;
pub mod topology;
pub mod trace;
#[cfg(feature = "uring")]
pub mod uring;
pub mod waking;

pub use rustix::process::{Pid, Signal};

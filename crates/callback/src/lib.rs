//! Callback threads: units of concurrency without a stack.
//!
//! A *callback thread* is what runs next, and nothing else: a closure that waits for a time, a message, a
//! descriptor or the end of some work. When that comes, a *Worker* runs the closure to its end, and what it
//! returns says what the callback thread waits for then. While it waits there is no stack, no task and no
//! allocation: a closure of 8 bytes that waits takes 18.3 bytes, and a machine with 24 GiB holds a
//! thousand million of them. (That is one that was [spawned to wait at once](Context::spawn_after); one that
//! has run before takes 20 to 31 bytes, as it shares its page with others than its like.)
//!
//! # In ten minutes
//!
//! The *Receptor* accepts callback threads from anywhere and hands them to its Workers, of which there is one for
//! each CPU. A callback gets a [`Context`] and returns a [`Next`]:
//!
//! ```
//! use std::time::Duration;
//! use contend_callback::Receptor;
//!
//! let receptor = Receptor::start()?;
//! for n in 0..10_000 {
//!     receptor.spawn(move |context| {
//!         // This does not block: it says what happens next, and returns.
//!         context.after(Duration::from_millis(20), move |context| {
//!             assert!(n < 10_000);
//!             context.end()
//!         })
//!     })?;
//! }
//! receptor.wait(); // all 10,000 have waited at the same time
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Messages
//!
//! One that receives messages has an [`Address`], which says of which type they are. Its handler is
//! called for each; it stays with `keep_receiving`, or is replaced by another one:
//!
//! ```
//! use contend_callback::{Context, Receptor};
//!
//! enum Order {
//!     Add(u64),
//!     Tell(contend_callback::Reply<u64>),
//! }
//!
//! let receptor = Receptor::start()?;
//! let counter = receptor.spawn_receiving(|context: &mut Context<'_, Order>| {
//!     let mut sum = 0;
//!     context.receive(move |context, order| match order {
//!         Order::Add(n) => {
//!             sum += n;
//!             context.keep_receiving()
//!         }
//!         Order::Tell(reply) => {
//!             reply.send(sum);
//!             context.end()
//!         }
//!     })
//! })?;
//! for n in 1..=10 {
//!     receptor.send(counter, Order::Add(n)).map_err(|error| error.to_string())?;
//! }
//! let sum = receptor.spawn_reply(move |context, reply| {
//!     let told = context.send(counter, Order::Tell(reply));
//!     if told.is_ok() { context.end() } else { context.fail("the counter has ended") }
//! })?;
//! assert_eq!(sum.wait()?, 55);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Messages that one sender sends one receiver in the same way arrive in order. What comes while a callback thread does not receive
//! (it waits for a time, say) is kept for it. An address of one that has ended is an error, never
//! somebody else's: places are used again, with another generation.
//!
//! [`receive_within`](Context::receive_within) gives up after a time;
//! [`receive_once`](Context::receive_once) lets a handler hand on what it owns.
//!
//! ## Ends
//!
//! A callback thread ends when it says so, when somebody [cancels](Context::cancel) it, or when its callback
//! [fails](Context::fail) or panics. A panic ends that one alone; its Worker goes on. Others can
//! [monitor](Context::monitor) it, which gives them a message of their own type, be
//! [linked](Context::link) to it, or start it again as a [`Supervisor`]:
//!
//! ```
//! use contend_callback::{Context, Down, Reason, Receptor};
//!
//! let receptor = Receptor::start()?;
//! let reason = receptor.spawn_reply(|context, reply| {
//!     let watcher = context.spawn_receiving(|context: &mut Context<'_, Down>| {
//!         if let Ok(id) = context.spawn(|context| context.fail("out of luck")) {
//!             context.monitor(id, |down| down);
//!         }
//!         context.receive_once(move |context, down| {
//!             reply.send(down.reason);
//!             context.end()
//!         })
//!     });
//!     if watcher.is_ok() { context.end() } else { context.fail("no room") }
//! })?;
//! assert_eq!(reason.wait()?, Reason::Failed("out of luck".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Panics are caught where they unwind. A program built with `panic = "abort"` ends with the first one.
//!
//! ## What must not be done in a callback
//!
//! A Worker runs one callback at a time, so one that blocks or computes for long holds up all others
//! there. What blocks goes to threads of its own by [`Context::blocking`];
//! [`Builder::warn_after`] tells of those that should have. Sockets and pipes are waited for by
//! [`Context::when_ready`].
//!
//! A [`Handle`] or [`Promise`] never waits on a Worker's thread, of whichever runtime, since the Worker could be waiting
//! for itself, or for another one that waits for it. Where there is no room, [`Handle::send`] and
//! [`Handle::spawn`] return an error there as `try_send` and `try_spawn` do; [`Handle::wait`] and [`Promise::wait`] panic.
//!
//! ## Too much
//!
//! An inbox has a bound: [`Handle::try_send`] and [`Handle::try_spawn`] say that it is full, [`Handle::send`] and
//! [`Handle::spawn`] wait for room. In a callback, where nobody may wait, [`Context::send`] says that too much
//! is on its way to another Worker, and [`Context::when_room`] goes on when it has arrived. On the
//! same Worker what is sent is handled before anything is asked for again; it is bounded by what callbacks send.
//!
//! What must neither wait nor get lost has two ways. [`Notify`] wakes a callback thread and carries no data:
//! notifications that nobody has waited for yet are one, so that it needs no room. [`Handle::send_unbounded`] sends a
//! message past the bound, and leaves it to its caller how many there are.
//!
//! # Guarantees
//!
//! - A callback thread runs on the Worker that it was spawned on, one callback at a time, and nothing of it is
//!   touched by another thread.
//! - Timers never fire early. Those of one Worker fire in the order of their ticks of 16.4 µs, and within a tick in the
//!   order in which they were asked for (as far as 262,144 are due at once, and less than 4.8 hours ahead;
//!   those that are further away take some 20 bytes more).
//! - Each closure and each message is dropped once: when it has run, when its callback thread ends, or
//!   when the [`Receptor`] is dropped.
//! - Memory follows use: pages of 4 KiB are given back when nobody lives on them, and new callback threads come to the
//!   fullest pages. (Monitors, links, large closures and messages are the allocator's, which may keep
//!   what was freed.)

#![allow(unsafe_code)] // closures of all types stand in pages; every block says why it is sound

mod blocking;
mod builder;
mod clock;
mod context;
mod control;
mod core;
mod counts;
mod error;
mod handle;
mod handler;
mod inbox;
mod io;
mod key;
mod lease;
mod message;
mod next;
mod notify;
mod panics;
mod parker;
mod queue;
mod reason;
mod receptor;
mod remote;
mod reply;
mod shared;
mod slab;
mod supervisor;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod watch;
mod watchdog;
mod worker;
mod worker_thread;

pub use builder::Builder;
pub use context::{Context, Monitor};
pub use counts::Counts;
pub use error::{SendError, SpawnError};
pub use handle::Handle;
pub use io::{Interest, Source};
pub use key::{Address, Id};
pub use next::{Never, Next};
pub use notify::Notify;
pub use reason::{Down, Reason};
pub use receptor::Receptor;
pub use reply::{NoReply, Promise, Reply};
pub use supervisor::{Restart, Strategy, Supervisor};
pub use watchdog::Slow;

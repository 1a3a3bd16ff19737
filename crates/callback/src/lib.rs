//! Callback threads: units of concurrency without a stack.
//!
//! A *callback thread* is a closure that waits for an event (such as a time, a message, a ready
//! file descriptor or the end of blocking work), together with a description of that wait. When the
//! event arrives, a *Worker* (an OS thread) runs the closure to completion, and its return value is
//! the next wait, or the end. A waiting callback thread has no stack, no task and, unless its
//! closure is large, no allocation of its own: one with a closure of 8 bytes takes 18.3 bytes, so a
//! machine with 24 GiB holds a billion of them. (This size is for one that was [spawned
//! waiting](Context::spawn_after). One that has already run takes 20 to 31 bytes, because its page
//! then records the type of each closure, and its slot may be larger than the closure.)
//!
//! # Tutorial
//!
//! The [`Receptor`] is the runtime. It accepts callback threads from any thread and distributes
//! them over its Workers, by default one for each CPU. A callback gets a [`Context`] and returns a
//! [`Next`]:
//!
//! ```
//! use std::time::Duration;
//! use contend_callback::Receptor;
//!
//! let receptor = Receptor::start()?;
//! for n in 0..10_000 {
//!     receptor.spawn(move |context| {
//!         // This does not block: it plans what runs next, and returns.
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
//! A callback thread that receives messages has an [`Address`], whose type parameter is the type of
//! its messages. Its handler is called for each message. The handler returns
//! [`keep_receiving`](Context::keep_receiving) to stay, or plans another handler:
//!
//! ```
//! use contend_callback::{Context, Receptor};
//!
//! enum Order {
//!     Add(u64),
//!     Report(contend_callback::Reply<u64>),
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
//!         Order::Report(reply) => {
//!             reply.send(sum);
//!             context.end()
//!         }
//!     })
//! })?;
//! for n in 1..=10 {
//!     receptor.send(counter, Order::Add(n)).map_err(|error| error.to_string())?;
//! }
//! let sum = receptor.spawn_reply(move |context, reply| {
//!     let sent = context.send(counter, Order::Report(reply));
//!     if sent.is_ok() { context.end() } else { context.fail("the counter has ended") }
//! })?;
//! assert_eq!(sum.wait()?, 55);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Messages from one sender to one receiver, sent by the same method, arrive in order. Messages
//! that arrive while a callback thread is not receiving (because it waits for a time, for example)
//! are stashed until it is, up to a [maximum number](Builder::stash_capacity). A message to a
//! callback thread that has ended is an error, or is counted as undeliverable. It never reaches
//! another one: a slot is reused under a new generation.
//!
//! [`receive_within`](Context::receive_within) adds a timeout.
//! [`receive_once`](Context::receive_once) takes an `FnOnce`, which can move its captured values
//! into the next callback.
//!
//! ## Ends
//!
//! A callback thread ends when its callback returns [`end`](Context::end), when it is
//! [cancelled](Context::cancel), or when its callback [fails](Context::fail) or panics. A panic
//! ends the callback thread, but not its Worker. Other callback threads can
//! [monitor](Context::monitor) it, which sends them a message of their own type when it ends, be
//! [linked](Context::link) to it, which ends them, too, when it fails, or, as a [`Supervisor`],
//! restart it:
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
//! Panics are caught only if they unwind: a program built with `panic = "abort"` ends with the
//! first one.
//!
//! ## Callbacks must not block
//!
//! A Worker runs one callback at a time, so a callback that blocks or computes for a long time
//! delays all others on that Worker. Use [`Context::blocking`] to run blocking work on a separate
//! thread, and [`Context::when_ready`] to wait for sockets and pipes. [`Builder::warn_after`]
//! reports callbacks that take too long.
//!
//! Methods of [`Handle`] and [`Promise`] never wait on a Worker's thread, whichever runtime the
//! Worker belongs to, because they might wait for that very Worker. Called in a callback,
//! [`Handle::send`] and [`Handle::spawn`] return an error if there is no room, as `try_send` and
//! `try_spawn` do, [`Handle::wait`] panics, and so does [`Promise::wait`] unless the answer has
//! arrived.
//!
//! ## Back-pressure
//!
//! Inboxes are bounded by default. If one is full, [`Handle::try_send`] and [`Handle::try_spawn`]
//! return an error, and [`Handle::send`] and [`Handle::spawn`] block until there is room. A
//! callback must not block: there [`Context::send`] returns an error if too many messages to
//! another Worker are pending, and [`Context::when_room`] waits until the other Workers' inboxes
//! have accepted them. Messages within one Worker go to an unbounded queue, ahead of anything that
//! the Worker accepts later; only the callbacks themselves limit its length.
//!
//! Two ways to wake a callback thread neither block nor fail for lack of room. [`Notify`] wakes it
//! without data; pending notifications are merged into one, so they need no room.
//! [`Handle::send_unbounded`] sends a message even if the inbox is full; the caller has to limit
//! the number of such messages.
//!
//! # Guarantees
//!
//! - A callback thread always runs on the Worker that it was spawned on, one callback at a time; no
//!   other thread touches its state.
//! - Timers never fire early. Timers of one Worker fire in the order of their ticks (16.4 µs), and
//!   within a tick in the order in which they were set. This order holds as long as at most 262,144
//!   are due at once and all are less than 4.8 hours ahead. Longer timers take about 20 bytes more.
//! - Each closure and each message is dropped exactly once, at the latest when the runtime shuts
//!   down.
//! - Memory is returned to the kernel in pages of 4 KiB once they are empty, except for a few that
//!   a Worker keeps for reuse until it is idle. New callback threads go to the fullest pages.
//!   (Monitors, links, large closures and large messages come from the allocator, which may keep
//!   freed memory.)

#![allow(unsafe_code)] // pages hold closures of any type; each block states why it is sound

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

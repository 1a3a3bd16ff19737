//! Hand-offs with a signal that the waiter receives synchronously.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use contend_sys::shared::{Line, Shared};
use contend_sys::signal::Wake;
use rustix::thread::gettid;

use super::{Mechanism, SyncPrimitive, WaitOutcome};
use crate::engine::experiment::ErrorContext;

/// The `signal` mechanism. Real-time signals are queued, so none is lost.
pub const MECHANISM: Mechanism = Mechanism {
    name: "signal",
    summary: "real-time signal, received with sigwaitinfo",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        let wake = Wake::block().context("block a signal")?;
        wake.drain(); // signals of an earlier session
        let waiter = Shared::new([const { Line(AtomicU32::new(0)) }; 2]);
        Ok(Box::new(Signal { wake, waiter: waiter.context("map shared memory")? }))
    },
};

struct Signal {
    wake: Wake,
    /// Process id and thread id of the waiter; 0 until it has registered.
    waiter: Shared<[Line<AtomicU32>; 2]>,
}

impl SyncPrimitive for Signal {
    fn register_waiter(&self) -> io::Result<()> {
        let number = |pid: rustix::process::Pid| pid.as_raw_nonzero().get().cast_unsigned();
        self.waiter[0].store(number(rustix::process::getpid()), Ordering::Relaxed);
        self.waiter[1].store(number(gettid()), Ordering::Release);
        Ok(())
    }

    fn post(&self) -> io::Result<()> {
        let thread = loop {
            match self.waiter[1].load(Ordering::Acquire) {
                0 => std::thread::yield_now(), // the waiter has not registered yet
                thread => break thread,
            }
        };
        self.wake.send(self.waiter[0].load(Ordering::Relaxed), thread)
    }

    fn wait(&self) -> io::Result<WaitOutcome> {
        self.wake.wait().map(|()| WaitOutcome::default())
    }
}

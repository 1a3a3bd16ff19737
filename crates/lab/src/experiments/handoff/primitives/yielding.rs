//! Hand-offs by polling, with `sched_yield` between two polls.

use super::Mechanism;
use super::polling::polling;

/// The `yield` mechanism. The waiter yields to other tasks on its CPU, but never lets the CPU
/// become idle.
pub const MECHANISM: Mechanism = Mechanism {
    name: "yield",
    summary: "poll, with sched_yield in between",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        polling(|| {
            rustix::thread::sched_yield();
            Ok(())
        })
    },
};

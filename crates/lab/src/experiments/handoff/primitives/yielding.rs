//! Looking, and letting others run in between.

use super::Mechanism;
use super::polling::polling;

/// It looks idle to no scheduler, and waits for others on the same CPU alone.
pub const MECHANISM: Mechanism = Mechanism {
    name: "yield",
    summary: "looking, with sched_yield in between",
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

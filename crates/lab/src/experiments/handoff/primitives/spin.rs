//! Hand-offs by polling without a pause.

use super::Mechanism;
use super::polling::polling;

/// The `spin` mechanism: the fastest between two CPUs, and the slowest on one.
pub const MECHANISM: Mechanism = Mechanism {
    name: "spin",
    summary: "poll without a pause (spin)",
    waits: true,
    sleeps: false,
    counts: true,
    make: |_| {
        polling(|| {
            std::hint::spin_loop();
            Ok(())
        })
    },
};

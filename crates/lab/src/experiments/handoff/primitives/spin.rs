//! Looking without a pause.

use super::Mechanism;
use super::polling::polling;

/// The quickest there is between two CPUs, and the worst on one.
pub const MECHANISM: Mechanism = Mechanism {
    name: "spin",
    summary: "looking again and again, without a pause",
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

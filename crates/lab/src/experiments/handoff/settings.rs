//! Parameters of the experiments with two partners that alternate turns.

use std::time::Duration;

use contend_record::parameters::{Parameters, names};

use super::primitives;
use crate::engine::setting::Setting;

/// Length of each sleep in mechanisms that sleep, in microseconds.
pub const PERIOD: Setting = Setting::number(
    "period_us",
    "microseconds that `sleep`, `timer` and `pause` sleep each time [default: 1000]",
    1,
    1_000_000,
);

/// Simulated clock tick in microseconds; 0 disables the simulation.
pub const TICK: Setting = Setting::number(
    names::TICK_US,
    "simulated clock tick in microseconds: sleeps end at a multiple of it; 0 disables it [default: \
     0, 1000, 10000, 15625]",
    0,
    1_000_000,
);

/// CPU time of the work in a turn, before multiplication by `FACTOR`, in microseconds.
pub const WORK: Setting = Setting::number(
    "work_us",
    "CPU time of the work in a turn, in microseconds [default: 37]",
    0,
    10_000_000,
);

/// Factor by which the work of a turn is multiplied.
pub const FACTOR: Setting = Setting::number(
    "factor",
    "factor on the work of a turn [default: 100 in experiments whose name ends with +, otherwise \
     1]",
    1,
    100_000,
);

/// Number of turns in a sample.
pub const TURNS: Setting = Setting::number(
    names::TURNS,
    "turns of a sample; its time is scaled to 10,000 turns [default: 10000, fewer if a turn takes \
     long]",
    1,
    100_000_000,
);

/// Mechanism of the hand-offs in both directions. Mechanisms that do not wait are not allowed.
pub const MECHANISM: Setting = Setting::named(
    names::MECHANISM,
    "mechanism by which partners notify each other",
    primitives::waiting_names,
);
/// Mechanism by which sub announces that it has started.
pub const START: Setting = Setting::named(
    "start",
    "mechanism by which sub notifies main that it has started",
    primitives::names,
);
/// Mechanism by which main hands the turn to sub.
pub const TO_SUB: Setting =
    Setting::named("to_sub", "mechanism by which main hands the turn to sub", primitives::names);
/// Mechanism by which sub hands the turn to main.
pub const TO_MAIN: Setting =
    Setting::named("to_main", "mechanism by which sub hands the turn to main", primitives::names);
/// Mechanism by which sub announces that it has finished all turns.
pub const END: Setting = Setting::named(
    "end",
    "mechanism by which sub notifies main that it has finished all turns",
    primitives::names,
);

/// Returns the duration given by a parameter in microseconds, or `default` if the parameter is not
/// set.
pub fn microseconds(parameters: &Parameters, setting: &Setting, default: Duration) -> Duration {
    parameters.number(setting.name).map_or(default, Duration::from_micros)
}

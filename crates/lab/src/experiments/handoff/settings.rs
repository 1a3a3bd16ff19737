//! What can be chosen of two partners that hand a turn to each other.

use std::time::Duration;

use contend_record::parameters::{Parameters, names};

use super::primitives;
use crate::engine::setting::Setting;

/// How long one that polls sleeps.
pub const PERIOD: Setting = Setting::number(
    "period_us",
    "for how many microseconds `sleep`, `timer` and `pause` sleep at a time; 1,000 by itself",
    1,
    1_000_000,
);

/// The end of sleeps.
pub const TICK: Setting = Setting::number(
    names::TICK_US,
    "sleeps end at a multiple of so many microseconds, as where a clock ticks; 0 for where \
              none does",
    0,
    1_000_000,
);

/// The work of a turn.
pub const WORK: Setting = Setting::number(
    "work_us",
    "CPU time of what is computed in a turn, in microseconds; 37 by itself",
    0,
    10_000_000,
);

/// How much more of it.
pub const FACTOR: Setting = Setting::number(
    "factor",
    "how many times that work; 100 in those whose name ends with `+`, else 1",
    1,
    100_000,
);

/// How many turns are taken.
pub const TURNS: Setting = Setting::number(
    names::TURNS,
    "turns of a sample, whose time is scaled to 10,000; fewer by themselves the longer they \
              last",
    1,
    100_000_000,
);

/// The mechanism of both.
pub const MECHANISM: Setting = Setting::named(
    names::MECHANISM,
    "the mechanism by which both tell each other",
    primitives::waiting,
);
/// That of sub's beginning.
pub const START: Setting = Setting::named(
    "start",
    "the mechanism by which sub tells main that it has begun",
    primitives::names,
);
/// That of main.
pub const TO_SUB: Setting = Setting::named(
    "to_sub",
    "the mechanism by which main tells sub that it is its turn",
    primitives::names,
);
/// That of sub.
pub const TO_MAIN: Setting = Setting::named(
    "to_main",
    "the mechanism by which sub tells main that it is its turn",
    primitives::names,
);
/// That of sub's end.
pub const END: Setting = Setting::named(
    "end",
    "the mechanism by which sub tells main that it has done all turns",
    primitives::names,
);

/// What the parameters say of a time in microseconds, or this.
pub fn microseconds(parameters: &Parameters, setting: &Setting, usual: Duration) -> Duration {
    parameters.number(setting.name).map_or(usual, Duration::from_micros)
}

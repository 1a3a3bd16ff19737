//! What can be chosen of two partners that hand a turn to each other.

use std::time::Duration;

use contend_record::parameters::Parameters;

use super::partners::Kind;
use super::placement::Placement;
use super::ways;
use crate::setting::{Setting, name, number};

/// What the partners are.
pub const PARTNERS: Setting = Setting {
    name: "partners",
    summary: "two processes (`process`, by itself) or two threads of one (`thread`)",
    parse: |text| name(text, &["process", "thread"]),
    example: "thread",
};

/// Where they run.
pub const PLACEMENT: Setting = Setting {
    name: "placement",
    summary: "where the partners run: `free`, `same-cpu`, `two-cpus`, `two-awake`, `smt-sibling` or \
              `other-cache`",
    parse: |text| name(text, &Placement::names()),
    example: "same-cpu",
};

/// How late the kernel may end a sleep.
pub const SLACK: Setting = Setting {
    name: "slack_ns",
    summary: "by how many nanoseconds the kernel may end a sleep later than asked for, to end several \
              together (PR_SET_TIMERSLACK); 50,000 by itself",
    parse: |text| number(text, &(1..=1_000_000_000)),
    example: "1",
};

/// How long one that polls sleeps.
pub const PERIOD: Setting = Setting {
    name: "period_us",
    summary: "for how many microseconds `sleep`, `timer` and `pause` sleep at a time; 1,000 by itself",
    parse: |text| number(text, &(1..=1_000_000)),
    example: "100",
};

/// The end of sleeps.
pub const TICK: Setting = Setting {
    name: "tick_us",
    summary: "sleeps end at a multiple of so many microseconds, as where a clock ticks; 0 for where \
              none does",
    parse: |text| number(text, &(0..=1_000_000)),
    example: "10000",
};

/// The work of a turn.
pub const WORK: Setting = Setting {
    name: "work_us",
    summary: "CPU time of what is computed in a turn, in microseconds; 37 by itself",
    parse: |text| number(text, &(0..=10_000_000)),
    example: "50",
};

/// How much more of it.
pub const FACTOR: Setting = Setting {
    name: "factor",
    summary: "how many times that work; 100 in those whose name ends with `+`, else 1",
    parse: |text| number(text, &(1..=100_000)),
    example: "2",
};

/// How many turns are taken.
pub const TURNS: Setting = Setting {
    name: "turns",
    summary: "turns of a sample, whose time is scaled to 10,000; fewer by themselves the longer they \
              last",
    parse: |text| number(text, &(1..=100_000_000)),
    example: "5",
};

macro_rules! mechanism {
    ($constant:ident, $name:literal, $names:expr, $summary:literal) => {
        #[doc = $summary]
        pub const $constant: Setting = Setting {
            name: $name,
            summary: $summary,
            parse: |text| name(text, &$names),
            example: "eventfd",
        };
    };
}
mechanism!(MECHANISM, "mechanism", ways::waiting(), "the mechanism by which both tell each other");
mechanism!(
    START,
    "start",
    ways::names(),
    "the mechanism by which sub tells main that it has begun"
);
mechanism!(
    TO_SUB,
    "to_sub",
    ways::names(),
    "the mechanism by which main tells sub that it is its turn"
);
mechanism!(
    TO_MAIN,
    "to_main",
    ways::names(),
    "the mechanism by which sub tells main that it is its turn"
);
mechanism!(
    END,
    "end",
    ways::names(),
    "the mechanism by which sub tells main that it has done all turns"
);

/// What the parameters say of the partners.
pub fn kind(parameters: &Parameters) -> Kind {
    match parameters.text(PARTNERS.name) {
        Some("thread") => Kind::Threads,
        _ => Kind::Processes,
    }
}

/// What they say of the place, or this.
pub fn placement(parameters: &Parameters, usual: Placement) -> Placement {
    parameters.text(PLACEMENT.name).and_then(Placement::find).unwrap_or(usual)
}

/// What they say of a time in microseconds, or this.
pub fn microseconds(parameters: &Parameters, setting: &Setting, usual: Duration) -> Duration {
    parameters.number(setting.name).map_or(usual, Duration::from_micros)
}

/// What they say of the slack of timers.
pub fn slack(parameters: &Parameters) -> Option<Duration> {
    parameters.number(SLACK.name).map(Duration::from_nanos)
}

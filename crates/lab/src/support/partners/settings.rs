//! What can be chosen of two that work together.

use std::time::Duration;

use contend_record::parameters::{Parameters, names};

use super::{Kind, Pair, Placement};
use crate::engine::setting::Setting;

/// What the partners are.
pub const PARTNERS: Setting = Setting::named(
    names::PARTNERS,
    "two processes (`process`, by itself) or two threads of one (`thread`)",
    || vec!["process", "thread"],
);

/// Where they run.
pub const PLACEMENT: Setting = Setting::named(
    names::PLACEMENT,
    "where the partners run: `free`, `same-cpu`, `two-cpus`, `two-awake`, `smt-sibling` or \
              `other-cache`",
    Placement::names,
);

/// How late the kernel may end a sleep.
pub const SLACK: Setting = Setting::number(
    "slack_ns",
    "by how many nanoseconds the kernel may end a sleep later than asked for, to end several \
              together (PR_SET_TIMERSLACK); 50,000 by itself",
    1,
    1_000_000_000,
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

/// What they say of the slack of timers.
pub fn slack(parameters: &Parameters) -> Option<Duration> {
    parameters.number(SLACK.name).map(Duration::from_nanos)
}

/// The pair that they say, at this place if they say none.
pub fn pair(parameters: &Parameters, usual: Placement) -> Pair {
    Pair {
        kind: kind(parameters),
        placement: placement(parameters, usual),
        slack: slack(parameters),
    }
}

//! Parameters of cases with partners, and their values in a case.

use std::time::Duration;

use contend_record::parameters::{Parameters, names};

use super::{Pair, PartnerKind, Placement};
use crate::engine::setting::Setting;

/// Parameter that chooses processes or threads as partners.
pub const PARTNERS: Setting = Setting::named(
    names::PARTNERS,
    "two processes (`process`) or two threads of one process (`thread`) [default: process]",
    || vec!["process", "thread"],
);

/// Parameter that chooses the CPUs of the partners.
pub const PLACEMENT: Setting = Setting::named(
    names::PLACEMENT,
    "CPUs of the partners: `free`, `same-cpu`, `two-cpus`, `two-awake`, `smt-sibling` or \
              `other-cache`",
    Placement::names,
);

/// Parameter that sets the timer slack of the partners, in nanoseconds.
pub const SLACK: Setting = Setting::number(
    "slack_ns",
    "timer slack in nanoseconds (PR_SET_TIMERSLACK): how much later than requested the kernel \
              may end a sleep, to end several together [default: 50000]",
    1,
    1_000_000_000,
);

/// Returns the kind of the partners in a case, processes by default.
pub fn kind(parameters: &Parameters) -> PartnerKind {
    match parameters.text(PARTNERS.name) {
        Some("thread") => PartnerKind::Threads,
        _ => PartnerKind::Processes,
    }
}

/// Returns the placement of the partners in a case, `default_placement` by default.
pub fn placement(parameters: &Parameters, default_placement: Placement) -> Placement {
    parameters.text(PLACEMENT.name).and_then(Placement::find).unwrap_or(default_placement)
}

/// Returns the timer slack of the partners in a case, or `None` for the kernel's default.
pub fn slack(parameters: &Parameters) -> Option<Duration> {
    parameters.number(SLACK.name).map(Duration::from_nanos)
}

/// Returns the configuration of the partners in a case, with the placement `default_placement` by
/// default.
pub fn pair(parameters: &Parameters, default_placement: Placement) -> Pair {
    Pair {
        kind: kind(parameters),
        placement: placement(parameters, default_placement),
        slack: slack(parameters),
    }
}

//! The verbs, one module each, the advice of `contend pipe`, and traces. A verb takes checked settings and
//! returns an `Exit`.

pub mod advice;
pub mod attach;
pub mod compare;
pub mod demo;
pub mod doctor;
pub mod generate;
pub mod history;
mod import;
pub mod json;
pub mod lab;
pub mod part;
pub mod pipe;
pub mod remedies;
pub mod report;
mod reports;
pub mod run;
pub mod serve;
mod trace;
pub mod versus;

use std::time::SystemTime;

/// Returns the current time as UTC (RFC 3339), to the second.
pub fn now() -> String {
    utc(SystemTime::now())
}

/// Returns a time as UTC (RFC 3339), to the second; the epoch if the time is out of range.
fn utc(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

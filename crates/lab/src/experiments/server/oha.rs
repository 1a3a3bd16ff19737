//! The load generator oha, if it is installed.
//!
//! It measures a server's throughput independently of contend's own generator. Of its JSON output
//! (`--output-format json`), this module uses: `summary.total`, wall time in seconds;
//! `statusCodeDistribution`, responses by status; and `errorDistribution`, failed requests by
//! reason. Requests that were in flight at the deadline do not count as failed.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use contend_sys::spawn;
use serde::Deserialize;

use super::client::Reuse;
use super::setup::Setup;
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::support::programs;

/// Name of the command that starts oha.
const NAME: &str = "oha";
/// Reason that oha gives for requests in flight at the deadline.
const ABORTED_REASON: &str = "aborted due to deadline";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    summary: Summary,
    status_code_distribution: BTreeMap<String, f64>,
    #[serde(default)]
    error_distribution: BTreeMap<String, f64>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    /// Wall time of the load in seconds.
    total: f64,
}

/// Throughput of a server, as oha has measured it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Number of requests answered with status 200.
    pub answered: f64,
    /// Requests answered with status 200, per second of wall time.
    pub per_second: f64,
    /// Number of requests that failed or were answered with another status, without those in flight
    /// at the deadline.
    pub errors: f64,
}

/// Returns whether oha is installed.
pub fn is_installed() -> bool {
    programs::find(NAME).is_some()
}

/// Has oha open the connections of `setup` to `port`, and send requests on all of them without
/// pauses, for `duration`.
///
/// # Errors
/// Returns an error if oha cannot be started, or its output cannot be read or parsed.
pub fn run_without_pauses(
    port: u16,
    setup: &Setup,
    duration: Duration,
) -> Result<Throughput, SubjectError> {
    let mut command = Command::new(NAME);
    command.args(["--no-tui", "--output-format", "json", "-c", &setup.connections.to_string()]);
    if setup.reuse == Reuse::PerRequest {
        command.arg("--disable-keepalive");
    }
    command.args(["-z", &format!("{}ms", duration.as_millis())]);
    command.arg(format!("http://127.0.0.1:{port}/"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = spawn::spawn_bound(&mut command).context("start oha")?;
    let output = child.wait_with_output().context("read the output of oha")?;
    parse(&output.stdout)
}

fn parse(text: &[u8]) -> Result<Throughput, SubjectError> {
    let report: Report = serde_json::from_slice(text)
        .map_err(|error| SubjectError::unexpected(format!("output of oha: {error}")))?;
    let answered = report.status_code_distribution.get("200").copied().unwrap_or(0.0);
    let others: f64 = report.status_code_distribution.values().sum::<f64>() - answered;
    let errors = report.error_distribution.iter().filter(|(reason, _)| *reason != ABORTED_REASON);
    let errors = errors.map(|(_, count)| count).sum::<f64>() + others;
    Ok(Throughput { answered, per_second: answered / report.summary.total.max(1e-9), errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_at_the_deadline_have_not_failed() {
        let text = br#"{"summary": {"successRate": 1.0, "total": 2.0},
            "latencyPercentiles": {"p50": 0.1},
            "statusCodeDistribution": {"200": 1000, "503": 3},
            "errorDistribution": {"aborted due to deadline": 50, "Connection refused": 4}}"#;
        let expected = Throughput { answered: 1000.0, per_second: 500.0, errors: 7.0 };
        assert_eq!(parse(text).expect("a complete report"), expected);
        assert!(parse(b"").is_err(), "no output");
    }
}

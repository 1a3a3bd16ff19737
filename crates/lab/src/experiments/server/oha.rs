//! The load generator oha, if it is installed.
//!
//! It says how many requests a second a server answers, as another program than contend sees it. Of what it writes
//! (`--output-format json`) these fields are used: `summary.total`, the seconds that it took;
//! `statusCodeDistribution`, how many answers there were by their status; and `errorDistribution`, how many
//! requests failed, by the reason, of which those do not count that were on their way when the time was over.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use contend_sys::spawn;
use serde::Deserialize;

use super::client::Reuse;
use super::setup::Setup;
use crate::engine::experiment::{Attempt, SubjectError};
use crate::support::programs;

/// Its name.
const NAME: &str = "oha";
/// What it calls requests that it gave up at the end.
const AT_THE_END: &str = "aborted due to deadline";

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
    /// In seconds.
    total: f64,
}

/// What a server has answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Requests that were answered as they should be.
    pub answered: f64,
    /// The same, a second.
    pub per_second: f64,
    /// Requests that failed.
    pub errors: f64,
}

/// Whether it is installed.
pub fn is_there() -> bool {
    programs::find(NAME).is_some()
}

/// Has so many connections ask again as soon as they are answered, for a time.
///
/// # Errors
/// When it cannot be started, or says nothing that can be understood.
pub fn flat_out(port: u16, setup: &Setup, lasts: Duration) -> Result<Throughput, SubjectError> {
    let mut command = Command::new(NAME);
    command.args(["--no-tui", "--output-format", "json", "-c", &setup.connections.to_string()]);
    if setup.reuse == Reuse::PerRequest {
        command.arg("--disable-keepalive");
    }
    command.args(["-z", &format!("{}ms", lasts.as_millis())]);
    command.arg(format!("http://127.0.0.1:{port}/"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = spawn::spawn_bound(&mut command).attempt("start oha")?;
    let output = child.wait_with_output().attempt("read what oha says")?;
    understood(&output.stdout)
}

fn understood(text: &[u8]) -> Result<Throughput, SubjectError> {
    let report: Report = serde_json::from_slice(text)
        .map_err(|error| SubjectError::wrong(format!("what oha says: {error}")))?;
    let answered = report.status_code_distribution.get("200").copied().unwrap_or(0.0);
    let others: f64 = report.status_code_distribution.values().sum::<f64>() - answered;
    let errors = report.error_distribution.iter().filter(|(reason, _)| *reason != AT_THE_END);
    let errors = errors.map(|(_, count)| count).sum::<f64>() + others;
    Ok(Throughput { answered, per_second: answered / report.summary.total.max(1e-9), errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_gave_up_at_the_end_has_not_failed() {
        let text = br#"{"summary": {"successRate": 1.0, "total": 2.0},
            "latencyPercentiles": {"p50": 0.1},
            "statusCodeDistribution": {"200": 1000, "503": 3},
            "errorDistribution": {"aborted due to deadline": 50, "Connection refused": 4}}"#;
        let expected = Throughput { answered: 1000.0, per_second: 500.0, errors: 7.0 };
        assert_eq!(understood(text).expect("all that is needed"), expected);
        assert!(understood(b"").is_err(), "it has said nothing");
    }
}

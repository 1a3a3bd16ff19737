//! `server/hello` and `server/wait`: requests on many connections.

use std::time::Duration;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;

use super::clients::{FixedRate, FullLoad};
use super::connected::{ANSWER_TIMEOUT, ConnectedServer};
use super::http::Handler;
use super::oha::{self, Throughput};
use super::setup::Setup;
use super::{
    CONNECTIONS, DEMANDS, KEEP_ALIVE, MODEL, PROCESSES, PROGRAM, THREADS, cases, cost, unavailable,
};
use crate::engine::experiment::{
    ErrorContext, Experiment, Fit, Sample, Sampling, Scope, Size, Subject, SubjectError,
    never_alternates_cpus,
};
use crate::engine::setting::Setting;
use crate::support::histogram::percentiles;

/// The definition of `server/hello`.
pub const HELLO: Experiment = Experiment {
    name: "server/hello",
    summary: "requests answered at once on n connections, by each model and program",
    about: ABOUT,
    view: View::Requests,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(3),
    fit: Fit::None,
    settings: &[
        &MODEL,
        &PROGRAM,
        &CONNECTIONS,
        &KEEP_ALIVE,
        &PROCESSES,
        &THREADS,
        &LOAD_MS,
        &RATE_PER_S,
    ],
    cases: |scope| requests_cases(scope, QUICK_LOAD_MS),
    unavailable: |parameters| unavailable(parameters, Handler::Hello),
    alternates_cpus: never_alternates_cpus,
    demands: DEMANDS.with_cost(cost::requests),
    subject: |parameters| Ok(Box::new(Requests::new(parameters, Handler::Hello)?)),
};

/// The definition of `server/wait`.
pub const WAIT: Experiment = Experiment {
    name: "server/wait",
    summary: "requests answered after 100 ms on n connections, by each model and program",
    cases: |scope| requests_cases(scope, QUICK_WAITING_LOAD_MS),
    unavailable: |parameters| unavailable(parameters, Handler::Wait),
    demands: DEMANDS.with_cost(cost::requests),
    subject: |parameters| Ok(Box::new(Requests::new(parameters, Handler::Wait)?)),
    ..HELLO
};

const ABOUT: &str = "A server in processes of its own gets n connections, each of which is answered once. \
     Then every connection sends its next request as soon as it has a response, for `load_ms`: this gives \
     `requests_per_s`. Then requests are sent at a fixed rate for as long, on the connection that has been \
     free for longest; the rate is half of `requests_per_s` unless `rate_per_s` is set. The value is the \
     server's CPU time for a request at the fixed rate: the other figures depend more on how the load \
     generator, on the same machine, and the server share the CPUs. `cpu_full` is the same under full load. \
     `p50`, `p99` and `p99.9` are latencies at the fixed rate. They count from the moment when a request \
     was due, not from when it was sent, so they include the time that requests wait while the server \
     stalls. `answered` counts connections with a response; if it is less than n, `stopped_by` names the \
     limit, such as the size of a pool whose members keep a connection until it is closed. `errors` counts \
     requests that failed or got no response in time: within `load_ms` after the end of the full load, and \
     within a second at the fixed rate. `memory` (PSS), `private` (USS), `processes` and `threads` are \
     those of the server after the load. If oha is installed (cargo install oha --locked), it measures \
     another server for as long, including connection set-up, which gives `oha_requests_per_s`. Its \
     percentiles are not used: they leave out requests that are not answered by the deadline, which are the \
     latest. All servers have a timer slack of 1 ns. Programs such as puma serve an application with the \
     same response, from a configuration that contend writes; `configured` has the numbers of processes and \
     threads. Unicorn and Gunicorn close each connection after the response, so their clients open one for \
     each request; `keep_alive=off` does the same to all servers.";

/// Parameter for the duration of each load, in milliseconds.
const LOAD_MS: Setting = Setting::number(
    "load_ms",
    "duration of each load, in milliseconds [default: 2000; with --quick 250, or 1000 for server/wait]",
    250,
    600_000,
);
const DEFAULT_LOAD_MS: u64 = 2000;
const QUICK_LOAD_MS: u64 = 250;
/// Duration of a quick load of requests that take 100 ms each, in milliseconds.
const QUICK_WAITING_LOAD_MS: u64 = 1000;
/// Duration of a load that only tests that everything works, in milliseconds.
const SMALLEST_LOAD_MS: u64 = 250;

/// Returns the duration of each load of a case.
pub(super) fn load(parameters: &Parameters) -> Duration {
    Duration::from_millis(parameters.number(LOAD_MS.name).unwrap_or(DEFAULT_LOAD_MS))
}

/// Parameter for the fixed rate, in requests per second. Latencies of two servers are comparable
/// only at the same rate.
const RATE_PER_S: Setting = Setting::number(
    "rate_per_s",
    "requests a second at the fixed rate [default: half of each server's throughput]",
    1,
    10_000_000,
);

fn requests_cases(scope: &Scope, quick_load_ms: u64) -> Vec<Parameters> {
    let mut cases = cases(scope, &[&CONNECTIONS, &KEEP_ALIVE, &PROCESSES, &THREADS]);
    let load = match scope.size {
        Size::Full => None,
        Size::Quick => Some(quick_load_ms),
        Size::Smallest => Some(SMALLEST_LOAD_MS),
    };
    if let Some(load) = load {
        cases = cases.into_iter().map(|case| case.with(LOAD_MS.name, load)).collect();
    }
    scope.choices.applied(cases, &[&LOAD_MS, &RATE_PER_S])
}

/// Default of the fixed rate, as a share of the server's throughput under full load.
const RATE_SHARE: f64 = 0.5;

struct Requests {
    setup: Setup,
    handler: Handler,
    /// Duration of each load.
    duration: Duration,
    /// The chosen fixed rate, in requests per second, or `None` for the default.
    rate: Option<u64>,
}

/// Returns the CPU time per answered request, in nanoseconds, or all of it if none was answered.
fn ns_per_request(cpu: Duration, answered: u64) -> f64 {
    cpu.as_nanos() as f64 / (answered as f64).max(1.0)
}

impl Requests {
    fn new(parameters: &Parameters, handler: Handler) -> Result<Self, SubjectError> {
        let setup = Setup::of(parameters)?;
        let rate = parameters.number(RATE_PER_S.name);
        Ok(Self { setup, handler, duration: load(parameters), rate })
    }

    /// Runs the load without pauses. Returns its result, and the server's CPU time per answered
    /// request in nanoseconds. Fails if no request was answered.
    fn run_without_pauses(
        &self,
        served: &mut ConnectedServer,
    ) -> Result<(FullLoad, f64), SubjectError> {
        let before = served.server.cpu();
        let full =
            served.clients.run_without_pauses(self.duration).context("wait for responses")?;
        if full.answered == 0 {
            return Err(SubjectError::unexpected("no request was answered"));
        }
        let cpu = ns_per_request(served.server.cpu().saturating_sub(before), full.answered);
        Ok((full, cpu))
    }

    /// Runs the load at `rate` requests per second. Returns its result, and the server's CPU time
    /// per answered request in nanoseconds.
    fn at_rate(
        &self,
        served: &mut ConnectedServer,
        rate: f64,
    ) -> Result<(FixedRate, f64), SubjectError> {
        let before = served.server.cpu();
        let rated = served.clients.at_rate(rate, self.duration, ANSWER_TIMEOUT)?;
        let cpu = ns_per_request(served.server.cpu().saturating_sub(before), rated.answered);
        Ok((rated, cpu))
    }

    /// Measures a fresh server with oha, since the first one may be busy closing its connections.
    /// Returns `None` if oha is not installed.
    fn measure_with_oha(&self) -> Result<Option<Throughput>, SubjectError> {
        if !oha::is_installed() {
            return Ok(None);
        }
        let server = ConnectedServer::start(&self.setup, self.handler)?;
        oha::run_without_pauses(server.port, &self.setup, self.duration).map(Some)
    }
}

impl Subject for Requests {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let server = ConnectedServer::start(&self.setup, self.handler)?;
        let mut served = ConnectedServer::with(server, &self.setup)?;
        let failed = served.clients.failed;
        let (full, cpu_full) = self.run_without_pauses(&mut served)?;
        let per_second = full.answered as f64 / full.elapsed.as_secs_f64();
        let rate = self.rate.map_or((per_second * RATE_SHARE).max(1.0), |rate| rate as f64);
        let (rated, cpu) = self.at_rate(&mut served, rate)?;
        let failed = served.clients.failed - failed;
        let errors = (full.unanswered + rated.unanswered + failed) as f64;
        let (facts, answered) = (served.facts(&self.setup), served.answered);
        let footprint = served.server.footprint()?;
        drop(served);
        let oha = self.measure_with_oha()?;
        let errors = errors + oha.map_or(0.0, |oha| oha.errors);
        let mut sample = Sample::of(cpu)
            .with("cpu_full", Unit::Nanoseconds, cpu_full)
            .with("requests_per_s", Unit::Count, per_second)
            .with("rate_per_s", Unit::Count, rate)
            .with("answered", Unit::Count, answered as f64)
            .with("errors", Unit::Count, errors)
            .with("memory", Unit::Bytes, footprint.pss as f64)
            .with("private", Unit::Bytes, footprint.uss as f64)
            .with("processes", Unit::Count, footprint.processes as f64)
            .with("threads", Unit::Count, footprint.threads as f64);
        if let Some(oha) = oha {
            sample = sample.with("oha_requests_per_s", Unit::Count, oha.per_second);
        }
        for (name, time) in percentiles(&rated.times) {
            sample = sample.with(name, Unit::Nanoseconds, time);
        }
        sample.facts = facts;
        Ok(sample)
    }
}

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
    CONNECTIONS, DEMANDS, KEEP_ALIVE, MODEL, PROCESSES, PROGRAM, THREADS, cases, unavailable,
};
use crate::engine::experiment::{
    Attempt, Experiment, Fit, Sample, Sampling, Scope, Size, Subject, SubjectError,
    never_hands_over,
};
use crate::engine::setting::Setting;
use crate::support::histogram::percentiles;

/// The row of the table.
pub const HELLO: Experiment = Experiment {
    name: "server/hello",
    summary: "requests that are answered at once on n connections, by each model of a server",
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
    cases: requests_cases,
    unavailable: |parameters| unavailable(parameters, Handler::Hello),
    hands_over: never_hands_over,
    demands: DEMANDS,
    subject: |parameters| Ok(Box::new(Requests::new(parameters, Handler::Hello)?)),
};

/// The row of the table.
pub const WAIT: Experiment = Experiment {
    name: "server/wait",
    summary: "requests that are answered after 100 ms on n connections, by each model of a server",
    unavailable: |parameters| unavailable(parameters, Handler::Wait),
    demands: DEMANDS,
    subject: |parameters| Ok(Box::new(Requests::new(parameters, Handler::Wait)?)),
    ..HELLO
};

const ABOUT: &str = "A server in processes of its own gets n connections, each of which asks once. Those that are answered ask \
     again as soon as they can for `load_ms`, two seconds by itself, which gives `requests_per_s`, and then for \
     as long at a fixed rate, half of that unless `rate_per_s` is chosen, each request on the connection that \
     has been free for longest. Where oha is installed (cargo install oha --locked), it asks another server of \
     the model for as long, on as many connections that it makes in that time, which gives \
     `oha_requests_per_s`. The value is the CPU time of the server for a request at the fixed rate; the other \
     figures depend more on how the CPUs are shared with the generator. `cpu_full` is the same under full load. \
     `p50`, `p99` and `p99.9` are the times of the requests at the fixed rate, which count from when a request \
     was due, not from when it was sent: while a server stands still, requests become late, and that is seen. \
     `rate_per_s` is the rate. `answered` are the connections that were served; where that is not all of them, \
     `stopped_by` says which limit was in the way: members of a pool keep a connection until it is closed. \
     (oha's own percentiles are not taken: with --latency-correction they count from when a request was due, \
     too, but leave out those that are not answered when its time is over, which are the latest.) `errors` are \
     requests that failed or were not answered in the time that they had after the end: as long again under \
     full load, a second at the fixed rate. All models have a timer slack of 1 ns. The load takes CPU time from \
     the server; both are on the same machine.";

/// How long each kind of load lasts.
const LOAD_MS: Setting = Setting::number(
    "load_ms",
    "how long each kind of load lasts, in milliseconds; 2,000 by itself",
    250,
    600_000,
);
const DEFAULT_LOAD_MS: u64 = 2000;

/// How many requests a second at the fixed rate: the same for all, so that their times can be compared.
const RATE_PER_S: Setting = Setting::number(
    "rate_per_s",
    "requests a second at the fixed rate; half of what each server can do by itself",
    1,
    10_000_000,
);

fn requests_cases(scope: &Scope) -> Vec<Parameters> {
    let mut cases = cases(scope, &[&CONNECTIONS, &KEEP_ALIVE, &PROCESSES, &THREADS]);
    if scope.size == Size::Smallest {
        cases = cases.into_iter().map(|case| case.with(LOAD_MS.name, 250_u64)).collect();
    }
    scope.choices.applied(cases, &[&LOAD_MS, &RATE_PER_S])
}

/// The part of what a server can do that is asked for at a fixed rate.
const RATE_SHARE: f64 = 0.5;

struct Requests {
    setup: Setup,
    handler: Handler,
    /// How long each kind of load lasts.
    lasts: Duration,
    /// Requests a second at the fixed rate, if that was chosen.
    rate: Option<u64>,
}

/// CPU time of a server for one of the requests that it has answered, in nanoseconds.
fn each(cpu: Duration, answered: u64) -> f64 {
    cpu.as_nanos() as f64 / (answered as f64).max(1.0)
}

impl Requests {
    fn new(parameters: &Parameters, handler: Handler) -> Result<Self, SubjectError> {
        let setup = Setup::of(parameters)?;
        let lasts =
            Duration::from_millis(parameters.number(LOAD_MS.name).unwrap_or(DEFAULT_LOAD_MS));
        let rate = parameters.number(RATE_PER_S.name);
        Ok(Self { setup, handler, lasts, rate })
    }

    /// Requests one after the other on every connection, and the CPU time of the server for one.
    fn flat_out(&self, served: &mut ConnectedServer) -> Result<(FullLoad, f64), SubjectError> {
        let before = served.server.cpu();
        let full = served.clients.flat_out(self.lasts).attempt("wait for answers")?;
        if full.answered == 0 {
            return Err(SubjectError::wrong("no request was answered"));
        }
        let cpu = each(served.server.cpu().saturating_sub(before), full.answered);
        Ok((full, cpu))
    }

    fn at_rate(
        &self,
        served: &mut ConnectedServer,
        rate: f64,
    ) -> Result<(FixedRate, f64), SubjectError> {
        let before = served.server.cpu();
        let rated = served.clients.at_rate(rate, self.lasts, ANSWER_TIMEOUT)?;
        let cpu = each(served.server.cpu().saturating_sub(before), rated.answered);
        Ok((rated, cpu))
    }

    /// What oha says of another server, as those whose connections have been closed may be busy with their end.
    fn by_oha(&self) -> Result<Option<Throughput>, SubjectError> {
        if !oha::is_there() {
            return Ok(None);
        }
        let server = ConnectedServer::start(&self.setup, self.handler)?;
        oha::flat_out(server.port, &self.setup, self.lasts).map(Some)
    }
}

impl Subject for Requests {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let server = ConnectedServer::start(&self.setup, self.handler)?;
        let mut served = ConnectedServer::with(server, &self.setup)?;
        let failed = served.clients.failed;
        let (full, cpu_full) = self.flat_out(&mut served)?;
        let per_second = full.answered as f64 / full.took.as_secs_f64();
        let rate = self.rate.map_or((per_second * RATE_SHARE).max(1.0), |rate| rate as f64);
        let (rated, cpu) = self.at_rate(&mut served, rate)?;
        let failed = served.clients.failed - failed;
        let errors = (full.unanswered + rated.unanswered + failed) as f64;
        let (facts, answered) = (served.facts(&self.setup), served.answered);
        let footprint = served.server.footprint()?;
        drop(served);
        let by_oha = self.by_oha()?;
        let errors = errors + by_oha.map_or(0.0, |by_oha| by_oha.errors);
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
        if let Some(by_oha) = by_oha {
            sample = sample.with("oha_requests_per_s", Unit::Count, by_oha.per_second);
        }
        for (name, time) in percentiles(&rated.times) {
            sample = sample.with(name, Unit::Nanoseconds, time);
        }
        sample.facts = facts;
        Ok(sample)
    }
}

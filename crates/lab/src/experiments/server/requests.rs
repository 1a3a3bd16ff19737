//! `server/hello` and `server/wait`: requests on many connections.

use std::collections::BTreeMap;
use std::time::Duration;

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;

use super::breaks::{PATIENCE, Served};
use super::clients::Rated;
use super::http::Answer;
use super::table::Model;
use super::{CONNECTIONS, MODEL, cases, chosen, oha, unavailable, wrong};
use crate::experiment::{
    Attempt, Experiment, Facts, Fit, Sample, Sampling, Scope, Size, Subject, SubjectError,
    never_hands_over,
};
use crate::histogram::percentiles;
use crate::setting::Setting;

/// The row of the table.
pub const HELLO: Experiment = Experiment {
    name: "server/hello",
    summary: "requests that are answered at once on n connections, by each model of a server",
    about: ABOUT,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(3),
    fit: Fit::None,
    settings: &[&MODEL, &CONNECTIONS, &LASTS, &RATE],
    cases: requests_cases,
    unavailable,
    hands_over: never_hands_over,
    subject: |parameters| Ok(Box::new(Requests::new(parameters, Answer::Hello)?)),
};

/// The row of the table.
pub const WAIT: Experiment = Experiment {
    name: "server/wait",
    summary: "requests that are answered after 100 ms on n connections, by each model of a server",
    subject: |parameters| Ok(Box::new(Requests::new(parameters, Answer::Wait)?)),
    ..HELLO
};

const ABOUT: &str = "A server in processes of its own gets n connections, each of which asks once. Those that are answered ask \
     again as soon as they can for `load_ms`, two seconds by itself, which gives `own_requests_per_s`, and then \
     for as long at a fixed rate, half of that unless `rate_per_s` is chosen, each request on the connection that \
     has been free for longest. Where oha is installed (cargo install oha --locked), it asks for as long on as \
     many connections of its own: `requests_per_s` is then what it says, otherwise that of contend's clients, and \
     the fact `generator` says whose it is. The value is the CPU time of the server for a request at the fixed \
     rate: what a model costs whatever the generator can do, while the other figures depend on how the CPUs are \
     shared with the generator. `cpu_full` is the same under full load. `p50`, `p99` and `p99.9` are the times of \
     the requests at the fixed rate, which count from when a request was due, not from when it was sent: while a \
     server stands still, requests become late, and that is seen. `rate_per_s` is the rate. `answered` are the \
     connections that were served; where that is not all of them, `stopped_by` says which limit was in the way: \
     members of a pool keep a connection until it is closed. (oha's own percentiles are not taken: with \
     --latency-correction they count from when a request was due, too, but leave out those that are not answered \
     when its time is over, which are the latest.) `errors` are requests that failed or were not answered within \
     a second after the end. The load takes CPU time from the server; both are on the same machine.";

/// How long each kind of load lasts.
const LASTS: Setting = Setting::number(
    "load_ms",
    "how long each kind of load lasts, in milliseconds; 2,000 by itself",
    250,
    600_000,
);
const USUAL_LASTS: u64 = 2000;

/// How many requests a second at the fixed rate: the same for all, so that their times can be compared.
const RATE: Setting = Setting::number(
    "rate_per_s",
    "requests a second at the fixed rate; half of what each server can do by itself",
    1,
    10_000_000,
);

fn requests_cases(scope: &Scope) -> Vec<Parameters> {
    let mut cases = cases(scope);
    if scope.size == Size::Smallest {
        cases = cases.into_iter().map(|case| case.with(LASTS.name, 250_u64)).collect();
    }
    scope.choices.applied(cases, &[&LASTS, &RATE])
}

/// The part of what a server can do that is asked for at a fixed rate.
const PART: f64 = 0.5;

struct Requests {
    model: &'static Model,
    connections: u64,
    answer: Answer,
    /// How long each kind of load lasts.
    lasts: Duration,
    /// Requests a second at the fixed rate, if that was chosen.
    rate: Option<u64>,
}

/// What a server did under a load.
struct Load {
    answered: f64,
    cpu: Duration,
}

impl Load {
    fn cpu_each(&self) -> f64 {
        self.cpu.as_nanos() as f64 / self.answered.max(1.0)
    }
}

impl Requests {
    fn new(parameters: &Parameters, answer: Answer) -> Result<Self, SubjectError> {
        let (model, connections) = chosen(parameters)?;
        let lasts = Duration::from_millis(parameters.number(LASTS.name).unwrap_or(USUAL_LASTS));
        let rate = parameters.number(RATE.name);
        Ok(Self { model, connections, answer, lasts, rate })
    }

    /// Requests one after the other on every connection.
    fn flat_out(&self, served: &mut Served) -> Result<Load, SubjectError> {
        let before = served.server.cpu();
        let answered = served.clients.flat_out(self.lasts).attempt("wait for answers")?;
        let cpu = served.server.cpu().saturating_sub(before);
        if answered == 0 {
            return Err(wrong("no request was answered"));
        }
        Ok(Load { answered: answered as f64, cpu })
    }

    fn at_rate(&self, served: &mut Served, rate: f64) -> Result<(Rated, Load), SubjectError> {
        let before = served.server.cpu();
        let rated = served.clients.at_rate(rate, self.lasts, PATIENCE)?;
        let cpu = served.server.cpu().saturating_sub(before);
        let load = Load { answered: rated.answered as f64, cpu };
        Ok((rated, load))
    }
}

impl Subject for Requests {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let server = Served::start(self.model, self.answer)?;
        let mut served = Served::with(server, self.model, self.connections)?;
        let full = self.flat_out(&mut served)?;
        let own = full.answered / self.lasts.as_secs_f64();
        let rate = self.rate.map_or((own * PART).max(1.0), |rate| rate as f64);
        let failed = served.clients.failed;
        let (rated, half) = self.at_rate(&mut served, rate)?;
        let facts = served.facts(self.model);
        let mut errors = (rated.unanswered + served.clients.failed - failed) as f64;
        let Served { server, clients, answered, .. } = served;
        drop(clients);
        let mut per_second = own;
        if oha::is_there() {
            let by_oha = oha::flat_out(server.port, self.connections, self.lasts)?;
            per_second = by_oha.per_second;
            errors += by_oha.errors;
        }
        let count = |value: f64| (value, Unit::Count);
        let metrics = [
            ("cpu_full", (full.cpu_each(), Unit::Nanoseconds)),
            ("requests_per_s", count(per_second)),
            ("own_requests_per_s", count(own)),
            ("rate_per_s", count(rate)),
            ("answered", count(answered as f64)),
            ("errors", count(errors)),
        ];
        let times = percentiles(&rated.times).map(|(name, time)| (name, (time, Unit::Nanoseconds)));
        let metrics: BTreeMap<_, _> =
            metrics.into_iter().chain(times).map(|(name, of)| (name.to_owned(), of)).collect();
        Ok(Sample { value: half.cpu_each(), metrics, facts, ..Sample::default() })
    }

    fn facts(&self) -> Facts {
        let generator = if oha::is_there() { "oha" } else { "contend, as oha is not installed" };
        Facts::from([("generator".to_owned(), generator.into())])
    }
}

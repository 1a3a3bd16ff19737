//! `server/idle`: what connections take on which nothing happens.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::client::Reuse;
use super::connected::ConnectedServer;
use super::http::Handler;
use super::server_process::ServerProcess;
use super::setup::Setup;
use super::{CONNECTIONS, DEMANDS, MODEL, PROCESSES, PROGRAM, THREADS, cases, unavailable};
use crate::engine::experiment::{
    Experiment, Fit, Sample, Sampling, Subject, SubjectError, never_hands_over,
};
use crate::support::tree::{Taken, settled};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "server/idle",
    summary: "memory of open connections on which nothing happens, by each model of a server",
    about: "A server in processes of its own gets n connections; each asks once and is answered, then nothing \
            happens on any of them. The value is what the server's processes take more than before (PSS); the line \
            through the values over n gives the bytes of one connection, and `each` is the value for each that was served. \
            `kernel` is what the kernel keeps besides: page tables, and stacks and objects of the whole machine, \
            among them both ends of every connection, since the clients are on the same machine. `answered` are \
            the connections that were served; where that is not all of them, `stopped_by` says why. `left` is what \
            is still taken when all have been closed. All models share the same code for HTTP, which keeps nothing \
            of a connection on which nothing has begun.",
    view: View::IdleConnections,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit: Fit::Line(names::CONNECTIONS),
    settings: &[&MODEL, &PROGRAM, &CONNECTIONS, &PROCESSES, &THREADS],
    cases: |scope| cases(scope, &[&CONNECTIONS, &PROCESSES, &THREADS]),
    unavailable: unavailable_idle,
    hands_over: never_hands_over,
    demands: DEMANDS,
    subject: |parameters| Ok(Box::new(Idle::new(parameters)?)),
};

/// Returns the reason why idle connections cannot be measured here, if so.
fn unavailable_idle(parameters: &Parameters) -> Option<String> {
    let closes = |setup: Setup| {
        let name = setup.server.name();
        let reason = format!("{name} keeps no idle connections: it closes each after its response");
        (setup.reuse == Reuse::PerRequest).then_some(reason)
    };
    unavailable(parameters, Handler::Hello).or_else(|| closes(Setup::of(parameters).ok()?))
}

struct Idle {
    setup: Setup,
}

impl Idle {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        Ok(Self { setup: Setup::of(parameters)? })
    }
}

/// What a server takes when it has just so many processes, if it comes to that.
fn settled_with(server: &ServerProcess, processes: u64) -> Result<Taken, SubjectError> {
    server.comes_to(|now| now == processes);
    settled(|| server.taken())
}

impl Subject for Idle {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let setup = &self.setup;
        let server = ConnectedServer::start(setup, Handler::Hello)?;
        // The baseline includes what the server allocates for its first connection.
        let first = Setup { connections: 1, ..*setup };
        let server = ConnectedServer::with(server, &first)?.server;
        let processes = 1 + setup.server.other_processes();
        let before = settled_with(&server, processes)?;
        let served = ConnectedServer::with(server, setup)?;
        let idle = settled(|| served.server.taken())?;
        let mut facts = served.facts(setup);
        facts.insert("processes".to_owned(), served.server.processes().into());
        let ConnectedServer { server, clients, answered, .. } = served;
        drop(clients);
        let left = settled_with(&server, processes)?;
        let more = |now: u64, before: u64| now as f64 - before as f64;
        let value = more(idle.pss, before.pss);
        let mut sample = Sample::of(value)
            .with("each", Unit::Bytes, value / (answered as f64).max(1.0))
            .with("kernel", Unit::Bytes, more(idle.kernel, before.kernel))
            .with("left", Unit::Bytes, more(left.pss, before.pss))
            .with("answered", Unit::Count, answered as f64);
        sample.facts = facts;
        Ok(sample)
    }
}

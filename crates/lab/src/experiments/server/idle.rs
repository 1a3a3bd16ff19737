//! `server/idle`: what connections take on which nothing happens.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::connected::ConnectedServer;
use super::http::Handler;
use super::server_process::ServerProcess;
use super::table::Model;
use super::{SETTINGS, cases, chosen, unavailable};
use crate::engine::experiment::{
    Demands, Experiment, Fit, Sample, Sampling, Subject, SubjectError, never_hands_over,
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
    settings: &SETTINGS,
    cases,
    unavailable,
    hands_over: never_hands_over,
    demands: Demands::NONE,
    subject: |parameters| Ok(Box::new(Idle::new(parameters)?)),
};

struct Idle {
    model: &'static Model,
    connections: u64,
}

impl Idle {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let (model, connections) = chosen(parameters)?;
        Ok(Self { model, connections })
    }
}

/// What a server takes when it has just so many processes, if it comes to that.
fn settled_with(server: &ServerProcess, processes: u64) -> Result<Taken, SubjectError> {
    server.comes_to(|now| now == processes);
    settled(|| server.taken())
}

impl Subject for Idle {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let server = ConnectedServer::start(self.model, Handler::Hello)?;
        // What it makes for its first connection is there before.
        let server = ConnectedServer::with(server, self.model, 1)?.server;
        let processes = 1 + self.model.processes;
        let before = settled_with(&server, processes)?;
        let served = ConnectedServer::with(server, self.model, self.connections)?;
        let idle = settled(|| served.server.taken())?;
        let mut facts = served.facts(self.model);
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

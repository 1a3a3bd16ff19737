//! `server/idle`: memory of idle connections.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use super::client::Reuse;
use super::connected::ConnectedServer;
use super::http::Handler;
use super::server_process::ServerProcess;
use super::setup::Setup;
use super::{CONNECTIONS, DEMANDS, MODEL, PROCESSES, PROGRAM, THREADS, cases, cost, unavailable};
use crate::engine::experiment::{
    Experiment, Fit, Sample, Sampling, Subject, SubjectError, never_alternates_cpus,
};
use crate::support::process_tree::{MemoryUse, read_until_stable};

/// The definition of `server/idle`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "server/idle",
    summary: "memory of idle connections, by each model and program",
    about: "A server in processes of its own gets n connections. Each is used for one request, and \
            then idle. The value is the growth of the server's memory (PSS of all its processes, without \
            mapped files, whose pages it may share with unrelated processes); the slope of a line through \
            the values over n is the memory of a connection, and `each` is the value divided by the \
            connections that were answered. `kernel` is the growth of kernel memory: page tables of the \
            server, and stacks and unreclaimable objects of the whole machine, which include both ends of \
            every connection. `answered` counts connections with a response; if it is less than n, \
            `stopped_by` names the limit. `left` is the memory that remains after all connections have \
            been closed. The models share their HTTP code, which stores nothing for an idle connection. \
            Unicorn and Gunicorn keep no idle connections.",
    view: View::IdleConnections,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit: Fit::Line(names::CONNECTIONS),
    settings: &[&MODEL, &PROGRAM, &CONNECTIONS, &PROCESSES, &THREADS],
    cases: |scope| cases(scope, &[&CONNECTIONS, &PROCESSES, &THREADS]),
    unavailable: unavailable_idle,
    alternates_cpus: never_alternates_cpus,
    demands: DEMANDS.with_cost(cost::idle),
    subject: |parameters| Ok(Box::new(Idle::new(parameters)?)),
};

/// Returns why idle connections cannot be measured here, or `None` if they can.
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

/// Waits up to five seconds until the server has `processes` processes, and then about a second at
/// most until its memory is stable. Returns the memory.
fn read_stable_memory(server: &ServerProcess, processes: u64) -> Result<MemoryUse, SubjectError> {
    server.await_processes(|now| now == processes);
    read_until_stable(|| server.memory_use())
}

impl Subject for Idle {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let setup = &self.setup;
        let server = ConnectedServer::start(setup, Handler::Hello)?;
        // The baseline includes what the server allocates for its first connection.
        let first = Setup { connections: 1, ..*setup };
        let server = ConnectedServer::with(server, &first)?.server;
        let processes = 1 + setup.server.other_processes();
        let before = read_stable_memory(&server, processes)?;
        let served = ConnectedServer::with(server, setup)?;
        let idle = read_until_stable(|| served.server.memory_use())?;
        let mut facts = served.facts(setup);
        facts.insert("processes".to_owned(), served.server.processes().into());
        let ConnectedServer { server, clients, answered, .. } = served;
        drop(clients);
        let left = read_stable_memory(&server, processes)?;
        let more = |now: u64, before: u64| now as f64 - before as f64;
        let value = more(idle.user, before.user);
        let mut sample = Sample::of(value)
            .with("each", Unit::Bytes, value / (answered as f64).max(1.0))
            .with("kernel", Unit::Bytes, more(idle.kernel, before.kernel))
            .with("left", Unit::Bytes, more(left.user, before.user))
            .with("answered", Unit::Count, answered as f64);
        sample.facts = facts;
        Ok(sample)
    }
}

//! Subject of a case: a server, the number of connections, and whether these stay open.

use contend_record::parameters::{Parameters, names};

use super::client::Reuse;
use super::programs::{self, Concurrency, Program};
use super::table::{self, Model};
use super::{CONNECTIONS, KEEP_ALIVE, MODEL, OFF, PROCESSES, PROGRAM, THREADS};
use crate::engine::experiment::{Facts, SubjectError};
use crate::support::limits::UnitKind;

/// A server, and the connections that clients open to it.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Model or program that serves the connections.
    pub server: Server,
    /// Number of connections, or of clients that open one for each request.
    pub connections: u64,
    /// Whether connections stay open between requests.
    pub reuse: Reuse,
}

/// The server under test.
#[derive(Debug, Clone, Copy)]
pub enum Server {
    /// One of contend's own concurrency models.
    Model(&'static Model),
    /// A web server of another project, and its numbers of processes and threads.
    Program(&'static Program, Concurrency),
}

impl Setup {
    /// Returns the setup that the parameters of a case describe.
    ///
    /// # Errors
    /// Returns an error if there is no such server, or it does not support the parameters.
    pub fn of(parameters: &Parameters) -> Result<Self, SubjectError> {
        let server = Server::of(parameters)?;
        let reuse = match parameters.text(KEEP_ALIVE.name) {
            Some(OFF) => Reuse::PerRequest,
            Some(_) if server.reuse() == Reuse::PerRequest => {
                let name = server.name();
                let reason = format!("{name} closes each connection after its response");
                return Err(SubjectError::unexpected(reason));
            }
            _ => server.reuse(),
        };
        Ok(Self { server, connections: parameters.number(CONNECTIONS.name).unwrap_or(1), reuse })
    }
}

impl Server {
    fn of(parameters: &Parameters) -> Result<Self, SubjectError> {
        let number = |name| parameters.number(name);
        if let Some(name) = parameters.text(PROGRAM.name) {
            let program = programs::find(name)
                .ok_or_else(|| SubjectError::unexpected(format!("there is no program {name}")))?;
            let default = (program.default)();
            let concurrency = Concurrency {
                processes: number(PROCESSES.name).unwrap_or(default.processes),
                threads: number(THREADS.name).unwrap_or(default.threads),
            };
            return match (program.unsupported_concurrency)(concurrency) {
                Some(reason) => Err(SubjectError::unexpected(reason)),
                None => Ok(Self::Program(program, concurrency)),
            };
        }
        let name = parameters.text(MODEL.name).unwrap_or_default();
        let model = table::find(name)
            .ok_or_else(|| SubjectError::unexpected(format!("there is no model {name}")))?;
        if let Some(chosen) =
            [names::PROCESSES, names::THREADS].into_iter().find(|&name| number(name).is_some())
        {
            let reason = format!("models have no parameter {chosen}, only programs do");
            return Err(SubjectError::unexpected(reason));
        }
        Ok(Self::Model(model))
    }

    /// Returns the name of the model or the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model(model) => model.name,
            Self::Program(program, _) => program.name,
        }
    }

    fn reuse(self) -> Reuse {
        match self {
            Self::Model(_) => Reuse::Persistent,
            Self::Program(program, _) => program.reuse,
        }
    }

    /// Returns the kind of task (process or thread) that serves only one connection, or `None` if
    /// tasks serve several.
    pub fn task_per_connection(self) -> Option<UnitKind> {
        match self {
            Self::Model(model) => model.task_per_connection,
            Self::Program(..) => None,
        }
    }

    /// Returns how many persistent connections the pool of a model serves at the same time. Returns
    /// `None` for programs, and for models without a pool.
    pub fn pool_size(self) -> Option<u64> {
        match self {
            Self::Model(model) => model.pool_size,
            Self::Program(..) => None,
        }
    }

    /// Returns the number of processes in addition to the server's first one, without those of
    /// connections.
    pub fn other_processes(self) -> u64 {
        match self {
            Self::Model(model) => model.processes,
            Self::Program(program, concurrency) => (program.other_processes)(concurrency),
        }
    }

    /// Returns the number of processes or threads that serve requests, or `None` for a model
    /// without a pool.
    fn workers(self) -> Option<u64> {
        match self {
            Self::Model(model) => model.pool_size,
            Self::Program(_, concurrency) => Some(concurrency.processes * concurrency.threads),
        }
    }

    /// Returns facts for the record: the server's description, the unit that serves a request and,
    /// if there are any, the number of workers and a program's configuration.
    pub fn facts(self) -> Facts {
        let (summary, unit) = match self {
            Self::Model(model) => (model.summary, model.unit),
            Self::Program(program, _) => (program.summary, program.unit),
        };
        let mut facts = Facts::from([
            ("model_is".to_owned(), summary.into()),
            ("served_by".to_owned(), unit.into()),
        ]);
        facts.extend(self.workers().map(|workers| ("workers".to_owned(), workers.into())));
        if let Self::Program(program, concurrency) = self {
            facts.insert("configured".to_owned(), (program.configured)(concurrency).into());
        }
        facts
    }
}

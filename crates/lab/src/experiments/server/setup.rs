//! What a case measures: a server, the number of connections, and whether these stay open.

use contend_record::parameters::{Parameters, names};

use super::client::Reuse;
use super::programs::{self, Concurrency, Program};
use super::table::{self, Model};
use super::{CONNECTIONS, KEEP_ALIVE, MODEL, OFF, PROCESSES, PROGRAM, THREADS};
use crate::engine::experiment::{Facts, SubjectError};
use crate::support::limits::UnitKind;

/// A server, and the connections that it gets.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The server.
    pub server: Server,
    /// Connections, or clients that open one for each request.
    pub connections: u64,
    /// Whether connections stay open.
    pub reuse: Reuse,
}

/// What serves the connections.
#[derive(Debug, Clone, Copy)]
pub enum Server {
    /// One of our own models.
    Model(&'static Model),
    /// A web server that another project makes.
    Program(&'static Program, Concurrency),
}

impl Setup {
    /// Reads the parameters of a case.
    ///
    /// # Errors
    /// Returns an error if there is no such server, or it does not work like this.
    pub fn of(parameters: &Parameters) -> Result<Self, SubjectError> {
        let server = Server::of(parameters)?;
        let reuse = match parameters.text(KEEP_ALIVE.name) {
            Some(OFF) => Reuse::PerRequest,
            Some(_) if server.reuse() == Reuse::PerRequest => {
                let name = server.name();
                let reason = format!("{name} closes each connection after its response");
                return Err(SubjectError::wrong(reason));
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
                .ok_or_else(|| SubjectError::wrong(format!("there is no program {name}")))?;
            let default = (program.default)();
            let concurrency = Concurrency {
                processes: number(PROCESSES.name).unwrap_or(default.processes),
                threads: number(THREADS.name).unwrap_or(default.threads),
            };
            return match (program.refuses)(concurrency) {
                Some(reason) => Err(SubjectError::wrong(reason)),
                None => Ok(Self::Program(program, concurrency)),
            };
        }
        let name = parameters.text(MODEL.name).unwrap_or_default();
        let model = table::find(name)
            .ok_or_else(|| SubjectError::wrong(format!("there is no model {name}")))?;
        if let Some(chosen) =
            [names::PROCESSES, names::THREADS].into_iter().find(|&name| number(name).is_some())
        {
            let reason = format!("models have no parameter {chosen}, only programs do");
            return Err(SubjectError::wrong(reason));
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

    /// Returns what each connection needs, if that is a process or a thread of its own.
    pub fn each(self) -> Option<UnitKind> {
        match self {
            Self::Model(model) => model.each,
            Self::Program(..) => None,
        }
    }

    /// Returns how many persistent connections it serves at the same time, if that is limited by a
    /// pool.
    pub fn members(self) -> Option<u64> {
        match self {
            Self::Model(model) => model.members,
            Self::Program(..) => None,
        }
    }

    /// Returns the number of processes in addition to its first one, without those for connections.
    pub fn other_processes(self) -> u64 {
        match self {
            Self::Model(model) => model.processes,
            Self::Program(program, concurrency) => (program.other_processes)(concurrency),
        }
    }

    /// Returns the number of processes or threads that serve requests, if that is fixed.
    fn workers(self) -> Option<u64> {
        match self {
            Self::Model(model) => model.members,
            Self::Program(_, concurrency) => Some(concurrency.processes * concurrency.threads),
        }
    }

    /// Returns facts for the record: its description, and the unit that serves a request.
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

//! The table of concurrency models, with a row for each.

use std::io;
use std::net::TcpListener;

use super::http::Handler;
use super::models::{POOL_SIZE, callback, process, thread, tokio};
use crate::support::limits::UnitKind;

/// A concurrency model of a server.
#[derive(Debug)]
pub struct Model {
    /// Name of the model, which is its value of the `model` parameter.
    pub name: &'static str,
    /// Description of the model, in one line.
    pub summary: &'static str,
    /// Kind of unit that serves a connection.
    pub unit: &'static str,
    /// Kind of task that each connection has of its own, or `None` if it has none.
    pub each: Option<UnitKind>,
    /// Number of connections that a pool serves at the same time; `None` without a pool.
    pub members: Option<u64>,
    /// Number of processes in addition to the first one, without those of connections.
    pub processes: u64,
    /// Function that serves connections until standard input ends.
    pub serve: Serve,
}

/// Function that serves the connections of a listener.
pub type Serve = fn(TcpListener, Handler) -> io::Result<()>;

/// All models, in display order.
pub const TABLE: &[Model] = &[
    Model {
        name: "process-per-connection",
        summary: "a process forked for each connection",
        unit: "process",
        each: Some(UnitKind::Process),
        members: None,
        processes: 0,
        serve: process::each,
    },
    Model {
        name: "prefork",
        summary: "64 processes, each with one connection at a time",
        unit: "process",
        each: None,
        members: Some(POOL_SIZE),
        processes: POOL_SIZE,
        serve: process::pool,
    },
    Model {
        name: "thread-per-connection",
        summary: "a thread for each connection",
        unit: "thread",
        each: Some(UnitKind::Thread),
        members: None,
        processes: 0,
        serve: thread::each,
    },
    Model {
        name: "thread-pool",
        summary: "64 threads, each with one connection at a time",
        unit: "thread",
        each: None,
        members: Some(POOL_SIZE),
        processes: 0,
        serve: thread::pool,
    },
    Model {
        name: "callback",
        summary: "callback threads of contend-callback, one Worker for each CPU",
        unit: "callback thread",
        each: None,
        members: None,
        processes: 0,
        serve: callback::serve,
    },
    Model {
        name: "tokio",
        summary: "tasks of tokio, one worker thread for each CPU",
        unit: "task",
        each: None,
        members: None,
        processes: 0,
        serve: tokio::serve,
    },
];

/// Returns the model with the given name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static Model> {
    TABLE.iter().find(|model| model.name == name)
}

/// Returns the names of all models.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|model| model.name).collect()
}

//! The table of concurrency models, with a row for each.

use std::io;
use std::net::TcpListener;

use super::http::Handler;
use super::models::{POOL_SIZE, callback, process, thread, tokio};
use crate::support::limits::UnitKind;

/// A concurrency model of a server.
#[derive(Debug)]
pub struct Model {
    /// Name of the model, which is also its value for the `model` parameter.
    pub name: &'static str,
    /// Description of the model, in one line.
    pub summary: &'static str,
    /// Kind of unit that serves a connection.
    pub unit: &'static str,
    /// Kind of task (process or thread) that serves only one connection, or `None` if tasks serve
    /// several.
    pub task_per_connection: Option<UnitKind>,
    /// Number of connections that a pool serves at the same time; `None` without a pool.
    pub pool_size: Option<u64>,
    /// Number of processes in addition to the first one, without those of connections.
    pub processes: u64,
    /// Function that serves connections until standard input ends.
    pub serve: Serve,
}

/// Function that serves the connections of a listener until standard input ends.
pub type Serve = fn(TcpListener, Handler) -> io::Result<()>;

/// All models, in display order.
pub const TABLE: &[Model] = &[
    Model {
        name: "process-per-connection",
        summary: "a process forked for each connection",
        unit: "process",
        task_per_connection: Some(UnitKind::Process),
        pool_size: None,
        processes: 0,
        serve: process::serve_per_connection,
    },
    Model {
        name: "prefork",
        summary: "64 processes, each with one connection at a time",
        unit: "process",
        task_per_connection: None,
        pool_size: Some(POOL_SIZE),
        processes: POOL_SIZE,
        serve: process::serve_with_pool,
    },
    Model {
        name: "thread-per-connection",
        summary: "a thread for each connection",
        unit: "thread",
        task_per_connection: Some(UnitKind::Thread),
        pool_size: None,
        processes: 0,
        serve: thread::serve_per_connection,
    },
    Model {
        name: "thread-pool",
        summary: "64 threads, each with one connection at a time",
        unit: "thread",
        task_per_connection: None,
        pool_size: Some(POOL_SIZE),
        processes: 0,
        serve: thread::serve_with_pool,
    },
    Model {
        name: "callback",
        summary: "callback threads of contend-callback, one Worker for each CPU",
        unit: "callback thread",
        task_per_connection: None,
        pool_size: None,
        processes: 0,
        serve: callback::serve,
    },
    Model {
        name: "tokio",
        summary: "tasks of tokio, one worker thread for each CPU",
        unit: "task",
        task_per_connection: None,
        pool_size: None,
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

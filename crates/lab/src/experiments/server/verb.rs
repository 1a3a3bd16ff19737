//! Hidden command that turns this program into a server, in a process of its own.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZero;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::http::Handler;
use super::limit_reporter::print_line;
use super::models::BACKLOG;
pub use super::programs::Concurrency;
use super::programs::{self, Launch};
use super::{supervisor, table};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// Name of the hidden command that turns this program into a server.
pub const SERVER_VERB: &str = "lab-server";

/// Runs the model or program named `server` on a free loopback port until standard input ends.
/// `concurrency` (`None`: its default) and `connections` configure a program; models ignore them.
///
/// Prints lines that consist of a word and a value:
/// - `port`: the port;
/// - `pid` and `version`: those of a program;
/// - `failed`: why a program has failed;
/// - `stopped`: why a model cannot serve more connections.
///
/// # Errors
/// Returns an error in these cases:
/// - There is no such server or handler.
/// - The limit on open files or the timer slack cannot be set.
/// - The server cannot start, fails or ends early.
pub fn serve(
    server: &str,
    handler: &str,
    concurrency: Option<Concurrency>,
    connections: u64,
) -> Result<(), SubjectError> {
    let found = Handler::find(handler);
    let handler =
        found.ok_or_else(|| SubjectError::unexpected(format!("there is no handler {handler}")))?;
    raise_descriptors().context("raise RLIMIT_NOFILE")?;
    // All servers' processes inherit this: a pause ends on time, not 50 µs later.
    rustix::thread::set_current_timer_slack(NonZero::new(1)).context("set the timer slack")?;
    if let Some(program) = programs::find(server) {
        let concurrency = concurrency.unwrap_or_else(program.default);
        let launch = Launch { port: 0, handler, concurrency, connections };
        return supervisor::serve(program, launch)
            .inspect_err(|error| drop(print_line(&format!("failed {error}"))));
    }
    let model = table::find(server)
        .ok_or_else(|| SubjectError::unexpected(format!("there is no server {server}")))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listen")?;
    rustix::net::listen(&listener, BACKLOG).context("listen")?;
    let port = listener.local_addr().context("find its port")?.port();
    print_line(&format!("port {port}")).context("print its port")?;
    (model.serve)(listener, handler).context("serve")
}

/// Raises the soft limit on open files of this process to its hard limit.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub fn raise_descriptors() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

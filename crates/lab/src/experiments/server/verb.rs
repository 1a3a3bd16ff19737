//! A server that is this program itself, in a process of its own.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZero;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::http::Handler;
use super::limit_reporter::print_line;
use super::table;
use crate::engine::experiment::{Attempt, SubjectError};

/// The hidden verb with which this program becomes a server.
pub const VERB: &str = "lab-server";

/// Connections that may wait to be accepted; the kernel makes it `net.core.somaxconn` at most.
const BACKLOG: i32 = 65_535;

/// Listens on a port of its own on loopback, prints that, and serves until standard input ends. What stands in
/// its way it prints once, as `stopped` and the reason.
///
/// # Errors
/// When there is no such model or answer, or it cannot listen or start.
pub fn serve(model: &str, handler: &str) -> Result<(), SubjectError> {
    let found = table::find(model);
    let model = found.ok_or_else(|| SubjectError::wrong(format!("there is no model {model}")))?;
    let found = Handler::find(handler);
    let handler =
        found.ok_or_else(|| SubjectError::wrong(format!("there is no answer {handler}")))?;
    raise_descriptors().attempt("raise RLIMIT_NOFILE")?;
    // For all models alike, and inherited by what they start: a pause is to end when it is over, not 50 µs later.
    rustix::thread::set_current_timer_slack(NonZero::new(1)).attempt("set the timer slack")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).attempt("listen")?;
    rustix::net::listen(&listener, BACKLOG).attempt("listen")?;
    let port = listener.local_addr().attempt("find its port")?.port();
    print_line(&format!("port {port}")).attempt("say its port")?;
    (model.serve)(listener, handler).attempt("serve")
}

/// Raises the limit on open files of this process as far as it may.
///
/// # Errors
/// What the kernel says.
pub fn raise_descriptors() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

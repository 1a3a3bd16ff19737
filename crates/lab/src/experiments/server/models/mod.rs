//! The models, one file each; those that have processes share one, and those that have threads.

pub mod callback;
pub mod process;
pub mod thread;
pub mod tokio;

use std::io;
use std::net::TcpStream;

use super::http::{ConnectionState, HANDLER_DELAY, Handler, WaitFor, advance};

/// Connections that wait to be accepted at most; `net.core.somaxconn` is the upper bound.
pub const BACKLOG: i32 = 65_535;

/// Members of a pool: as many as web servers are told to have on large machines.
pub const POOL_SIZE: u64 = 64;

/// Serves a connection whose reads and writes block, until its end.
fn serve_connection(stream: &TcpStream, handler: Handler) {
    let mut state = ConnectionState::default();
    let mut stream = stream;
    while let Some(waits) = advance(&mut state, &mut stream, handler) {
        if waits == WaitFor::Pause {
            std::thread::sleep(HANDLER_DELAY);
        }
    }
}

/// Waits until standard input ends, which is when the server is to end.
fn wait_for_stdin_eof() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

//! Concurrency models of contend's own servers. Both models with processes share a file, and so do
//! those with threads.

pub mod callback;
pub mod process;
pub mod thread;
pub mod tokio;

use std::io;
use std::net::TcpStream;

use super::http::{ConnectionState, HANDLER_DELAY, Handler, WaitFor, advance};

/// Length of the accept queue; the kernel caps it at `net.core.somaxconn`.
pub const BACKLOG: i32 = 65_535;

/// Number of processes or threads in a pool, as web servers have on large machines.
pub const POOL_SIZE: u64 = 64;

/// Serves a connection with blocking reads and writes until it must be closed.
fn serve_connection(stream: &TcpStream, handler: Handler) {
    let mut state = ConnectionState::default();
    let mut stream = stream;
    while let Some(waits) = advance(&mut state, &mut stream, handler) {
        if waits == WaitFor::Pause {
            std::thread::sleep(HANDLER_DELAY);
        }
    }
}

/// Blocks until standard input ends, which tells the server to end.
fn wait_for_stdin_eof() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

//! Servers with a thread for each connection or a fixed number of threads.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::Builder;

use super::super::http::Handler;
use super::super::limit_reporter::LimitReporter;
use super::super::unit::STACK_BYTES;
use super::{POOL_SIZE, serve_connection, wait_for_stdin_eof};
use crate::support::limits::UnitKind;

/// Accepts connections until standard input ends, and starts a thread for each, which ends when the
/// connection is closed.
///
/// # Errors
/// Returns an error if the accepting thread cannot be started, or standard input cannot be read. A
/// failure to start the thread of a connection is reported as a limit instead.
pub fn serve_per_connection(listener: TcpListener, handler: Handler) -> io::Result<()> {
    let reporter = LimitReporter::watch(Some(UnitKind::Thread));
    Builder::new().spawn(move || {
        loop {
            let Some(stream) = reporter.accept(&listener) else { continue };
            let thread = Builder::new().stack_size(STACK_BYTES);
            let started = thread.spawn(move || serve_connection(&stream, handler));
            if let Err(error) = started {
                reporter.report("start a thread", &error);
            }
        }
    })?;
    wait_for_stdin_eof()
}

/// Starts a fixed number of threads, and waits until standard input ends. Each of them serves one
/// connection until that is closed, and then the next.
///
/// # Errors
/// Returns an error if a thread cannot be started, or standard input cannot be read.
pub fn serve_with_pool(listener: TcpListener, handler: Handler) -> io::Result<()> {
    let shared = Arc::new((listener, LimitReporter::watch(Some(UnitKind::Thread))));
    for _ in 0..POOL_SIZE {
        let shared = Arc::clone(&shared);
        Builder::new().stack_size(STACK_BYTES).spawn(move || {
            loop {
                let stream: Option<TcpStream> = shared.1.accept(&shared.0);
                if let Some(stream) = stream {
                    serve_connection(&stream, handler);
                }
            }
        })?;
    }
    wait_for_stdin_eof()
}

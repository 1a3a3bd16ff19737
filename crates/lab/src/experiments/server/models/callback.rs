//! Callback threads: a waiting connection is a closure that owns its descriptor and its state.
//!
//! One unit accepts connections and passes them round robin to a unit on each Worker, which spawns
//! a unit for the connection there.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use contend_callback::{Address, Context, Interest, Never, Next, Receptor, SendError, Source};

use super::super::http::{ConnectionState, HANDLER_DELAY, Handler, Stream, WaitFor, advance};
use super::super::limit_reporter::{LimitReporter, is_connection_error};
use super::wait_for_stdin_eof;

/// Serves connections with one Worker for each CPU until standard input ends.
///
/// # Errors
/// Returns an error if a Worker or one of its first units cannot be started, or standard input
/// cannot be read.
pub fn serve(listener: TcpListener, handler: Handler) -> io::Result<()> {
    // Connections may use up the descriptors before the last Worker has got its first one.
    let receptor = Receptor::builder().enable_io().start()?;
    let reporter = Arc::new(LimitReporter::watch(None));
    let mut workers = Vec::new();
    for worker in 0..receptor.workers() {
        let reporter = Arc::clone(&reporter);
        let add = move |context: &mut Context<'_, TcpStream>| {
            context.receive(move |context, stream| {
                add_connection(context, stream, handler, &reporter);
                context.keep_receiving()
            })
        };
        workers.push(receptor.spawn_on(worker, add).map_err(io::Error::other)?);
    }
    let acceptor = Box::new(Acceptor { workers, next: 0, reporter });
    let begin = move |context: &mut Context<'_>| match context.register(listener) {
        Ok(listener) => accept(context, listener, acceptor),
        Err(error) => {
            acceptor.reporter.report("register", &error);
            context.end()
        }
    };
    receptor.spawn_on::<Never, _>(0, begin).map_err(io::Error::other)?;
    wait_for_stdin_eof()
}

/// State of the unit that accepts connections.
struct Acceptor {
    /// Addresses of the units, one on each Worker, that add connections there.
    workers: Vec<Address<TcpStream>>,
    /// Index of the Worker that gets the next connection (round robin).
    next: usize,
    reporter: Arc<LimitReporter>,
}

fn accept(
    context: &mut Context<'_>,
    listener: Source<TcpListener>,
    mut acceptor: Box<Acceptor>,
) -> Next {
    match context.attempt(&listener, Interest::Read, TcpListener::accept) {
        Ok((stream, _)) => {
            let to = acceptor.workers[acceptor.next];
            acceptor.next = (acceptor.next + 1) % acceptor.workers.len();
            return pass_on(context, listener, acceptor, to, stream);
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock || is_connection_error(&error) => {}
        // Usually the process is out of descriptors. Open connections are still served.
        Err(error) => {
            acceptor.reporter.report("accept", &error);
            return context.after(HANDLER_DELAY, |context| accept(context, listener, acceptor));
        }
    }
    context.when_ready(listener, Interest::Read, |context, listener| {
        accept(context, listener, acceptor)
    })
}

/// Sends the connection `stream` to the unit at `to`, which adds it to its Worker. Then waits for
/// the next connection. If the Worker's inbox is full, tries again when it has room. If the unit
/// cannot receive the connection, reports that and closes the connection.
fn pass_on(
    context: &mut Context<'_>,
    listener: Source<TcpListener>,
    acceptor: Box<Acceptor>,
    to: Address<TcpStream>,
    stream: TcpStream,
) -> Next {
    match context.send(to, stream) {
        Ok(()) => {}
        Err(SendError::Full(stream)) => {
            return context
                .when_room(move |context| pass_on(context, listener, acceptor, to, stream));
        }
        Err(error) => acceptor.reporter.report("hand over", &io::Error::other(error.to_string())),
    }
    // Return to the event loop before the next accept, so that other units get their turn.
    context.when_ready(listener, Interest::Read, |context, listener| {
        accept(context, listener, acceptor)
    })
}

/// Spawns a unit for a connection. On failure the connection is dropped, which closes it.
fn add_connection(
    context: &mut Context<'_, TcpStream>,
    stream: TcpStream,
    handler: Handler,
    reporter: &LimitReporter,
) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let source = match context.register(stream) {
        Ok(source) => source,
        Err(error) => return reporter.report("register", &error),
    };
    let spawned = match handler {
        Handler::Hello => {
            context.spawn(|context| hello(context, source, ConnectionState::default()))
        }
        Handler::Wait => context.spawn(|context| wait(context, source, ConnectionState::default())),
    };
    if let Err(error) = spawned {
        reporter.report("spawn", &io::Error::other(error.to_string()));
    }
}

/// Serves a connection with [`Handler::Hello`], as the callback of its unit. Each handler has a
/// callback of its own: with a common one, every unit would have to store its handler.
fn hello(context: &mut Context<'_>, source: Source<TcpStream>, state: ConnectionState) -> Next {
    advance_connection(context, source, state, Handler::Hello, hello)
}

fn wait(context: &mut Context<'_>, source: Source<TcpStream>, state: ConnectionState) -> Next {
    advance_connection(context, source, state, Handler::Wait, wait)
}

/// Serves a connection until it has to wait, and arranges for `then` to run at the event that it
/// waits for. Ends the unit if the connection must be closed.
fn advance_connection<F>(
    context: &mut Context<'_>,
    source: Source<TcpStream>,
    mut state: ConnectionState,
    handler: Handler,
    then: F,
) -> Next
where
    F: FnOnce(&mut Context<'_>, Source<TcpStream>, ConnectionState) -> Next + Send + 'static,
{
    let mut stream = WorkerStream { context: &mut *context, source: &source };
    let interest = match advance(&mut state, &mut stream, handler) {
        None => return context.end(),
        Some(WaitFor::Pause) => {
            return context.after(HANDLER_DELAY, |context| then(context, source, state));
        }
        Some(WaitFor::Read) => Interest::Read,
        Some(WaitFor::Write) => Interest::Write,
    };
    if state.is_empty() {
        // The empty state is not moved into the closure, so it takes no memory.
        return context.when_ready(source, interest, |context, source| {
            then(context, source, ConnectionState::default())
        });
    }
    context.when_ready(source, interest, |context, source| then(context, source, state))
}

/// A connection on a Worker. Its reads and writes tell the Worker when they would block.
struct WorkerStream<'a, 'b> {
    context: &'a mut Context<'b>,
    source: &'a Source<TcpStream>,
}

impl Read for WorkerStream<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = into.len();
        let read = |mut stream: &TcpStream| stream.read(into);
        let read = self.context.attempt(self.source, Interest::Read, read)?;
        if read < room {
            self.context.drained(self.source);
        }
        Ok(read)
    }
}

impl Write for WorkerStream<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.attempt(self.source, Interest::Write, |mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for WorkerStream<'_, '_> {
    fn finish(&mut self) -> io::Result<()> {
        self.source.get().shutdown(Shutdown::Write)
    }
}

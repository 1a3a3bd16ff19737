//! Callback threads: a connection that waits is a closure with its descriptor, and what has begun on it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use contend_callback::{Address, Context, Interest, Never, Next, Receptor, SendError, Source};

use super::super::http::{ConnectionState, HANDLER_DELAY, Handler, Stream, WaitFor, advance};
use super::super::limit_reporter::{LimitReporter, concerns_one};
use super::wait_for_stdin_eof;

/// Serves with a Worker for each CPU.
///
/// # Errors
/// When a Worker cannot be started.
pub fn serve(listener: TcpListener, handler: Handler) -> io::Result<()> {
    let receptor = Receptor::start()?;
    let reporter = Arc::new(LimitReporter::watch(None));
    let mut workers = Vec::new();
    for worker in 0..receptor.workers() {
        let reporter = Arc::clone(&reporter);
        let takes = move |context: &mut Context<'_, TcpStream>| {
            context.receive(move |context, stream| {
                add_connection(context, stream, handler, &reporter);
                context.keep_receiving()
            })
        };
        workers.push(receptor.spawn_on(worker, takes).map_err(io::Error::other)?);
    }
    let entrance = Box::new(Entrance { workers, next: 0, reporter });
    let begin = move |context: &mut Context<'_>| match context.register(listener) {
        Ok(listener) => accept(context, listener, entrance),
        Err(error) => {
            entrance.reporter.report("register", &error);
            context.end()
        }
    };
    receptor.spawn_on::<Never, _>(0, begin).map_err(io::Error::other)?;
    wait_for_stdin_eof()
}

/// Where connections come in.
struct Entrance {
    /// Who takes them in on each Worker.
    workers: Vec<Address<TcpStream>>,
    /// Whose turn it is, so that all Workers have as many connections.
    next: usize,
    reporter: Arc<LimitReporter>,
}

fn accept(
    context: &mut Context<'_>,
    listener: Source<TcpListener>,
    mut entrance: Box<Entrance>,
) -> Next {
    match context.attempt(&listener, Interest::Read, TcpListener::accept) {
        Ok((stream, _)) => {
            let to = entrance.workers[entrance.next];
            entrance.next = (entrance.next + 1) % entrance.workers.len();
            return pass_on(context, listener, entrance, to, stream);
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock || concerns_one(&error) => {}
        // Out of descriptors, above all: those that are open go on.
        Err(error) => {
            entrance.reporter.report("accept", &error);
            return context.after(HANDLER_DELAY, |context| accept(context, listener, entrance));
        }
    }
    context.when_ready(listener, Interest::Read, |context, listener| {
        accept(context, listener, entrance)
    })
}

/// Gives a connection to a Worker, when that has room for it.
fn pass_on(
    context: &mut Context<'_>,
    listener: Source<TcpListener>,
    entrance: Box<Entrance>,
    to: Address<TcpStream>,
    stream: TcpStream,
) -> Next {
    match context.send(to, stream) {
        Ok(()) => {}
        Err(SendError::Full(stream)) => {
            return context
                .when_room(move |context| pass_on(context, listener, entrance, to, stream));
        }
        Err(error) => entrance.reporter.report("hand over", &io::Error::other(error.to_string())),
    }
    // If there is one more, it comes behind what others have to do.
    context.when_ready(listener, Interest::Read, |context, listener| {
        accept(context, listener, entrance)
    })
}

/// What cannot be taken in is dropped, which closes it: its client is told.
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

/// Two functions rather than one that is told what to answer, since what is told would have to be state.
fn hello(context: &mut Context<'_>, source: Source<TcpStream>, state: ConnectionState) -> Next {
    advance_connection(context, source, state, Handler::Hello, hello)
}

fn wait(context: &mut Context<'_>, source: Source<TcpStream>, state: ConnectionState) -> Next {
    advance_connection(context, source, state, Handler::Wait, wait)
}

/// Goes on with a conversation, and then waits for what it needs.
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
        // What is not moved into the closure is not state.
        return context.when_ready(source, interest, |context, source| {
            then(context, source, ConnectionState::default())
        });
    }
    context.when_ready(source, interest, |context, source| then(context, source, state))
}

/// A connection whose Worker is told when something would have blocked.
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

//! Callback threads: a connection that waits is a closure with its descriptor, and what has begun on it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use contend_callback::{Address, Context, Interest, Never, Next, Receptor, SendError, Source};

use super::super::exhaustion::{Trouble, concerns_one};
use super::super::http::{Answer, Kept, PAUSE, Stream, Waits, advance};
use super::until_told;

/// Serves with a Worker for each CPU.
///
/// # Errors
/// When a Worker cannot be started.
pub fn serve(listener: TcpListener, answer: Answer) -> io::Result<()> {
    let receptor = Receptor::start()?;
    let trouble = Arc::new(Trouble::watch(None));
    let mut workers = Vec::new();
    for worker in 0..receptor.workers() {
        let trouble = Arc::clone(&trouble);
        let takes = move |context: &mut Context<'_, TcpStream>| {
            context.receive(move |context, stream| {
                take_in(context, stream, answer, &trouble);
                context.keep_receiving()
            })
        };
        workers.push(receptor.spawn_on(worker, takes).map_err(io::Error::other)?);
    }
    let entrance = Box::new(Entrance { workers, next: 0, trouble });
    let begin = move |context: &mut Context<'_>| match context.register(listener) {
        Ok(listener) => accept(context, listener, entrance),
        Err(error) => {
            entrance.trouble.tell("register", &error);
            context.end()
        }
    };
    receptor.spawn_on::<Never, _>(0, begin).map_err(io::Error::other)?;
    until_told()
}

/// Where connections come in.
struct Entrance {
    /// Who takes them in on each Worker.
    workers: Vec<Address<TcpStream>>,
    /// Whose turn it is, so that all Workers have as many connections.
    next: usize,
    trouble: Arc<Trouble>,
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
            return hand_over(context, listener, entrance, to, stream);
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock || concerns_one(&error) => {}
        // Out of descriptors, above all: those that are open go on.
        Err(error) => {
            entrance.trouble.tell("accept", &error);
            return context.after(PAUSE, |context| accept(context, listener, entrance));
        }
    }
    context.when_ready(listener, Interest::Read, |context, listener| {
        accept(context, listener, entrance)
    })
}

/// Gives a connection to a Worker, when that has room for it.
fn hand_over(
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
                .when_room(move |context| hand_over(context, listener, entrance, to, stream));
        }
        Err(error) => entrance.trouble.tell("hand over", &io::Error::other(error.to_string())),
    }
    // If there is one more, it comes behind what others have to do.
    context.when_ready(listener, Interest::Read, |context, listener| {
        accept(context, listener, entrance)
    })
}

/// What cannot be taken in is dropped, which closes it: its client is told.
fn take_in(
    context: &mut Context<'_, TcpStream>,
    stream: TcpStream,
    answer: Answer,
    trouble: &Trouble,
) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let source = match context.register(stream) {
        Ok(source) => source,
        Err(error) => return trouble.tell("register", &error),
    };
    let spawned = match answer {
        Answer::Hello => context.spawn(|context| hello(context, source, Kept::default())),
        Answer::Wait => context.spawn(|context| wait(context, source, Kept::default())),
    };
    if let Err(error) = spawned {
        trouble.tell("spawn", &io::Error::other(error.to_string()));
    }
}

/// Two functions rather than one that is told what to answer, since what is told would have to be kept.
fn hello(context: &mut Context<'_>, source: Source<TcpStream>, kept: Kept) -> Next {
    go_on(context, source, kept, Answer::Hello, hello)
}

fn wait(context: &mut Context<'_>, source: Source<TcpStream>, kept: Kept) -> Next {
    go_on(context, source, kept, Answer::Wait, wait)
}

/// Goes on with a conversation, and then waits for what it needs.
fn go_on<F>(
    context: &mut Context<'_>,
    source: Source<TcpStream>,
    mut kept: Kept,
    answer: Answer,
    then: F,
) -> Next
where
    F: FnOnce(&mut Context<'_>, Source<TcpStream>, Kept) -> Next + Send + 'static,
{
    let mut stream = OnWorker { context: &mut *context, source: &source };
    let interest = match advance(&mut kept, &mut stream, answer) {
        None => return context.end(),
        Some(Waits::Pause) => {
            return context.after(PAUSE, |context| then(context, source, kept));
        }
        Some(Waits::Read) => Interest::Read,
        Some(Waits::Write) => Interest::Write,
    };
    if kept.is_nothing() {
        // What is not moved into the closure is not kept.
        return context.when_ready(source, interest, |context, source| {
            then(context, source, Kept::default())
        });
    }
    context.when_ready(source, interest, |context, source| then(context, source, kept))
}

/// A connection whose Worker is told when something would have blocked.
struct OnWorker<'a, 'b> {
    context: &'a mut Context<'b>,
    source: &'a Source<TcpStream>,
}

impl Read for OnWorker<'_, '_> {
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

impl Write for OnWorker<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.context.attempt(self.source, Interest::Write, |mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for OnWorker<'_, '_> {
    fn finish(&mut self) -> io::Result<()> {
        self.source.get().shutdown(Shutdown::Write)
    }
}

//! A line-based chat server, which forwards each line to all other guests. A guest leaves with
//! `/quit`.
//!
//! ```text
//! cargo run --release -p contend-callback --example chat [ADDRESS]
//! ```
//!
//! The server exits when its standard input ends (Ctrl-D). Try it with `nc 127.0.0.1 7000`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;

use contend_callback::{Address, Context, Id, Interest, Next, Receptor, Source};

/// Maximum length of a guest's unfinished line, in bytes.
const MAX_LINE_BYTES: usize = 4096;
/// Maximum number of lines stashed for a guest that does not read; further lines are dropped.
const MAX_BACKLOG_LINES: usize = 1000;

/// A message to the room.
enum Event {
    Came(Id, Address<Arc<str>>),
    Said(Id, String),
    Left(Id),
}

/// Runs the room, which keeps the list of guests and forwards their lines.
fn room(context: &mut Context<'_, Event>) -> Next {
    let mut guests: HashMap<Id, Address<Arc<str>>> = HashMap::new();
    context.receive(move |context, event| {
        let (from, line) = match event {
            Event::Came(id, writer) => {
                context.monitor(id, |down| Event::Left(down.id));
                guests.insert(id, writer);
                (id, format!("* {id} joined; {} are here\n", guests.len()))
            }
            Event::Said(id, line) => (id, format!("{id}: {line}\n")),
            Event::Left(id) => {
                guests.remove(&id);
                (id, format!("* {id} has left\n"))
            }
        };
        let line: Arc<str> = line.into();
        let others = guests.iter().filter(|(id, _)| **id != from);
        for (_, &writer) in others {
            // An error means that this guest is leaving; the room receives its end.
            context.send(writer, Arc::clone(&line)).unwrap_or(());
        }
        context.keep_receiving()
    })
}

/// Reads a guest's lines and sends them to the room. Always ends with a failure, so that the linked
/// writer ends, too.
fn read(
    context: &mut Context<'_>,
    source: Source<TcpStream>,
    mut rest: Vec<u8>,
    to: Address<Event>,
) -> Next {
    let mut buffer = [0; 1024];
    match context.attempt(&source, Interest::Read, |mut stream| stream.read(&mut buffer)) {
        Ok(0) => return context.fail("the guest disconnected"),
        Ok(read) => rest.extend_from_slice(&buffer[..read]),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(_) => return context.fail("the guest disconnected"),
    }
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        let line: Vec<u8> = rest.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if line == "/quit" {
            return context.fail("the guest has left");
        }
        let said = Event::Said(context.id(), line);
        if context.send(to, said).is_err() {
            return context.fail("the room is closed");
        }
    }
    if rest.len() > MAX_LINE_BYTES {
        return context.fail("a line is too long");
    }
    // If there is more input, let other callback threads run first, so that no guest occupies the
    // Worker.
    context
        .when_ready(source, Interest::Read, move |context, source| read(context, source, rest, to))
}

/// Writes `line` to a guest, beginning at byte `from`, then further lines as they arrive. These are
/// stashed while the guest does not read.
fn write(
    context: &mut Context<'_, Arc<str>>,
    source: Source<TcpStream>,
    line: &Arc<str>,
    mut from: usize,
) -> Next {
    while from < line.len() {
        let rest = &line.as_bytes()[from..];
        match context.attempt(&source, Interest::Write, |mut stream| stream.write(rest)) {
            Ok(written) => from += written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let line = Arc::clone(line);
                return context.when_ready(source, Interest::Write, move |context, source| {
                    write(context, source, &line, from)
                });
            }
            Err(_) => return context.fail("the guest disconnected"),
        }
    }
    context.receive_once(|context, line| write(context, source, &line, 0))
}

/// Starts a guest: one callback thread that reads and one that writes, linked to each other.
fn welcome(context: &mut Context<'_>, stream: TcpStream, to: Address<Event>) -> io::Result<()> {
    let (reading, writing) = (context.register(stream.try_clone()?)?, context.register(stream)?);
    let writer = context.spawn_receiving(|context| write(context, writing, &Arc::from(""), 0));
    let writer = writer.map_err(io::Error::other)?;
    let reader = context.spawn(move |context| {
        context.link(writer.id());
        if context.send(to, Event::Came(context.id(), writer)).is_err() {
            return context.fail("the room is closed");
        }
        read(context, reading, Vec::new(), to)
    });
    reader.map(drop).map_err(io::Error::other)
}

fn accept(context: &mut Context<'_>, listener: Source<TcpListener>, to: Address<Event>) -> Next {
    match context.attempt(&listener, Interest::Read, TcpListener::accept) {
        Ok((stream, _)) => {
            if let Err(error) = welcome(context, stream, to) {
                println!("a guest is turned away: {error}");
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => return context.fail(&error.to_string()),
    }
    context.when_ready(listener, Interest::Read, move |context, listener| {
        accept(context, listener, to)
    })
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    let listener = TcpListener::bind(&address).map_err(|error| format!("{address}: {error}"))?;
    println!("listening on {}", listener.local_addr()?);
    // All guests share the room's Worker: a chat does not need a second one.
    let receptor = Receptor::builder().workers(1).stash_capacity(MAX_BACKLOG_LINES).start()?;
    let room = receptor.spawn_receiving(room)?;
    receptor.spawn(move |context| match context.register(listener) {
        Ok(source) => accept(context, source, room),
        Err(error) => context.fail(&error.to_string()),
    })?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

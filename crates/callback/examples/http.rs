//! A hello-world HTTP server with keep-alive.
//!
//! ```text
//! cargo run --release -p contend-callback --example http [ADDRESS]
//! ```
//!
//! The server exits when its standard input ends (Ctrl-D).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

use contend_callback::{Context, Interest, Never, Next, Receptor, Source};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nhello\r\n";
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// Maximum length of an incomplete request head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The state that a connection keeps from one callback to the next; empty most of the time.
#[derive(Default)]
struct Connection {
    /// The bytes read so far of an incomplete request.
    incoming: Vec<u8>,
    /// Responses that have not been written yet.
    outgoing: Vec<u8>,
    /// Whether to close the connection once `outgoing` has been written.
    closes: bool,
}

impl Connection {
    /// Processes new input: appends a response to `outgoing` for each complete request, and keeps
    /// the rest in `incoming`. If the rest is longer than `MAX_HEAD_BYTES`, rejects it and requests
    /// that the connection be closed.
    fn take(&mut self, bytes: &[u8]) {
        // Usually, whole requests arrive, and nothing is stored.
        let whole;
        let bytes = if self.incoming.is_empty() {
            bytes
        } else {
            self.incoming.extend_from_slice(bytes);
            whole = std::mem::take(&mut self.incoming);
            &whole
        };
        let mut begin = 0;
        while let Some(length) = head_length(&bytes[begin..]) {
            let head = &bytes[begin..begin + length];
            self.closes |=
                head.windows(17).any(|part| part.eq_ignore_ascii_case(b"connection: close"));
            self.outgoing.extend_from_slice(ANSWER);
            begin += length;
        }
        if bytes.len() - begin > MAX_HEAD_BYTES {
            self.outgoing.extend_from_slice(TOO_LARGE);
            self.closes = true;
        } else {
            self.incoming = bytes[begin..].to_vec();
        }
    }
}

/// Returns the length in bytes of the request head at the start of `bytes`, including the empty
/// line, or `None` if the head is incomplete.
fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4)
}

fn serve(context: &mut Context<'_>, source: Source<TcpStream>, mut is: Connection) -> Next {
    let mut buffer = [0; 4096];
    let mut has_read = false;
    loop {
        while !is.outgoing.is_empty() {
            let write = |mut stream: &TcpStream| stream.write(&is.outgoing);
            match context.attempt(&source, Interest::Write, write) {
                Ok(written) => drop(is.outgoing.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return wait(context, source, Interest::Write, is);
                }
                Err(_) => return context.end(),
            }
        }
        if is.closes {
            return context.end();
        }
        if has_read {
            return wait(context, source, Interest::Read, is); // let other connections run
        }
        match context.attempt(&source, Interest::Read, |mut stream| stream.read(&mut buffer)) {
            Ok(0) => return context.end(),
            Ok(read) => is.take(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return context.end(),
        }
        has_read = true;
    }
}

/// Waits until the connection is ready for `interest`, then serves it again.
fn wait(
    context: &mut Context<'_>,
    source: Source<TcpStream>,
    interest: Interest,
    is: Connection,
) -> Next {
    if is.outgoing.is_empty() && is.incoming.is_empty() {
        // An idle connection has no buffers.
        return context.when_ready(source, interest, |context, source| {
            serve(context, source, Connection::default())
        });
    }
    let is = Box::new(is);
    context.when_ready(source, interest, |context, source| serve(context, source, *is))
}

fn accept(context: &mut Context<'_>, listener: Source<TcpListener>) -> Next {
    match context.attempt(&listener, Interest::Read, TcpListener::accept) {
        Ok((stream, _)) => {
            let begin = |context: &mut Context<'_>| {
                let nodelay = stream.set_nodelay(true);
                match nodelay.and_then(|()| context.register(stream)) {
                    Ok(source) => serve(context, source, Connection::default()),
                    Err(_) => context.end(),
                }
            };
            if context.spawn(begin).is_err() {
                println!("there is no room for one more connection");
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        // Usually, the process is out of descriptors: pause, and keep serving the open connections.
        Err(error) => {
            println!("cannot accept: {error}");
            let pause = std::time::Duration::from_millis(100);
            return context.after(pause, |context| accept(context, listener));
        }
    }
    // If there is another connection, let other callback threads run first.
    context.when_ready(listener, Interest::Read, accept)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("http: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(&address).map_err(|error| format!("{address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    // Connections to one Worker may use up the descriptors before another has its epoll instance.
    let receptor = Receptor::builder().enable_io().start()?;
    // All Workers wait for connections; whichever calls `accept` first gets one.
    for worker in 0..receptor.workers() {
        let listener = listener.try_clone()?;
        receptor.spawn_on::<Never, _>(worker, |context| match context.register(listener) {
            Ok(source) => accept(context, source),
            Err(error) => context.fail(&error.to_string()),
        })?;
    }
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

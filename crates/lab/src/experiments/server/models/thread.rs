//! Threads: one for every connection, or a fixed number that take turns.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::Builder;

use super::super::exhaustion::Trouble;
use super::super::http::Answer;
use super::super::unit::STACK;
use super::{MEMBERS, converse, until_told};
use crate::support::limits::Kind;

/// A thread for every connection.
///
/// # Errors
/// When the one that accepts cannot be started.
pub fn each(listener: TcpListener, answer: Answer) -> io::Result<()> {
    let trouble = Trouble::watch(Some(Kind::Thread));
    Builder::new().spawn(move || {
        loop {
            let Some(stream) = trouble.accept(&listener) else { continue };
            let thread = Builder::new().stack_size(STACK);
            let begun = thread.spawn(move || converse(&stream, answer));
            if let Err(error) = begun {
                trouble.tell("start a thread", &error);
            }
        }
    })?;
    until_told()
}

/// A fixed number of threads, each with one connection until that is closed.
///
/// # Errors
/// When not all can be started.
pub fn pool(listener: TcpListener, answer: Answer) -> io::Result<()> {
    let shared = Arc::new((listener, Trouble::watch(Some(Kind::Thread))));
    for _ in 0..MEMBERS {
        let shared = Arc::clone(&shared);
        Builder::new().stack_size(STACK).spawn(move || {
            loop {
                let stream: Option<TcpStream> = shared.1.accept(&shared.0);
                if let Some(stream) = stream {
                    converse(&stream, answer);
                }
            }
        })?;
    }
    until_told()
}

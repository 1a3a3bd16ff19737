//! The models, one file each; those that have processes share one, and those that have threads.

pub mod callback;
pub mod process;
pub mod thread;
pub mod tokio;

use std::io;
use std::net::TcpStream;

use super::http::{Answer, Kept, PAUSE, Waits, advance};

/// Serves a connection whose reads and writes block, until its end.
fn converse(stream: &TcpStream, answer: Answer) {
    let mut kept = Kept::default();
    let mut stream = stream;
    while let Some(waits) = advance(&mut kept, &mut stream, answer) {
        if waits == Waits::Pause {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Waits until standard input ends, which is when the server is to end.
fn until_told() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

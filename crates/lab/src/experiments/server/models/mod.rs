//! The models, one file each; those that have processes share one, and those that have threads.

pub mod callback;
pub mod process;
pub mod thread;
pub mod tokio;

use std::io;
use std::net::TcpStream;

use super::http::{Answer, Kept, PAUSE, Waits, advance};

/// Members of a pool: as many as web servers are told to have on large machines.
pub const MEMBERS: u64 = 64;

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

//! Clients, on servers that behave badly.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Reuse;
use super::clients::Clients;
use super::http::{ConnectionState, Handler, advance};

/// A server of one thread for all connections, which stands still for a time when so many requests
/// were read.
fn serve_and_stall(connections: usize, stall_at: u64, stall: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    thread::spawn(move || {
        let mut streams: Vec<(TcpStream, ConnectionState)> = (0..connections)
            .map(|_| (listener.accept().expect("a client").0, ConnectionState::default()))
            .collect();
        for (stream, _) in &streams {
            stream.set_nonblocking(true).expect("a socket");
        }
        let mut asked = 0;
        // One thread has all, so that all stand still with it.
        while !streams.is_empty() {
            streams.retain_mut(|(stream, kept)| {
                let mut counted = Counted { stream, asked: &mut asked };
                advance(kept, &mut counted, Handler::Hello).is_some()
            });
            if asked >= stall_at {
                thread::sleep(stall);
                asked = 0; // once is enough: it is never so many again
            }
            thread::sleep(Duration::from_micros(100));
        }
    });
    port
}

/// Counts what is read.
struct Counted<'a> {
    stream: &'a TcpStream,
    asked: &'a mut u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stream.read(into)?;
        *self.asked += 1;
        Ok(read)
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl super::http::Stream for Counted<'_> {
    fn finish(&mut self) -> std::io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }
}

#[test]
fn requests_that_a_stall_has_held_up_are_all_late() {
    const STALL: Duration = Duration::from_millis(400);
    let port = serve_and_stall(4, 200, STALL);
    let mut clients = Clients::open(port, 4, Reuse::Persistent).expect("clients");
    assert_eq!(clients.ask_all(Duration::from_secs(5)).expect("answers"), 4);
    // 350 requests: the server stops at about the 196th, so that nearly all of the others are due
    // meanwhile.
    let patience = Duration::from_secs(10);
    let rated = clients.at_rate(350.0, Duration::from_secs(1), patience).expect("answers");
    assert_eq!((rated.answered, rated.unanswered), (350, 0));
    assert_eq!(rated.times.len(), 350);
    // Of a generator that waits for answers four would have been late, one for each connection.
    // Here those that were due in the first half of the stall have waited for more than the second
    // half of it.
    let half = u64::try_from(STALL.as_nanos() / 2).expect("a number");
    let late = rated.times.count_between(half, u64::MAX);
    assert!(late >= 50, "{late} of them were late");
    assert!(rated.times.max() >= half * 2 * 9 / 10, "{}", rated.times.max());
}

#[test]
fn requests_that_nobody_answers_are_told_with_the_time_that_they_had() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let mut clients = Clients::open(port, 3, Reuse::Persistent).expect("the kernel takes them");
    assert_eq!((clients.opened(), clients.failed), (3, 0));
    let (lasts, patience) = (Duration::from_millis(100), Duration::from_millis(100));
    let rated = clients.at_rate(100.0, lasts, patience).expect("a wait");
    assert_eq!((rated.answered, rated.unanswered, rated.times.len()), (0, 10, 10));
    assert!(rated.times.min() >= 90_000_000, "{}", rated.times.min());
    // They have been left, and nothing more is asked on them.
    assert_eq!(clients.flat_out(lasts).expect("no wait").answered, 0);
    assert_eq!(clients.ask_all(patience).expect("no wait"), 0);
}

#[test]
fn what_is_no_answer_is_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let server = thread::spawn(move || {
        for says in ["HTTP/1.1 404 Not Found\r\n\r\n", ""] {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 100]).expect("a request");
            stream.write_all(says.as_bytes()).expect("a client");
        }
    });
    let mut clients = Clients::open(port, 2, Reuse::Persistent).expect("the kernel takes them");
    assert_eq!(clients.ask_all(Duration::from_secs(5)).expect("a wait"), 0);
    assert_eq!(clients.failed, 2);
    server.join().expect("it ends");
}

#[test]
fn connections_that_are_closed_before_they_are_asked_fail_once_each() {
    const ALL: usize = 600; // more than are asked at once
    let patience = Duration::from_secs(20);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let server = thread::spawn(move || {
        (0..ALL).for_each(|_| drop(listener.accept().expect("a client")));
    });
    let mut clients =
        Clients::open(port, ALL as u64, Reuse::Persistent).expect("the kernel takes them");
    server.join().expect("it ends");
    let begun = Instant::now();
    assert_eq!(clients.ask_all(patience).expect("a wait"), 0);
    assert_eq!(clients.failed, ALL as u64);
    assert!(begun.elapsed() < patience, "nobody waits for those that have failed");
}

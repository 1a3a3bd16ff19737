//! Tests of the load generator against misbehaving servers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Reuse;
use super::clients::Clients;
use super::http::{ConnectionState, Handler, advance};

/// Starts a server with one thread for all connections, which stalls for `stall` after every
/// `stall_at` requests. Returns its port.
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
        // A single thread, so that all connections stall together.
        while !streams.is_empty() {
            streams.retain_mut(|(stream, kept)| {
                let mut counted = Counted { stream, asked: &mut asked };
                advance(kept, &mut counted, Handler::Hello).is_some()
            });
            if asked >= stall_at {
                thread::sleep(stall);
                asked = 0; // the test sends too few requests for a second stall
            }
            thread::sleep(Duration::from_micros(100));
        }
    });
    port
}

/// A connection that counts its successful reads in `asked`.
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
fn requests_due_during_a_stall_are_all_late() {
    const STALL_TIME: Duration = Duration::from_millis(400);
    let port = serve_and_stall(4, 200, STALL_TIME);
    let mut clients = Clients::open(port, 4, Reuse::Persistent).expect("clients");
    assert_eq!(clients.ask_all(Duration::from_secs(5)).expect("answers"), 4);
    // 350 requests: the server stalls at about the 196th, and most others are due during the stall.
    let patience = Duration::from_secs(10);
    let rated = clients.at_rate(350.0, Duration::from_secs(1), patience).expect("answers");
    assert_eq!((rated.answered, rated.unanswered), (350, 0));
    assert_eq!(rated.times.len(), 350);
    // If the generator waited for responses, only four requests would be late: one for each
    // connection. Requests due in the first half of the stall have waited at least for the second
    // half.
    let half = u64::try_from(STALL_TIME.as_nanos() / 2).expect("a number");
    let late = rated.times.count_between(half, u64::MAX);
    assert!(late >= 50, "{late} of them were late");
    assert!(rated.times.max() >= half * 2 * 9 / 10, "{}", rated.times.max());
}

#[test]
fn unanswered_requests_count_with_the_time_until_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let mut clients = Clients::open(port, 3, Reuse::Persistent).expect("the kernel takes them");
    assert_eq!((clients.opened(), clients.failed), (3, 0));
    let (duration, patience) = (Duration::from_millis(100), Duration::from_millis(100));
    let rated = clients.at_rate(100.0, duration, patience).expect("a wait");
    assert_eq!((rated.answered, rated.unanswered, rated.times.len()), (0, 10, 10));
    assert!(rated.times.min() >= 90_000_000, "{}", rated.times.min());
    // These clients are abandoned and send no further requests.
    assert_eq!(clients.run_without_pauses(duration).expect("no wait").answered, 0);
    assert_eq!(clients.ask_all(patience).expect("no wait"), 0);
}

#[test]
fn a_wrong_response_is_a_failure() {
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
fn connections_closed_before_their_first_request_fail_once_each() {
    const CLIENT_COUNT: usize = 600; // more than are in flight at a time
    let patience = Duration::from_secs(20);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let server = thread::spawn(move || {
        (0..CLIENT_COUNT).for_each(|_| drop(listener.accept().expect("a client")));
    });
    let mut clients =
        Clients::open(port, CLIENT_COUNT as u64, Reuse::Persistent).expect("the kernel takes them");
    server.join().expect("it ends");
    let begun = Instant::now();
    assert_eq!(clients.ask_all(patience).expect("a wait"), 0);
    assert_eq!(clients.failed, CLIENT_COUNT as u64);
    assert!(begun.elapsed() < patience, "it does not wait for failed clients");
}

//! Tests of the lab's servers: every model answers correctly, and leaves no processes or sockets.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::{ChildStdout, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::support::{
    Child, Command, PublicFolder, as_unused_user, cases, contend, lab_record, unused_user,
};

const MODELS: [&str; 6] = [
    "process-per-connection",
    "prefork",
    "thread-per-connection",
    "thread-pool",
    "callback",
    "tokio",
];
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// A running server of the lab, with its output and port.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    port: u16,
}

impl Server {
    fn start(model: &str, answer: &str) -> Self {
        let mut command = Command::new(contend());
        Self::of(command.args(["lab-server", model, answer]))
    }

    fn of(command: &mut Command) -> Self {
        Self::try_of(command).expect("its port")
    }

    /// Starts a server. Returns `None` if it ends without listening.
    fn try_of(command: &mut Command) -> Option<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("text");
        let port = line.trim().strip_prefix("port ")?.parse().expect("a number");
        Some(Self { child, output, port })
    }

    fn connect(&self) -> TcpStream {
        self.try_connect().expect("it listens")
    }

    fn try_connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Ends the server, and asserts that it succeeded and printed nothing more. All of its
    /// processes hold its output, which reaches EOF when the last of them exits.
    fn end(mut self, model: &str) {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("text");
        assert_eq!(said, "", "{model}");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{model}: {status}");
    }
}

/// Reads an answer, and returns its first line and its body.
fn answer(stream: &mut BufReader<TcpStream>) -> (String, String) {
    let mut first = String::new();
    stream.read_line(&mut first).expect("an answer");
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a field");
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').expect("a field");
        if name == "Content-Length" {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    (first.trim().to_owned(), String::from_utf8(body).expect("text"))
}

fn hello() -> (String, String) {
    ("HTTP/1.1 200 OK".to_owned(), "hello\n".to_owned())
}

/// Reads until the server closes the connection, and returns the text.
fn rest(mut stream: BufReader<TcpStream>) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text until it is closed");
    text
}

fn plain_conversations(server: &Server, model: &str) {
    let stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
    let send = |bytes: &[u8]| (&stream).write_all(bytes).expect("it reads");
    send(GET);
    assert_eq!(answer(&mut reader), hello(), "{model}: the first");
    send(&GET.repeat(2));
    assert_eq!(answer(&mut reader), hello(), "{model}: the second");
    assert_eq!(answer(&mut reader), hello(), "{model}: one that came with it");
    let (begin, end) = GET.split_at(10);
    send(begin);
    std::thread::sleep(std::time::Duration::from_millis(20)); // so that it is read alone
    send(end);
    assert_eq!(answer(&mut reader), hello(), "{model}: one in two parts");
    send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(answer(&mut reader), hello(), "{model}: the last");
    assert_eq!(rest(reader), "", "{model}: it closes the connection");
}

fn refusals(server: &Server, model: &str) {
    let large = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    for (request, status) in [(large.as_str(), "431"), ("hello\r\n\r\n", "400")] {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).expect("it reads");
        stream.shutdown(Shutdown::Write).expect("it is open");
        let said = rest(BufReader::new(stream));
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{model}: {said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{model}: {said}");
    }
    // Connections end in the middle of a request, and with unread answers.
    for part in [&GET[..10], &GET.repeat(1000)] {
        server.connect().write_all(part).expect("it reads");
    }
}

#[test]
fn every_model_answers_correctly_and_leaves_nothing() {
    for model in MODELS {
        for answers in ["hello", "wait"] {
            let server = Server::start(model, answers);
            let name = format!("{model}, {answers}");
            plain_conversations(&server, &name);
            refusals(&server, &name);
            plain_conversations(&server, &name);
            server.end(&name);
        }
    }
}

#[test]
fn fifty_connections_are_served_at_once() {
    for model in MODELS {
        let server = Server::start(model, "wait");
        let begun = Instant::now();
        let mut streams: Vec<_> = (0..50).map(|_| BufReader::new(server.connect())).collect();
        for _ in 0..2 {
            for stream in &streams {
                stream.get_ref().write_all(GET).expect("it reads");
            }
            for stream in &mut streams {
                assert_eq!(answer(stream), hello(), "{model}");
            }
        }
        let elapsed = begun.elapsed().as_secs_f64();
        assert!(elapsed >= 0.2, "{model}: nobody was answered early: {elapsed}");
        // Sequential pauses would take ten seconds.
        assert!(elapsed < 5.0, "{model}: all wait at the same time: {elapsed}");
        // Open connections do not keep the server alive.
        server.end(model);
    }
}

#[test]
fn unknown_models_and_answers_are_reported() {
    for (model, answer) in [("nothing", "hello"), ("tokio", "nothing")] {
        let mut command = Command::new(contend());
        let output = command.args(["lab-server", model, answer]).output().expect("it starts");
        assert!(!output.status.success() && output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(said.contains("there is no") && said.contains("nothing"), "{said}");
    }
}

#[test]
fn a_server_without_descriptors_names_the_limit_and_serves_the_others() {
    for model in ["thread-per-connection", "callback", "tokio"] {
        let mut command = Command::new("sh");
        let script = "ulimit -n 40 && exec \"$0\" \"$@\"";
        command.args(["-c", script, contend(), "lab-server", model, "hello"]);
        let mut server = Server::of(&mut command);
        let mut streams: Vec<_> = (0..60).map(|_| server.connect()).collect();
        let mut line = String::new();
        server.output.read_line(&mut line).expect("it says what stops it");
        assert!(line.starts_with("stopped cannot accept"), "{model}: {line}");
        assert!(line.ends_with("RLIMIT_NOFILE = 40\n"), "{model}: {line}");
        let first = streams.remove(0);
        let mut reader = BufReader::new(first);
        reader.get_ref().write_all(GET).expect("it reads");
        assert_eq!(answer(&mut reader), hello(), "{model}");
        server.end(model);
    }
}

/// Checks limits that leave only some descriptors for connections. Every descriptor that the server
/// itself needs must have been opened before the first connection takes one.
#[test]
fn a_server_with_few_descriptors_either_serves_connections_or_does_not_start() {
    for model in ["thread-per-connection", "callback", "tokio"] {
        let (mut has_started, mut served) = (false, 0);
        for limit in 4..=24 {
            let name = format!("{model}, {limit} descriptors");
            let mut command = Command::new("sh");
            let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
            command.args(["-c", &script, contend(), "lab-server", model, "hello"]);
            command.stderr(Stdio::null());
            let Some(mut server) = Server::try_of(&mut command) else { continue };
            let mut streams: Vec<_> = (0..limit).map_while(|_| server.try_connect().ok()).collect();
            let mut line = String::new();
            server.output.read_line(&mut line).expect("text");
            if line.is_empty() {
                // It could not start. Its listener was open for a moment.
                assert!(!server.child.wait().expect("it ends").success(), "{name}");
                continue;
            }
            assert!(line.starts_with("stopped cannot accept"), "{name}: {line}");
            // The lowest limit at which a server starts may leave none for a connection.
            if has_started {
                let mut reader = BufReader::new(streams.remove(0));
                reader.get_ref().write_all(GET).expect("it reads");
                assert_eq!(answer(&mut reader), hello(), "{name}");
                served += 1;
            }
            server.end(&name);
            has_started = true;
        }
        assert!(served >= 10, "{model}: {served} servers accepted connections");
    }
}

#[test]
fn a_server_at_its_process_limit_names_it_and_serves_the_others() {
    let test = "a_server_at_its_process_limit_names_it_and_serves_the_others";
    let folder = PublicFolder::new();
    let program = folder.install(contend(), "contend", 0o755);
    for (number, model, what) in
        [(1, "process-per-connection", "fork"), (2, "thread-per-connection", "start a thread")]
    {
        let Some(mut command) = as_unused_user(test, &program, unused_user(number), 40) else {
            return;
        };
        let mut server = Server::of(command.args(["lab-server", model, "hello"]));
        let mut streams: Vec<_> = (0..60).map(|_| server.connect()).collect();
        let mut line = String::new();
        server.output.read_line(&mut line).expect("it says what stops it");
        assert!(line.starts_with(&format!("stopped cannot {what}: ")), "{model}: {line}");
        assert!(line.ends_with(": RLIMIT_NPROC: 40 of 40 were in use\n"), "{model}: {line}");
        let mut reader = BufReader::new(streams.remove(0));
        reader.get_ref().write_all(GET).expect("it reads");
        assert_eq!(answer(&mut reader), hello(), "{model}");
        let last = streams.pop().expect("there are many");
        assert_eq!(rest(BufReader::new(last)), "", "{model}: who cannot be served is told so");
        server.end(model);
    }
}

#[test]
fn a_pool_answers_as_many_connections_as_it_has_members() {
    let set = ["--quick", "--set", "connections=100"];
    let only =
        ["--only", "model=prefork", "--only", "model=thread-pool", "--only", "model=callback"];
    let record = lab_record(&[&["server/idle"], &set[..], &only[..]].concat());
    assert_eq!(cases(&record).len(), 3);
    for case in cases(&record) {
        let (answered, stopped) = (&case["facts"]["answered"], &case["facts"]["stopped_by"]);
        assert_eq!(case["facts"]["opened"], 100, "{case}");
        if case["parameters"]["model"] == "callback" {
            assert_eq!((answered, stopped), (&100.into(), &Value::Null), "{case}");
            assert!(case["median"].as_f64().is_some_and(|bytes| bytes > 0.0), "{case}");
        } else {
            assert_eq!(answered, 64, "{case}");
            let said = stopped.as_str().unwrap_or_default();
            assert!(said.contains("the pool has 64 members"), "{said}");
        }
    }
}

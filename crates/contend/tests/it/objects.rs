//! Tests of `contend run --on` over objects in a store: a server on this machine that answers as S3 does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::cluster::Setting;
use crate::support::{Command, text};

/// A store with a bucket.
#[derive(Default)]
struct Store {
    /// The objects, and the versions of their contents.
    objects: Mutex<HashMap<String, (Vec<u8>, u64)>>,
    /// Number of bytes of objects that have been sent.
    sent: AtomicU64,
    /// Number of requests for properties.
    heads: AtomicU64,
    /// Whether the contents change after each request for properties.
    changes: bool,
}

impl Store {
    /// Starts a server, and returns its address. Its threads end with the test's process.
    fn start(self: &Arc<Self>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let store = Arc::clone(self);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = Arc::clone(&store);
                std::thread::spawn(move || store.serve(&stream));
            }
        });
        address
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        let mut objects = self.objects.lock().expect("no panic");
        let version = objects.get(key).map_or(0, |(_, version)| version + 1);
        objects.insert(key.to_owned(), (bytes.to_owned(), version));
    }

    /// Answers the requests of a connection.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                if line == "\r\n" {
                    break;
                }
                head.push(line.trim_end().to_owned());
            }
            if self.answer(&head, stream).is_err() {
                return;
            }
        }
    }

    fn answer(&self, head: &[String], mut stream: &TcpStream) -> std::io::Result<()> {
        let header = |name: &str| {
            head.iter().find_map(|line| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let mut objects = self.objects.lock().expect("no panic");
        let key = path.strip_prefix("/bucket/").map(decoded);
        let Some((bytes, version)) = key.and_then(|key| objects.get_mut(&key)) else {
            return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let tag = format!("\"{version}\"");
        if method == "HEAD" {
            self.heads.fetch_add(1, Ordering::Relaxed);
        } else {
            *version += u64::from(self.changes);
        }
        let now = format!("\"{version}\"");
        if header("if-match").is_some_and(|wanted| wanted != now) {
            let answer = b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n";
            return stream.write_all(answer);
        }
        let size = bytes.len();
        let mut answer = String::new();
        let range = header("range").and_then(|range| {
            let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some(from.parse().ok()?..size.min(to.parse::<usize>().ok()? + 1))
        });
        let body = if let Some(range) = range {
            let (from, to) = (range.start, range.end);
            answer.push_str("HTTP/1.1 206 Partial Content\r\n");
            let _ = write!(answer, "Content-Range: bytes {from}-{}/{size}\r\n", to - 1);
            &bytes[range]
        } else {
            answer.push_str("HTTP/1.1 200 OK\r\n");
            &bytes[..]
        };
        let _ = write!(
            answer,
            "Content-Length: {}\r\nETag: {tag}\r\nLast-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n\r\n",
            body.len()
        );
        stream.write_all(answer.as_bytes())?;
        if method == "HEAD" {
            return Ok(());
        }
        self.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        stream.write_all(body)
    }
}

/// Returns the text of a part of a URL.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or("").as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// Returns a command that runs contend with a store.
fn run(setting: &Setting, address: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = setting.run(arguments);
    command.env("AWS_ENDPOINT", format!("http://{address}")).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    command.env("AWS_REGION", "here");
    command
}

/// Returns text of about twelve million bytes.
fn lines() -> String {
    let mut text = String::new();
    for line in 0..1_200_000_u64 {
        let _ = writeln!(text, "{} {}", line * 7919 % 1000, line % 100_000);
    }
    text
}

#[test]
fn objects_have_the_bytes_of_files() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    let (lines, other) = (lines(), "last 7\nline 17 without end");
    store.put("a/lines.txt", lines.as_bytes());
    store.put("other", other.as_bytes());
    store.put("empty", b"");
    store.put("odd#name=10%3A 00", b"odd\n");
    fs::write(setting.path("empty"), "").expect("room");
    fs::write(setting.path("odd#name=10%3A 00"), "odd\n").expect("room");
    fs::write(setting.path("lines.txt"), &lines).expect("room");
    fs::write(setting.path("other"), other).expect("room");
    for (pipeline, on_files) in [
        (
            "cat s3://bucket/a/lines.txt | grep 7 | sort | uniq -c",
            "cat lines.txt | grep 7 | sort | uniq -c",
        ),
        (
            "cat s3://bucket/a/lines.txt s3://bucket/other | tr 0-9 a-j",
            "cat lines.txt other | tr 0-9 a-j",
        ),
        ("sort -k 2 s3://bucket/a/lines.txt", "sort -k 2 lines.txt"),
        ("cat s3://bucket/other in | tr 0-9 a-j", "cat other in | tr 0-9 a-j"),
    ] {
        for parts in ["1", "6"] {
            let sent = store.sent.load(Ordering::Relaxed);
            let words = ["--on", "local", "--parts", parts, pipeline];
            let output = run(&setting, address, &words).output().expect("it starts");
            let message = text(&output.stderr);
            let mut bash = Command::new("bash");
            let bash = bash.args(["-c", on_files]).current_dir(setting.0.path()).output();
            assert_eq!(output.stdout, bash.expect("bash starts").stdout, "{pipeline}: {message}");
            assert_eq!(output.status.code(), Some(0), "{pipeline}: {message}");
            assert!(!message.contains("this machine only"), "{message}");
            // Each part reads its range, and less than a block of it more at each end.
            let sent = store.sent.load(Ordering::Relaxed) - sent;
            let most = lines.len() as u64 + (2 << 20) * 6;
            assert!(sent < most, "{pipeline}: {sent} bytes");
        }
    }
    // Too small for parts, and without parts that a job could have.
    for pipeline in [
        "cat s3://bucket/other | tr 0-9 a-j",
        "cat s3://bucket/other | sed -n 2p",
        "sed -n 2p s3://bucket/other",
        "cat s3://bucket/other in | tail -n 3",
        "cat s3://bucket/other in",
        "cat s3://bucket/other s3://bucket/empty | cat",
        "cat 's3://bucket/odd#name=10%3A 00' in | tr a b",
        "cat s3://bucket/empty | wc -l",
    ] {
        let output = run(&setting, address, &["--on", "local", "--pipefail", pipeline]).output();
        let output = output.expect("it starts");
        let mut bash = Command::new("bash");
        let on_file = pipeline.replace("s3://bucket/", "");
        let bash = bash.args(["-c", &on_file]).current_dir(setting.0.path()).output();
        assert_eq!(output.stdout, bash.expect("bash starts").stdout, "{}", text(&output.stderr));
    }
    setting.assert_nothing_is_left();
}

#[test]
fn an_object_that_changes_is_no_input() {
    let setting = Setting::new();
    let store = Arc::new(Store { changes: true, ..Store::default() });
    let address = store.start();
    store.put("lines", lines().as_bytes());
    let words = ["--on", "local", "--parts", "2", "cat s3://bucket/lines | tr 0-9 a-j"];
    let output = run(&setting, address, &words).output().expect("it starts");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains("it has changed since the job was planned"), "{message}");
    assert!(output.stdout.is_empty());
    setting.assert_nothing_is_left();
}

#[test]
fn names_of_objects_are_those_of_files_without_an_engine() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    store.put("lines", b"a\n");
    let output = run(&setting, address, &["cat s3://bucket/lines | tr a b"]).output();
    let output = output.expect("it starts");
    assert!(text(&output.stderr).contains("No such file"), "{}", text(&output.stderr));
    assert_eq!(store.heads.load(Ordering::Relaxed), 0);
    let words = ["--on", "local", "grep s3://bucket/ in | sort"];
    let output = run(&setting, address, &words).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for (pipeline, why) in [
        ("cat s3://bucket/missing | tr a b", "`s3://bucket/missing` cannot be read: "),
        ("cat s3://bucket/lines - | tr a b", "`-` is its standard input"),
        ("cat s3://bucket/../lines | wc -l", "cannot be read: Error parsing Path"),
    ] {
        for more in [&[][..], &["--pipefail"], &["--explain"]] {
            let words = [&["--on", "local"], more, &[pipeline]].concat();
            let output = run(&setting, address, &words).output().expect("it starts");
            let message = text(&output.stderr);
            assert!(message.contains(why), "{pipeline}: {message}");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{message}");
        }
    }
    let words = ["--on", "local", "--pipefail", "cat s3://bucket/lines | tr a b | head -n 1"];
    let output = run(&setting, address, &words).output().expect("it starts");
    let message = text(&output.stderr);
    assert!(message.contains("the exit code depends on how much of it is read"), "{message}");
    let words = ["--on", "local", "--check", "cat s3://bucket/lines | tr a b"];
    let output = run(&setting, address, &words).output().expect("it starts");
    let message = text(&output.stderr);
    assert!(message.contains("--check compares with the shell"), "{message}");
    assert_eq!(output.status.code(), Some(125), "{message}");
}

#[test]
fn scripts_read_objects_too() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    store.put("other", b"first\nlast\n");
    let script = "if cat s3://bucket/other | grep last >/dev/null; then echo found; fi\n\
                  cat s3://bucket/missing | tr a b | wc -l\n";
    fs::write(setting.path("script"), script).expect("room");
    let output = run(&setting, address, &["--on", "local", "-f", "script"]).output();
    let output = output.expect("it starts");
    let message = text(&output.stderr);
    assert_eq!(text(&output.stdout), "found\n", "{message}");
    assert!(message.contains("no command can read the object s3://bucket/missing"), "{message}");
}

#[test]
fn a_directory_may_have_the_name_of_a_scheme() {
    let (setting, store) = (Setting::new(), Arc::new(Store::default()));
    let address = store.start();
    fs::create_dir_all(setting.path("s3:/bucket")).expect("room");
    fs::write(setting.path("s3:/bucket/file"), lines()).expect("room");
    let pipeline = "cat s3://bucket/file | tr 0-9 a-j | sort | tail -n 1";
    let output = run(&setting, address, &[pipeline]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", pipeline]).current_dir(setting.0.path()).output();
    assert_eq!(output.stdout, bash.expect("bash starts").stdout);
    assert_eq!(store.heads.load(Ordering::Relaxed), 0);
}

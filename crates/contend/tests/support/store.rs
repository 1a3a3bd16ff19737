//! A server that answers as Amazon S3 does, for tests of objects.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Largest number of objects that one answer lists.
const MAX_LISTED: usize = 10;

/// A store with a bucket.
#[derive(Default)]
pub struct Store {
    /// The objects, and the versions of their contents.
    objects: Mutex<BTreeMap<String, (Vec<u8>, u64)>>,
    /// The pieces of objects that are being written, by the object and the number of the piece.
    pieces: Mutex<HashMap<String, BTreeMap<u64, Vec<u8>>>>,
    /// Number of bytes of objects that have been sent.
    pub sent: AtomicU64,
    /// Number of requests for properties.
    pub heads: AtomicU64,
    /// Whether a request hangs.
    pub hanging: AtomicBool,
    /// Whether it refuses all requests for the time being.
    pub is_down: AtomicBool,
    /// Number of requests for lists.
    lists: AtomicU64,
    /// Number of objects that were written in pieces.
    pub in_pieces: AtomicU64,
    faults: Faults,
}

/// What is wrong with a store.
#[derive(Default)]
pub struct Faults {
    /// Whether the contents change after each request for properties.
    pub changes: bool,
    /// Whether it refuses to write.
    pub is_read_only: bool,
    /// Number of outputs of tasks in which it changes a byte.
    pub damages: AtomicU64,
    /// Number of requests for lists that it refuses, from the second one on.
    pub refused_lists: AtomicU64,
    /// Number of requests for outputs of tasks that it refuses.
    pub refused_outputs: AtomicU64,
    /// Whether requests that write are never answered.
    pub hangs: bool,
}

/// A request.
struct Request {
    method: String,
    /// The key of the object; empty for the bucket.
    key: String,
    query: HashMap<String, String>,
    header: HashMap<String, String>,
    body: Vec<u8>,
}

/// An answer.
struct Answer {
    status: &'static str,
    header: String,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: &'static str) -> Self {
        Self { status, header: String::new(), body: Vec::new() }
    }

    fn xml(body: String) -> Self {
        Self { body: body.into_bytes(), ..Self::new("200 OK") }
    }
}

impl Store {
    /// Creates a store.
    pub fn with(faults: Faults) -> Arc<Self> {
        Arc::new(Self { faults, ..Self::default() })
    }

    /// Starts a server, and returns its address. Its threads end with the test's process.
    pub fn start(self: &Arc<Self>) -> SocketAddr {
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

    pub fn put(&self, key: &str, bytes: &[u8]) {
        let mut objects = self.objects.lock().expect("no panic");
        let version = objects.get(key).map_or(0, |(_, version)| version + 1);
        let mut bytes = bytes.to_owned();
        let is_output = is_output(key) && !bytes.is_empty();
        let left = self.faults.damages.load(Ordering::Relaxed);
        if is_output && left > 0 {
            self.faults.damages.store(left - 1, Ordering::Relaxed);
            bytes[0] ^= 1;
        }
        objects.insert(key.to_owned(), (bytes, version));
    }

    /// Returns the keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        self.objects.lock().expect("no panic").keys().cloned().collect()
    }

    /// Returns the number of outputs of tasks.
    pub fn outputs(&self) -> usize {
        self.keys().iter().filter(|key| is_output(key)).count()
    }

    /// Answers the requests of a connection.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Ok(Some(request)) = read_request(&mut reader) {
            if send(&self.answer(&request), request.method == "HEAD", stream).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        if self.is_down.load(Ordering::Relaxed) {
            return Answer::new("503 Service Unavailable");
        }
        let is_asked = |name: &str| request.query.contains_key(name);
        match request.method.as_str() {
            "GET" if request.key.is_empty() => self.list(request),
            "GET" | "HEAD" => self.get(request),
            _ if self.faults.hangs => loop {
                self.hanging.store(true, Ordering::Relaxed);
                std::thread::park();
            },
            _ if self.faults.is_read_only => Answer::new("403 Forbidden"),
            "PUT" if is_asked("partNumber") => self.put_piece(request),
            "PUT" => {
                self.put(&request.key, &request.body);
                Answer { header: "ETag: \"0\"\r\n".to_owned(), ..Answer::new("200 OK") }
            }
            "POST" if is_asked("delete") => self.delete(request),
            "POST" if is_asked("uploads") => self.begin(request),
            "POST" if is_asked("uploadId") => self.complete(request),
            "DELETE" => {
                self.pieces.lock().expect("no panic").remove(&request.key);
                Answer::new("204 No Content")
            }
            _ => Answer::new("501 Not Implemented"),
        }
    }

    /// Sends an object, or a range of it.
    fn get(&self, request: &Request) -> Answer {
        let left = self.faults.refused_outputs.load(Ordering::Relaxed);
        if is_output(&request.key) && left > 0 {
            self.faults.refused_outputs.store(left - 1, Ordering::Relaxed);
            return Answer::new("403 Forbidden");
        }
        let mut objects = self.objects.lock().expect("no panic");
        let Some((bytes, version)) = objects.get_mut(&request.key) else {
            return Answer::new("404 Not Found");
        };
        let tag = format!("\"{version}\"");
        if request.method == "HEAD" {
            self.heads.fetch_add(1, Ordering::Relaxed);
        } else {
            *version += u64::from(self.faults.changes);
        }
        let now = format!("\"{version}\"");
        if request.header.get("if-match").is_some_and(|wanted| *wanted != now) {
            return Answer::new("412 Precondition Failed");
        }
        let size = bytes.len();
        let mut header = String::new();
        let range = request.header.get("range").and_then(|range| {
            let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some(from.parse().ok()?..size.min(to.parse::<usize>().ok()? + 1))
        });
        let (status, body) = if let Some(range) = range {
            let (from, to) = (range.start, range.end);
            let _ = write!(header, "Content-Range: bytes {from}-{}/{size}\r\n", to - 1);
            ("206 Partial Content", bytes[range].to_vec())
        } else {
            ("200 OK", bytes.clone())
        };
        let _ = write!(header, "ETag: {tag}\r\nLast-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n");
        if request.method != "HEAD" {
            self.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        }
        Answer { status, header, body }
    }

    /// Lists objects with a prefix, a few in each answer.
    fn list(&self, request: &Request) -> Answer {
        let left = self.faults.refused_lists.load(Ordering::Relaxed);
        if self.lists.fetch_add(1, Ordering::Relaxed) > 0 && left > 0 {
            self.faults.refused_lists.store(left - 1, Ordering::Relaxed);
            return Answer::new("403 Forbidden");
        }
        let [prefix, after] = ["prefix", "continuation-token"]
            .map(|name| request.query.get(name).cloned().unwrap_or_default());
        let objects = self.objects.lock().expect("no panic");
        let found = objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let mut found: Vec<_> = found.take(MAX_LISTED + 1).collect();
        let has_more = found.len() > MAX_LISTED;
        found.truncate(MAX_LISTED);
        let mut body = format!("<ListBucketResult><IsTruncated>{has_more}</IsTruncated>");
        if let (true, Some((last, _))) = (has_more, found.last()) {
            let _ = write!(body, "<NextContinuationToken>{last}</NextContinuationToken>");
        }
        for (key, (bytes, version)) in found {
            let size = bytes.len();
            let _ = write!(
                body,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>\"{version}\"</ETag>\
                 <LastModified>2026-11-02T10:00:00.000Z</LastModified></Contents>"
            );
        }
        Answer::xml(body + "</ListBucketResult>")
    }

    /// Removes the objects that the body of a request lists.
    fn delete(&self, request: &Request) -> Answer {
        let text = String::from_utf8_lossy(&request.body);
        let keys =
            text.split("<Key>").skip(1).filter_map(|rest| Some(rest.split_once("</Key>")?.0));
        let mut objects = self.objects.lock().expect("no panic");
        let mut body = "<DeleteResult>".to_owned();
        for key in keys {
            objects.remove(key);
            let _ = write!(body, "<Deleted><Key>{key}</Key></Deleted>");
        }
        Answer::xml(body + "</DeleteResult>")
    }

    /// Begins to write an object in pieces.
    fn begin(&self, request: &Request) -> Answer {
        self.pieces.lock().expect("no panic").insert(request.key.clone(), BTreeMap::new());
        let body =
            "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>";
        Answer::xml(body.to_owned())
    }

    fn put_piece(&self, request: &Request) -> Answer {
        let number = request.query["partNumber"].parse().expect("a number");
        let mut pieces = self.pieces.lock().expect("no panic");
        let Some(pieces) = pieces.get_mut(&request.key) else {
            return Answer::new("404 Not Found");
        };
        pieces.insert(number, request.body.clone());
        Answer { header: format!("ETag: \"{number}\"\r\n"), ..Answer::new("200 OK") }
    }

    /// Makes an object of its pieces.
    fn complete(&self, request: &Request) -> Answer {
        let pieces = self.pieces.lock().expect("no panic").remove(&request.key);
        let Some(pieces) = pieces else { return Answer::new("404 Not Found") };
        self.put(&request.key, &pieces.into_values().collect::<Vec<_>>().concat());
        self.in_pieces.fetch_add(1, Ordering::Relaxed);
        let body =
            "<CompleteMultipartUploadResult><ETag>\"0\"</ETag></CompleteMultipartUploadResult>";
        Answer::xml(body.to_owned())
    }
}

/// Returns whether an object is the output of a task.
fn is_output(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|extension| extension == "part")
}

/// Reads a request; `None` at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut header = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        header.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = header.get("content-length").map_or(0, |it| it.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let key = path.strip_prefix("/bucket").unwrap_or_default().trim_start_matches('/');
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        (name.to_owned(), decoded(value))
    };
    let query = query.split('&').map(pair).collect();
    Ok(Some(Request { method, key: decoded(key), query, header, body }))
}

/// Sends an answer, without its body if only properties were requested.
fn send(answer: &Answer, is_head: bool, mut stream: &TcpStream) -> io::Result<()> {
    let Answer { status, header, body } = answer;
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\n{header}Content-Length: {length}\r\n\r\n")?;
    if is_head { Ok(()) } else { stream.write_all(body) }
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

//! Tests of `contend serve` with the real executable, which speak HTTP themselves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use contend_report::store::{Filter, Store, StoredRun};
use contend_sys::{Pid, Signal};
use rustix::process::kill_process;

use crate::support::{Child, Command, contend, output, text, wait_until, with_opener};

const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// A text that is dangerous as HTML, in an attribute, in a script, and in a header.
const HOSTILE: &str = "\"onload=\"alert(1)\"'><img src=x onerror=alert(2)></script><script>alert(3)</script>\r\nX: y\u{202e}";

/// A running server with its store, and a directory for running programs.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
    /// Such as `127.0.0.1:40000`.
    host: String,
    /// Path to the first page, with the token.
    root: String,
}

/// The answer to a request.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Returns the value of a header; empty without it.
    fn header(&self, name: &str) -> &str {
        let value = self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        value.unwrap_or_default()
    }
}

impl Server {
    fn start() -> Self {
        Self::with_store(|_| {})
    }

    /// Starts a server after `fill` has written the store.
    fn with_store(fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fill(&folder.path().join("runs.db"));
        let mut command = command(folder.path(), &["serve", "--store", "runs.db"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("contend starts");
        let mut url = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut url).expect("a line");
        let (host, root) = split(url.trim_end());
        Self { child, folder, host, root }
    }

    /// Sends a request for a path below the first page, with further lines of the head and a body.
    fn request(&self, method: &str, path: &str, lines: &[&str], body: &str) -> Answer {
        let mut head = format!("{method} {}{path} HTTP/1.1\r\nConnection: close\r\n", self.root);
        if lines.iter().all(|line| !line.starts_with("Host:")) {
            head += &format!("Host: {}\r\n", self.host);
        }
        for line in lines {
            head += &format!("{line}\r\n");
        }
        self.send(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let answer = text(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    /// Submits a form as a page of this server does.
    fn post(&self, path: &str, body: &str) -> Answer {
        let origin = format!("Origin: http://{}", self.host);
        self.request("POST", path, &[&origin], body)
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("runs.db")
    }

    /// Sends a signal, and waits for the end.
    fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        self.child.wait().expect("it ends")
    }
}

/// Returns a command that runs contend in a folder, which also has its store and its runtime directory.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(arguments).current_dir(folder).env("XDG_RUNTIME_DIR", folder);
    command.env("CONTEND_STORE", "runs.db");
    command.stdin(Stdio::null());
    command
}

/// Splits a URL into a host and a path.
fn split(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").expect("a URL");
    let path = rest.find('/').expect("a path");
    (rest[..path].to_owned(), rest[path..].to_owned())
}

fn record(name: &str) -> String {
    std::fs::read_to_string(format!("{RECORDS}/{name}")).expect("a record")
}

/// Adds a run for each record in the test data.
fn add_records(store: &Path) {
    let store = Store::open(store).expect("a new store");
    for name in ["pipe", "run", "versus", "doctor"] {
        let json = record(&format!("records/{name}-1.json"));
        add(&store, &format!("contend.{name}/1"), &format!("title of {name}"), &json);
    }
    let lab = record("lab/process-thread.json");
    add(&store, "contend.lab/1", "title of lab", &lab);
    add(&store, "contend.pipe/1", "again", &record("records/pipe-1.json"));
    add(&store, "contend.lab/1", "again", &lab);
}

fn add(store: &Store, schema: &str, title: &str, record: &str) -> i64 {
    let run = StoredRun {
        started_at: "2026-01-02T03:04:05Z",
        schema,
        title,
        ending: "exit 0",
        label: "",
        host: "board",
        record,
    };
    store.add(&run).expect("room")
}

#[test]
fn only_requests_with_the_token_are_answered() {
    let server = Server::with_store(add_records);
    assert_eq!(server.get("").status, 200);
    assert_eq!(server.root.len(), 34, "a token of 128 bits: {}", server.root);
    let get = |path: &str| {
        server.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            server.host
        ))
    };
    let wrong = server.root.replace(|c: char| c.is_ascii_hexdigit(), "0");
    for path in ["/", "/run/1", "/page.css", "/favicon.ico", &wrong, &server.root[..32]] {
        let answer = get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.contains("title of"), "{path}");
    }
}

#[test]
fn requests_for_other_hosts_and_from_other_origins_are_refused() {
    let server = Server::with_store(add_records);
    let port = server.host.rsplit(':').next().expect("a port");
    let get = |lines: &[&str]| server.request("GET", "", lines, "").status;
    assert_eq!(get(&[&format!("Host: localhost:{port}")]), 200);
    for host in [format!("evil.example:{port}"), "127.0.0.1".to_owned(), format!("[::1]:{port}")] {
        assert_eq!(get(&[&format!("Host: {host}")]), 421, "{host}");
    }
    assert_eq!(get(&["Origin: http://evil.example"]), 403);

    let label = |lines: &[&str]| server.request("POST", "run/1/label", lines, "label=new").status;
    for origin in ["null", "http://evil.example", &format!("https://{}", server.host)] {
        assert_eq!(label(&[&format!("Origin: {origin}")]), 403, "{origin}");
    }
    assert_eq!(label(&[]), 403, "without an origin");
    let labelled = Filter { label: Some("new".to_owned()), ..Filter::default() };
    let store = Store::open_to_read(&server.store()).expect("there");
    assert!(store.list(&labelled, 1).expect("rows").is_empty());
}

#[test]
fn responses_forbid_what_a_page_does_not_need() {
    let server = Server::with_store(add_records);
    for path in ["", "run/1", "run/99", "nothing", "live.js", "compare?run=1&run=6"] {
        let answer = server.get(path);
        let policy = answer.header("Content-Security-Policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("X-Content-Type-Options"), "nosniff", "{path}");
        assert_eq!(answer.header("Referrer-Policy"), "same-origin", "{path}");
        assert_eq!(answer.header("Cross-Origin-Resource-Policy"), "same-origin", "{path}");
        assert_eq!(answer.header("Cache-Control"), "no-store", "{path}");
        assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "{}", answer.head);
    }
    // Without the token, too.
    let refused = server
        .send(&format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host));
    assert!(refused.header("Content-Security-Policy").contains("default-src 'none'"));
    let preflight = server.request("OPTIONS", "run/1/label", &["Origin: http://evil.example"], "");
    assert_eq!(preflight.status, 403);
}

#[test]
fn every_kind_of_run_has_a_page_and_runs_of_a_kind_are_compared() {
    let server = Server::with_store(add_records);
    let list = server.get("");
    for name in ["pipe", "run", "versus", "doctor", "lab"] {
        assert!(list.body.contains(&format!("title of {name}")), "{name}");
    }
    for id in 1..=7 {
        let page = server.get(&format!("run/{id}"));
        assert_eq!(page.status, 200, "{id}");
        assert!(page.body.contains(&format!("<p>Run {id}, ")), "{id}: {}", page.body);
        assert!(page.body.contains("id=\"record\"") && page.body.contains("name=\"label\""));
        assert!(!page.body.contains("http-equiv"), "the header has the policy");
    }
    for (runs, expected) in
        [("run=1&run=6", "<h2>Pipelines</h2>"), ("run=5&run=7", "contend compare")]
    {
        let page = server.get(&format!("compare?{runs}"));
        assert_eq!(page.status, 200, "{runs}: {}", page.body);
        assert!(page.body.contains(expected) && page.body.contains("Comparison of"), "{runs}");
    }
    let different = server.get("compare?run=1&run=5");
    assert_eq!(different.status, 400);
    assert!(
        different.body.contains("Cannot compare run 5: it is a record of the kind lab"),
        "{}",
        different.body
    );
    assert!(server.get("compare?run=1&run=4").body.contains("it is a diagnosis"));
    assert_eq!(server.get("compare?run=1&run=99").status, 404);
    for path in ["run/99", "run/x", "live/1", "live/1/events", "nothing"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn runs_are_searched() {
    let server = Server::with_store(add_records);
    let found = |query: &str| {
        let page = server.get(&format!("?{query}"));
        assert_eq!(page.status, 200, "{query}");
        (1..=7).filter(|id| page.body.contains(&format!("run/{id}\""))).collect::<Vec<_>>()
    };
    assert_eq!(found(""), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(found("kind=lab"), [5, 7]);
    assert_eq!(found("command=title&kind=&host=board&label="), [1, 2, 3, 4, 5]);
    assert_eq!(found("host=other"), [0; 0]);
    assert_eq!(found("since=2026-01-03"), [0; 0]);
    assert_eq!(found("until=2026-01-02"), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(server.get("?kind=nothing").status, 400);
    assert_eq!(server.get("?page=0").status, 400);
}

#[test]
fn a_label_is_edited() {
    let server = Server::with_store(add_records);
    let saved = server.post("run/2/label", "label=a+%26+%3Cb%3E+%C3%A9");
    assert_eq!(saved.status, 303);
    assert_eq!(saved.header("Location"), format!("{}run/2", server.root));
    let label = || {
        let store = Store::open_to_read(&server.store()).expect("there");
        store.entry(2).expect("readable").expect("there").0.label
    };
    assert_eq!(label(), "a & <b> é");
    assert!(server.get("").body.contains("a &amp; &lt;b&gt; é"));
    assert!(server.get("run/2").body.contains("value=\"a &amp; &lt;b&gt; é\""));
    assert_eq!(server.post("run/2/label", "label=").status, 303);
    assert_eq!(label(), "");
    assert_eq!(server.post("run/99/label", "label=x").status, 404);
    assert_eq!(server.post("run/2/label", "other=x").status, 400);
    assert_eq!(server.post("run/2/label", &format!("label={}", "x".repeat(20_000))).status, 413);
    assert_eq!(server.request("GET", "run/2/label", &[], "").status, 405);
}

#[test]
fn hostile_texts_are_escaped_on_every_page() {
    let server = Server::with_store(|store| {
        let store = Store::open(store).expect("a new store");
        let hostile = serde_json::to_string(HOSTILE).expect("JSON");
        for name in ["pipe", "pipe", "run", "versus", "doctor"] {
            let schema = format!("contend.{name}/1");
            let json = record(&format!("records/{name}-1.json"));
            let mut json: serde_json::Value = serde_json::from_str(&json).expect("a record");
            for pointer in [
                "/command",
                "/host/name",
                "/host/cpu_model",
                "/stages/0/command",
                "/variants/0/command",
                "/plan/stages/0/text",
                "/findings/0/message",
                "/processes/0/name",
                "/threads/0/name",
                "/contend/version",
            ] {
                if let Some(value @ serde_json::Value::String(_)) = json.pointer_mut(pointer) {
                    *value = serde_json::from_str(&hostile).expect("JSON");
                }
            }
            let run = StoredRun {
                started_at: HOSTILE,
                schema: &schema,
                title: HOSTILE,
                ending: HOSTILE,
                label: HOSTILE,
                host: HOSTILE,
                record: &json.to_string(),
            };
            store.add(&run).expect("room");
        }
        let run = StoredRun {
            started_at: HOSTILE,
            schema: HOSTILE,
            title: HOSTILE,
            ending: HOSTILE,
            label: HOSTILE,
            host: HOSTILE,
            record: &format!("{{\"schema\":{hostile}}}"),
        };
        store.add(&run).expect("room");
    });
    let hostile = "%22onload%3D%22alert(1)%22%3E%3Cscript%3Ealert(3)%3C%2Fscript%3E";
    let queries = [
        format!("?command={hostile}&label={hostile}&host={hostile}"),
        format!("?kind={hostile}"),
        format!("run/{hostile}"),
        format!("compare?run=1&run={hostile}"),
    ];
    let pages = [
        "",
        "run/1",
        "run/3",
        "run/4",
        "run/5",
        "run/6",
        "compare?run=1&run=2",
        "compare?run=1&run=3",
    ];
    for path in pages.into_iter().chain(queries.iter().map(String::as_str)) {
        let answer = server.get(path);
        assert!(answer.body.contains("alert("), "{path}: {}", answer.status);
        for markup in ["<img", "<script>alert", "\"onload=\""] {
            assert!(!answer.body.contains(markup), "{path}: {markup}");
        }
        assert_eq!(answer.header("X"), "", "{path}");
    }
}

#[test]
fn ten_thousand_runs_are_listed_in_pages() {
    let server = Server::with_store(|store| {
        let store = Store::open(store).expect("a new store");
        let added = store.together(|store| {
            (0..10_000).try_for_each(|n| {
                add(store, "contend.pipe/1", &format!("sort {n}"), "{}");
                Ok::<_, contend_report::store::StoreError>(())
            })
        });
        added.expect("room");
    });
    let first = server.get("").body;
    assert!(first.contains("Runs 1 to 50 of 10000") && first.contains("Page 1 of 200"));
    assert!(first.contains("sort 9999<") && !first.contains("sort 9949<"));
    let last = server.get("?page=200").body;
    assert!(last.contains("Runs 9951 to 10000 of 10000") && last.contains("sort 0<"));
    assert!(server.get("?command=sort+777").body.contains("11 runs"));
    assert!(server.get("?page=201").body.contains("There are fewer pages."));
}

#[test]
fn signals_end_the_server_and_its_live_views() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start();
        let run = run_published(
            server.folder.path(),
            &["pipe", "--publish", "--no-advice", "sleep 60 | cat"],
        );
        let path = live_path(&server);
        let mut events = follow(&server, &path);
        let mut line = String::new();
        wait_until("an update", || {
            line.clear();
            events.read_line(&mut line).expect("an event");
            line.starts_with("data: {\"seconds\"")
        });
        assert_eq!(server.end(signal).signal(), Some(signal.as_raw()));
        let mut rest = String::new();
        let _ = events.read_to_string(&mut rest); // the connection may be reset
        assert!(rest.contains("event: closing"), "{rest}");
        drop(run);
    }
}

/// Starts a run whose store and runtime directory are in a folder.
fn run_published(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = command(folder, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("contend starts")
}

/// Returns the path of the only run that is taking place, as soon as it is listed.
fn live_path(server: &Server) -> String {
    let mut path = String::new();
    wait_until("a run that is taking place", || {
        let list = server.get("").body;
        let start = format!("href=\"{}live/", server.root);
        let Some((_, rest)) = list.split_once(&start) else { return false };
        path = format!("live/{}", rest.split('"').next().expect("a quote"));
        true
    });
    path
}

/// Requests the events of a run, and returns the rest of the answer after its head.
fn follow(server: &Server, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&server.host).expect("it listens");
    let request =
        format!("GET {}{path}/events HTTP/1.1\r\nHost: {}\r\n\r\n", server.root, server.host);
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a head") > 0, "{head}");
    }
    assert!(head.contains(" 200 ") && head.contains("text/event-stream"), "{head}");
    reader
}

/// Returns the events of a run up to its end.
fn follow_to_end(server: &Server, path: &str) -> String {
    let mut events = String::new();
    let mut reader = follow(server, path);
    while !events.contains("event: end") {
        assert!(reader.read_line(&mut events).expect("an event") > 0, "{events}");
    }
    reader.read_line(&mut events).expect("its data");
    events
}

#[test]
fn the_end_of_every_kind_of_run_has_its_number() {
    let server = Server::start();
    let folder = server.folder.path();
    std::fs::write(folder.join("input"), "some words of a line\n".repeat(20_000)).expect("room");
    std::fs::write(folder.join("slow"), "sleep 1\ncat\n").expect("room");
    let (part, store) = (["--part-size", "64k"], ["--publish", "--store", "runs.db"]);
    let run = ["--map", "sh ./slow", "<input sh ./slow"];
    let runs: [&[&[&str]]; 3] = [
        &[&["run"], &store, &part, &run],
        &[&["doctor"], &store, &["--", "sleep", "4"]],
        &[&["pipe"], &store, &["--runs", "3", "--vs", "sleep 1 | cat", "sleep 1"]],
    ];
    for (index, words) in runs.into_iter().enumerate() {
        let mut run = run_published(folder, &words.concat());
        let events = follow_to_end(&server, &live_path(&server));
        assert!(run.wait().expect("it ends").success(), "{words:?}");
        let number = index + 1;
        assert!(events.contains(&format!("\"run\":{number}}}")), "{words:?}: {events}");
        assert_eq!(server.get(&format!("run/{number}")).status, 200);
    }
}

#[test]
fn a_running_pipeline_is_followed_to_its_end() {
    let server = Server::start();
    let pipeline = "for i in 1 2 3 4 5; do sleep 1; echo <b>; done | cat".replace("<b>", "'<b>'");
    let arguments = ["pipe", "--publish", "--no-advice", "--store", "runs.db", &pipeline];
    let mut run = run_published(server.folder.path(), &arguments);
    let path = live_path(&server);
    let page = server.get(&path);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("&lt;b&gt;") && !page.body.contains("<b>"), "{}", page.body);
    assert!(page.body.contains("CPUs that each stage uses"), "{}", page.body);
    let events = follow_to_end(&server, &path);
    assert!(events.matches("data: {\"seconds\"").count() >= 3, "{events}");
    assert!(events.contains("\"run\":1}"), "{events}");
    assert!(run.wait().expect("it ends").success());
    assert_eq!(server.get(&path).status, 404);
    assert_eq!(server.get("run/1").status, 200);
    let left = std::fs::read_dir(server.folder.path().join("contend/live")).expect("there");
    assert_eq!(left.count(), 0);
}

#[test]
fn every_measuring_verb_is_shown_while_it_runs() {
    let server = Server::start();
    let folder = server.folder.path();
    std::fs::write(folder.join("input"), "some words of a line\n".repeat(200_000)).expect("room");
    std::fs::write(folder.join("slow"), "sleep 1\ncat\n").expect("room");
    let run = [
        "run",
        "--publish",
        "--no-store",
        "--part-size",
        "64k",
        "--map",
        "sh ./slow",
        "<input sh ./slow",
    ];
    let versus = ["pipe", "--publish", "--no-store", "--vs", "sleep 0.3 | cat", "sleep 0.2"];
    let verbs: [(&str, &[&str]); 5] = [
        ("Bytes that each stage writes", &["pipe", "--publish", "--no-store", "sleep 60 | cat"]),
        ("Wall time of the last run", &versus),
        ("Input read", &run),
        ("Threads by state", &["doctor", "--publish", "--no-store", "--", "sleep", "60"]),
        ("Completed", &["lab", "run", "units/create", "--publish", "--no-store", "--budget", "60"]),
    ];
    for (chart, arguments) in verbs {
        let mut run = run_published(server.folder.path(), arguments);
        let path = live_path(&server);
        let page = server.get(&path).body;
        assert!(
            page.contains(chart) && page.contains(&format!("contend {}", arguments[0])),
            "{page}"
        );
        let mut events = String::new();
        let mut reader = follow(&server, &path);
        while !events.contains("data: {\"seconds\"") {
            assert!(reader.read_line(&mut events).expect("an event") > 0, "{events}");
        }
        kill_process(Pid::from_child(&run), Signal::TERM).expect("it runs");
        run.wait().expect("it ends");
        while !events.contains("event: end") {
            assert!(reader.read_line(&mut events).expect("an event") > 0, "{events}");
        }
    }
}

#[test]
fn the_token_is_not_an_argument_of_the_browser() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let (path, opened) = with_opener(folder.path());
    let mut command = command(folder.path(), &["serve", "--open", "--store", "runs.db"]);
    let mut child = command.env("PATH", path).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut url).expect("a line");
    wait_until("the page is opened", || opened.exists());
    let argument = std::fs::read_to_string(opened).expect("it exists");
    let token = split(url.trim_end()).1;
    assert!(!argument.contains(token.trim_matches('/')), "{argument}");
    let page = Path::new(&argument);
    assert_eq!(page.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    let target = format!("content=\"0; url={}\"", url.trim_end());
    assert!(std::fs::read_to_string(page).expect("own file").contains(&target));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    child.wait().expect("it ends");
    assert!(!page.exists());
}

#[test]
fn a_killed_run_is_not_shown() {
    let server = Server::start();
    let mut run = run_published(
        server.folder.path(),
        &["pipe", "--publish", "--no-advice", "sleep 60 | cat"],
    );
    let path = live_path(&server);
    let mut reader = follow(&server, &path);
    kill_process(Pid::from_child(&run), Signal::KILL).expect("it runs");
    run.wait().expect("it ends");
    let mut events = String::new();
    while !events.contains("the program was killed") {
        assert!(reader.read_line(&mut events).expect("an event") > 0, "{events}");
    }
    assert_eq!(server.get(&path).status, 404);
    assert!(!server.get("").body.contains("Taking place now"));
}

#[test]
fn nothing_is_published_without_the_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = command(folder.path(), &["pipe", "--no-store", "--no-advice", "true"]).output();
    assert!(run.expect("it starts").status.success());
    assert!(!folder.path().join("contend").exists());
}

#[test]
fn other_addresses_need_an_option_and_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = |arguments: &[&str]| {
        let mut command = command(folder.path(), &["serve"]);
        output(command.args(arguments))
    };
    for (arguments, expected) in [
        (&["--port", "0.0.0.0:8000"][..], "`--listen 0.0.0.0:8000` listens at another address"),
        (&["--listen", "board:8000"], "expected an address"),
        (&["0.0.0.0:8000"], "unexpected argument"),
        (&["--port", "1", "--listen", "127.0.0.1"], "cannot be used with"),
    ] {
        let refused = serve(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
    let used = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = used.local_addr().expect("bound").port().to_string();
    let refused = serve(&["--port", &port]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("cannot listen at 127.0.0.1:"), "{refused:?}");

    let mut command = command(folder.path(), &["serve", "--listen", "0.0.0.0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("contend starts");
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut url).expect("a line");
    let (host, root) = split(url.trim_end());
    let port = host.rsplit(':').next().expect("a port");
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    let request =
        format!("GET {root} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("No runs are saved yet."), "{answer}");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let warning = text(&output.stderr).replace('\n', " ");
    for expected in ["everyone who can reach 0.0.0.0:", "host names", "not encrypted"] {
        assert!(warning.contains(expected), "{warning}");
    }
}

#[test]
fn a_damaged_store_is_a_message_and_stays() {
    let server = Server::with_store(|store| std::fs::write(store, "damaged").expect("room"));
    let answer = server.get("");
    assert_eq!(answer.status, 500);
    assert!(answer.body.contains("is not a contend store, or is damaged"), "{}", answer.body);
    assert_eq!(server.post("run/1/label", "label=x").status, 500);
    assert_eq!(std::fs::read_to_string(server.store()).expect("there"), "damaged");
}

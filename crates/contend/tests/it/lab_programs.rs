//! Tests of other projects' web servers: each answers like the lab's own servers, and leaves no
//! processes or files.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Child, Command, PublicFolder, as_nobody, cases, contend, has, lab, lab_record_of, skip,
    wait_until,
};

/// Programs, with the numbers of processes and threads for the tests, and whether they keep
/// connections open.
const PROGRAMS: [(&str, u64, u64, bool); 7] = [
    ("puma", 1, 8, true),
    ("puma", 2, 4, true),
    ("unicorn", 8, 1, false),
    ("gunicorn", 8, 1, false),
    ("nginx", 2, 1, true),
    ("node", 1, 1, true),
    ("node", 2, 1, true),
];

/// Returns whether a program is installed. If not, reports that the test is skipped.
fn is_installed_or_skip(test: &str, program: &str) -> bool {
    let found = has(program) || Path::new("/usr/sbin").join(program).is_file();
    if !found {
        skip(test, &format!("{program} is not installed"));
    }
    found
}

/// A process of the lab that supervises a web server, with the port, pid and version of that
/// server.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    port: u16,
    pid: i32,
    version: String,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut value = |name: &str| {
            let mut line = String::new();
            output.read_line(&mut line).expect("a line");
            let value = line.trim_end().strip_prefix(name).unwrap_or_else(|| panic!("{line}"));
            value.trim_start().to_owned()
        };
        let port = value("port").parse().expect("a number");
        let pid = value("pid").parse().expect("a number");
        let version = value("version");
        Self { child, output, port, pid, version }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it listens")
    }

    /// Returns the scratch folder in which the program runs.
    fn folder(&self) -> PathBuf {
        fs::read_link(format!("/proc/{}/cwd", self.pid)).expect("it runs")
    }

    /// Closes the input of the supervisor, waits until it has exited, and asserts that it succeeded
    /// and printed nothing more.
    fn end(mut self, name: &str) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "", "{name}");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{name}: {status}");
    }
}

fn command(name: &str, handler: &str, processes: u64, threads: u64) -> Command {
    let mut command = Command::new(contend());
    command.args(["lab-server", name, handler]);
    command.args([processes, threads, 100].map(|number| number.to_string()));
    command
}

/// Returns the `/proc` folders of the processes whose working directory is in the given folder.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").expect("procfs").flatten().map(|entry| entry.path());
    let is_in =
        |path: &PathBuf| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    entries.filter(is_in).collect()
}

fn assert_gone(folder: &Path, what: &str) {
    assert_eq!(processes_in(folder), Vec::<PathBuf>::new(), "{what}");
    assert!(!folder.exists(), "{what}: {}", folder.display());
}

/// Reads a response with a body of 6 bytes, and returns its head and its body.
fn response(reader: &mut BufReader<TcpStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a head") > 0, "it ended: {head}");
    }
    let mut body = [0; 6];
    reader.read_exact(&mut body).expect("a body");
    (head, String::from_utf8(body.to_vec()).expect("text"))
}

/// Sends requests on many connections before reading the first response, and checks all responses.
fn request_on_many_connections(server: &Server, name: &str, stays_open: bool) {
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for _ in 0..2 {
        let mut clients: Vec<_> = (0..24).map(|_| BufReader::new(server.connect())).collect();
        for round in 0..if stays_open { 3 } else { 1 } {
            for client in &clients {
                client.get_ref().write_all(GET).expect("it reads");
            }
            for client in &mut clients {
                let (head, body) = response(client);
                assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{name}, {round}: {head}");
                let length = head.to_ascii_lowercase().contains("\r\ncontent-length: 6\r\n");
                assert!(length, "{name}: {head}");
                assert_eq!(body, "hello\n", "{name}, {round}");
            }
        }
        for client in &mut clients {
            if !stays_open {
                let mut rest = Vec::new();
                client.read_to_end(&mut rest).expect("it closes the connection");
                assert_eq!(rest, b"", "{name}");
            }
        }
    }
}

#[test]
fn every_program_serves_many_connections_and_ends_all_its_processes() {
    let test = "every_program_serves_many_connections_and_ends_all_its_processes";
    for (name, processes, threads, stays_open) in PROGRAMS {
        if !is_installed_or_skip(test, name) {
            continue;
        }
        for handler in ["hello", "wait"] {
            if (name, handler) == ("nginx", "wait") {
                continue; // it has no way to wait
            }
            let what = format!("{name}, {processes} processes, {handler}");
            let server = Server::start(&mut command(name, handler, processes, threads));
            assert!(server.version.starts_with(name), "{what}: {}", server.version);
            assert!(server.version.contains(|c: char| c.is_ascii_digit()), "{}", server.version);
            let folder = server.folder();
            let found = processes_in(&folder).len() as u64;
            assert!(found >= processes, "{what}: {found}");
            let begun = Instant::now();
            request_on_many_connections(&server, &what, stays_open);
            if handler == "wait" {
                assert!(begun.elapsed() >= Duration::from_millis(200), "{what}: answered early");
            }
            server.end(&what);
            assert_gone(&folder, &what);
        }
    }
}

#[test]
fn an_ordinary_user_can_start_every_program() {
    let test = "an_ordinary_user_can_start_every_program";
    let place = PublicFolder::new();
    let program = place.install(contend(), "contend", 0o755);
    for (name, processes, threads, stays_open) in PROGRAMS {
        if !is_installed_or_skip(test, name) {
            continue;
        }
        let Some(mut command) = as_nobody(test, &program) else { return };
        command.args(["lab-server", name, "hello"]);
        command.args([processes, threads, 100].map(|number| number.to_string()));
        command.env("TMPDIR", place.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if name == "node" && !Path::new("/usr/bin/node").is_file() {
            continue;
        }
        let server = Server::start(&mut command);
        let folder = server.folder();
        request_on_many_connections(&server, name, stays_open);
        server.end(name);
        assert_gone(&folder, name);
    }
}

#[test]
fn signals_end_a_supervisor_and_its_descendants() {
    let test = "signals_end_a_supervisor_and_its_descendants";
    for (name, processes, threads, _) in PROGRAMS {
        if !is_installed_or_skip(test, name) {
            continue;
        }
        for signal in [Signal::TERM, Signal::INT] {
            let mut command = command(name, "hello", processes, threads);
            let mut server = Server::start(command.stderr(Stdio::null()));
            let folder = server.folder();
            let pid = i32::try_from(server.child.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.expect("a process"), signal).expect("it runs");
            let status = server.child.wait().expect("it ends");
            assert!(!status.success(), "{name}, {signal:?}: {status}");
            assert_gone(&folder, name);
        }
    }
}

#[test]
fn a_terminated_run_leaves_no_server_and_no_files() {
    let test = "a_terminated_run_leaves_no_server_and_no_files";
    for (name, signal) in [
        ("nginx", Signal::INT),
        ("unicorn", Signal::TERM),
        ("puma", Signal::KILL),
        ("nginx", Signal::KILL),
    ] {
        if !is_installed_or_skip(test, name) {
            continue;
        }
        let scratch = tempfile::tempdir().expect("a folder");
        let mut command = lab(&["run", "server/hello", "--no-store", "--set", "connections=5"]);
        command.args(["--set", &format!("program={name}"), "--set", "load_ms=1000"]);
        command.env("TMPDIR", scratch.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().expect("it starts");
        wait_until("the server runs", || {
            processes_in(scratch.path()).iter().any(|process| {
                fs::read_to_string(process.join("comm"))
                    .is_ok_and(|comm| comm.contains(name) || comm.contains("ruby"))
            })
        });
        let pid = i32::try_from(run.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it runs");
        run.wait().expect("it ends");
        wait_until(&format!("nothing of {name} remains after {signal:?}"), || {
            let is_empty = || fs::read_dir(scratch.path()).expect("ours").next().is_none();
            processes_in(scratch.path()).is_empty() && is_empty()
        });
    }
}

#[test]
fn a_program_that_fails_to_start_is_reported_with_its_output() {
    let place = PublicFolder::new();
    let (scratch, folder) = (tempfile::tempdir().expect("a folder"), place.path());
    for (text, reason) in [
        (
            "#!/bin/sh\necho no such gem >&2\nexit 1\n",
            "puma: the program ended; output: no such gem",
        ),
        ("#!/bin/sh\nkill -9 $$\n", "puma: the program ended"),
    ] {
        fs::write(folder.join("script"), text).expect("room");
        let script = folder.join("script");
        place.install(script.to_str().expect("UTF-8"), "puma", 0o755);
        let mut command = command("puma", "hello", 1, 1);
        command.env("PATH", folder).env("TMPDIR", scratch.path()).stdin(Stdio::piped());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("contend");
        let input = child.stdin.take();
        let mut said = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        assert_eq!(said, format!("failed {reason}\n"));
        assert!(!child.wait().expect("it ends").success());
        assert!(fs::read_dir(scratch.path()).expect("ours").next().is_none(), "{reason}");
        drop(input);
    }
}

#[test]
fn a_missing_program_is_skipped_and_its_package_named() {
    let empty = tempfile::tempdir().expect("a folder");
    let mut command = lab(&["run", "server/*", "--quick", "--set", "program=puma,nginx"]);
    command.args(["--set", "keep_alive=off", "--set", "connections=5"]).env("PATH", empty.path());
    command.args(["--only", "program=puma"]);
    let record = lab_record_of(&mut command);
    assert!(!cases(&record).is_empty());
    for case in cases(&record) {
        let reason = "puma is not installed (Debian package puma)";
        assert_eq!(case["skipped"], reason, "{case}");
    }
}

#[test]
fn a_record_has_the_version_and_the_footprint_of_a_program() {
    let test = "a_record_has_the_version_and_the_footprint_of_a_program";
    if !is_installed_or_skip(test, "unicorn") {
        return;
    }
    let mut command = lab(&["run", "server/hello", "--quick", "--set", "program=unicorn"]);
    command.args(["--set", "processes=3", "--set", "connections=5", "--set", "load_ms=250"]);
    let record = lab_record_of(&mut command);
    let case = &cases(&record)[0];
    let version = case["facts"]["version"].as_str().unwrap_or_default();
    assert!(version.starts_with("unicorn ") && version.contains(", ruby "), "{case}");
    assert_eq!(case["facts"]["workers"], 3, "{case}");
    assert_eq!(case["facts"]["answered"], 5, "{case}");
    let metric = |name: &str| case["metrics"][name]["median"].as_f64().expect("a number");
    assert!(metric("processes") >= 4.0, "{case}");
    assert!(metric("memory") >= metric("private") && metric("private") > 0.0, "{case}");
    assert!(metric("requests_per_s") > 0.0, "{case}");
    assert!(metric("errors").abs() < 0.5, "{case}");
}

#[test]
fn idle_connections_stay_open() {
    let test = "idle_connections_stay_open";
    for name in ["puma", "nginx", "node"] {
        if !is_installed_or_skip(test, name) {
            continue;
        }
        let mut command = lab(&["run", "server/idle", "--quick", "--set", "connections=1000"]);
        let record = lab_record_of(command.args(["--set", &format!("program={name}")]));
        let case = &cases(&record)[0];
        assert_eq!(case["facts"]["answered"], 1000, "{case}");
        assert!(case["median"].as_f64().is_some_and(|bytes| bytes > 0.0), "{case}");
    }
}

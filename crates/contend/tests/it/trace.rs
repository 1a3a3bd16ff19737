//! Tests of `--trace` of `contend doctor`, `pipe` and `run`: the files that viewers load.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use contend_sys::{Pid, Signal};
use rustix::process::kill_process;
use serde_json::Value;

use crate::support::{Command, contend, has, skip, text, wait_until};

/// A program of two processes: a loop, and a sleep for which the shell waits.
const PROGRAM: &str = "for ((i = 0; i < 50000; i++)); do :; done; sleep 1.5; exit 3";

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(contend());
    command.arg("doctor").args(arguments).stdin(Stdio::null());
    command.output().expect("contend starts")
}

/// Runs the program with a trace, and checks what does not depend on the trace.
fn run_program(trace: &Path) {
    let trace = trace.to_str().expect("UTF-8");
    let output = doctor(&["--trace", trace, "--", "bash", "-c", PROGRAM]);
    let report = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{report}");
    assert_eq!(text(&output.stdout), "");
    assert!(report.contains("\nDiagnosis: "), "{report}");
}

/// A marker of the Firefox Profiler: its name, and its start and end in milliseconds.
type Marker = (String, f64, Option<f64>);

/// Returns the markers of a thread, after checking the lengths of the columns.
fn markers(profile: &Value, thread: &Value) -> Vec<Marker> {
    let table = &thread["markers"];
    let column = |name: &str| table[name].as_array().expect("a column");
    let length = usize::try_from(table["length"].as_u64().expect("a length")).expect("short");
    for name in ["data", "name", "startTime", "endTime", "phase", "category"] {
        assert_eq!(column(name).len(), length, "{name}");
    }
    let names = &profile["shared"]["stringArray"];
    let name = |value: &Value| {
        let index = usize::try_from(value.as_u64().expect("an index")).expect("short");
        names[index].as_str().expect("a string").to_owned()
    };
    let row = |index: usize| {
        let start = column("startTime")[index].as_f64().expect("a start");
        (name(&column("name")[index]), start, column("endTime")[index].as_f64())
    };
    (0..length).map(row).collect()
}

/// Returns the markers that have a length, after checking that each begins where the one before ends.
fn spans(markers: Vec<Marker>) -> Vec<(String, f64, f64)> {
    let spans: Vec<_> = markers
        .into_iter()
        .filter_map(|(name, start, end)| end.map(|end| (name, start, end)))
        .collect();
    for pair in spans.windows(2) {
        let (_, _, end) = pair[0];
        let (_, start, _) = pair[1];
        assert!((start - end).abs() < 1e-6, "{pair:?}");
    }
    spans
}

/// Returns the thread with a name.
fn thread<'a>(profile: &'a Value, name: &str) -> &'a Value {
    let threads = profile["threads"].as_array().expect("threads");
    let named: Vec<_> = threads.iter().filter(|thread| thread["name"] == name).collect();
    named.first().copied().unwrap_or_else(|| panic!("no thread {name}"))
}

fn check_profile(profile: &Value) {
    let meta = &profile["meta"];
    for name in ["version", "preprocessedProfileVersion", "interval", "startTime"] {
        assert!(meta[name].is_number(), "meta.{name}");
    }
    for name in ["categories", "markerSchema"] {
        assert!(meta[name].is_array(), "meta.{name}");
    }
    let schemas = meta["markerSchema"].as_array().expect("schemas");
    let types: Vec<&Value> = schemas.iter().map(|schema| &schema["name"]).collect();
    for thread in profile["threads"].as_array().expect("threads") {
        for data in thread["markers"]["data"].as_array().expect("data") {
            assert!(types.contains(&&data["type"]), "{data}");
        }
        let samples = &thread["samples"];
        for name in ["stack", "timeDeltas", "threadCPUDelta"] {
            let length = samples[name].as_array().expect("a column").len();
            assert_eq!(samples["length"], length, "{name}");
        }
    }
    let causes = spans(markers(profile, thread(profile, "cause")));
    assert!(!causes.is_empty());
    let shell = spans(markers(profile, thread(profile, "bash")));
    let sleeper = spans(markers(profile, thread(profile, "sleep")));
    let has = |spans: &[(String, f64, f64)], name: &str| spans.iter().any(|span| span.0 == name);
    assert!(has(&shell, "running"), "{shell:?}");
    assert!(has(&shell, "child process"), "{shell:?}");
    assert!(has(&sleeper, "sleep"), "{sleeper:?}");
    let longest = sleeper.iter().max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
    assert_eq!(longest.map(|span| &*span.0), Some("sleep"));
    let strings = profile["shared"]["stringArray"].as_array().expect("strings");
    assert!(strings.iter().any(|string| string == "1.50s"), "the length of the sleep");
}

#[test]
fn a_trace_for_the_firefox_profiler_has_the_spans_of_each_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("trace.json");
    fs::write(&plain, "old").expect("room");
    run_program(&plain);
    let profile = fs::read(&plain).expect("a trace");
    check_profile(&serde_json::from_slice(&profile).expect("JSON"));
    let test = "a_trace_for_the_firefox_profiler_has_the_spans_of_each_thread";
    check_with_firefox_profiler(test, &plain, &["bash", "sleep", "cause"]);
    let compressed = folder.path().join("trace.json.gz");
    run_program(&compressed);
    let mut gzip = Command::new("gzip");
    let output = gzip.arg("-dc").arg(&compressed).output().expect("gzip starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    check_profile(&serde_json::from_slice(&output.stdout).expect("JSON"));
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 2, "no temporary file");
}

/// Loads a trace into the Firefox Profiler's command line, and checks that it has found these threads. The
/// environment variable `FIREFOX_PROFILER` names the program, `profiler-cli` of the package
/// `@firefox-devtools/profiler-cli`.
fn check_with_firefox_profiler(test: &str, trace: &Path, threads: &[&str]) {
    let Some(program) = std::env::var_os("FIREFOX_PROFILER").filter(|_| has("node")) else {
        return skip(test, "FIREFOX_PROFILER does not name the Firefox Profiler's command line");
    };
    // A daemon loads the trace, and keeps its state in the home directory. The subcommand `load` would start
    // one, too, but gives up if it is not ready within 500 ms. Until the daemon has written `test.json`, other
    // subcommands would remove its socket, because they take it for one that a dead daemon has left.
    let home = tempfile::tempdir().expect("a folder");
    let profiler = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).args(["--session", "test"]).env("HOME", home.path());
        command.stdin(Stdio::null());
        command
    };
    let mut daemon = profiler(&["--daemon", trace.to_str().expect("UTF-8")]);
    let mut daemon = daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let ready = home.path().join(".profiler-cli/test.json");
    wait_until("the Firefox Profiler's daemon has started", || {
        ready.exists() || daemon.try_wait().expect("a child").is_some()
    });
    let mut list = String::new();
    wait_until("the Firefox Profiler has loaded the trace", || {
        let output = profiler(&["thread", "list"]).output().expect("it starts");
        list = text(&output.stdout) + &text(&output.stderr);
        output.status.success() || daemon.try_wait().expect("a child").is_some()
    });
    for name in threads {
        let is_it = |line: &str| line.split_whitespace().any(|word| word == *name);
        assert!(list.lines().any(is_it), "{name}: {list}");
    }
}

#[test]
fn a_trace_for_perfetto_has_the_spans_of_each_thread() {
    let test = "a_trace_for_perfetto_has_the_spans_of_each_thread";
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.perfetto-trace");
    run_program(&trace);
    if has("protoc") {
        check_messages(&trace);
    } else {
        skip(test, "there is no protoc to decode the trace with");
    }
    if trace_processor().is_some() {
        let states = ["bash: running", "bash: child process", "sleep: sleep"];
        check_with_trace_processor(&trace, &states);
    } else {
        skip(test, "there is no trace_processor_shell, and no PERFETTO_UI with Node.js");
    }
}

/// Returns the command of Perfetto's trace processor, if it is installed, or if the environment variable
/// `PERFETTO_UI` names a folder with its WebAssembly build.
fn trace_processor() -> Option<Command> {
    if has("trace_processor_shell") {
        let mut command = Command::new("trace_processor_shell");
        command.arg("-q");
        return Some(command);
    }
    let folder = std::env::var_os("PERFETTO_UI").filter(|_| has("node"))?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/trace_processor.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(folder);
    Some(command)
}

/// A block or a line in the text format of protocol buffers.
#[derive(Debug, Default)]
struct Message {
    values: Vec<(String, String)>,
    messages: Vec<(String, Self)>,
}

impl Message {
    /// Parses the lines up to the end of the message.
    fn parse<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Self {
        let mut message = Self::default();
        while let Some(line) = lines.next().map(str::trim) {
            if line == "}" {
                break;
            } else if let Some(name) = line.strip_suffix(" {") {
                message.messages.push((name.to_owned(), Self::parse(lines)));
            } else {
                let (name, value) = line.split_once(": ").expect("a field");
                message.values.push((name.to_owned(), value.trim_matches('"').to_owned()));
            }
        }
        message
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.messages.iter().filter(move |(field, _)| field == name).map(|(_, message)| message)
    }

    fn message(&self, name: &str) -> Option<&Self> {
        self.messages.iter().find(|(field, _)| field == name).map(|(_, message)| message)
    }

    /// Checks that all fields have names, so that the definitions have them.
    fn check_names(&self) {
        let values = self.values.iter().map(|(name, _)| name);
        for name in values.chain(self.messages.iter().map(|(name, _)| name)) {
            assert!(!name.starts_with(|first: char| first.is_ascii_digit()), "field {name}");
        }
        self.messages.iter().for_each(|(_, message)| message.check_names());
    }
}

/// Decodes a trace with `protoc`, and checks it.
fn check_messages(trace: &Path) {
    let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut protoc = Command::new("protoc");
    protoc.arg("--proto_path").arg(definitions).args(["--decode=Trace", "perfetto.proto"]);
    let output = protoc.stdin(fs::File::open(trace).expect("a trace")).output().expect("protoc");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let decoded = text(&output.stdout);
    let whole = Message::parse(&mut decoded.lines());
    whole.check_names();
    let packets: Vec<&Message> = whole.all("packet").collect();
    let tracks: HashMap<&str, &Message> = packets
        .iter()
        .filter_map(|packet| packet.message("track_descriptor"))
        .map(|track| (track.value("uuid").expect("a number"), track))
        .collect();
    let names: HashMap<&str, &str> = packets[0]
        .message("interned_data")
        .expect("names")
        .all("event_names")
        .map(|name| (name.value("iid").expect("a number"), name.value("name").expect("a name")))
        .collect();
    let mut slices: HashMap<&str, Vec<(&str, u64)>> = HashMap::new();
    let mut open: HashMap<&str, u64> = HashMap::new();
    let mut counts = 0;
    for packet in &packets {
        let Some(event) = packet.message("track_event") else { continue };
        let track = event.value("track_uuid").expect("a track");
        assert!(tracks.contains_key(track), "track {track}");
        let time: u64 = packet.value("timestamp").expect("a time").parse().expect("a number");
        match event.value("type").expect("a type") {
            "TYPE_SLICE_BEGIN" => {
                let name = names[event.value("name_iid").expect("a name")];
                let list = slices.entry(track).or_default();
                let last = list.last().map(|(_, end)| *end);
                assert!(last.is_none_or(|end| end == time), "a gap on track {track}");
                list.push((name, time));
                assert_eq!(open.insert(track, time), None, "overlap on track {track}");
            }
            "TYPE_SLICE_END" => {
                assert!(open.remove(track).is_some_and(|start| start < time));
                slices.get_mut(track).and_then(|list| list.last_mut()).expect("a begin").1 = time;
            }
            "TYPE_COUNTER" => counts += 1,
            kind => assert_eq!(kind, "TYPE_INSTANT"),
        }
    }
    assert!(open.is_empty() && counts > 0);
    let states = |name: &str| {
        let is_it = |track: &Message| {
            let thread = track.message("thread");
            thread.and_then(|thread| thread.value("thread_name")) == Some(name)
        };
        let found: Vec<_> = tracks.iter().filter(|(_, track)| is_it(track)).collect();
        let all = found.iter().flat_map(|(number, _)| slices.get(*number).into_iter().flatten());
        all.map(|(state, _)| *state).collect::<Vec<_>>()
    };
    assert!(states("bash").contains(&"running"));
    assert!(states("bash").contains(&"child process"));
    assert!(states("sleep").contains(&"sleep"));
    assert!(tracks.values().any(|track| track.value("name") == Some("cause")));
}

/// Loads a trace into Perfetto's trace processor, and checks what it has understood: it must find each of
/// `states` of a thread, without errors.
fn check_with_trace_processor(trace: &Path, states: &[&str]) {
    let query = |sql: &str| {
        let file = trace.with_extension("sql");
        fs::write(&file, sql).expect("room");
        let mut command = trace_processor().expect("it is there");
        command.arg(file).arg(trace).stdin(Stdio::null());
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let errors = "SELECT name, value FROM stats \
                  WHERE severity IN ('error', 'data_loss') AND value > 0;";
    assert_eq!(query(errors), [""; 0]);
    let found = query(
        "SELECT DISTINCT thread.name || ': ' || slice.name FROM slice \
         JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid);",
    );
    for state in states {
        assert!(found.contains(&format!("\"{state}\"")), "{found:?}");
    }
    let unfinished = query("SELECT count(*) FROM slice WHERE dur < 0;");
    assert_eq!(unfinished, ["0"]);
}

#[test]
fn a_trace_of_a_pipeline_has_its_stages() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let run = |trace: &Path| {
        let mut command = Command::new(contend());
        command.arg("pipe").arg("--trace").arg(trace).args(["--no-advice", "--no-store"]);
        let output = command.arg("sleep 2 | sort").output().expect("contend starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    run(&path("trace.json"));
    let profile = fs::read(path("trace.json")).expect("a trace");
    let profile: Value = serde_json::from_slice(&profile).expect("JSON");
    let sort = spans(markers(&profile, thread(&profile, "sort")));
    assert!(
        sort.iter().any(|(name, start, end)| name == "pipe" && end - start > 100.0),
        "{sort:?}"
    );
    let test = "a_trace_of_a_pipeline_has_its_stages";
    check_with_firefox_profiler(test, &path("trace.json"), &["sort", "cause"]);
    if trace_processor().is_some() {
        run(&path("trace.pftrace"));
        check_with_trace_processor(&path("trace.pftrace"), &["sort: pipe", "sleep 2: sleep"]);
    } else {
        skip(test, "there is no trace processor");
    }
}

#[test]
fn a_trace_of_a_parallel_run_has_its_workers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let lines: Vec<String> = (0..2_000_000).map(|number| number.to_string()).collect();
    fs::write(path("input"), lines.join("\n") + "\n").expect("room");
    let pipeline = format!("grep 7 {} | sort", path("input").display());
    let run = |trace: &Path, pipeline: &str| {
        let mut command = Command::new(contend());
        command.args(["run", "-j2", "--part-size", "100k", "--trace"]).arg(trace).arg(pipeline);
        command.output().expect("contend starts")
    };
    let (json, record) = (path("trace.json"), path("record.json"));
    let output = run(&json, &pipeline);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let profile: Value = serde_json::from_slice(&fs::read(&json).expect("a trace")).expect("JSON");
    let worker = spans(markers(&profile, thread(&profile, "worker 1")));
    let chunks = worker.iter().filter(|(name, ..)| name == "chunk, stages 1–2").count();
    assert!(chunks > 1, "{worker:?}");
    let test = "a_trace_of_a_parallel_run_has_its_workers";
    check_with_firefox_profiler(test, &json, &["worker", "cause"]);
    if trace_processor().is_some() {
        assert!(run(&path("trace.pftrace"), &pipeline).status.success());
        let states = ["worker 1: chunk, stages 1–2", "worker 2: chunk, stages 1–2"];
        check_with_trace_processor(&path("trace.pftrace"), &states);
    } else {
        skip(test, "there is no trace processor");
    }
    // Without workers, there is nothing to trace.
    let output = run(&record, "set -- x; echo $1");
    let message = text(&output.stderr);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), "x\n".to_owned()),
        "{message}"
    );
    assert!(message.contains("no trace was written"), "{message}");
    assert!(!record.exists(), "an empty file would be taken for a trace");
}

#[test]
fn a_name_without_a_known_format_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let touched = folder.path().join("touched");
    let touched = touched.to_str().expect("UTF-8");
    for name in ["trace", "trace.txt", "trace.gz", "-", "/dev/stdout"] {
        let output = doctor(&["--trace", name, "--", "touch", touched]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in [name, ".json", "Firefox Profiler", ".pftrace", "Perfetto"] {
            assert!(message.contains(part), "{message}");
        }
    }
    let same = folder.path().join("same.json");
    let same = same.to_str().expect("UTF-8");
    let output = doctor(&["--json", same, "--trace", same, "--", "touch", touched]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--trace and --json name the same file"));
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0, "nothing was run");
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_after_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["trace.json", "trace.json.gz", "trace.pftrace"] {
        let full = folder.path().join(name);
        std::os::unix::fs::symlink("/dev/full", &full).expect("room");
        let full = full.to_str().expect("UTF-8");
        let output = doctor(&["--trace", full, "--", "sleep", "0.3"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{message}");
        assert!(message.contains("Diagnosis: "), "{message}");
        assert!(message.contains(&format!("cannot write to {full}: ")), "{message}");
    }
}

#[test]
fn an_interrupted_observation_writes_its_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.json");
    let mut command = Command::new(contend());
    command.args(["doctor", "--trace", trace.to_str().expect("UTF-8"), "--", "sleep", "1000"]);
    let observer =
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("contend starts");
    let pid = Pid::from_child(&observer);
    let observes = || {
        let links = fs::read_dir(format!("/proc/{}/fd", observer.id()));
        links.into_iter().flatten().flatten().any(|entry| {
            fs::read_link(entry.path())
                .is_ok_and(|link| link.to_string_lossy().ends_with("/schedstat"))
        })
    };
    wait_until("contend observes the program", observes);
    kill_process(pid, Signal::INT).expect("alive");
    let output = observer.wait_with_output().expect("a child");
    assert!(text(&output.stderr).contains("sleep 1000"), "{}", text(&output.stderr));
    let profile: Value = serde_json::from_slice(&fs::read(&trace).expect("a trace")).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads");
    assert!(threads.iter().any(|thread| thread["name"] == "cause"));
    assert!(threads.len() >= 2);
}

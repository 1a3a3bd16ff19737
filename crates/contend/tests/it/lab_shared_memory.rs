//! Tests of the experiments about messages and copies with the real executable.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{
    Command, cases, contend, has, is_tried, lab, lab_record, metric, output, skip, text,
};

/// Numbers of system calls by name, for each exchange of a thread. A thread reads its resource
/// usage before and after each measured exchange.
type ExchangeCalls = Vec<BTreeMap<String, u64>>;

/// Parses the output of `strace -f`, and returns the calls of each exchange by thread. An exchange
/// lies between an odd-numbered and the next even-numbered reading of the thread's resource usage.
/// Leaves out threads without exchanges.
fn parse_trace(log: &str) -> BTreeMap<String, ExchangeCalls> {
    let mut threads: BTreeMap<String, (bool, ExchangeCalls)> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, call)) = line.split_once(char::is_whitespace) else { continue };
        let Some((name, arguments)) = call.trim_start().split_once('(') else { continue };
        if name.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            continue; // the end of a call that began on a line above
        }
        let (is_open, regions) = threads.entry(thread.to_owned()).or_default();
        if name == "getrusage" && arguments.contains("RUSAGE_THREAD") {
            *is_open = !*is_open;
            if *is_open {
                regions.push(BTreeMap::new());
            }
        } else if let Some(region) = regions.last_mut().filter(|_| *is_open) {
            *region.entry(name.to_owned()).or_default() += 1;
        }
    }
    let with_regions = threads.into_iter().filter(|(_, (_, regions))| !regions.is_empty());
    with_regions.map(|(thread, (_, regions))| (thread, regions)).collect()
}

/// Returns the numbers of system calls by name that the side `who` made in its last sample,
/// according to the record.
fn recorded_calls(case: &Value, who: &str) -> BTreeMap<String, u64> {
    let messages = case["facts"]["messages"].as_f64().expect("a number");
    let metrics = case["metrics"].as_object().expect("metrics");
    let of = format!("{who}.");
    let named = metrics.iter().filter_map(|(name, metric)| {
        let samples = metric["samples"].as_array()?;
        let last = samples.last()?.as_f64()? * messages;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        Some((name.strip_prefix(&of)?.to_owned(), last.round() as u64))
    });
    named.filter(|(_, calls)| *calls > 0).collect()
}

/// Returns whether a call is part of the exchange, rather than a reading of the clock or the
/// restart of an interrupted call.
fn is_measured_call(name: &str) -> bool {
    !["clock_gettime", "restart_syscall"].contains(&name)
}

#[test]
fn system_calls_agree_with_strace() {
    if !has("strace") {
        return skip("system_calls_agree_with_strace", "there is no strace");
    }
    let all = lab_record(&["ipc/one-way", "--smallest", "--set", "bytes=1"]);
    let names: Vec<_> = cases(&all)
        .iter()
        .filter(|case| case["skipped"].is_null())
        .map(|case| case["parameters"]["mechanism"].as_str().expect("a name").to_owned())
        .collect();
    assert!(names.len() > 10, "{names:?}");
    let names = names.into_iter().enumerate();
    for (_, mechanism) in names.filter(|(row, _)| is_tried(*row, 0, 3)) {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let chosen = format!("mechanism={mechanism}");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o"]).arg(log.path()).arg(contend());
        command.args(["lab", "run", "ipc/one-way", "--smallest", "--no-store", "--json", "-"]);
        command.args(["--set", "bytes=1", "--set", &chosen, "--set", "placement=free"]);
        let output = output(command.stdin(Stdio::null()));
        let record: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{mechanism}: {error}: {}", text(&output.stderr)));
        let case = &cases(&record)[0];
        let log = std::fs::read_to_string(log.path()).expect("strace has written");
        let threads = parse_trace(&log);
        // The main thread takes part in every exchange, each sub in one. The last exchange is the
        // sample.
        let is_main = |regions: &&ExchangeCalls| regions.len() > 1;
        let main = threads.values().find(is_main).expect("main exchanges messages several times");
        let subs: Vec<_> = threads.values().filter(|regions| !is_main(regions)).collect();
        let measured_calls = |region: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
            region
                .iter()
                .filter(|(name, _)| is_measured_call(name))
                .map(|(n, c)| (n.clone(), *c))
                .collect()
        };
        let of_main = measured_calls(main.last().expect("one"));
        assert_eq!(of_main, recorded_calls(case, "main"), "{mechanism}, main: {case}");
        let of_sub = recorded_calls(case, "sub");
        let is_it = |regions: &&&ExchangeCalls| measured_calls(&regions[0]) == of_sub;
        assert!(
            subs.iter().any(|regions| is_it(&regions)),
            "{mechanism}, sub: {of_sub:?} {subs:?}"
        );
    }
}

#[test]
fn every_byte_is_received_or_counted_as_lost() {
    let record = lab_record(&["ipc/one-byte", "--smallest"]);
    for case in cases(&record) {
        let form = case["parameters"]["form"].as_str().expect("a form");
        let messages = case["parameters"]["messages"].as_f64().expect("a number");
        let (received, lost) = (metric(case, "received"), metric(case, "lost"));
        assert!((received + lost - messages).abs() < 0.5, "{case}");
        assert!(form == "cell-unguarded" || lost < 0.5, "{case}");
        if form == "pipe" {
            assert!((metric(case, "main.write") - messages).abs() < 0.5, "{case}");
            assert!((metric(case, "sub.read") - messages).abs() < 0.5, "{case}");
        } else if form == "ring-batches" {
            assert!(metric(case, "calls_main") < messages / 2.0, "{case}");
        }
    }
}

#[test]
fn messages_too_large_for_a_mechanism_are_reported() {
    let record = lab_record(&[
        "ipc/one-way",
        "ipc/round-trip",
        "--smallest",
        "--set",
        "mechanism=eventfd,process-vm-writev",
        "--set",
        "bytes=8",
        "--set",
        "partners=thread",
    ]);
    for case in cases(&record) {
        let why = case["skipped"].as_str().unwrap_or_else(|| panic!("{case}"));
        match case["parameters"]["mechanism"].as_str() {
            Some("eventfd") => assert_eq!(why, "carries messages of at most 7 bytes"),
            _ => assert_eq!(why, "works between processes only"),
        }
    }
}

#[test]
fn copies_report_their_limiting_resource() {
    let record = lab_record(&[
        "copy/file",
        "--smallest",
        "--set",
        "way=read-write,mmap-memcpy,cp",
        "--only",
        "place=tmpfs",
        "--only",
        "block=1",
        "--only",
        "block=4096",
        "--only",
        "block=",
    ]);
    let mut measured = 0;
    for case in cases(&record).iter().filter(|case| case["skipped"].is_null()) {
        measured += 1;
        let limit = case["facts"]["limit"].as_str().expect("a limit");
        assert!(!limit.is_empty(), "{case}");
        if case["parameters"]["block"] == 1 {
            // Other programs may have used the CPU for longer than all calls took.
            let (calls, queue) = (metric(case, "at_calls"), metric(case, "at_queue"));
            let expected = if queue > calls { "waiting for a CPU" } else { "system calls" };
            assert_eq!(limit, expected, "{case}");
            let others = ["at_kernel", "at_faults", "at_pages", "at_memory", "at_program"];
            assert!(others.iter().all(|part| metric(case, part) < calls), "{case}");
            assert!(metric(case, "calls.read") > 1_000_000.0, "{case}");
        }
    }
    assert!(measured >= 3, "{record}");
    let refused = output(&mut lab(&["run", "copy/file", "--set", "place=moon"]));
    let error = text(&refused.stderr);
    assert!(error.contains("invalid --set place=moon: expected one of tmpfs, disk"), "{error}");
}

#[test]
fn the_suite_fits_the_width() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("runs.db");
    let mut suite = Command::new(contend());
    suite.args(["lab", "suite", "shared-memory", "--smallest", "--store"]).arg(&store);
    let measured = output(suite.env("COLUMNS", "60").stdin(Stdio::null()));
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    let show = |options: &[&str]| {
        let mut again = Command::new(contend());
        again.args(["history", "show", "1"]).args(options).arg("--store").arg(&store);
        output(again.env("COLUMNS", "80")).stdout
    };
    let (summary, full) = (show(&[]), show(&["--full"]));
    let has_table = |report: &[u8]| text(report).lines().any(|line| line == "ipc/one-byte");
    assert!(!has_table(&summary) && has_table(&full), "only --full has every table");
    let printed = [(60, measured.stdout), (60, measured.stderr), (80, summary), (80, full)];
    for (width, printed) in printed {
        // The path of the store may have any length.
        let printed = text(&printed).replace(&store.display().to_string(), "STORE");
        assert!(!printed.is_empty());
        let long: Vec<_> = printed.lines().filter(|line| line.chars().count() > width).collect();
        assert!(long.is_empty(), "at {width} columns: {long:#?}");
    }
}

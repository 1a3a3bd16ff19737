//! Tests of waits on pipelines in which one kind of wait dominates each stage.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::support::{Command, contend, has, number, record, run, skip, text};
use crate::terminal::typed_on_a_terminal;

/// Returns the name and the total time, in seconds, of each kind of wait of a stage.
fn waits(stage: &Value) -> Vec<(String, f64)> {
    let own = ["starved", "blocked", "unexplained"];
    let own = own.map(|name| (name.to_owned(), number(&stage[format!("{name}_seconds")])));
    let others = stage["other_waits"].as_object().expect("by kind");
    own.into_iter().chain(others.iter().map(|(name, time)| (name.clone(), number(time)))).collect()
}

/// Asserts that a stage had the expected kind of wait for longer than all other kinds together.
fn waits_for(stage: &Value, expected: &str) {
    let waits = waits(stage);
    let of = |wanted: bool| -> f64 {
        waits.iter().filter(|(name, _)| (name == expected) == wanted).map(|(_, time)| time).sum()
    };
    assert!(of(true) > of(false), "{expected} is not the most of {waits:?}: {stage:#}");
}

/// Shell text that writes a line every 0.15 s.
const SLOW: &str = "(for i in 1 2 3 4 5 6; do sleep 0.15; echo $i; done)";

/// Returns pipelines, with the expected kind of wait for each stage.
fn cases() -> Vec<(String, Vec<&'static str>)> {
    let case = |text: &str, waits: &[&'static str]| (text.to_owned(), waits.to_vec());
    let mut cases = vec![
        case("sleep 0.8 | cat", &["sleep", "starved"]),
        case("yes | (sleep 0.8; head -c 100000 >/dev/null)", &["blocked", "sleep"]),
        case("cat /dev/zero | (sleep 0.8; head -c 1000 >/dev/null)", &["blocked", "sleep"]),
        case("(x=$(sleep 0.8); echo $x)", &["sleep"]),
        case("sh -c 'sleep 0.8 & wait' | cat", &["sleep", "starved"]),
        // The stage leaves short-lived children as zombies.
        case(&format!("{SLOW} | xargs -n 1"), &["sleep", "starved"]),
        case(&format!("{SLOW} | xargs -L 1 | cat"), &["sleep", "starved", "starved"]),
        case(&format!("{SLOW} | while read -r n; do /bin/true; done"), &["sleep", "starved"]),
        case(&format!("{SLOW} | while read -r n; do x=$(/bin/true); done"), &["sleep", "starved"]),
    ];
    if has("perl") {
        let select =
            "sleep 0.8 | perl -e '$r = \"\"; vec($r, 0, 1) = 1; select($r, undef, undef, 9)'";
        cases.push(case(select, &["sleep", "starved"]));
        cases.push(case("perl -e 'select(undef, undef, undef, 0.8)'", &["sleep"]));
    } else {
        skip("every_wait_has_the_expected_reason", "there is no perl");
    }
    cases
}

/// Reads the programs of all cases into the page cache. Otherwise, a stage that is started for the first
/// time may wait longer for the disk than for anything else.
fn load_programs() {
    let mut script = "sleep 0 | cat | xargs -n 1; yes | head -c 1; /bin/true".to_owned();
    if has("perl") {
        script.push_str("; perl -e 'select(undef, undef, undef, 0)'");
    }
    let output = run(Command::new("sh").args(["-c", &script]), "");
    assert!(output.status.success(), "{output:?}");
}

fn check_all() {
    load_programs();
    for (pipeline, expected) in cases() {
        let record = record(&["--discard", &pipeline]);
        let stages = record["stages"].as_array().expect("a list");
        for (stage, expected) in stages.iter().zip(&expected) {
            waits_for(stage, expected);
        }
        let no_disk = stages.iter().all(|stage| {
            let disk = number(&stage["other_waits"]["disk"]);
            disk < 0.25 * number(&stage["wall_seconds"])
        });
        assert!(no_disk, "{pipeline} has nothing to do with a disk: {record:#}");
    }
}

/// Calls `run` while more threads than there are CPUs are busy.
fn under_load<T>(run: impl FnOnce() -> T) -> T {
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = Ended(&ended);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..2 * cpus {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        run()
    })
}

#[test]
fn every_wait_has_the_expected_reason() {
    check_all();
}

#[test]
fn every_wait_has_the_expected_reason_under_load() {
    under_load(check_all);
}

/// Tests the wait of a pager, which opens the terminal by the name of its standard output.
#[test]
fn a_pager_waits_for_the_terminal() {
    let test = "a_pager_waits_for_the_terminal";
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let begun = folder.path().join("begun").display().to_string();
    let line = format!(
        "(until [ -e {begun} ]; do sleep 0.1; done; sleep 1; echo no''w) & \
         {} pipe --no-advice --no-progress --output /dev/null --json {} \
         'seq 100000 | sh -c \": >{begun}; read -r key <\\$(readlink /proc/\\$\\$/fd/1)\"'",
        contend(),
        json.display()
    );
    let Some(drawn) = typed_on_a_terminal(test, 100, &line, &[("now", "x\n")]) else { return };
    let text = std::fs::read_to_string(&json).unwrap_or_else(|_| panic!("no record; {drawn}"));
    let record: Value = serde_json::from_str(&text).expect("JSON");
    waits_for(&record["stages"][1], "terminal");
    waits_for(&record["stages"][0], "blocked");
    assert_eq!(record["stages"][0]["holds_output"], false, "its pipe was full: {record:#}");
}

#[test]
fn a_writer_blocked_in_its_first_write_is_not_a_barrier() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "a line\n".repeat(100_000)).expect("room");
    let path = file.path().display();
    let record = record(&[&format!("cat {path} | (sleep 3; head -c 1000 >/dev/null)")]);
    let cat = &record["stages"][0];
    assert_eq!(cat["holds_output"], false, "{record:#}");
    // The pipe was full before its reader started.
    assert!(number(&cat["first_output_seconds"]) < 2.5, "{record:#}");
}

#[test]
fn a_barrier_in_the_last_stage_is_found() {
    for pipeline in [format!("{SLOW} | sort"), format!("{SLOW} | xargs echo")] {
        let record = record(&["--discard", &pipeline]);
        let found = record["findings"].as_array().expect("a list").iter().any(|finding| {
            finding["id"] == "holds-output" && finding["stages"] == serde_json::json!([2])
        });
        assert!(found, "{record:#}");
    }
}

#[test]
fn on_a_busy_machine_no_wall_time_is_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("record.json");
    let file = folder.path().join("numbers");
    std::fs::write(&file, "some line with a number\n".repeat(3_000_000)).expect("room");
    let path = file.display();
    let pipeline = format!("cat {path} | sed s/a/b/ | sed s/o/p/ | wc -l");
    let output = under_load(|| {
        let mut command = Command::new(contend());
        command.args(["pipe", "--discard", "--what-if", "cpus 8", "--json"]);
        run(command.arg(&json).arg(&pipeline), "")
    });
    let report = text(&output.stderr);
    let record: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("a record")).expect("JSON");
    assert!(number(&record["observation"]["others_cpu_share"]) > 0.2, "{record:#}");
    assert!(record["predicted_unchanged"]["wall_seconds"].is_null(), "{record:#}");
    assert!(number(&record["predicted_unchanged"]["cpu_seconds"]) > 0.0);
    for candidate in record["candidates"].as_array().expect("a list") {
        assert!(candidate["predicted_wall_seconds"].is_null(), "{candidate:#}");
    }
    assert!(report.contains("Wall times are not predicted"), "{report}");
    assert!(!report.contains("% wall"), "{report}");
}

//! Tests the checker of `bench-scripts` with stand-ins for contend. A runner reaps every child of
//! its process, so these tests have their own binary and run one at a time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contend_bench::scripts::check::{Checker, Form, Parts, Verdict};
use contend_bench::scripts::compare::Difference;
use contend_bench::scripts::generate::{Part, Script, Setting, Stdin, Stdout};
use contend_bench::scripts::report;
use contend_bench::scripts::run::{Runner, adopt_orphans};

static ALONE: Mutex<()> = Mutex::new(());

/// Writes a stand-in for contend: a bash script that sets `text` to the script that it is given,
/// and then runs `body`.
fn stand_in(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("contend");
    let text = format!(
        "#!/bin/bash\n\
         while [[ $2 == --?* || $2 == -j ]]; do set -- \"$1\" \"${{@:4}}\"; done\n\
         if [[ $2 == -f ]]; then text=$(<\"$3\"); else text=$3; fi\n{body}\n"
    );
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

fn script(text: &str) -> Script {
    let setting = Setting {
        stdin: Stdin::Null,
        stdout: Stdout::Pipe,
        locale: "C".to_owned(),
        bash_env: false,
        forced: ["--part-size", "1", "-j", "3"].map(str::to_owned).to_vec(),
        arguments: &[],
    };
    let part = Part { feature: "pipelines/plain", text: text.to_owned() };
    Script { number: 0, parts: vec![part], files: Vec::new(), input: b"in\n".to_vec(), setting }
}

/// Calls `act` with a checker whose contend is the stand-in that runs `body`.
fn with_checker<T>(body: &str, act: impl FnOnce(&mut Checker<'_>) -> T) -> T {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    adopt_orphans().expect("Linux 3.4 or newer");
    let folder = tempfile::tempdir().expect("a folder");
    let contend = stand_in(folder.path(), body);
    let mut runner = Runner::new(PATIENT).expect("a folder");
    runner.grace = Duration::from_millis(300);
    act(&mut Checker { contend: &contend, runner, shrink_time: PATIENT })
}

/// Returns the verdict on one variant of the script `text` with the stand-in that runs `body`.
fn verdict(body: &str, text: &str) -> Verdict {
    with_checker(body, |checker| one(checker, text))
}

fn one(checker: &Checker<'_>, text: &str) -> Verdict {
    checker.check_variant(Form::Text, Parts::Forced, &script(text)).expect("bash runs")
}

const PATIENT: Duration = Duration::from_mins(1);

#[test]
fn bash_does_not_differ_from_itself() {
    let text = "exec 3<a; sort <&3 | tr a b >o1; sort nofile; mkfifo p; exit 3";
    let check = |checker: &mut Checker<'_>| checker.check(&script(text)).expect("bash runs");
    for verdict in with_checker("exec bash -c \"$text\"", check) {
        assert!(matches!(verdict, Verdict::Same), "{verdict:?}");
    }
}

#[test]
fn a_planted_difference_of_each_kind_is_found() {
    let planted = [
        ("bash -c \"$text\"; echo more", Difference::Stdout),
        ("bash -c \"$text\"; exit 9", Difference::Status),
        ("bash -c \"$text\"; echo >>o1", Difference::FileContent),
        ("bash -c \"$text\"; echo >o2", Difference::ExtraFile),
        ("bash -c \"$text\"; rm o1", Difference::MissingFile),
        ("bash -c \"$text\"; echo >$TMPDIR/x", Difference::TemporaryFile),
        ("bash -c \"$text\"; echo more >&2", Difference::Stderr),
        ("bash -c \"$text\"; sleep 600 >/dev/null &", Difference::LeftRunning),
    ];
    for (body, kind) in planted {
        let verdict = verdict(body, "sort a | tr a b >o1");
        let Verdict::Differs(finding) = verdict else { panic!("{body}: {verdict:?}") };
        assert_eq!(finding.kinds, [kind], "{body}");
        assert!(finding.again > 0, "{body}");
    }
}

#[test]
fn a_planted_hang_is_found() {
    let verdict = with_checker("sleep 600", |checker| {
        checker.runner.limit = Duration::from_secs(2);
        checker.shrink_time = Duration::ZERO;
        one(checker, "sort a | tr a b")
    });
    let Verdict::Differs(finding) = verdict else { panic!("{verdict:?}") };
    assert_eq!(finding.kinds, [Difference::Hang]);
}

#[test]
fn remaining_processes_are_killed() {
    let body = "sleep 60$$ >/dev/null & bash -c \"$text\"; echo $!";
    let verdict = verdict(body, "sort a");
    let Verdict::Differs(finding) = verdict else { panic!("{verdict:?}") };
    let stdout = String::from_utf8_lossy(&finding.contend.stdout).into_owned();
    let pid = stdout.lines().last().expect("the number of a process");
    assert!(!Path::new("/proc").join(pid).join("exe").exists(), "{pid} goes on");
}

#[test]
fn effects_that_bash_does_not_repeat_are_not_differences() {
    let verdict = verdict("exec bash -c \"$text\"", "echo $RANDOM$RANDOM");
    assert!(matches!(verdict, Verdict::NotRepeatable(_)), "{verdict:?}");
}

/// Uses a stand-in for contend that runs `tr a c` in place of `tr a b`.
#[test]
fn a_difference_remains_after_shrinking() {
    let text = "sort b | wc -l\nfor i in 1 2; do cat a | tr a b | sort; done; wc -c b";
    let body = "exec bash -c \"${text//tr a b/tr a c}\"";
    let verdict = verdict(body, text);
    let Verdict::Differs(finding) = verdict else { panic!("{verdict:?}") };
    assert_eq!(finding.kinds, [Difference::Stdout]);
    let small = finding.small.text();
    assert!(small.contains("tr a b") && !small.contains("wc"), "{small}");
    let row = report::row(&script(text), &[Verdict::Differs(finding)]);
    assert_eq!(row["differ"], 1);
    assert!(row["findings"][0]["text"].as_str().is_some_and(|text| text.contains("--- small")));
}

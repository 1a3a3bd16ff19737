//! What `contend run` does beside running pipelines.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{contend, run, text};

/// `contend run` with these arguments, over parts whatever they take.
fn in_parts(arguments: &[&str]) -> Command {
    let mut command = Command::new(contend());
    command.args(["run", "-j", "2", "--part-size", "64k"]).args(arguments);
    command
}

/// Numbered lines in an order of their own.
fn lines(count: u32) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{} line", n.wrapping_mul(2_654_435_761) % 1_000_003); // a String takes everything
        text
    })
}

fn assert_status(output: &Output, status: i32) {
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{remarks}");
}

#[test]
fn sorting_spills_where_the_user_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = lines(1_000_000);
    let pipeline = |folder: &Path| format!("sort -T {}", folder.display());
    let spilling = |folder: &Path, temporary: &Path| {
        let mut command = in_parts(&["--memory", "16M", &pipeline(folder)]);
        run(command.env("LC_ALL", "C").env("TMPDIR", temporary), &input)
    };
    let nowhere = Path::new("/proc/no-such-folder");
    let output = spilling(folder.path(), nowhere);
    assert_status(&output, 0);
    let mut sorted: Vec<&str> = input.lines().collect();
    sorted.sort_unstable();
    assert!(text(&output.stdout).lines().eq(sorted), "not sorted");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
    let output = spilling(nowhere, folder.path());
    assert_status(&output, 125);
    let remarks = text(&output.stderr);
    assert!(remarks.contains("cannot keep sorted lines in /proc/no-such-folder: "), "{remarks}");
}

#[test]
fn commands_are_named_in_the_configuration_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("contend/run.toml");
    std::fs::create_dir(folder.path().join("contend")).expect("room");
    let explain = |arguments: &[&str]| {
        let mut command = Command::new(contend());
        command.args(["run", "--explain"]).args(arguments);
        run(command.env("XDG_CONFIG_HOME", folder.path()), "")
    };
    let annotated = "[[map]]\ncommand = \"env cat\"\n";
    std::fs::write(&file, annotated).expect("room");
    let explained = text(&explain(&["env cat -u | env tac"]).stdout);
    let [known, _, unknown, ..] = explained.lines().collect::<Vec<_>>()[1..] else {
        panic!("{explained}")
    };
    assert!(known.contains("every record for itself"), "{explained}");
    assert!(unknown.contains("runs alone"), "{explained}");
    let explained = text(&explain(&["--map", "env tac", "env tac | env cat"]).stdout);
    assert_eq!(explained.matches("every record for itself").count(), 2, "{explained}");
    std::fs::write(&file, format!("{annotated}\nrecords = lines\n")).expect("room");
    let output = explain(&["cat"]);
    assert_status(&output, 2);
    let error = text(&output.stderr);
    assert!(error.contains("contend/run.toml, line 4: "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

//! Tests of `contend run --on` over objects in a store: a server on this machine that answers as S3 does.

mod hdfs;
mod work;

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::cluster::Setting;
use crate::support::store::{Faults, Store};
use crate::support::{Command, text};

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
    let store = Store::with(Faults { changes: true, ..Faults::default() });
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

//! Tests of endless input without record separators: memory is bounded, and all processes end when
//! the reader closes the output.

use std::io::Read as _;
use std::process::Stdio;

use super::contend_run;
use crate::support::{Command, contend, has, skip, text};

/// Sets of options: the default ones, and some for several sizes of chunks.
const OPTIONS: &[&str] = &["", "-j 3 --part-size 1", "-j 3 --part-size 50k", "--memory 16M"];
/// Pipelines that write endlessly without line breaks.
const ENDLESS_WRITERS: &[&str] = &[
    "cat /dev/zero | tr '\\0' a",
    "perl -e 'while(print \"a\" x 65536){}'",
    "while printf 'aaaaaaaaaa%0.s' 1 2 3 4 5 6 7; do :; done",
];
/// Maximum memory of contend itself in kibibytes: that of two chunks of the largest size, and of
/// the program.
const MAX_MEMORY_KB: u64 = 160 << 10;

#[test]
fn endless_data_without_line_breaks_ends_with_its_reader() {
    if !has("bash") || !has("perl") {
        return skip("endless_data_without_line_breaks_ends_with_its_reader", "no bash or perl");
    }
    for writer in ENDLESS_WRITERS {
        for pipeline in ["tr a b", "tr a c | tr c b | tr -d '\\n'"] {
            for options in OPTIONS {
                let program = contend();
                let line = format!("({writer}) | {program} run {options} \"$0\" | head -c 10");
                let mut command = Command::new("timeout");
                command.args(["120", "bash", "-c", &line, pipeline]).env("LC_ALL", "C");
                let output = command.output().expect("coreutils");
                assert_eq!(text(&output.stdout), "b".repeat(10), "{line}: {pipeline}");
                assert!(output.status.success(), "{line}: {pipeline}: {:?}", output.status);
            }
        }
    }
}

#[test]
fn data_without_line_breaks_takes_bounded_memory() {
    for options in OPTIONS {
        let options: Vec<&str> = options.split_whitespace().collect();
        let mut command = contend_run(&options, "tr a b");
        command.env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let mut stdout = child.stdout.take().expect("piped");
        let writer = std::thread::spawn(move || {
            use std::io::Write as _;
            let block = vec![b'a'; 1 << 20];
            for _ in 0..200 {
                stdin.write_all(&block).expect("it reads");
            }
        });
        let mut block = vec![0; 1 << 20];
        let mut left: usize = 150 << 20;
        while left > 0 {
            let read = stdout.read(&mut block).expect("it writes");
            assert!(read > 0 && block[..read].iter().all(|&byte| byte == b'b'), "{options:?}");
            left = left.saturating_sub(read);
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let peak = status.expect("it runs");
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|it| it.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        assert!(peak.is_some_and(|peak| peak < MAX_MEMORY_KB), "{options:?}: {peak:?} kB");
        std::io::copy(&mut stdout, &mut std::io::sink()).expect("it writes");
        writer.join().expect("it writes");
        assert!(child.wait().expect("it is ours").success(), "{options:?}");
    }
}

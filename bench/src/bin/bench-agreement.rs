//! Do the figures agree with those of other tools? Compares CPU time with
//! `/usr/bin/time`, bytes with `wc -c`, and bytes and calls with `strace -c`-like counts.
//!
//! Each stage is run alone on the input that it has in the pipeline, so that every tool
//! sees the same work.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use contend_bench::{built, profile};
use contend_record::pipe::Stage;

/// Pipelines of stages that read standard input to its end. The first one makes it.
const PIPELINES: [&[&str]; 4] = [
    &["seq 6000000", "sed s/1/22/g", "tr 0-9 a-j", "wc -l"],
    &["seq 3000000", "rev", "sort", "uniq -c", "tail -n 3"],
    &["head -c 300000000 /dev/zero", "base64", "gzip -1"],
    &["seq 4000000", "grep 7", "cut -c 2-4", "awk '{ n += $1 } END { print n }'"],
];

fn main() -> Result<()> {
    let contend = built("contend")?;
    let folder = tempfile::tempdir()?;
    println!(
        "{:<36} {:>12} {:>12} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "stage", "bytes in", "wc -c", "diff", "CPU s", "time", "calls", "strace"
    );
    for stages in PIPELINES {
        let record = profile(&contend, &stages.join(" | "))?;
        let mut input = None;
        for (text, stage) in stages.iter().zip(&record.stages) {
            let output = folder.path().join(format!("{}.out", stage.index));
            compare(text, stage, input.as_deref(), &output, folder.path())?;
            input = Some(output);
        }
    }
    Ok(())
}

fn compare(
    text: &str,
    stage: &Stage,
    input: Option<&Path>,
    output: &Path,
    folder: &Path,
) -> Result<()> {
    run(&["sh", "-c", &format!("exec {text}")], input, Some(output))?;
    let bytes_there = output.metadata()?.len();
    let bytes_in = input.map(|path| path.metadata().map(|m| m.len())).transpose()?;
    let times = folder.join("time");
    let times_arg = times.to_str().context("a path in UTF-8")?;
    let script = format!("exec {text}");
    run(&["/usr/bin/time", "-f", "%U %S", "-o", times_arg, "sh", "-c", &script], input, None)?;
    let cpu: f64 = std::fs::read_to_string(&times)?
        .split_whitespace()
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    let calls = strace(text, input, folder)?;
    let out = stage.bytes_out.unwrap_or(0);
    println!(
        "{text:<36} {:>12} {:>12} {:>6.2}% {:>9.2} {cpu:>9.2} {:>9} {calls:>9}   out {out} / {bytes_there}",
        stage.bytes_in.unwrap_or(0),
        bytes_in.unwrap_or(0),
        bytes_in.map_or(0.0, |truth| {
            100.0 * (stage.bytes_in.unwrap_or(0) as f64 - truth as f64) / truth.max(1) as f64
        }),
        stage.cpu_seconds(),
        stage.reads.unwrap_or(0) + stage.writes.unwrap_or(0),
    );
    Ok(())
}

/// Read-like and write-like calls as strace counts them, following forks, from the
/// program's start on.
fn strace(text: &str, input: Option<&Path>, folder: &Path) -> Result<u64> {
    let summary = folder.join("strace");
    let path = summary.to_str().context("a path in UTF-8")?;
    let calls = "trace=read,pread64,readv,write,pwrite64,writev";
    let script = format!("exec {text}");
    run(&["strace", "-f", "-c", "-e", calls, "-o", path, "sh", "-c", &script], input, None)?;
    let counted = std::fs::read_to_string(&summary)?;
    let line = counted.lines().find(|line| line.trim_end().ends_with("total"));
    // % time, seconds, usecs/call, calls, [errors,] total
    let fields: Vec<_> = line.unwrap_or_default().split_whitespace().collect();
    Ok(fields.get(3).and_then(|field| field.parse().ok()).unwrap_or(0))
}

fn run(command: &[&str], input: Option<&Path>, output: Option<&Path>) -> Result<()> {
    let stdin = input.map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Into::into))?;
    let stdout = output.map_or_else(|| Ok(Stdio::null()), |p| File::create(p).map(Into::into))?;
    let status = Command::new(command[0])
        .args(&command[1..])
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", command[0]))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

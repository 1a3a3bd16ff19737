//! Checks whether contend's measurements agree with those of other tools.
//!
//! Bytes are compared with `wc -c` of each stage's output, CPU time with `/usr/bin/time` and system
//! calls with `strace -f -c`. For CPU time and for system calls, both figures are from the same
//! run: each stage runs under the other tool, and contend observes both. The other tool's own
//! share, measured on a command that does nothing, is subtracted.

#![expect(clippy::print_stdout, reason = "the program prints its figures")]

use std::path::Path;

use anyhow::{Context as _, Result};
use contend_bench::{bash_command, built_program, profile, time};
use contend_record::pipe::{PipeRecord, Stage};

/// Pipelines whose stages read standard input to EOF, except the first, which produces the data.
const PIPELINES: [&[&str]; 4] = [
    &["seq 6000000", "sed s/1/22/g", "tr 0-9 a-j", "wc -l"],
    &["seq 3000000", "rev", "sort", "uniq -c", "tail -n 3"],
    &["head -c 300000000 /dev/zero", "base64", "gzip -1"],
    &["seq 4000000", "grep 7", "cut -c 2-4", "awk '{ n += $1 } END { print n }'"],
];
/// Shorter pipelines for strace, which slows every call down.
const TRACED: [&[&str]; 3] = [
    &["seq 300000", "sed s/1/22/g", "tr 0-9 a-j", "wc -l"],
    &["seq 100000", "rev", "sort", "uniq -c", "tail -n 3"],
    &["seq 20000", "while read -r n; do echo $n; done", "grep 7"],
];
/// System calls that the kernel counts as reads and writes of a process.
const CALLS: &str = "read,pread64,readv,preadv,write,pwrite64,writev,pwritev";

fn main() -> Result<()> {
    let contend = built_program("contend")?;
    let folder = tempfile::tempdir()?;
    println!("{:<36} {:>12} {:>12} {:>8}", "bytes written", "contend", "wc -c", "apart");
    for stages in PIPELINES {
        let record = profile(&contend, &stages.join(" | "))?;
        for (index, stage) in record.stages.iter().enumerate() {
            let truth = bytes_of(&stages[..=index], folder.path())?;
            show(stages[index], stage.bytes_out.unwrap_or(0) as f64, truth as f64, 0);
        }
    }
    println!("\n{:<36} {:>12} {:>12} {:>8}", "CPU seconds", "contend", "time", "apart");
    for stages in PIPELINES {
        let under = |script: &str, file: &str| {
            format!("/usr/bin/time -f '%U %S' -o {file} sh -c {}", quoted(script))
        };
        compare(&contend, stages, folder.path(), under, Stage::cpu_seconds, sum_of_fields, 3)?;
    }
    println!("\n{:<36} {:>12} {:>12} {:>8}", "read and write calls", "contend", "strace", "apart");
    for stages in TRACED {
        let under = |script: &str, file: &str| {
            format!("strace -f -c -e trace={CALLS} -o {file} sh -c {}", quoted(script))
        };
        compare(&contend, stages, folder.path(), under, calls, total_of_strace, 0)?;
    }
    Ok(())
}

/// Profiles the pipeline with every stage running under another tool, and prints the measurements
/// of contend and of the tool.
fn compare(
    contend: &Path,
    stages: &[&str],
    folder: &Path,
    under: impl Fn(&str, &str) -> String,
    of_contend: fn(&Stage) -> f64,
    of_tool: fn(&str) -> f64,
    digits: usize,
) -> Result<()> {
    let files: Vec<_> = (0..stages.len()).map(|index| folder.join(format!("{index}"))).collect();
    let wrapped: Vec<_> = stages
        .iter()
        .zip(&files)
        .map(|(stage, file)| under(stage, &file.display().to_string()))
        .collect();
    let record: PipeRecord = profile(contend, &wrapped.join(" | "))?;
    // contend's measurement includes the other tool itself, whose share is measured on a command
    // that does nothing.
    let file = folder.join("nothing");
    let nothing = profile(contend, &under("true", &file.display().to_string()))?;
    let said = std::fs::read_to_string(&file).context("the other tool wrote nothing")?;
    let own = of_contend(&nothing.stages[0]) - of_tool(&said);
    for ((text, file), stage) in stages.iter().zip(&files).zip(&record.stages) {
        let said = std::fs::read_to_string(file).context("the other tool wrote nothing")?;
        show(text, of_contend(stage) - own, of_tool(&said), digits);
    }
    Ok(())
}

fn show(text: &str, contend: f64, other: f64, digits: usize) {
    let apart = if other > 0.0 { 100.0 * (contend - other) / other } else { 0.0 };
    println!("{text:<36} {contend:>12.digits$} {other:>12.digits$} {apart:>7.2}%");
}

/// Returns the number of bytes that the pipeline of `stages` writes, counted by `wc -c`.
fn bytes_of(stages: &[&str], folder: &Path) -> Result<u64> {
    let file = folder.join("count");
    let text = format!("{} | wc -c >{}", stages.join(" | "), file.display());
    time(&mut bash_command(&text))?;
    Ok(std::fs::read_to_string(file)?.trim().parse()?)
}

fn calls(stage: &Stage) -> f64 {
    (stage.reads.unwrap_or(0) + stage.writes.unwrap_or(0)) as f64
}

/// Adds the fields of `%U %S`, as `time` prints them.
fn sum_of_fields(text: &str) -> f64 {
    text.split_whitespace().filter_map(|field| field.parse::<f64>().ok()).sum()
}

/// Returns the number of calls from the last line of strace's summary (% time, seconds, usecs/call,
/// calls, errors if any, total), or 0 if there is no such line.
fn total_of_strace(text: &str) -> f64 {
    let total = text.lines().find(|line| line.trim_end().ends_with("total")).unwrap_or_default();
    total.split_whitespace().nth(3).and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}

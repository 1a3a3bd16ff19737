//! Tests with scarce resources: contend succeeds within limits in which bash succeeds, and never
//! reports success for incomplete output.

use std::path::Path;
use std::process::{Output, Stdio};

use super::{Environment, INPUT, Input, bash, folder, words};
use crate::support::{Command, PublicFolder, as_unused_user, contend, has, skip, text};

/// Pipelines of up to four stages.
const PIPELINES: &[&str] =
    &["tr a b | sed s/b/c/ | sort | uniq -c", "grep -v foo | tr a b", "sed s/a/b/ | wc -l"];
/// Sets of options: the default ones, and some for small chunks.
const OPTIONS: &[&str] = &["", "-j 3 --part-size 33k", "-j 7 --part-size 5k --memory 16M"];
/// First of the unused user ids. Each limit on processes has its own id, so that remaining
/// processes of one test do not count for the next.
const FIRST_USER: u32 = 61_300;

/// Asserts that contend did not panic, and that it printed the expected output if it succeeded.
fn assert_whole_or_failed(how: &str, output: &Output, expected: &[u8]) {
    let error = text(&output.stderr);
    assert!(!error.contains("panicked"), "{how}: {error}");
    if output.status.success() {
        assert!(output.stdout == expected, "{how}: success with other output: {error}");
    }
}

/// Returns the output of bash without limits.
fn expected(pipeline: &str, folder: &Path) -> Vec<u8> {
    Environment { folder, input: Input::File, locale: "C" }.run(bash(pipeline)).stdout
}

/// Sets a limit in a shell, runs the shell text `run` with the pipeline as `$0`, and returns the
/// output. The exit status is 99 if the limit cannot be set.
fn limited(limit: &str, run: &str, pipeline: &str, folder: &Path) -> Output {
    let script = format!("ulimit {limit} || exit 99; {run}");
    let mut command = Command::new("timeout");
    command.args(["120", "bash", "-c", &script, pipeline]).env("LC_ALL", "C");
    command.current_dir(folder).stdin(Stdio::null()).output().expect("coreutils")
}

/// Asserts that contend succeeds within a limit if bash does, and that its output is whole if it
/// succeeds.
fn assert_succeeds_if_bash_does(limit: &str, pipeline: &str, folder: &Path, expected: &[u8]) {
    let of_bash = limited(limit, "exec bash -o pipefail -c \"$0\" <in", pipeline, folder);
    for options in OPTIONS {
        for (feeder, input) in [("", "<in"), ("cat in |", "")] {
            let program = contend();
            let run = format!("{feeder} '{program}' run --pipefail {options} \"$0\" {input}");
            let output = limited(limit, &run, pipeline, folder);
            let how = format!("{limit}: {feeder} {pipeline} {options}");
            assert_whole_or_failed(&how, &output, expected);
            if of_bash.status.success() {
                let error = text(&output.stderr);
                assert!(output.status.success(), "{how}: bash succeeds, not contend: {error}");
            }
        }
    }
}

#[test]
fn with_few_open_files_run_succeeds_if_bash_does() {
    if !has("bash") {
        return skip("with_few_open_files_run_succeeds_if_bash_does", "there is no bash");
    }
    let folder = folder(&words(300_000));
    for pipeline in PIPELINES {
        let expected = expected(pipeline, folder.path());
        for files in [4, 5, 6, 7, 8, 10, 15, 16, 24, 48, 64, 100] {
            assert_succeeds_if_bash_does(
                &format!("-n {files}"),
                pipeline,
                folder.path(),
                &expected,
            );
        }
    }
}

#[test]
fn with_a_file_size_limit_run_succeeds_if_bash_does() {
    if !has("bash") {
        return skip("with_a_file_size_limit_run_succeeds_if_bash_does", "there is no bash");
    }
    let folder = folder(&words(300_000));
    for pipeline in PIPELINES {
        let expected = expected(pipeline, folder.path());
        for blocks in [0, 1, 64] {
            assert_succeeds_if_bash_does(
                &format!("-f {blocks}"),
                pipeline,
                folder.path(),
                &expected,
            );
        }
    }
}

#[test]
fn with_little_address_space_output_is_complete_or_run_fails() {
    if !has("bash") {
        return skip(
            "with_little_address_space_output_is_complete_or_run_fails",
            "there is no bash",
        );
    }
    let folder = folder(&words(300_000));
    for pipeline in PIPELINES {
        let expected = expected(pipeline, folder.path());
        for kilobytes in [20_000, 50_000, 100_000, 300_000, 1_000_000, 4_000_000, 16_000_000] {
            for options in OPTIONS {
                let run = format!("'{}' run {options} \"$0\" <in", contend());
                let output = limited(&format!("-v {kilobytes}"), &run, pipeline, folder.path());
                let how = format!("-v {kilobytes}: {pipeline} {options}");
                assert_whole_or_failed(&how, &output, &expected);
                // The debug information of the program uses some of the memory.
                if kilobytes >= 1_000_000 {
                    assert!(output.status.success(), "{how}: {}", text(&output.stderr));
                }
            }
        }
    }
}

#[test]
fn with_few_processes_run_succeeds_if_bash_does() {
    let test = "with_few_processes_run_succeeds_if_bash_does";
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    let input = words(1_000_000);
    let public = PublicFolder::new();
    std::fs::write(public.path().join(INPUT), &input).expect("room");
    let program = public.install(contend(), "contend", 0o755);
    let folder = folder(&input);
    for (row, pipeline) in PIPELINES.iter().enumerate() {
        let expected = expected(pipeline, folder.path());
        // Like contend, a shell needs its own process and one for each stage.
        let stages = u32::try_from(pipeline.split('|').count()).expect("few");
        for more in [0, 1, 3, 6, 10, 20, 60] {
            for (column, options) in OPTIONS.iter().enumerate() {
                let user = FIRST_USER + more + 100 * u32::try_from(10 * row + column).expect("few");
                let tasks = 1 + stages + more;
                let Some(mut command) = as_unused_user(test, &program, user, tasks) else { return };
                command.arg("run").args(options.split_whitespace()).arg(pipeline);
                command.env("LC_ALL", "C").env("TMPDIR", public.path());
                let stdin = std::fs::File::open(public.path().join(INPUT)).expect("there");
                let output = command.current_dir(public.path()).stdin(stdin).output();
                let output = output.expect("it starts");
                let how = format!("{tasks} tasks: {pipeline} {options}");
                assert_whole_or_failed(&how, &output, &expected);
                assert!(output.status.success(), "{how}: {}", text(&output.stderr));
            }
        }
    }
}

/// Tests that contend reports an error, rather than panicking, if it cannot start a thread that it
/// needs, for example for `--check`.
#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    let test = "a_thread_that_cannot_be_started_is_an_error";
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    let input = words(200_000);
    let public = PublicFolder::new();
    std::fs::write(public.path().join(INPUT), &input).expect("room");
    let program = public.install(contend(), "contend", 0o755);
    let forms: &[&[&str]] = &[
        &["run", "--check", "sort | uniq -c"],
        &["run", "--check", "-j", "3", "--part-size", "33k", "sort | uniq -c"],
        &["pipe", "--try", "--budget", "2", "cat in | sort | uniq -c"],
        &["pipe", "cat in | sort | uniq -c"],
    ];
    // Like a shell, contend mostly waits for processes, so the trials can run concurrently.
    let trials: Vec<_> =
        (0..forms.len()).flat_map(|form| [1, 2, 3, 4, 6].map(|tasks| (form, tasks))).collect();
    let run = |(row, tasks): (usize, u32)| {
        let form = forms[row];
        let user = FIRST_USER + 400 + 10 * u32::try_from(row).expect("few") + tasks;
        let mut command = as_unused_user(test, &program, user, tasks)?;
        let folder = public.path();
        command.args(form).env("LC_ALL", "C").env("TMPDIR", folder).current_dir(folder);
        let stdin = std::fs::File::open(folder.join(INPUT)).expect("there");
        let output = command.stdin(stdin).output().expect("it starts");
        let error = text(&output.stderr);
        let how = format!("{tasks} tasks: {form:?}: {:?}: {error}", output.status);
        assert!(!error.contains("panicked"), "{how}");
        let succeeded = output.status.success();
        assert!(succeeded || output.status.code().is_some() && !error.is_empty(), "{how}");
        Some(succeeded)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = trials
            .iter()
            .map(|&trial| {
                scope.spawn({
                    let run = &run;
                    move || run(trial)
                })
            })
            .collect();
        running.into_iter().map(|trial| trial.join().expect("no panic")).collect()
    });
    if outcomes.contains(&None) {
        return;
    }
    assert!(outcomes.contains(&Some(false)), "no limit was low enough to matter");
}

//! Tests of `contend run` with limited resources: too little memory for sorting, a full disk, a
//! file size limit, a missing `TMPDIR`, an unprivileged user, and a single CPU.

use std::path::Path;
use std::process::{Output, Stdio};

use super::{
    Environment, INPUT, Input, assert_no_differences, bash, code, contend_run, folder, words,
};
use crate::support::{Command, PublicFolder, as_nobody, contend, has, skip, text};

/// Size of the input in bytes. It exceeds the memory that lines may use while sorting, which is
/// half of `--memory`.
const INPUT_BYTES: usize = 12_000_000;
const OPTIONS: &str = "run -j 2 --part-size 200k --memory 16M";
/// Pipelines that sort with contend's own operator, and others that sort with a `sort` process.
const SORT_PIPELINES: &[&str] =
    &["sort", "sort -u -r", "sed 's/a/b/' | sort", "sort -k2", "sort -s -k2", "rev | sort -s -k2"];

/// Returns `bytes` bytes of distinct lines, the last of which may be cut, and a newline.
fn distinct_lines(bytes: usize) -> Vec<u8> {
    let numbers = (0..).flat_map(|number: u64| format!("{} word\n", number * 7919).into_bytes());
    let mut text: Vec<u8> = numbers.take(bytes).collect();
    text.push(b'\n');
    text
}

/// Asserts that a pipeline failed without output, that its messages contain `reason` and the folder
/// for temporary files, and that it left no files there.
fn assert_disk_failure(pipeline: &str, output: &Output, temporary: &Path, reason: &str) {
    let error = text(&output.stderr);
    assert!(error.contains(reason), "{pipeline}: {error}");
    assert!(error.contains(temporary.to_str().expect("UTF-8")), "where? {pipeline}: {error}");
    assert!(!output.status.success(), "{pipeline}: {error}");
    assert!(output.stdout.is_empty(), "{pipeline}: what is sorted is all there or not");
    let left = std::fs::read_dir(temporary).expect("a folder").count();
    assert_eq!(left, 0, "{pipeline}");
}

/// Executes the shell text `signal`, which may make the shell ignore `SIGXFSZ`, and runs a pipeline
/// with a limit on file sizes. The input comes from a pipe if `stream` is true, else from a file.
/// Returns the output and the working folder.
fn run_with_file_size_limit(
    signal: &str,
    pipeline: &str,
    stream: bool,
) -> (Output, tempfile::TempDir) {
    let folder = folder(&distinct_lines(INPUT_BYTES));
    std::fs::create_dir(folder.path().join("tmp")).expect("room");
    let input = if stream { "cat in |" } else { "<in" };
    let script = format!("{signal} ulimit -f 64; {input} '{}' {OPTIONS} \"$0\"", contend());
    let mut command = Command::new("sh");
    command.args(["-c", &script, pipeline]).env("TMPDIR", folder.path().join("tmp"));
    let output = command.env("LC_ALL", "C").current_dir(folder.path()).output();
    (output.expect("sh"), folder)
}

/// Returns the pipeline with so little memory for each `sort` that GNU sort needs files, too.
fn with_small_sort_buffer(pipeline: &str) -> String {
    pipeline.replace("sort", "sort -S 1M")
}

#[test]
fn sort_names_the_error_at_a_file_size_limit() {
    for pipeline in SORT_PIPELINES {
        for stream in [false, true] {
            let pipeline = with_small_sort_buffer(pipeline);
            let (output, folder) = run_with_file_size_limit("trap '' XFSZ;", &pipeline, stream);
            let temporary = folder.path().join("tmp");
            assert_disk_failure(&pipeline, &output, &temporary, "File too large");
        }
    }
}

#[test]
fn a_file_size_limit_does_not_matter_if_bash_needs_no_files() {
    if !has("bash") {
        return skip(
            "a_file_size_limit_does_not_matter_if_bash_needs_no_files",
            "there is no bash",
        );
    }
    // GNU sort does not know the size of its input from a pipe, and needs files.
    for pipeline in ["sort", "sort -u -r", "sort -k2", "sort -s -k2"] {
        let (output, folder) = run_with_file_size_limit("", pipeline, false);
        assert_same_as_bash(pipeline, &output, folder.path());
    }
}

/// Asserts that a pipeline succeeded without messages, that its output equals that of bash without
/// limits, and that it left no temporary files.
fn assert_same_as_bash(pipeline: &str, output: &Output, folder: &Path) {
    let expected = Environment { folder, input: Input::File, locale: "C" }.run(bash(pipeline));
    let error = text(&output.stderr);
    assert_eq!((error.as_str(), code(output.status)), ("", 0), "{pipeline}");
    assert!(output.stdout == expected.stdout, "{pipeline}");
    if let Ok(left) = std::fs::read_dir(folder.join("tmp")) {
        assert_eq!(left.count(), 0, "{pipeline}");
    }
}

/// Tests that the default action of `SIGXFSZ` ends contend, as it ends any other program.
#[test]
fn sigxfsz_ends_the_run() {
    for pipeline in ["sort", "sort -k2"] {
        let pipeline = with_small_sort_buffer(pipeline);
        let (output, folder) = run_with_file_size_limit("", &pipeline, false);
        assert_eq!((code(output.status), output.stdout.len()), (153, 0), "{pipeline}");
        assert_eq!(folder.path().join("tmp").read_dir().expect("a folder").count(), 0);
    }
}

#[test]
fn a_missing_tmpdir_does_not_matter_if_bash_needs_no_files() {
    let test = "a_missing_tmpdir_does_not_matter_if_bash_needs_no_files";
    if !has("bash") {
        return skip(test, "there is no bash");
    }
    let folder = folder(&distinct_lines(INPUT_BYTES));
    let nowhere = folder.path().join("nowhere");
    let input = || std::fs::File::open(folder.path().join(INPUT)).expect("there");
    for pipeline in ["sort", "sort -u -r", "sed 's/a/b/' | sort", "sort -k2", "sort -s -k2"] {
        let mut command = contend_run(&["-j", "2", "--memory", "16M"], pipeline);
        command.env("TMPDIR", &nowhere).env("LC_ALL", "C").stdin(input());
        assert_same_as_bash(pipeline, &command.output().expect("it starts"), folder.path());
    }
    // A pipeline that needs no temporary files succeeds without the folder.
    let output = contend_run(&["-j", "2", "--part-size", "1k"], "sort | head -n 1")
        .env("TMPDIR", &nowhere)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    assert_eq!((text(&output.stderr), output.status.code()), (String::new(), Some(0)));
}

#[test]
#[ignore = "needs the right to mount; .ci/run runs it where there is that right"]
fn a_full_disk_does_not_matter_if_bash_needs_no_files() {
    let folder = folder(&distinct_lines(INPUT_BYTES));
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("room");
    for (input, file) in [("", "<in"), ("cat in |", "")] {
        for pipeline in ["sort", "sort -u -r", "sed 's/a/b/' | sort", "sort -k2"] {
            // The script looks for remaining files on the mounted file system.
            let script = format!(
                "mount -t tmpfs -o size=1m none tmp && {{ {input} '{}' {OPTIONS} '{}' {file}; \
                 status=$?; ls -A tmp; exit $status; }}",
                contend(),
                pipeline.replace('\'', "'\\''")
            );
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", &script]).env("TMPDIR", &temporary);
            let output = command.env("LC_ALL", "C").current_dir(folder.path()).output();
            assert_same_as_bash(pipeline, &output.expect("util-linux"), folder.path());
        }
    }
}

#[test]
fn spilled_data_is_sorted_correctly() {
    if !has("bash") {
        return skip("spilled_data_is_sorted_correctly", "there is no bash");
    }
    let folder = folder(&words(INPUT_BYTES / 2));
    let mut wrong = Vec::new();
    for input in [Input::File, Input::Pipe] {
        let environment = Environment { folder: folder.path(), input, locale: "C" };
        for pipeline in ["sort", "sort | uniq -c", "sort -k2", "sort -s -n", "sort | head -n 9"] {
            let options = ["-j", "3", "--memory", "16M", "--part-size", "300k"];
            wrong.extend(environment.difference(&options, pipeline));
        }
    }
    assert_no_differences(&wrong);
}

#[test]
fn an_ordinary_user_gets_the_same_output() {
    let test = "an_ordinary_user_gets_the_same_output";
    let public = PublicFolder::new();
    let input = words(3_000_000);
    std::fs::write(public.path().join(INPUT), &input).expect("room");
    let folder = folder(&input);
    let environment = Environment { folder: folder.path(), input: Input::Nothing, locale: "C" };
    // A process whose executable it may not read cannot use its own /proc entries.
    for (name, mode) in [("contend", 0o755), ("unreadable", 0o711)] {
        let program = public.install(contend(), name, mode);
        for pipeline in
            ["cat in | sort", "sort -k2 in", "grep foo in | sort -k2 | uniq -c", "wc in"]
        {
            let Some(mut command) = as_nobody(test, &program) else { return };
            command.args(["run", "-j", "3", "--part-size", "100k", pipeline]);
            let command = command.env("LC_ALL", "C").env("TMPDIR", public.path());
            let output = command.current_dir(public.path()).stdin(Stdio::null()).output();
            let output = output.expect("it starts");
            let expected = environment.run(bash(pipeline));
            let error = text(&output.stderr);
            assert_eq!((error.as_str(), code(output.status)), ("", 0), "{name}: {pipeline}");
            assert!(output.stdout == expected.stdout, "{name}: {pipeline}");
        }
    }
}

/// Returns the number of the first CPU that this process may use, or `None` if it is unknown.
fn first_allowed_cpu() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().split(['-', ',']).next()?.to_owned())
}

#[test]
fn one_cpu_runs_the_plain_pipeline_unless_chunks_are_forced() {
    let test = "one_cpu_runs_the_plain_pipeline_unless_chunks_are_forced";
    let (Some(cpu), true) = (first_allowed_cpu(), has("taskset")) else {
        return skip(test, "there is no taskset");
    };
    let folder = folder(&words(2_000_000));
    let environment = Environment { folder: folder.path(), input: Input::File, locale: "C" };
    let on_one = |options: &[&str], pipeline: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu, contend(), "run"]).args(options).arg(pipeline);
        environment.run(command)
    };
    let explained = text(&on_one(&["--explain"], "sed s/a/b/ | sort").stdout);
    assert!(explained.contains("\nplain: only one CPU is available"), "{explained}");
    for pipeline in ["sed s/a/b/ | sort", "sort -k2", "sort | uniq -c", "grep foo | head -n 2"] {
        let expected = environment.run(bash(pipeline));
        assert_eq!(on_one(&[], pipeline), expected, "{pipeline}");
        assert_eq!(on_one(&["-j", "3", "--part-size", "90k"], pipeline), expected, "{pipeline}");
    }
}

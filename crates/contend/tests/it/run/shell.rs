//! Tests that `contend run` treats programs, files and exit statuses like a shell.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Stdio;

use super::{Environment, Input, assert_no_differences, bash, code, contend_run, folder, words};
use crate::support::{Command, contend, has, skip, text, write_program};

/// Options that force runs in chunks.
const FORCED: &[&str] = &["-j", "2", "--part-size", "50k"];

/// Runs each script twice, with `RUN` replaced by a command line of bash and by one of contend.
/// Returns descriptions of the scripts whose output or exit status differs; messages may differ.
fn differences(
    folder: &Path,
    scripts: &[&str],
    options: &[&str],
    bash_options: &str,
) -> Vec<String> {
    let done = |script: &str, run: &str| {
        let environment = Environment { folder, input: Input::Nothing, locale: "C" };
        environment.run(bash(&script.replace("RUN", run)))
    };
    let own = format!("{} run {}", contend(), options.join(" "));
    let difference = |script: &&str| {
        let (expected, found) =
            (done(script, &format!("bash {bash_options} -c")), done(script, &own));
        let differ = (&expected.stdout, expected.status) != (&found.stdout, found.status);
        differ.then(|| format!("{script}\n  bash:    {expected:?}\n  contend: {found:?}"))
    };
    scripts.iter().filter_map(difference).collect()
}

#[test]
fn programs_of_every_kind_run_as_in_bash() {
    if !has("bash") {
        return skip("programs_of_every_kind_run_as_in_bash", "there is no bash");
    }
    let folder = folder(&words(300_000));
    let path = folder.path();
    write_program(&path.join("bare"), b"echo bare ${BASH_VERSION-no} $#\ncat\n");
    write_program(&path.join("empty"), b"");
    write_program(&path.join("lost"), b"#!/no/such/program\n");
    write_program(&path.join("broken"), b"\x7fELF is all there is");
    write_program(&path.join("slow"), b"#!/bin/sh\nsed s/a/b/\nsleep 0.2\necho late\n");
    write_program(&path.join("late"), b"#!/bin/sh\nsed s/a/b/\nsleep 0.05\n");
    fs::write(path.join("text"), "echo no program\n").expect("room");
    fs::create_dir(path.join("bin")).expect("room");
    write_program(
        &path.join("bin").join("cat"),
        b"#!/bin/sh\necho foreign\nexec /bin/cat \"$@\"\n",
    );
    let scripts = [
        "RUN ./bare; echo $?",
        "RUN './bare <in | wc -c'; echo $?",
        "RUN 'cat in | ./bare a | sort | tail -n 1'; echo $?",
        "RUN ./empty; echo $?",
        "RUN './empty | wc -l'; echo $?",
        "RUN ./lost; echo $?",
        "RUN './lost <in | wc -l'; echo $?",
        "RUN ./broken; echo $?",
        "RUN 'sort in | ./broken'; echo $?",
        "RUN ./text; echo $?",
        "RUN ./missing; echo $?",
        "RUN 'sort in | ./missing'; echo $?",
        "RUN './slow <in | tr b c | sort'; echo $?",
        "PATH=bin:$PATH RUN 'cat in | wc -l'; echo $?",
        "PATH=bin:$PATH RUN 'cat in | sort | tail -n 1'; echo $?",
        "PATH=bin:$PATH RUN 'cat in'; echo $?",
    ];
    for options in [&[][..], FORCED] {
        assert_no_differences(&differences(path, &scripts, options, ""));
    }
    let mapped = [FORCED, &["--map", "./late"]].concat();
    assert_no_differences(&differences(
        path,
        &["RUN './late <in | uniq -c'; echo $?"],
        &mapped,
        "",
    ));
}

#[test]
fn scripts_with_functions_or_invalid_utf8_run_as_in_bash() {
    if !has("bash") {
        return skip("scripts_with_functions_or_invalid_utf8_run_as_in_bash", "there is no bash");
    }
    let folder = folder(&words(20_000));
    let path = folder.path();
    fs::write(path.join("latin1"), b"# caf\xe9\nsort in | uniq | wc -l\nexit 3\n").expect("room");
    let scripts = [
        "RUN 'f() { sort in | uniq; }; declare -f f'",
        "RUN 'f() { sort in | uniq; }; bash -c \"$(declare -f f); f\"' | md5sum",
        "RUN 'f() { sort in | uniq | wc -l; }; export -f f; bash -c f'",
    ];
    assert_no_differences(&differences(path, &scripts, FORCED, ""));
    let environment = Environment { folder: path, input: Input::Nothing, locale: "C" };
    let found = environment.run(bash(&format!("{} run -f latin1", contend())));
    assert_eq!(found, environment.run(bash("bash latin1")));
}

#[test]
fn failures_before_a_sort_end_as_in_bash() {
    if !has("bash") {
        return skip("failures_before_a_sort_end_as_in_bash", "there is no bash");
    }
    let folder = folder(&words(5_000_000));
    write_program(&folder.path().join("warns"), b"#!/bin/sh\necho careful >&2\nexec cat\n");
    write_program(&folder.path().join("fails"), b"#!/bin/sh\ncat\nexit 3\n");
    let scripts = [
        "RUN './warns <in | sort -k2'; echo $?",
        "RUN './fails <in | sort -k2'; echo $?",
        "RUN './fails <in | sort'; echo $?",
        "cat in | RUN './fails | sort | uniq -c'; echo $?",
    ];
    let options = ["-j", "2", "--part-size", "1M", "--map", "./warns", "--map", "./fails"];
    assert_no_differences(&differences(folder.path(), &scripts, &options, ""));
}

#[test]
fn a_nul_after_a_long_line_gives_bash_s_output() {
    if !has("bash") {
        return skip("a_nul_after_a_long_line_gives_bash_s_output", "there is no bash");
    }
    let mut text = vec![b'x'; 2_000_000];
    text.push(b'\n');
    text.extend(words(3_500_000));
    text.push(0);
    text.extend(words(500_000));
    let folder = folder(&text);
    let scripts = ["RUN 'grep foo in | tr a b'; echo $?", "RUN 'grep foo <in'; echo $?"];
    assert_no_differences(&differences(
        folder.path(),
        &scripts,
        &["-j", "2", "--part-size", "400k"],
        "",
    ));
}

#[test]
fn files_of_every_kind_give_bash_s_output() {
    if !has("bash") {
        return skip("files_of_every_kind_give_bash_s_output", "there is no bash");
    }
    let folder = folder(&words(300_000));
    let path = folder.path();
    let holes = File::create(path.join("holes")).expect("room");
    holes.write_all_at(&words(400_000), 0).expect("room");
    holes.write_all_at(b"foo\n", 2 << 20).expect("room");
    let mut nul = words(1_000_000);
    nul.push(0);
    nul.extend(words(100_000));
    fs::write(path.join("nul"), nul).expect("room");
    let scripts = [
        "mkfifo f; cat in >f & RUN 'sort f | uniq -c'; echo $?; wait; rm f",
        "mkfifo f; cat in >f & RUN 'cat f | grep foo'; echo $?; wait; rm f",
        "mkfifo f; cat in >f & RUN 'tr a b <f | wc -l'; echo $?; wait; rm f",
        "mkfifo f; wc -c <f >o & RUN 'sort in >f'; echo $?; wait; cat o; rm f o",
        "RUN 'grep foo holes'; echo $?",
        "RUN 'grep -c foo <holes'; echo $?",
        "RUN 'cat holes | sort | tail -n 1'; echo $?",
        "RUN 'cat in holes | tr a b | wc'; echo $?",
        "RUN 'grep foo nul'; echo $?",
        "RUN 'grep foo <nul | wc'; echo $?",
        "RUN 'grep foo nul | tail -n 1'; echo $?",
        "RUN 'grep foo . | wc -l'; echo $?",
        "RUN 'cat . | wc -l'; echo $?",
        "{ RUN 'head -n 20000 | sort | tail -n 1'; wc -c; } <in",
        "{ RUN 'head -n 10'; RUN 'tail -n 3 | tr a b'; } <in",
    ];
    for options in [&[][..], FORCED] {
        assert_no_differences(&differences(path, &scripts, options, ""));
    }
}

#[test]
fn pipefail_considers_every_status() {
    if !has("bash") {
        return skip("pipefail_considers_every_status", "there is no bash");
    }
    let folder = folder(&words(4_000_000));
    let scripts = [
        "RUN 'cat in | head -n 1'; echo $?",
        "RUN 'cat in | grep -m 1 foo'; echo $?",
        "RUN 'cat in | sed q'; echo $?",
        "RUN 'sed s/a/b/ in | head -n 1 | cat'; echo $?",
        "RUN 'cat in | tr a b | sort | head -n 3'; echo $?",
        "RUN 'sort in | uniq -c | sed 3q'; echo $?",
        "RUN 'grep nowhere in | sort'; echo $?",
        "RUN 'cat in missing | sort | uniq'; echo $?",
        "RUN 'tr a b <in | sort | uniq | wc -l'; echo $?",
        "RUN '! grep nowhere in | wc -l'; echo $?",
        "RUN 'grep foo in | sh -c \"exit 3\" | wc -l'; echo $?",
    ];
    let forced = [&["--pipefail"], FORCED].concat();
    for options in [&["--pipefail"][..], &forced] {
        assert_no_differences(&differences(folder.path(), &scripts, options, "-o pipefail"));
    }
}

#[test]
fn the_first_line_of_a_script_selects_its_shell() {
    if !has("bash") {
        return skip("the_first_line_of_a_script_selects_its_shell", "there is no bash");
    }
    let folder = folder(&words(200_000));
    let body = "grep -c nowhere in\nsort in | tail -n 1\necho ${UNSET-}end $0 $1\n";
    for line in [
        "#!/bin/bash",
        "#!/bin/bash -e",
        "#! /bin/bash -eu",
        "#!/bin/bash -u",
        "#!/bin/sh -",
        "#!/bin/sh --",
        "#!/usr/bin/env bash",
        "#!/bin/bash -x",
        "#!/bin/bash -e -u",
        "#!/bin/bash --posix",
        "echo none",
    ] {
        write_program(&folder.path().join("script"), format!("{line}\n{body}"));
        let run = |command: &mut Command| {
            let command = command.current_dir(folder.path()).stdin(Stdio::null());
            let output = command.arg("./script").arg("word").output().expect("it starts");
            (text(&output.stdout), code(output.status))
        };
        let expected = run(Command::new("bash").args(["-c", "\"$0\" \"$@\""]));
        assert_eq!(run(&mut contend_run(FORCED, "-f")), expected, "{line}");
    }
}

#[test]
fn a_missing_locale_is_reported_once() {
    if !has("bash") {
        return skip("a_missing_locale_is_reported_once", "there is no bash");
    }
    let folder = folder(b"b\na\n");
    let file = folder.path().join("script");
    let pipeline = "sort <in | tr a b";
    fs::write(&file, pipeline).expect("room");
    let script = file.to_str().expect("plain");
    for (locale, warnings) in [("xx_XX.UTF-8", 1), ("C.UTF-8", 0), ("POSIX", 0)] {
        let count = |command: Command| {
            let output =
                Environment { folder: folder.path(), input: Input::Nothing, locale }.run(command);
            assert_eq!(output.stdout, b"b\nb\n", "{locale}");
            output.stderr.iter().filter(|word| *word == "setlocale:").count()
        };
        assert_eq!(count(bash(pipeline)), warnings, "bash, {locale}");
        for options in [&[][..], FORCED] {
            let in_a_shell = format!("x=1; {pipeline}");
            assert_eq!(count(contend_run(options, pipeline)), warnings, "{locale}");
            assert_eq!(count(contend_run(options, &in_a_shell)), warnings, "{locale}");
            let of_a_file = [options, &["-f"]].concat();
            assert_eq!(count(contend_run(&of_a_file, script)), warnings, "{locale}, -f");
        }
    }
}

//! Tests of help, version, colours, messages about wrong arguments, and the output of `generate`.

use std::process::Stdio;

use crate::support::{Command, contend, has, run, skip, text};

fn output(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(Command::new(contend()).args(arguments), "");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn help_is_short_with_h_and_long_with_help() {
    let verbs = ["pipe", "demo", "compare", "json", "generate"].map(|verb| vec![verb]);
    for verb in [vec![]].into_iter().chain(verbs) {
        let with = |flag| output(&[&verb[..], &[flag]].concat());
        let (status, short, error) = with("-h");
        assert_eq!((status, error.as_str()), (Some(0), ""));
        let (_, long, _) = with("--help");
        assert!(long.len() >= short.len(), "{verb:?}");
        assert!(long.contains("Usage: contend"));
    }
    assert!(output(&["pipe", "--help"]).1.contains("Exit status"));
    assert!(output(&["pipe", "--help"]).1.contains("The shell runs the pipeline unchanged"));
    assert!(!output(&["pipe", "-h"]).1.contains("Exit status"));
}

#[test]
fn the_version_is_that_of_the_package() {
    let expected = format!("contend {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(output(&["--version"]), (Some(0), expected.clone(), String::new()));
    assert_eq!(output(&["-V"]).1, expected);
}

#[test]
fn without_a_verb_the_help_is_shown_with_status_2() {
    let (status, _, error) = output(&[]);
    assert_eq!(status, Some(2));
    assert!(error.contains("Usage: contend"));
    let (status, _, error) = output(&["no-such-verb"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("no-such-verb"));
}

#[test]
fn an_unknown_verb_gets_a_tip() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&["cat x | sort"], &["contend pipe 'cat x | sort'", "contend run 'cat x | sort'"]),
        (&["lba"], &["a similar subcommand exists: 'lab'"]),
        (&["history", "999"], &["contend history show 999"]),
        (&["lab", "shared-memory"], &["contend lab suite shared-memory"]),
    ];
    for (arguments, tips) in cases {
        let (status, printed, error) = output(arguments);
        assert_eq!((status, printed.as_str()), (Some(2), ""));
        let missing: Vec<_> = tips.iter().filter(|tip| !error.contains(**tip)).collect();
        assert!(missing.is_empty(), "{missing:?}: {error}");
    }
}

#[test]
fn an_invalid_number_gets_the_accepted_range() {
    let cases: [(&[&str], &str); 5] = [
        (&["pipe", "--runs", "abc", "true"], "expected a whole number from 1 to 10000"),
        (&["pipe", "--runs", "0", "true"], "expected a whole number from 1 to 10000"),
        (&["run", "-j", "2000", "true"], "expected a whole number from 1 to 1024"),
        (&["history", "show", "x"], "expected a whole number of at least 1"),
        (&["demo", "--lines", "1e6"], "expected a whole number from 1000 to 100000000"),
    ];
    for (arguments, expected) in cases {
        let (status, printed, error) = output(arguments);
        assert_eq!((status, printed.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn options_of_a_trial_need_a_trial() {
    for option in ["--budget=5", "--sample=5k", "--seed=5", "--copies=5"] {
        let (status, _, error) = output(&["pipe", option, "true"]);
        assert_eq!(status, Some(2), "{option}");
        assert!(error.contains("--try"), "{option}: {error}");
    }
}

#[test]
fn a_script_name_in_place_of_a_pipeline_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["nightly.sh", "nightly"] {
        std::fs::write(folder.path().join(name), "#!/bin/sh\necho done\n").expect("room");
    }
    std::fs::write(folder.path().join("data.log"), "line\n").expect("room");
    let message = |verb: &str, pipeline: &str| {
        let mut command = Command::new(contend());
        let ran = run(command.args([verb, pipeline]).current_dir(&folder), "");
        (ran.status.code(), text(&ran.stderr))
    };
    for verb in ["run", "pipe"] {
        for name in ["nightly.sh", "nightly"] {
            let (status, error) = message(verb, name);
            assert_eq!(status, Some(2), "{error}");
            assert!(error.contains(&format!("contend run --file {name}")), "{error}");
        }
        // These fail as in the shell.
        for other in ["data.log", "./nightly.sh", "nightly.sh | cat"] {
            let (status, error) = message(verb, other);
            assert_ne!(status, Some(2), "{other}: {error}");
        }
    }
    let (status, error) = message("run", "./nightly.sh 'a b'");
    assert_eq!((status, error.contains("--file")), (Some(126), false), "{error}");
    let (status, error) = message("run", "./nightly.sh a");
    assert_eq!(status, Some(126), "{error}");
    let tip = "contend: './nightly.sh' is not executable: `contend run --file ./nightly.sh -- a` ";
    assert!(error.starts_with(tip) && error.contains("Permission denied"), "{error}");
}

#[test]
fn every_verb_honours_color() {
    let has_colours = |arguments: &[&str]| {
        let (_, printed, error) = output(arguments);
        printed.contains('\u{1b}') || error.contains('\u{1b}')
    };
    let profile = ["pipe", "--no-advice", "--stdin", "/dev/null", "true | true"];
    let plan = ["run", "--explain", "sort | uniq"];
    let misspelt = ["lab", "lst"];
    for words in [&["-h"][..], &["lab", "--help"], &profile, &plan, &misspelt] {
        assert!(!has_colours(words), "{words:?}");
        assert!(!has_colours(&[&["--color", "never"], words].concat()), "{words:?}");
        for color in [&["--color", "always"][..], &["--color=always"]] {
            assert!(has_colours(&[color, words].concat()), "{words:?}");
            let after_verb = [&words[..1], color, &words[1..]].concat();
            assert!(has_colours(&after_verb), "{after_verb:?}");
        }
    }
    let forced = run(Command::new(contend()).args(profile).env("CLICOLOR_FORCE", "1"), "");
    assert!(text(&forced.stderr).contains('\u{1b}'));
}

#[test]
fn completions_match_the_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (status, script, _) = output(&["generate", "completions", shell]);
        assert_eq!(status, Some(0));
        assert!(script.contains("pipefail"), "{shell}");
    }
    let (_, script, _) = output(&["generate", "completions", "bash"]);
    if !has("bash") {
        return skip("completions_match_the_options", "there is no bash");
    }
    assert!(run(Command::new("bash").args(["-n", "/dev/stdin"]), &script).status.success());
}

/// Returns bash's completions of the last of the given words.
fn offered(script: &str, words: &[&str]) -> Vec<String> {
    let (last, before) = words.split_last().expect("a word");
    let completing = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _contend contend '{last}' '{}'\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        before.len(),
        before.last().expect("a word before"),
    );
    let output = run(Command::new("bash").args(["--norc", "/dev/stdin"]), &completing);
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_and_names_of_the_lab() {
    if !has("bash") {
        return skip("bash_completes_verbs_and_names_of_the_lab", "there is no bash");
    }
    let (_, script, _) = output(&["generate", "completions", "bash"]);
    let verbs = offered(&script, &["contend", ""]);
    for verb in ["pipe", "lab", "history"] {
        assert!(verbs.iter().any(|known| known == verb), "{verbs:?}");
    }
    let internal = verbs.iter().filter(|verb| verb.starts_with("lab-") || *verb == "run-stages");
    assert_eq!(internal.count(), 0, "{verbs:?}");
    assert_eq!(offered(&script, &["contend", "lab", "run", "units/cr"]), ["units/create"]);
    let second = offered(&script, &["contend", "lab", "run", "units/create", "sharing/th"]);
    assert_eq!(second, ["sharing/thread"]);
    assert_eq!(offered(&script, &["contend", "lab", "suite", "proc"]), ["process-thread"]);
    let set = offered(&script, &["contend", "lab", "run", "x", "--set", "placement=same"]);
    assert!(set.iter().any(|word| word == "placement=same-cpu"), "{set:?}");
    assert_eq!(offered(&script, &["contend", "history", "r"]), ["rm"]);
}

#[test]
fn man_pages_are_made_for_every_verb() {
    let (status, page, _) = output(&["generate", "man"]);
    assert_eq!(status, Some(0));
    assert!(page.contains(".TH contend"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("man");
    let (status, _, error) = output(&["generate", "man", "--dir", path.to_str().expect("UTF-8")]);
    assert_eq!(status, Some(0), "{error}");
    for verb in ["", "-pipe", "-demo", "-compare", "-json", "-generate"] {
        let name = format!("contend{verb}.1");
        assert!(path.join(&name).is_file(), "{name}");
    }
    let (status, _, error) = output(&["generate", "man", "--dir", "/dev/null/x"]);
    assert_eq!(status, Some(125));
    assert!(error.contains("/dev/null/x"));
}

#[test]
fn a_closed_reader_is_not_a_failure() {
    let mut child = Command::new(contend())
        .args(["generate", "completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
}

#[test]
fn a_full_standard_output_is_reported() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux");
    let output = Command::new(contend())
        .args(["generate", "man"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("No space left"));
}

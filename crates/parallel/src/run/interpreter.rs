//! Finds out which program runs a script, from the script's first line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Length in bytes, without `#!`, at or above which the first line of a script is not parsed.
const MAX_SHEBANG_BYTES: usize = 200;

/// The program that runs a script, according to its `#!` line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Interpreter {
    /// The shell sh, bash, dash or ash, and the options on the line.
    Shell { program: String, options: Vec<String> },
    /// Another program.
    Other(String),
}

/// Returns the interpreter that a script's `#!` line names, or `None` if there is no such line, or
/// if it is empty or too long. The kernel passes everything after the program as one argument.
pub(super) fn interpreter(text: &str) -> Option<Interpreter> {
    let line =
        text.lines().next()?.strip_prefix("#!").filter(|line| line.len() < MAX_SHEBANG_BYTES)?;
    let (mut program, mut options) = first_word(line);
    let mut is_split = false;
    if program.ends_with("/env") {
        let split = options.strip_prefix("-S").or(options.strip_prefix("--split-string="));
        is_split = split.is_some();
        (program, options) = first_word(split.unwrap_or(options));
    }
    let name = program.rsplit('/').next()?;
    if name.is_empty() {
        return None;
    }
    if !["sh", "bash", "dash", "ash"].contains(&name) {
        return Some(Interpreter::Other(program.to_owned()));
    }
    let options = if is_split { options.split_whitespace().collect() } else { vec![options] };
    // None of these is an option.
    let options = options.into_iter().filter(|option| !["", "-", "--"].contains(option));
    let options = options.map(str::to_owned).collect();
    Some(Interpreter::Shell { program: program.to_owned(), options })
}

/// Returns whether the file is a script that contend can run: its `#!` line names a known shell, or
/// its name ends in `.sh` and it has no usable `#!` line. Returns `false` for a file that cannot be
/// read.
pub fn is_shell_script(path: &Path) -> bool {
    let mut start = Vec::new();
    let limit = MAX_SHEBANG_BYTES as u64;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut start));
    if read.is_err() {
        return false;
    }
    match interpreter(&String::from_utf8_lossy(&start)) {
        Some(Interpreter::Shell { .. }) => true,
        Some(Interpreter::Other(_)) => false,
        None => path.extension().is_some_and(|extension| extension == "sh"),
    }
}

/// Returns the first word of a line, and the rest.
fn first_word(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_once([' ', '\t']).map_or((line, ""), |(word, rest)| (word, rest.trim()))
}

/// Returns whether stages can certainly be taken over if the shell gets the given option.
pub(super) fn is_harmless(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|letter| "aefuBCE".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_names_a_shell_and_its_options() {
        let named = |line: &str| interpreter(&format!("{line}\necho"));
        let shell = |program: &str, options: &[&str]| {
            let options = options.iter().map(|&option| option.to_owned()).collect();
            Some(Interpreter::Shell { program: program.to_owned(), options })
        };
        assert_eq!(named("#!/bin/bash"), shell("/bin/bash", &[]));
        assert_eq!(named("#! /bin/sh -eu "), shell("/bin/sh", &["-eu"]));
        assert_eq!(named("#!/bin/sh -"), shell("/bin/sh", &[]));
        assert_eq!(named("#!/usr/bin/env bash"), shell("bash", &[]));
        assert_eq!(named("#!/usr/bin/env -S bash -e -u"), shell("bash", &["-e", "-u"]));
        assert_eq!(named("#!/bin/bash -e -u"), shell("/bin/bash", &["-e -u"]));
        for (line, program) in
            [("#!/usr/bin/python3", "/usr/bin/python3"), ("#!/usr/bin/env -S zsh -e", "zsh")]
        {
            assert_eq!(named(line), Some(Interpreter::Other(program.to_owned())));
        }
        assert_eq!(named("echo"), None);
        assert_eq!(named("#!"), None);
        assert!(is_harmless("-eu"));
        assert!(["-x", "-e -u", "-", "-s", "+e"].iter().all(|option| !is_harmless(option)));
    }
    #[test]
    fn a_script_is_recognized_by_its_first_line_or_its_extension() {
        let folder = tempfile::tempdir().expect("a directory");
        let is_script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            is_shell_script(&path)
        };
        assert!(is_script("a", "#!/bin/sh\nls"));
        assert!(is_script("b.sh", "ls"));
        assert!(!is_script("c", "ls"));
        assert!(!is_script("d.sh", "#!/usr/bin/python3\n"));
        assert!(!is_shell_script(&folder.path().join("missing.sh")));
        assert!(!is_shell_script(folder.path()));
    }
}

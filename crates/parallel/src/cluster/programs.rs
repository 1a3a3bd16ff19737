//! The programs that an attempt may start, which must be the same on all machines.
//!
//! What contend knows about a command holds for one version of its program. So a job has the checksums of its programs, and an
//! attempt on a machine with other ones fails, before it reads any input.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use contend_shell::environment::in_path;

use super::attempt::checksum;
use crate::plan::ir::{Command, Group};

/// Checksums of executable files, by the names of the programs in the pipeline; `None` for a program that is not found.
pub type Programs = BTreeMap<String, Option<String>>;

/// Largest number of bytes of a script's first line that the kernel reads.
const INTERPRETER_LINE_BYTES: u64 = 256;

/// Returns the programs that a group may start over a part, as they are on this machine, with the interpreters of scripts.
pub(super) fn programs_of(group: &Group) -> Programs {
    let commands = group.serial.iter().chain(&group.each);
    let mut waiting: Vec<String> = commands.flat_map(started_by).collect();
    let mut programs = Programs::new();
    while let Some(name) = waiting.pop() {
        if programs.contains_key(&name) {
            continue;
        }
        let path = in_path(&name);
        waiting.extend(path.iter().flat_map(|path| interpreters(path)));
        let checksum = path.and_then(|path| checksum(&mut File::open(path).ok()?).ok());
        programs.insert(name, checksum);
    }
    programs
}

/// Returns the names of the programs that a command starts: its own, and those among the arguments of xargs.
fn started_by(command: &Command) -> Vec<String> {
    let Command { program, arguments, .. } = command;
    let is_xargs = Path::new(program).file_name().is_some_and(|name| name == "xargs");
    let others = arguments.iter().filter(|word| is_xargs && in_path(word).is_some());
    std::iter::once(program).chain(others).cloned().collect()
}

/// Returns the programs that the first line of a script names: its interpreter, and the program that `env` starts.
fn interpreters(script: &Path) -> Vec<String> {
    let mut beginning = Vec::new();
    let read = File::open(script)
        .and_then(|file| file.take(INTERPRETER_LINE_BYTES).read_to_end(&mut beginning));
    let text = String::from_utf8_lossy(&beginning);
    let Some(words) = read.ok().and_then(|_| text.lines().next()?.strip_prefix("#!")) else {
        return Vec::new();
    };
    let mut words = words.split_whitespace().map(str::to_owned);
    let Some(interpreter) = words.next() else { return Vec::new() };
    let is_env = Path::new(&interpreter).file_name().is_some_and(|name| name == "env");
    let started = words.find(|word| is_env && !word.starts_with('-') && !word.contains('='));
    std::iter::once(interpreter).chain(started).collect()
}

/// Returns how the programs of this machine differ from those of the machine that planned the job, as a sentence; `None` if
/// they are the same.
pub(super) fn difference(planned: &Programs, own: &Programs) -> Option<String> {
    let (name, _) = planned.iter().find(|(name, planned)| own.get(*name) != Some(planned))?;
    Some(match own.get(name) {
        Some(Some(_)) => format!("{name} is another version than where the job was planned"),
        _ => format!("{name} is not found"),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::execute::testing::{command, group};
    use crate::plan::ir::Combine;

    fn one(name: &str, checksum: Option<&str>) -> Programs {
        Programs::from([(name.to_owned(), checksum.map(str::to_owned))])
    }

    #[test]
    fn programs_that_are_missing_or_differ_are_named() {
        let planned = one("sort", Some("1"));
        assert_eq!(difference(&planned, &planned), None);
        let told = |own: &Programs| difference(&planned, own).expect("they differ");
        assert_eq!(told(&one("sort", None)), "sort is not found");
        assert_eq!(told(&Programs::new()), "sort is not found");
        assert!(told(&one("sort", Some("2"))).starts_with("sort is another version"));
    }

    /// Returns the programs of a group that runs a command line.
    fn of(line: &str) -> Programs {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().expect("a program");
        let arguments: Vec<String> = words.collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        programs_of(&group(command(&program, &arguments), Combine::Concatenate))
    }

    #[test]
    fn checksums_are_those_of_the_files_in_path() {
        let [by_name, by_path] =
            ["sh", "/bin/sh"].map(|name| of(name).remove(name).expect("it is named"));
        assert!(by_name.is_some());
        assert_eq!(by_name, by_path);
        assert_eq!(of("no-such-program"), one("no-such-program", None));
    }

    #[test]
    fn interpreters_and_what_xargs_starts_are_programs_of_the_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = |line: &str| of(line).into_keys().collect::<Vec<_>>();
        for (first, expected) in [
            ("#!/bin/sh -e", &["/bin/sh"][..]),
            ("#! /usr/bin/env cat", &["/usr/bin/env", "cat"]),
            ("#!/usr/bin/env -S A=1 sh -e", &["/usr/bin/env", "sh"]),
            ("#!", &[]),
            ("text", &[]),
        ] {
            let script = folder.path().join("script");
            std::fs::write(&script, format!("{first}\nexit\n")).expect("room");
            std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("own file");
            let mut found = names(&script.display().to_string());
            found.retain(|name| Path::new(name) != script);
            assert_eq!(found, expected, "{first}");
        }
        assert_eq!(names("xargs -n 1 sort"), ["sort", "xargs"]);
        assert_eq!(names("grep sort"), ["grep"]);
    }
}

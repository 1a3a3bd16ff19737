//! What only a shell can run: text of any kind, with the stages in it that contend can take over.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use anyhow::{Context as _, Result};
use contend_profile::commands::{Simple, Word, quote};
use contend_profile::parallel::planner;
use contend_profile::parallel::script::{Marks, Rewritten, rewrite};
use contend_profile::rewrite::environment::Paths;
use contend_record::run::{Decision, RunRecord, Source};
use contend_sys::spawn;

use super::carry::{Task, carry_out};
use super::check::Check;
use super::records::Records;
use crate::cli::run::STAGES;
use crate::exit::{Exit, UsageError};
use crate::settings::{Run, RunHow, What};

/// A longer text is no argument of a program any more, in bytes.
const LONGEST: usize = 120 << 10;
/// A line with a shell of a script longer than this is none.
const LONGEST_LINE: usize = 200;

/// The shell runs a pipeline's text.
pub(super) fn pipeline(text: &str, why: &str, settings: Run) -> Result<Exit> {
    let shell = settings.how.shell()?;
    let records = records(&settings)?;
    let rewritten = rewritten(text, &shell, &settings, records.as_ref())?;
    if settings.explain {
        return explain(text, &rewritten, Some(why), settings);
    }
    if !settings.check && records.is_none() {
        return become_shell(&shell, &settings.how, &rewritten.text, &[]);
    }
    let record = record(text, &rewritten, Some(why), &settings);
    let command = with_text(&shell, &settings.how, &rewritten.text);
    carry_out_command(&command, record, records, settings)
}

/// The shell runs a script.
pub(super) fn script(settings: Run) -> Result<Exit> {
    let What::Script(path, arguments) = settings.what.clone() else { return Ok(Exit::Usage) };
    let bytes = std::fs::read(&path)
        .map_err(|source| UsageError(format!("cannot read {}: {source}", path.display())))?;
    let text = String::from_utf8_lossy(&bytes);
    let named = named_shell(&text).filter(|_| settings.how.shell.is_none());
    let (shell, options) = match named {
        Some(named) => named,
        None => (settings.how.shell()?, Vec::new()),
    };
    let records = records(&settings)?;
    let mut rewritten = rewritten(&text, &shell, &settings, records.as_ref())?;
    if !options.iter().all(|option| is_harmless(option)) {
        let options = options.join(" ");
        rewritten.taken.clear();
        rewritten.left = vec![format!("its first line gives the shell the options `{options}`")];
    }
    if text.as_bytes() != bytes {
        rewritten.taken.clear();
        rewritten.left = vec!["it is not UTF-8".to_owned()];
    }
    if settings.explain {
        return explain(&text, &rewritten, None, settings);
    }
    let mut command = without_text(&shell, &settings.how);
    command.args(&options);
    if rewritten.text.len() <= LONGEST && !rewritten.taken.is_empty() {
        command.arg("-c").arg(&rewritten.text);
    }
    command.arg(path).args(arguments);
    if records.is_some() {
        let record = record(&text, &rewritten, None, &settings);
        return carry_out_command(&command, record, records, settings);
    }
    become_command(&shell, &mut command)
}

/// Where pipelines leave their records, if anyone wants them.
fn records(settings: &Run) -> Result<Option<Records>> {
    (settings.json.is_some() && !settings.explain).then(Records::new).transpose()
}

/// Runs the shell as a command of its own, since something is to be said of it in the end.
fn carry_out_command(
    command: &Command,
    record: RunRecord,
    records: Option<Records>,
    settings: Run,
) -> Result<Exit> {
    let word = |text: &OsStr| text.to_str().map(Word::new).context("an argument is not text");
    let simple = Simple {
        variables: Vec::new(),
        program: word(command.get_program())?,
        arguments: command.get_args().map(word).collect::<Result<_>>()?,
        input: None,
    };
    let check = settings.check.then(|| Check::begin(&Source::Own)).transpose()?;
    let (paths, prefix) = (Paths::new(), Vec::new());
    let plan = planner::plain(&[simple], &paths, false);
    let task = Task { plan, paths, prefix, inverted: false, records };
    // Each of the pipelines has printed its own figures.
    carry_out(task, record, Run { stats: false, ..settings }, check)
}

fn rewritten(
    text: &str,
    shell: &str,
    settings: &Run,
    records: Option<&Records>,
) -> Result<Rewritten> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let own = own.to_str().context("the path of this program is not text")?;
    // Nobody writes this into a script.
    let mark = format!("contend:{:016x}", fastrand::u64(..));
    let how = &settings.how;
    let mut options = how.options().to_vec();
    options.extend(["--no-progress".to_owned(), format!("--shell={shell}")]);
    options.extend(settings.stats.then(|| "--stats".to_owned()));
    options.extend(records.map(|records| format!("--records-to={}", records.path())));
    let options: Vec<String> = options.iter().map(|option| quote(option)).collect();
    let command = format!(
        "{} {STAGES} {} --shell-options \"${{SHELLOPTS-}}\" -- {mark}",
        quote(own),
        options.join(" ")
    );
    Ok(rewrite(text, &Marks { command, mark }))
}

/// Says what would be given to contend.
fn explain(text: &str, rewritten: &Rewritten, why: Option<&str>, settings: Run) -> Result<Exit> {
    super::explain(&record(text, rewritten, why, &settings), settings)
}

/// What contend takes over, and why a shell is needed if it is for a pipeline.
fn record(text: &str, rewritten: &Rewritten, why: Option<&str>, settings: &Run) -> RunRecord {
    let parallel = !rewritten.taken.is_empty();
    let takes = "contend takes these stages over where that is worth it; all else is the shell's";
    let takes = parallel.then(|| takes.to_owned());
    let left = rewritten.left.iter().map(|why| format!("all of it is left to the shell: {why}"));
    let needs = why.map(|why| format!("a shell runs it, since {why}"));
    let sentences: Vec<String> = needs.into_iter().chain(takes).chain(left).collect();
    RunRecord {
        taken: rewritten.taken.clone(),
        decision: Decision { parallel, why: sentences.join("; "), ..Decision::default() },
        ..super::empty(text, &settings.how)
    }
}

/// The shell that a script's first line names, if it is one of those that are known, and the
/// options that it gives the shell. The kernel takes what stands behind the program for one word.
fn named_shell(text: &str) -> Option<(String, Vec<String>)> {
    let line = text.lines().next()?.strip_prefix("#!").filter(|line| line.len() < LONGEST_LINE)?;
    let (mut program, mut options) = first_word(line);
    let mut is_split = false;
    if program.ends_with("/env") {
        let split = options.strip_prefix("-S").or(options.strip_prefix("--split-string="));
        is_split = split.is_some();
        (program, options) = first_word(split.unwrap_or(options));
    }
    let name = program.rsplit('/').next()?;
    let is_known = ["sh", "bash", "dash", "ash"].contains(&name);
    let options = if is_split { options.split_whitespace().collect() } else { vec![options] };
    // These say only that there are no options.
    let options = options.into_iter().filter(|option| !["", "-", "--"].contains(option));
    is_known.then(|| (program.to_owned(), options.map(str::to_owned).collect()))
}

/// The first word of a line, and what comes behind it.
fn first_word(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_once([' ', '\t']).map_or((line, ""), |(word, rest)| (word, rest.trim()))
}

/// Whether a shell with this option reads and runs a text as it does without it.
fn is_harmless(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|letter| "aefuBCE".contains(letter))
}

/// The shell with a text to run.
pub(super) fn with_text(shell: &str, how: &RunHow, text: &str) -> Command {
    let mut command = without_text(shell, how);
    command.arg("-c").arg(text);
    command
}

fn without_text(shell: &str, how: &RunHow) -> Command {
    let mut command = Command::new(shell);
    if shell.rsplit('/').next() == Some("busybox") {
        command.arg("sh");
    }
    if how.pipefail {
        command.args(["-o", "pipefail"]);
    }
    command
}

/// Becomes the shell that runs this text, with these words as `$0`, `$1` and so on.
pub(super) fn become_shell(
    shell: &str,
    how: &RunHow,
    text: &str,
    words: &[OsString],
) -> Result<Exit> {
    become_command(shell, with_text(shell, how, text).args(words))
}

fn become_command(shell: &str, command: &mut Command) -> Result<Exit> {
    let error = spawn::become_command(command);
    Err(error).with_context(|| format!("cannot start the shell {shell}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_names_a_shell_and_its_options() {
        let named = |line: &str| named_shell(&format!("{line}\necho"));
        let shell = |program: &str, options: &[&str]| {
            Some((program.to_owned(), options.iter().map(|&option| option.to_owned()).collect()))
        };
        assert_eq!(named("#!/bin/bash"), shell("/bin/bash", &[]));
        assert_eq!(named("#! /bin/sh -eu "), shell("/bin/sh", &["-eu"]));
        assert_eq!(named("#!/bin/sh -"), shell("/bin/sh", &[]));
        assert_eq!(named("#!/usr/bin/env bash"), shell("bash", &[]));
        assert_eq!(named("#!/usr/bin/env -S bash -e -u"), shell("bash", &["-e", "-u"]));
        assert_eq!(named("#!/bin/bash -e -u"), shell("/bin/bash", &["-e -u"]));
        assert_eq!(named("#!/usr/bin/python3"), None);
        assert_eq!(named("echo"), None);
        assert!(is_harmless("-eu"));
        assert!(["-x", "-e -u", "-", "-s", "+e"].iter().all(|option| !is_harmless(option)));
    }
}

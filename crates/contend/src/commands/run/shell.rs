//! What only a shell can run: text of any kind, with the stages in it that contend can take over.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use contend_profile::commands::quote;
use contend_profile::parallel::script::{Marks, Rewritten, rewrite};
use contend_record::run::{Decision, RunRecord};
use contend_sys::spawn;

use crate::cli::run::STAGES;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::settings::{Run, RunHow, What};

/// A longer text is no argument of a program any more, in bytes.
const LONGEST: usize = 120 << 10;
/// A line with a shell of a script longer than this is none.
const LONGEST_LINE: usize = 200;

/// The shell runs a pipeline's text.
pub(super) fn pipeline(text: &str, why: &str, settings: Run) -> Result<Exit> {
    let shell = settings.how.shell()?;
    let rewritten = rewritten(text, &shell, &settings)?;
    if settings.explain {
        return explain(text, &rewritten, Some(why), settings);
    }
    if settings.check {
        output::error(&format!("nothing to compare: a shell runs it, since {why}"));
    }
    become_shell(&shell, &settings.how, &rewritten.text, &[])
}

/// The shell runs a script.
pub(super) fn script(settings: Run) -> Result<Exit> {
    let What::Script(path, arguments) = settings.what.clone() else { return Ok(Exit::Usage) };
    let text = std::fs::read(&path)
        .map_err(|source| UsageError(format!("cannot read {}: {source}", path.display())))?;
    let text = String::from_utf8(text).map_err(|_| {
        UsageError(format!("{} is not UTF-8: let the shell run it", path.display()))
    })?;
    let shell = match &settings.how.shell {
        Some(shell) => shell.clone(),
        None => named_shell(&text).map_or_else(|| settings.how.shell(), Ok)?,
    };
    let rewritten = rewritten(&text, &shell, &settings)?;
    if settings.explain {
        return explain(&text, &rewritten, None, settings);
    }
    if rewritten.text.len() > LONGEST || rewritten.taken.is_empty() {
        return become_shell_of(&shell, &path, &arguments);
    }
    let name = path.into_os_string();
    let words: Vec<OsString> = std::iter::once(name).chain(arguments).collect();
    become_shell(&shell, &settings.how, &rewritten.text, &words)
}

fn rewritten(text: &str, shell: &str, settings: &Run) -> Result<Rewritten> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let own = own.to_str().context("the path of this program is not text")?;
    // Nobody writes this into a script.
    let mark = format!("contend:{:016x}", fastrand::u64(..));
    let how = &settings.how;
    let mut options = how.options().to_vec();
    options.extend(["--no-progress".to_owned(), format!("--shell={shell}")]);
    options.extend(settings.stats.then(|| "--stats".to_owned()));
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
    let taken = rewritten.taken.iter().map(|(line, text)| match why {
        Some(_) => format!("contend runs `{text}` itself"),
        None => format!("line {line}: contend runs `{text}` itself"),
    });
    let left = rewritten.left.iter().map(|why| format!("all of it is left to the shell: {why}"));
    let needs = why.map(|why| format!("a shell runs it, since {why}"));
    let sentences: Vec<String> = needs.into_iter().chain(taken).chain(left).collect();
    let decision = Decision {
        parallel: !rewritten.taken.is_empty(),
        why: sentences.join("; "),
        ..Decision::default()
    };
    let record = RunRecord { decision, ..super::empty(text, &settings.how) };
    super::explain(&record, settings)
}

/// The shell that a script's first line names, if it is one of those that are known.
fn named_shell(text: &str) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("#!").filter(|line| line.len() < LONGEST_LINE)?;
    let mut words = line.split_whitespace();
    let mut program = words.next()?;
    if program.ends_with("/env") {
        program = words.next()?;
    }
    let name = program.rsplit('/').next()?;
    ["sh", "bash", "dash", "ash"].contains(&name).then(|| program.to_owned())
}

/// Becomes the shell that runs this text, with these words as `$0`, `$1` and so on.
fn become_shell(shell: &str, how: &RunHow, text: &str, words: &[OsString]) -> Result<Exit> {
    let mut command = Command::new(shell);
    if shell.rsplit('/').next() == Some("busybox") {
        command.arg("sh");
    }
    if how.pipefail {
        command.args(["-o", "pipefail"]);
    }
    command.arg("-c").arg(text).args(words);
    let error = spawn::become_command(&mut command);
    Err(error).with_context(|| format!("cannot start the shell {shell}"))
}

/// Becomes the shell that runs this script as it is.
fn become_shell_of(shell: &str, script: &Path, arguments: &[OsString]) -> Result<Exit> {
    let mut command = Command::new(shell);
    command.arg(script).args(arguments);
    let error = spawn::become_command(&mut command);
    Err(error).with_context(|| format!("cannot start the shell {shell}"))
}

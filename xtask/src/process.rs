//! Runs other programs and prints their commands.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Prints `line` to standard error, with a newline in place of trailing whitespace. Ignores errors,
/// so that a closed standard error does not stop a task.
pub fn print_status(line: &str) {
    let _ = writeln!(io::stderr(), "{}", line.trim_end());
}

/// Returns a command for the Cargo that runs this task.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Returns Cargo's target directory, relative to the repository's root if `CARGO_TARGET_DIR` is
/// unset.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// Prints and runs a command.
///
/// # Errors
/// Returns an error if the command cannot be started or does not succeed.
pub fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status = command.status().with_context(|| format!("cannot run `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Prints and runs a command, and calls `on_line` with every line of its standard output and
/// standard error, without trailing whitespace. Passes the lines on to standard output.
///
/// # Errors
/// Returns an error if the command cannot be started or does not succeed, or if its output cannot
/// be read or passed on.
pub fn run_watched(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    announce(command);
    let (reader, writer) = io::pipe().context("cannot create a pipe")?;
    command.stdout(writer.try_clone().context("cannot duplicate a pipe")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", line(command)))?;
    // Drop the command's copies of the write ends, so that the pipe ends with the child.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes).context("cannot read a command's output")? > 0 {
        io::stdout().write_all(&bytes).context("cannot write to standard output")?;
        on_line(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
    let status = child.wait().context("cannot wait for a command")?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs a command without printing it, and returns its standard output. Standard error is
/// inherited.
///
/// # Errors
/// Returns an error if the command cannot be started or does not succeed.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    command.stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run `{}`", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", line(command), output.status);
    }
    Ok(output.stdout)
}

/// Runs a command with `/dev/null` as standard input, output and error. Returns whether it could be
/// started and succeeded.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn announce(command: &Command) {
    print_status(&format!("$ {}", line(command)));
}

/// Formats a command for messages: the variables set for it, the program without its directory, and
/// the arguments, which are not quoted.
fn line(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| {
            Some(format!("{}='{}'", name.to_string_lossy(), value?.to_string_lossy()))
        })
        .collect();
    let program = Path::new(command.get_program());
    words.push(program.file_name().unwrap_or_default().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_both_outputs_is_seen_and_a_failure_reported() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; printf three; exit 3"]);
        let error = run_watched(&mut command, |line| lines.push(line.to_owned())).unwrap_err();
        assert_eq!(lines, ["one", "two", "three"]);
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let error = run(&mut Command::new("/nonexistent/program")).unwrap_err();
        assert!(error.to_string().contains("cannot run `program`"), "{error}");
    }
}

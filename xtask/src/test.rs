//! `cargo xtask test`: runs the README's test command.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::{self, cargo};

/// Runs the README's test command, at full effort if the first argument is `--full`. The other
/// arguments are appended.
///
/// # Errors
/// Returns an error if the README cannot be read or has no test command, or if that command fails.
pub fn run(arguments: &[String]) -> Result<()> {
    let (full, rest) = match arguments.split_first() {
        Some((first, rest)) if first == "--full" => (true, rest),
        _ => (false, arguments),
    };
    process::run(&mut command(full, rest)?)
}

/// Returns the README's test command, followed by `arguments`. With `full`, randomised and repeated
/// tests try every case.
///
/// # Errors
/// Returns an error if the README cannot be read, or has no such command.
pub fn command(full: bool, arguments: &[String]) -> Result<Command> {
    let readme = std::fs::read_to_string("README.md").context("cannot read README.md")?;
    let words = documented(&readme).context("README.md names no test command")?;
    let mut command = cargo();
    command.args(words.split_whitespace()).args(arguments);
    if full {
        command.env("CONTEND_TEST_EFFORT", "full");
    }
    Ok(command)
}

/// Returns Cargo's arguments in the first line `$ cargo test …`, or `None` if there is no such
/// line.
fn documented(readme: &str) -> Option<&str> {
    let command = readme.lines().find(|line| line.starts_with("$ cargo test "))?;
    command.strip_prefix("$ cargo ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_command_is_read_from_the_readme() {
        let readme = "text\n$ cargo run --release\n$ cargo test --workspace -q\n$ cargo test x\n";
        assert_eq!(documented(readme), Some("test --workspace -q"));
        assert_eq!(documented("cargo test --workspace\n"), None);
    }
}

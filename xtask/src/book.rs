//! `cargo xtask book`: builds the book with mdBook, or updates the output on its pages.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::check;
use crate::process::{self, cargo, succeeds, target_dir};

const INSTALL: &str = "cargo install mdbook --version 0.5.4 --locked --no-default-features";

/// Environment variable that makes the test of the book's commands write their output to the pages.
const UPDATE: &str = "CONTEND_UPDATE_BOOK";

/// Checks the book's links and builds it in `target/book`. With `--update`, runs all commands on
/// the pages instead, and replaces their output there.
///
/// # Errors
/// Returns an error if an argument is unknown, a page violates a rule, mdBook is not installed, or
/// a command fails.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => build(),
        [only] if only == "--update" => update(),
        [other, ..] => bail!("unknown argument `{other}`; did you mean `--update`?"),
    }
}

fn build() -> Result<()> {
    check::book()?;
    process::run(mdbook()?.args(["build", "docs"]))
}

/// Returns a command for the mdBook on `PATH`, or else for the one installed by `.ci/run`. Fails if
/// there is neither.
fn mdbook() -> Result<Command> {
    let installed = target_dir().join("tools/bin/mdbook");
    let programs = [Path::new("mdbook"), &installed];
    let found = programs.into_iter().find(|path| succeeds(Command::new(path).arg("--version")));
    match found {
        Some(program) => Ok(Command::new(program)),
        None => bail!("mdbook is not installed; install it with `{INSTALL}`"),
    }
}

fn update() -> Result<()> {
    // Measurements on pages are those of an optimized build.
    let words = "test --release --package contend --test alone --locked -- book:: --nocapture";
    let mut command = cargo();
    if std::env::var_os(UPDATE).is_none() {
        command.env(UPDATE, "1");
    }
    process::run(command.args(words.split(' ')))
}

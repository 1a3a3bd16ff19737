//! `cargo xtask`: tasks for developers and CI.
//!
//! Every task runs from the repository's root, and prints the commands that do its work before
//! running them. This package has few dependencies, so that it builds in seconds.

mod bench;
mod book;
mod check;
mod ci;
mod generate;
mod lint;
mod manifest;
mod picture;
mod pre_commit;
mod process;
mod random;
mod test;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "\
Usage: cargo xtask TASK [ARGUMENTS]

Tasks:
  ci [--full]            Run every check that CI runs: lint, loom, sanitizer, all tests, Elixir;
                         --full runs every random case
  lint                   Check formatting, lints, documentation and the repository's own rules
  check                  Check the repository's own rules only: names, layers, links, language
  language [PLACE]       Count phrases of literal English by package and page; list those of one.
                         An absolute path counts those of other Rust sources, to compare
  language --check       Fail if a package or page is above the limit
  language --sample N    Print N doc comments drawn at random; --seed N draws others
  language --commits A..B
                         Count phrases in the subjects of commits
  test [--full] [ARGS]   Run the README's test command; --full runs every random case
  generate               Rewrite schemas and generated pages; completions and man pages to target/
  book [--update]        Check the book's links and build it; --update replaces output on its pages
  picture [PROGRAM]      Run contend in a terminal, and draw its report to docs/images/pipe.svg
  bench [NAME [ARGS]]    Run a benchmark program; without a name, list them
  pre-commit             Check what changed, in under a minute on a warm build
";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::print_status(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent")?;
    std::env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))?;
    let Some((task, rest)) = arguments.split_first() else { bail!("no task given\n\n{USAGE}") };
    if !matches!(task.as_str(), "ci" | "test" | "bench" | "language" | "book" | "picture") {
        reject_arguments(task, rest)?;
    }
    match task.as_str() {
        "ci" => ci::run(is_full(rest)?),
        "lint" => lint::run(),
        "check" => check::run(),
        "language" => check::language(&check::Request::parse(rest)?),
        "test" => test::run(rest),
        "generate" => generate::run(),
        "book" => book::run(rest),
        "picture" => picture::run(rest),
        "bench" => bench::run(rest),
        "pre-commit" => pre_commit::run(),
        "help" | "--help" | "-h" => {
            process::print_status(USAGE);
            Ok(())
        }
        _ => bail!("unknown task `{task}`\n\n{USAGE}"),
    }
}

/// Returns whether the only argument is `--full`.
fn is_full(arguments: &[String]) -> Result<bool> {
    match arguments {
        [] => Ok(false),
        [only] if only == "--full" => Ok(true),
        _ => bail!("`ci` takes only `--full`, but got `{}`\n\n{USAGE}", arguments.join(" ")),
    }
}

fn reject_arguments(task: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        Some(argument) => bail!("`{task}` takes no arguments, but got `{argument}`\n\n{USAGE}"),
        None => Ok(()),
    }
}

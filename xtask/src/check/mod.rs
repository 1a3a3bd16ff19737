//! Checks the repository's own rules, which no other tool covers.

mod book;
mod invariants;
mod language;
mod layers;
mod links;
mod literals;
mod names;
mod sentences;

use std::fmt::{self, Display};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::manifest;
use crate::process::{output, print_status};
pub use language::Request;

/// Names of folders without sources of this repository.
const SKIPPED_FOLDERS: [&str; 5] = ["target", ".git", "_build", "deps", "results"];

/// File name extensions of sources whose comments are checked.
const LANGUAGES: [&str; 7] = ["rs", "ex", "exs", "sh", "c", "go", "java"];

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    file: PathBuf,
    /// The line number from 1, or 0 for the whole file.
    line: usize,
    problem: String,
}

impl Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file.display(), self.line, self.problem)
    }
}

/// A text file of the repository.
#[derive(Debug)]
struct Source {
    /// The path, relative to the repository's root.
    path: PathBuf,
    text: String,
}

/// Checks all rules, and prints every violation.
///
/// # Errors
/// Returns an error if there is a violation, if a file cannot be read, or if the page of
/// experiments lists none.
pub fn run() -> Result<()> {
    let experiments = fs::read_to_string("docs/reference/experiments.md")
        .context("docs/reference/experiments.md")?;
    let families = names::families(&experiments);
    if families.is_empty() {
        bail!("docs/reference/experiments.md names no experiment");
    }
    let mut sources = sources(Path::new("crates"), "rs")?;
    sources.extend(self::sources(Path::new("bench"), "rs")?);
    let mut violations = names::check(&sources, &families);
    violations.extend(sentences::check(&sources));
    let page = invariants::page().context("ARCHITECTURE.md")?;
    violations.extend(invariants::check(&page, &sources));
    violations.extend(layers::check(&manifest::packages()?));
    let (code, pages) = texts()?;
    violations.extend(of_links(&pages));
    violations.extend(language::check(&code, &pages)?);
    fail_if_any(&violations)
}

/// Checks only the rules for links and for the book, and prints every violation.
///
/// # Errors
/// Returns an error if there is a violation, or a file cannot be read.
pub fn book() -> Result<()> {
    fail_if_any(&of_links(&sources(Path::new("."), "md")?))
}

fn of_links(pages: &[Source]) -> Vec<Violation> {
    let mut violations = links::check(pages, &|path| path.exists());
    violations.extend(book::check(pages));
    violations
}

/// Prints violations, and fails if there is one.
fn fail_if_any(violations: &[Violation]) -> Result<()> {
    for violation in violations {
        print_status(&violation.to_string());
    }
    match violations.len() {
        0 => Ok(()),
        count => bail!("{count} violations of the repository's rules"),
    }
}

/// Prints a report on phrases of literal English, checks their density, or prints doc comments for
/// a review.
///
/// # Errors
/// Returns an error if a file or the commits cannot be read, the report cannot be written, or the
/// check fails.
pub fn language(request: &Request) -> Result<()> {
    match request {
        Request::Report(only) => {
            let (code, pages) = texts()?;
            print(&language::report(&code, &pages, only.as_deref())?)
        }
        Request::Elsewhere(folder) => print(&language::report(&relative(folder)?, &[], None)?),
        Request::Sample { count, seed } => {
            let (code, _) = texts()?;
            print(&language::sample(&code, *count, *seed))
        }
        Request::Commits(range) => {
            let log = output(Command::new("git").args(["log", "--format=%s", range]))?;
            print(&language::subjects(&String::from_utf8_lossy(&log))?)
        }
        Request::Check => {
            let (code, pages) = texts()?;
            fail_if_any(&language::check(&code, &pages)?)
        }
    }
}

/// Returns all sources whose comments are checked, and all Markdown pages.
fn texts() -> Result<(Vec<Source>, Vec<Source>)> {
    let mut code = Vec::new();
    for folder in ["crates", "bench", "xtask", "elixir"] {
        for extension in LANGUAGES {
            code.extend(sources(Path::new(folder), extension)?);
        }
    }
    Ok((code, sources(Path::new("."), "md")?))
}

/// Returns the Rust sources below a folder, with paths that start with the folder's name.
fn relative(folder: &Path) -> Result<Vec<Source>> {
    let parent = folder.parent().unwrap_or(folder);
    let mut sources = sources(folder, "rs")?;
    for source in &mut sources {
        source.path = source.path.strip_prefix(parent).unwrap_or(&source.path).to_owned();
    }
    Ok(sources)
}

/// Prints a report to standard output.
fn print(report: &str) -> Result<()> {
    io::stdout().write_all(report.as_bytes()).context("cannot write to standard output")
}

/// Returns all files with the given extension below a folder, ordered by path. Leaves out
/// `SKIPPED_FOLDERS`. Fails if a folder or file cannot be read, or a file is not UTF-8.
fn sources(folder: &Path, extension: &str) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    walk(folder, extension, &mut paths)?;
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Source { path: path.strip_prefix(".").map(Path::to_owned).unwrap_or(path), text })
    };
    paths.into_iter().map(read).collect()
}

fn walk(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry.with_context(|| folder.display().to_string())?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let is_skipped = SKIPPED_FOLDERS.iter().any(|name| entry.file_name() == **name);
            if !is_skipped {
                walk(&path, extension, paths)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_recursively_except_in_target() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in ["a/b.rs", "a/c.md", "target/d.rs", "e.rs"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("it can be made");
            fs::write(path, "text").expect("it can be written");
        }
        let found = sources(folder.path(), "rs").expect("it can be read");
        let names: Vec<_> = found.iter().map(|source| source.path.clone()).collect();
        assert_eq!(names, [folder.path().join("a/b.rs"), folder.path().join("e.rs")]);
    }
}

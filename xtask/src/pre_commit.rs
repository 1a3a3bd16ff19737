//! `cargo xtask pre-commit`: runs quick checks before a commit.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::check;
use crate::manifest::{self, Package};
use crate::process::{self, cargo, output};

/// The packages that a change affects.
#[derive(Debug, PartialEq, Eq)]
enum Scope<'a> {
    /// All packages, because a file of the workspace itself has changed.
    Workspace,
    /// The packages with changed files; may be empty.
    Packages(Vec<&'a str>),
}

/// Checks the repository's own rules, formatting, and the lints of changed packages.
///
/// # Errors
/// Returns an error if a check fails, or if the changed files cannot be listed.
pub fn run() -> Result<()> {
    check::run()?;
    process::run(cargo().args("fmt --all --check".split(' ')))?;
    let packages = manifest::packages()?;
    let mut clippy = cargo();
    clippy.args("clippy --all-targets".split(' '));
    match scope(&changed_files()?, &packages) {
        Scope::Workspace => clippy.arg("--workspace"),
        Scope::Packages(names) if names.is_empty() => return Ok(()),
        Scope::Packages(names) => clippy.args(names.iter().flat_map(|name| ["-p", *name])),
    };
    process::run(clippy.args(["--", "-D", "warnings"]))
}

/// Returns the paths of untracked files and of files that differ from the last commit, staged or
/// not.
fn changed_files() -> Result<Vec<String>> {
    let mut files = Vec::new();
    for arguments in ["diff --name-only HEAD", "ls-files --others --exclude-standard"] {
        let text = output(Command::new("git").args(arguments.split(' ')))?;
        let text = String::from_utf8(text).context("a path is not UTF-8")?;
        files.extend(text.lines().map(str::to_owned));
    }
    Ok(files)
}

fn scope<'a>(files: &[String], packages: &'a [Package]) -> Scope<'a> {
    let of_workspace = ["Cargo.toml", "Cargo.lock", "clippy.toml"];
    if files.iter().any(|file| of_workspace.contains(&file.as_str())) {
        return Scope::Workspace;
    }
    let has_changed =
        |package: &&Package| files.iter().any(|file| file_is_in(file, &package.folder));
    Scope::Packages(
        packages.iter().filter(has_changed).map(|package| package.name.as_str()).collect(),
    )
}

fn file_is_in(file: &str, folder: &std::path::Path) -> bool {
    std::path::Path::new(file).starts_with(folder)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn package(folder: &str, name: &str) -> Package {
        Package { folder: PathBuf::from(folder), name: name.to_owned(), dependencies: Vec::new() }
    }

    #[test]
    fn a_change_concerns_the_packages_whose_files_it_touches() {
        let packages = [package("crates/json", "contend-json"), package("crates/js", "contend-js")];
        let of = |files: &[&str]| {
            scope(&files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>(), &packages)
        };
        assert_eq!(of(&["crates/json/src/lib.rs"]), Scope::Packages(vec!["contend-json"]));
        assert_eq!(of(&["README.md"]), Scope::Packages(vec![]));
        assert_eq!(of(&["README.md", "Cargo.lock"]), Scope::Workspace);
    }
}

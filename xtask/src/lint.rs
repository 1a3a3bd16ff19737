//! `cargo xtask lint`: runs the static checks.

use std::process::Command;

use anyhow::Result;

use crate::check;
use crate::process::{self, cargo, print_status, succeeds};

/// Checks formatting, lints, documentation and the repository's own rules; also dependencies and
/// spelling, if cargo-deny and typos are installed.
///
/// # Errors
/// Returns an error if a check fails.
pub fn run() -> Result<()> {
    check::run()?;
    process::run(cargo().args("fmt --all --check".split(' ')))?;
    process::run(
        cargo().args("clippy --workspace --all-targets --locked -- -D warnings".split(' ')),
    )?;
    let doc = "doc --workspace --no-deps --locked";
    process::run(cargo().env("RUSTDOCFLAGS", "-D warnings").args(doc.split(' ')))?;
    installed_tools()
}

/// Runs cargo-deny and typos if they are installed. They take minutes to build, so they are
/// optional.
///
/// Advisories are not checked, because their database would have to be downloaded.
fn installed_tools() -> Result<()> {
    let deny = "deny --all-features check bans licenses sources";
    if succeeds(cargo().args(["deny", "--version"])) {
        process::run(cargo().args(deny.split(' ')))?;
    } else {
        print_status("cargo-deny is not installed: licences and duplicates are not checked");
    }
    if succeeds(Command::new("typos").arg("--version")) {
        process::run(&mut Command::new("typos"))?;
    } else {
        print_status("typos is not installed: spelling is not checked");
    }
    Ok(())
}

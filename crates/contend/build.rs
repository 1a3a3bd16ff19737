//! Finds the Git commit that contend is built from. Packagers can give it in `CONTEND_COMMIT`. Without a
//! repository, as from a published crate, Cargo's own note of the commit is used if it is there; else the
//! commit stays unknown.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=CONTEND_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    link_at_a_fixed_address();
    link_unwinder_statically();
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let given = std::env::var("CONTEND_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| of_package(&package)).or_else(|| of_repository(&package));
    if let Some(commit) = commit.filter(|commit| commit.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        println!("cargo::rustc-env=CONTEND_COMMIT={commit}");
    }
}

/// A shell starts contend for stages that take a millisecond. At an address that the loader chooses, it would have
/// to write 14,000 pointers before `main`, in 60 pages that it copies for that: a sixth of a millisecond.
fn link_at_a_fixed_address() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

/// Links libgcc's unwinder into the program where that is possible. Loading it as a library takes a tenth of the time
/// that contend needs to start.
fn link_unwinder_statically() {
    const NAME: &str = "libgcc_eh.a";
    let is_gnu_linux = std::env::var("TARGET").is_ok_and(|target| target.ends_with("-linux-gnu"));
    let is_native = std::env::var("TARGET").ok() == std::env::var("HOST").ok();
    if !is_gnu_linux || !is_native {
        return;
    }
    // Rust links by `cc`, which knows where its own libraries are. It gives back the mere name of one that it has not.
    let found = Command::new("cc").arg(format!("-print-file-name={NAME}")).output();
    let path = found.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let path = path.map(|path| PathBuf::from(path.trim())).filter(|path| path.is_file());
    if let Some(folder) = path.as_deref().and_then(Path::parent) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The commit that Cargo notes when it packs a crate.
fn of_package(package: &Path) -> Option<String> {
    let note = std::fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let rest = note.split_once("\"sha1\"")?.1.split_once('"')?.1;
    Some(shortened(rest.split_once('"')?.0))
}

/// The commit of the repository whose workspace this package is part of. One that merely surrounds it, such as
/// that of a vendored copy, says nothing of contend.
fn of_repository(package: &Path) -> Option<String> {
    let workspace = package.parent()?.parent()?.canonicalize().ok()?;
    let root =
        PathBuf::from(git(package, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if root != workspace {
        return None;
    }
    let commit = git(package, &["rev-parse", "--verify", "HEAD"])?;
    // A commit moves HEAD's log; a repository may keep none.
    for name in ["HEAD", "logs/HEAD"] {
        let path = PathBuf::from(git(package, &["rev-parse", "--git-path", name])?);
        let path = if path.is_absolute() { path } else { package.join(path) };
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Some(shortened(&commit))
}

/// As much of a commit's name as tells it from others.
fn shortened(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// The first line of what git prints.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next().map(str::to_owned);
    line.filter(|line| output.status.success() && !line.is_empty())
}

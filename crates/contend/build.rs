//! Finds the Git commit of the sources, and sets linker options: no position independence, and
//! static libraries where they are installed.
//!
//! The commit comes from `CONTEND_COMMIT`, which packagers can set, else from the file that Cargo
//! adds to a published crate, else from the Git repository. Without any of these, it stays unknown.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

fn main() {
    println!("cargo::rerun-if-env-changed=CONTEND_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    link_at_a_fixed_address();
    link_libraries_statically();
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let given = std::env::var("CONTEND_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit =
        given.or_else(|| commit_of_package(&package)).or_else(|| commit_of_repository(&package));
    if let Some(commit) = commit.filter(|commit| commit.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        println!("cargo::rustc-env=CONTEND_COMMIT={commit}");
    }
}

/// Links the program without position independence on Linux with glibc. A shell starts contend for
/// stages that take a millisecond, and relocating 14,000 pointers in 60 pages before `main` would
/// take a sixth of that time.
fn link_at_a_fixed_address() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

/// Names of the glibc libraries that Rust links.
const C_LIBRARIES: [&str; 6] = ["c", "m", "pthread", "dl", "rt", "util"];

/// Links the C library and libgcc's unwinder statically if their archives are installed, or else
/// the unwinder alone. A static program needs no dynamic loader, which takes a fifth of the
/// start-up time. Does nothing without the unwinder's archive, for targets other than Linux with
/// glibc, in cross builds, and with `CONTEND_LINK=dynamic`.
///
/// This is safe because contend looks up neither users nor hosts. For such lookups, a static glibc
/// loads shared libraries, which must have its own version.
fn link_libraries_statically() {
    println!("cargo::rerun-if-env-changed=CONTEND_LINK");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_native = variable("TARGET") == variable("HOST");
    if !variable("TARGET").ends_with("-linux-gnu")
        || !is_native
        || variable("CONTEND_LINK") == "dynamic"
    {
        return;
    }
    let Some(unwinder) = archive("gcc_eh") else { return };
    let folder = PathBuf::from(variable("OUT_DIR")).join("static");
    let archives = Archives::find(&unwinder);
    if archives.is_some_and(|archives| archives.gather(&folder).is_ok()) {
        // The linker takes the first library of a name. Tests do not get this directory: they use
        // shared libraries.
        println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
        println!("cargo::rustc-link-arg-bins=-static");
    } else if let Some(folder) = unwinder.parent() {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Archives for linking a static program.
struct Archives {
    /// The archives of the C library, `libc.a` first.
    c: Vec<PathBuf>,
    /// The archives of libgcc: `libgcc_eh.a`, which has the unwinder, and `libgcc.a`.
    gcc: [PathBuf; 2],
}

impl Archives {
    fn find(unwinder: &Path) -> Option<Self> {
        let c = C_LIBRARIES.iter().map(|name| archive(name)).collect::<Option<_>>()?;
        Some(Self { c, gcc: [unwinder.to_owned(), archive("gcc")?] })
    }

    /// Replaces `folder` with a directory that has an archive for each library that Rust links,
    /// including `libgcc_s.a` in place of the shared libgcc.
    fn gather(&self, folder: &Path) -> io::Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let [c, others @ ..] = self.c.as_slice() else { return Ok(()) };
        for archive in others {
            symlink(archive, folder.join(archive.file_name().unwrap_or_default()))?;
        }
        let [unwinder, gcc] = self.gcc.each_ref().map(|path| path.display());
        fs::write(folder.join("libgcc_s.a"), format!("GROUP ( {unwinder} {gcc} )\n"))?;
        fs::write(folder.join("libc.a"), format!("GROUP ( {} {unwinder} {gcc} )\n", c.display()))
    }
}

/// Returns the path that `cc` prints for the archive of a system library. Returns `None` if `cc`
/// cannot be run, or prints the bare name because it finds no archive.
fn archive(library: &str) -> Option<PathBuf> {
    let name = format!("lib{library}.a");
    let found = Command::new("cc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim());
    (path.is_absolute() && path.is_file()).then_some(path)
}

/// Returns the commit that Cargo has recorded in a packaged crate, or `None` if `package` is not a
/// packaged crate.
fn commit_of_package(package: &Path) -> Option<String> {
    let note = std::fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let rest = note.split_once("\"sha1\"")?.1.split_once('"')?.1;
    Some(shortened(rest.split_once('"')?.0))
}

/// Returns the commit of the Git repository whose root is this workspace, or `None` if git reports
/// none. Ignores a repository that merely contains the workspace, such as one with a vendored copy.
/// Makes Cargo rerun this script after a new commit.
fn commit_of_repository(package: &Path) -> Option<String> {
    let workspace = package.parent()?.parent()?.canonicalize().ok()?;
    let root =
        PathBuf::from(git(package, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if root != workspace {
        return None;
    }
    let commit = git(package, &["rev-parse", "--verify", "HEAD"])?;
    // A commit changes the log of HEAD, which a repository may not have.
    for name in ["HEAD", "logs/HEAD"] {
        let path = PathBuf::from(git(package, &["rev-parse", "--git-path", name])?);
        let path = if path.is_absolute() { path } else { package.join(path) };
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Some(shortened(&commit))
}

/// Returns the abbreviated name of a commit: its first 12 characters.
fn shortened(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// Runs git in `folder` and returns the first line of its output, or `None` if git fails or prints
/// nothing.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next().map(str::to_owned);
    line.filter(|line| output.status.success() && !line.is_empty())
}

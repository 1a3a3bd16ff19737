//! Requirements of some units beyond the programs of their probe, checked without starting the
//! probe.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::programs;

/// The first version of Java with virtual threads.
const VIRTUAL_THREADS_SINCE: u32 = 21;

/// Returns why Java has no virtual threads, or `None` if it has them or its version is not known.
/// Reads the file `release` of the installation, since starting Java takes longer.
pub fn virtual_threads_missing() -> Option<String> {
    let java = programs::find("java")?.canonicalize().ok()?;
    let home = java.parent()?.parent()?;
    without_virtual_threads(&fs::read_to_string(home.join("release")).ok()?)
}

/// Returns why a Java installation has no virtual threads, or `None` if it has them or its version
/// is not known. `release` is the text of the file `release` in the installation.
fn without_virtual_threads(release: &str) -> Option<String> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let version = version.trim().trim_matches('"');
    let major: u32 = version.split(['.', '-', '+']).next()?.parse().ok()?;
    (major < VIRTUAL_THREADS_SINCE).then(|| {
        format!("virtual threads came with Java {VIRTUAL_THREADS_SINCE}, this is {version}")
    })
}

/// Returns why Python cannot import greenlet, or `None` if it can. Starts Python only on the first
/// call.
pub fn greenlet_missing() -> Option<String> {
    static MISSING: OnceLock<bool> = OnceLock::new();
    let is_missing = MISSING.get_or_init(|| !imports("greenlet"));
    is_missing.then(|| "the module greenlet is not installed".to_owned())
}

/// Returns whether Python can import a module. Files in the current directory do not count, because
/// they are not part of the installation.
fn imports(module: &str) -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", &format!("import {module}")]).current_dir("/");
    python.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_file_names_the_version_of_java() {
        let missing = |version: &str| {
            without_virtual_threads(&format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n"))
        };
        let reason = "virtual threads came with Java 21, this is 17.0.15";
        assert_eq!(missing("17.0.15").as_deref(), Some(reason));
        assert!(missing("1.8.0_392").is_some());
        assert_eq!(["21", "21.0.2", "25-ea"].map(missing), [None, None, None]);
        assert_eq!(without_virtual_threads("IMPLEMENTOR=\"x\"\n"), None, "unknown");
    }

    #[test]
    fn a_module_is_imported_or_missing() {
        if programs::find("python3").is_some() {
            assert!(imports("sys") && !imports("contend_has_no_such_module"));
        }
    }
}

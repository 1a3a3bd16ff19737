//! `cargo xtask ci`: runs all checks that must succeed before a change is merged.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{self, cargo, output, print_status, run_watched, succeeds, target_dir};
use crate::{book, lint, test};

/// Tests that limit themselves with a control group, which requires root.
const CGROUP_TESTS: [&str; 4] = [
    "doctor::robust::the_quota_of_another_control_group_is_found",
    "lab::the_cgroup_that_limits_units_is_named",
    "lab::the_memory_of_a_cgroup_is_predicted",
    "lab_synchronisation::a_quota_is_respected_and_shown",
];

/// Tests that mount and fill a file system, which requires root.
const MOUNT_TESTS: [&str; 2] = [
    "history::a_full_disk_loses_no_figures",
    "run::disk::a_full_disk_does_not_matter_if_bash_needs_no_files",
];

/// Runs all checks, and stops at the first failure. Tests that require root are left out, with a
/// message, if this machine does not permit them. With `full`, randomised and repeated tests try every
/// case.
///
/// # Errors
/// Returns an error if a check fails, or a test was skipped because this machine lacks a program or
/// a feature.
pub fn run(full: bool) -> Result<()> {
    lint::run()?;
    book::run(&[])?;
    loom()?;
    sanitizer()?;
    let mut log = TestLog::default();
    log.watch(&mut test::command(full, &[])?)?;
    privileged(&mut log)?;
    browser(&mut log)?;
    elixir(&mut log)?;
    objects(&mut log)?;
    log.require_nothing_skipped()
}

/// Runs the loom models, which explore the interleavings of accesses to the shared state of the
/// callback runtime and of the ring buffers in `contend-sys`. Large models limit the number of
/// preemptions.
fn loom() -> Result<()> {
    cargo_run(
        &[("RUSTFLAGS", "--cfg loom")],
        "test -p contend-callback -p contend-sys --lib --release --locked",
        &["--target-dir", &target_dir().join("loom").to_string_lossy(), "models"],
    )
}

/// Runs the callback runtime's tests with `AddressSanitizer`, which comes with every toolchain. The
/// build is unoptimized, so that no invalid access is optimized away.
fn sanitizer() -> Result<()> {
    let host = output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let host = String::from_utf8(host).context("rustc names its host")?;
    let target_dir = target_dir().join("sanitizer");
    cargo_run(
        &[("RUSTC_BOOTSTRAP", "1"), ("RUSTFLAGS", "-Zsanitizer=address")],
        "test -p contend-callback --lib --locked \
         --config profile.dev.package.contend-callback.opt-level=0",
        &["--target", host.trim(), "--target-dir", &target_dir.to_string_lossy()],
    )
}

fn cargo_run(environment: &[(&str, &str)], words: &str, more: &[&str]) -> Result<()> {
    let mut command = cargo();
    command.envs(environment.iter().copied()).args(words.split(' ')).args(more);
    process::run(&mut command)
}

/// Runs tests that change the system's configuration, one at a time. Skips tests that are not
/// permitted here, with a message.
fn privileged(log: &mut TestLog) -> Result<()> {
    if can_create_cgroups(Path::new("/sys/fs/cgroup/pids")) {
        CGROUP_TESTS.iter().try_for_each(|name| log.watch_ignored_test(name))?;
    } else {
        print_status("tests with control groups do not run: none can be created here");
    }
    if succeeds(Command::new("unshare").args("--mount mount -t tmpfs none /mnt".split(' '))) {
        MOUNT_TESTS.iter().try_for_each(|name| log.watch_ignored_test(name))?;
    } else {
        print_status("tests that fill a file system do not run: none can be mounted here");
    }
    Ok(())
}

fn can_create_cgroups(hierarchy: &Path) -> bool {
    let group = hierarchy.join("contend-ci");
    hierarchy.is_dir() && fs::create_dir(&group).is_ok() && fs::remove_dir(&group).is_ok()
}

/// Tests the pages of `contend report` and `contend serve` in Chromium. `BROWSER_MODULES` is a folder with the packages
/// playwright-core and axe-core.
fn browser(log: &mut TestLog) -> Result<()> {
    let modules = std::env::var_os("BROWSER_MODULES");
    let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];
    let chromium = chromium.into_iter().find(|path| Path::new(path).exists());
    let (Some(modules), Some(chromium)) = (modules, chromium) else {
        log.line("SKIPPED pages in a browser: no Chromium, or BROWSER_MODULES is not set");
        return Ok(());
    };
    let contend = target_dir().join("debug/contend");
    let mut node = Command::new("node");
    node.args(["--test", "crates/contend/tests/browser/"]);
    node.env("CHROMIUM", chromium).env("CONTEND", contend).env("BROWSER_MODULES", modules);
    process::run(&mut node)
}

/// Checks and tests jobs over objects of a store. They come last, because the feature changes how most dependencies are built.
fn objects(log: &mut TestLog) -> Result<()> {
    let lint = "clippy -p contend --features object-store --all-targets --locked -- -D warnings";
    process::run(cargo().args(lint.split(' ')))?;
    let test = "test -p contend --features object-store --test it --locked -- objects::";
    log.watch(cargo().args(test.split(' ')))
}

/// Checks and tests the callback runtime for the BEAM.
fn elixir(log: &mut TestLog) -> Result<()> {
    for arguments in ["format --check-formatted", "compile --warnings-as-errors", "test"] {
        log.watch(Command::new("mix").args(arguments.split(' ')).current_dir("elixir"))?;
    }
    Ok(())
}

/// Results extracted from the output of tests: the lines about skipped tests, and the number of
/// tests that passed.
#[derive(Debug, Default)]
struct TestLog {
    skipped: Vec<String>,
    passed: usize,
}

impl TestLog {
    fn watch(&mut self, command: &mut Command) -> Result<()> {
        run_watched(command, |line| self.line(line))
    }

    /// Runs one ignored test. An unknown name is an error, although Cargo then succeeds.
    fn watch_ignored_test(&mut self, name: &str) -> Result<()> {
        let before = self.passed;
        let words = "test -p contend --test it --locked -- --ignored --exact";
        self.watch(cargo().args(words.split(' ')).arg(name))?;
        ensure!(self.passed == before + 1, "no test is called {name}");
        Ok(())
    }

    fn line(&mut self, line: &str) {
        if line.starts_with("SKIPPED ") {
            self.skipped.push(line.to_owned());
        }
        let counts = line.strip_prefix("test result: ok. ");
        let passed = counts.and_then(|counts| counts.split(' ').next()?.parse::<usize>().ok());
        self.passed += passed.unwrap_or_default();
    }

    fn require_nothing_skipped(&self) -> Result<()> {
        let count = self.skipped.len();
        print_status(&format!("tests skipped because this machine lacks something: {count}"));
        if count > 0 {
            bail!("skipped tests:\n{}", self.skipped.join("\n"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_fails_the_run() {
        let mut log = TestLog::default();
        log.line("test result: ok. 12 passed; 0 failed; 5 ignored");
        log.line("test a::b ... ok");
        log.line("nothing was SKIPPED here");
        assert_eq!(log.passed, 12);
        log.require_nothing_skipped().expect("nothing was skipped");
        log.line("SKIPPED a::b: no strace");
        let error = log.require_nothing_skipped().unwrap_err();
        assert!(error.to_string().contains("no strace"), "{error}");
    }

    #[test]
    fn a_failed_run_counts_nothing_as_passed() {
        let mut log = TestLog::default();
        log.line("test result: FAILED. 3 passed; 1 failed");
        assert_eq!(log.passed, 0);
    }

    #[test]
    fn cgroups_are_unavailable_if_none_can_be_created() {
        assert!(!can_create_cgroups(Path::new("/nonexistent")));
        let folder = tempfile::tempdir().expect("a folder");
        assert!(can_create_cgroups(folder.path()));
        assert!(!folder.path().join("contend-ci").exists(), "the group is removed again");
    }
}

//! Probes in other languages: their files, and how they are built and cached.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::engine::isolate::SCRATCH_VARIABLE;
use crate::support::programs;

/// A probe in another language.
#[derive(Debug)]
pub struct Program {
    /// Relative paths and contents of the files. The first file is the probe itself.
    pub files: &'static [(&'static str, &'static str)],
    /// Programs that build and run the probe, at least one. The version that the first one prints
    /// is that of the toolchain.
    pub tools: &'static [&'static str],
    /// Argument with which the first tool prints its version.
    pub version: &'static str,
    /// Command that builds the probe in the folder of its files; empty for scripts.
    pub make: &'static [&'static str],
    /// Environment variables for the build and the runs of the probe.
    pub environment: &'static [(&'static str, &'static str)],
    /// Whether builds are kept for later cases and runs. If not, every probe has a folder of its
    /// own, which is removed afterwards.
    pub is_cached: bool,
}

/// A program that has been built.
#[derive(Debug)]
pub struct Build {
    /// The folder with the program's files and what was built from them.
    pub folder: PathBuf,
    /// Removes the folder when it is dropped; `None` if the folder is cached.
    _temporary: Option<TempDir>,
}

impl Program {
    /// Returns why the probe cannot be built or run here, or `None` if all of its tools are
    /// installed.
    pub fn missing(&self) -> Option<String> {
        programs::missing(self.tools.iter().copied())
    }

    /// Builds the probe, unless it may be cached and the cache has a build of the same files by the
    /// same toolchain. Returns the new or the cached build.
    ///
    /// # Errors
    /// Returns an error if files cannot be written, or the command that builds the probe fails.
    pub fn build(&self) -> Result<Build, SubjectError> {
        let root = if self.is_cached { cache_root() } else { None };
        self.build_in(root.as_deref())
    }

    /// Returns the complete build in `root` if there is one. Otherwise builds the probe and moves
    /// the build to `root`. If `root` is `None` or the build cannot be moved, the build stays in a
    /// temporary folder.
    fn build_in(&self, root: Option<&Path>) -> Result<Build, SubjectError> {
        let kept = root.map(|root| root.join(self.name()));
        if let Some(folder) = kept.as_ref().filter(|folder| is_complete(folder)) {
            return Ok(Build { folder: folder.clone(), _temporary: None });
        }
        let builder = || tempfile::Builder::new().prefix(BUILD_PREFIX).to_owned();
        let made = match root {
            Some(root) => {
                remove_abandoned(root);
                builder().tempdir_in(root)
            }
            None => builder().tempdir(),
        };
        let made = made.context("create a folder for a probe")?;
        self.run_build(made.path())?;
        fs::write(made.path().join(COMPLETE_MARK), "").context("write a probe")?;
        Ok(match kept.filter(|kept| install(made.path(), kept)) {
            Some(folder) => Build { folder, _temporary: None },
            None => Build { folder: made.path().to_owned(), _temporary: Some(made) },
        })
    }

    /// Returns the name of the build in the cache: the name of the first file, and a hash of the
    /// files, the build command, the environment and the toolchain. The toolchain is asked for its
    /// version in `/`, where no project file selects another one.
    fn name(&self) -> String {
        let mut version = Command::new(self.tools[0]);
        version.arg(self.version).envs(self.environment.iter().copied());
        let version = version.current_dir("/").stdin(Stdio::null()).output();
        let mut hasher = DefaultHasher::new();
        (self.files, self.make, self.environment).hash(&mut hasher);
        version
            .map_or_else(|_| Vec::new(), |said| [said.stdout, said.stderr].concat())
            .hash(&mut hasher);
        self.tools.iter().map(|tool| identity(tool)).for_each(|tool| tool.hash(&mut hasher));
        format!("{}-{:016x}", self.files[0].0, hasher.finish())
    }

    fn run_build(&self, folder: &Path) -> Result<(), SubjectError> {
        for (name, text) in self.files {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).context("create a folder for a probe")?;
            fs::write(&path, text).context("write a probe")?;
        }
        let Some((program, arguments)) = self.make.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        command.envs(self.environment.iter().copied());
        if caches().is_none() {
            // Compilers need a cache directory even if the user has none.
            let cache = folder.join("cache");
            command.env("HOME", folder).env("XDG_CACHE_HOME", &cache).env("GOCACHE", cache);
        }
        let said = command.output().context(&format!("run {program}"))?;
        if said.status.success() {
            return Ok(());
        }
        let text = [said.stdout, said.stderr].concat();
        Err(SubjectError::unexpected(format!(
            "{program} failed: {}",
            summarize_output(&String::from_utf8_lossy(&text))
        )))
    }
}

/// Name of the file that marks a complete build. It is written last.
const COMPLETE_MARK: &str = "made";

/// Returns the path, size and modification time of an executable, which identify it even if it does
/// not print its version. Returns `None` if there is no such executable.
fn identity(tool: &str) -> Option<(PathBuf, u64, Option<SystemTime>)> {
    let path = programs::find(tool)?.canonicalize().ok()?;
    let data = path.metadata().ok()?;
    Some((path, data.len(), data.modified().ok()))
}

/// Returns whether a build is complete and only this user can write to its folder.
fn is_complete(folder: &Path) -> bool {
    is_private(folder) && folder.join(COMPLETE_MARK).is_file()
}

/// Returns whether `folder` is a directory (not a symbolic link) that belongs to this user and to
/// which others cannot write.
fn is_private(folder: &Path) -> bool {
    const SHARED_WRITE_BITS: u32 = 0o022;
    fs::symlink_metadata(folder).is_ok_and(|data| {
        data.is_dir()
            && data.uid() == rustix::process::geteuid().as_raw()
            && data.mode() & SHARED_WRITE_BITS == 0
    })
}

/// Moves the build `made` to `kept` in the cache, and replaces an incomplete build there. Keeps a
/// complete one, which another process has put there in the meantime. Returns whether the cache has
/// a complete build.
fn install(made: &Path, kept: &Path) -> bool {
    if fs::rename(made, kept).is_ok() || is_complete(kept) {
        return true;
    }
    let _ = fs::remove_dir_all(kept);
    fs::rename(made, kept).is_ok()
}

/// Prefix of the names of folders with unfinished or temporary builds.
const BUILD_PREFIX: &str = "contend-making-";

/// Removes unfinished builds that are more than an hour old: those of killed processes.
fn remove_abandoned(root: &Path) {
    const MIN_ABANDONED_AGE: Duration = Duration::from_hours(1);
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let age = entry
            .metadata()
            .and_then(|data| data.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        let is_left = entry.file_name().to_string_lossy().starts_with(BUILD_PREFIX);
        if is_left && age.is_some_and(|age| age > MIN_ABANDONED_AGE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns a program's output as one line. Long output is cut to its first and last 200 characters,
/// since some programs print the reason first and some last.
pub fn summarize_output(text: &str) -> String {
    const MAX_HALF_CHARS: usize = 200;
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let joined = lines.join("; ");
    let byte_index = |nth: Option<(usize, char)>| nth.map_or(0, |(index, _)| index);
    let to = byte_index(joined.char_indices().nth(MAX_HALF_CHARS));
    let from = byte_index(joined.char_indices().rev().nth(MAX_HALF_CHARS - 1));
    if to < from { format!("{} … {}", &joined[..to], &joined[from..]) } else { joined }
}

/// Returns the folder for builds: the one in the user's caches, or else the scratch directory.
/// Returns `None` if there is neither, or if other users can write to the scratch directory.
fn cache_root() -> Option<PathBuf> {
    let scratch = || std::env::var_os(SCRATCH_VARIABLE).map(PathBuf::from);
    caches().or_else(|| scratch().filter(|scratch| is_private(scratch)))
}

/// Returns the folder for builds in the user's caches, and creates it if it is missing. Returns
/// `None` if the folder cannot be created or written to. Also returns `None` if another user owns
/// it or can write to it, because its files are executed.
pub fn caches() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let folder = caches.join("contend").join("probes");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let writable = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK);
    (writable.is_ok() && is_private(&folder)).then_some(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOTE: Program = Program {
        files: &[("note", "a text")],
        tools: &["sh"],
        version: "-c :",
        make: &["cp", "note", "copy"],
        environment: &[],
        is_cached: true,
    };

    /// Name of a file that tests add to the folder of a build, to recognise the build later.
    const MARKER_FILE: &str = "trace";

    fn build_note_in(root: &Path) -> (PathBuf, bool) {
        let made = NOTE.build_in(Some(root)).expect("it can be copied");
        assert!(made.folder.join("copy").is_file());
        let is_old = made.folder.join(MARKER_FILE).exists();
        fs::write(made.folder.join(MARKER_FILE), "").expect("room");
        (made.folder, is_old)
    }

    #[test]
    fn a_build_is_reused_only_if_it_is_complete_and_private() {
        let root = tempfile::tempdir().expect("a folder");
        let (folder, is_old) = build_note_in(root.path());
        assert!(folder.starts_with(root.path()) && !is_old);
        assert_eq!(build_note_in(root.path()), (folder.clone(), true));
        fs::remove_file(folder.join(COMPLETE_MARK)).expect("it is there");
        assert_eq!(build_note_in(root.path()), (folder.clone(), false));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert_eq!(build_note_in(root.path()), (folder.clone(), false));
        assert!(is_private(&folder));
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o775)).expect("it is ours");
        assert!(!is_private(root.path()));
    }

    #[test]
    fn a_build_that_is_not_cached_is_removed() {
        let made = Program { is_cached: false, ..NOTE }.build().expect("it can be copied");
        let folder = made.folder.clone();
        assert!(folder.join("copy").is_file());
        assert!(caches().is_none_or(|caches| !folder.starts_with(caches)));
        drop(made);
        assert!(!folder.exists());
    }

    #[test]
    fn the_environment_is_part_of_the_name() {
        let other = Program { environment: &[("A", "b")], ..NOTE };
        assert_ne!(other.name(), NOTE.name());
        assert_eq!(NOTE.name(), NOTE.name());
    }

    #[test]
    fn a_reason_is_kept_whether_it_comes_first_or_last() {
        assert_eq!(summarize_output(" no room \n\n at line 1\n"), "no room; at line 1");
        let long = format!("the first ü\n{}\nthe last ü\n", "ü of a trace\n".repeat(100));
        let summary = summarize_output(&long);
        assert!(
            summary.starts_with("the first ü; ü of") && summary.ends_with("trace; the last ü"),
            "{summary}"
        );
        assert_eq!(summary.chars().count(), 200 + 3 + 200);
        assert_eq!(summarize_output(&"ü".repeat(399)).chars().count(), 399);
    }
}

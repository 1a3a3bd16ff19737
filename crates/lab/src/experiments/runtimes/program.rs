//! Probes that are programs of their own: what they are made of, and how they are made where they are not yet.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::wrong;
use crate::experiment::{Attempt, SubjectError};
use crate::programs;

/// A probe in another language.
#[derive(Debug)]
pub struct Program {
    /// Its files, the probe itself first: name and text.
    pub files: &'static [(&'static str, &'static str)],
    /// The programs that make it and run it. The first tells the version of the toolchain.
    pub tools: &'static [&'static str],
    /// What the first is to be told so that it says its version.
    pub version: &'static str,
    /// What makes it, a program and its arguments, in the folder of the files; empty if it is run as it is.
    pub make: &'static [&'static str],
    /// Variables of the environment in which it is made and run.
    pub environment: &'static [(&'static str, &'static str)],
}

/// Where a program has been made.
#[derive(Debug)]
pub struct Made {
    /// The folder with its files.
    pub folder: PathBuf,
    /// It goes with this, where nothing can be kept.
    _temporary: Option<TempDir>,
}

impl Program {
    /// Why it cannot be made or run here, if so.
    pub fn missing(&self) -> Option<String> {
        programs::missing(self.tools.iter().copied())
    }

    /// Makes it, unless it has been made with this toolchain before.
    ///
    /// # Errors
    /// When there is no room, or the toolchain refuses.
    pub fn made(&self) -> Result<Made, SubjectError> {
        let kept = kept().map(|folder| folder.join(self.name()));
        if let Some(folder) = kept.as_ref().filter(|folder| folder.is_dir()) {
            return Ok(Made { folder: folder.clone(), _temporary: None });
        }
        let builder = || tempfile::Builder::new().prefix(MAKING).to_owned();
        let made = match kept.as_ref().and_then(|folder| folder.parent()) {
            Some(root) => {
                sweep(root);
                builder().tempdir_in(root)
            }
            None => builder().tempdir(),
        };
        let made = made.attempt("make a folder for a probe")?;
        self.make_in(made.path())?;
        // If another one was quicker, that one is as good.
        Ok(match kept.filter(|kept| fs::rename(made.path(), kept).is_ok() || kept.is_dir()) {
            Some(folder) => Made { folder, _temporary: None },
            None => Made { folder: made.path().to_owned(), _temporary: Some(made) },
        })
    }

    /// What it is called where it is kept: by its text and its toolchain.
    fn name(&self) -> String {
        let tool = self.tools[0];
        let version = Command::new(tool).arg(self.version).stdin(Stdio::null()).output();
        let mut hasher = DefaultHasher::new();
        (self.files, self.make).hash(&mut hasher);
        version
            .map_or_else(|_| Vec::new(), |said| [said.stdout, said.stderr].concat())
            .hash(&mut hasher);
        format!("{}-{:016x}", self.files[0].0, hasher.finish())
    }

    fn make_in(&self, folder: &Path) -> Result<(), SubjectError> {
        for (name, text) in self.files {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).attempt("make a folder for a probe")?;
            fs::write(&path, text).attempt("write a probe")?;
        }
        let Some((program, arguments)) = self.make.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        command.envs(self.environment.iter().copied());
        if caches().is_none() {
            // Whoever has no place for caches has none for those of compilers either.
            let cache = folder.join("cache");
            command.env("HOME", folder).env("XDG_CACHE_HOME", &cache).env("GOCACHE", cache);
        }
        let said = command.output().attempt(&format!("run {program}"))?;
        if said.status.success() {
            return Ok(());
        }
        let text = [said.stdout, said.stderr].concat();
        Err(wrong(format!("{program} cannot make it: {}", gist(&String::from_utf8_lossy(&text)))))
    }
}

/// What a folder is called while something is made in it.
const MAKING: &str = "contend-making-";

/// Removes what others were making when they were killed.
fn sweep(root: &Path) {
    const OLD: Duration = Duration::from_hours(1);
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let age = entry
            .metadata()
            .and_then(|data| data.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        let is_left = entry.file_name().to_string_lossy().starts_with(MAKING);
        if is_left && age.is_some_and(|age| age > OLD) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What a program says, on one line: where it is long, its beginning and its end, as some give the reason
/// first and some last.
pub fn gist(text: &str) -> String {
    const HALF: usize = 200;
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let joined = lines.join("; ");
    let place = |nth: Option<(usize, char)>| nth.map_or(0, |(place, _)| place);
    let to = place(joined.char_indices().nth(HALF));
    let from = place(joined.char_indices().rev().nth(HALF - 1));
    if to < from { format!("{} … {}", &joined[..to], &joined[from..]) } else { joined }
}

/// The variable that names a folder for what is made, where there is none for caches.
pub const SHELF: &str = "CONTEND_SHELF";

/// Where what was made is kept for later, made if need be; nowhere if that cannot be.
fn kept() -> Option<PathBuf> {
    caches().or_else(|| std::env::var_os(SHELF).map(PathBuf::from).filter(|shelf| shelf.is_dir()))
}

/// The user's own caches, if they can be written.
pub fn caches() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let folder = caches.join("contend").join("probes");
    fs::create_dir_all(&folder).ok()?;
    let writable = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK);
    writable.is_ok().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_kept_whether_it_comes_first_or_last() {
        assert_eq!(gist(" no room \n\n at line 1\n"), "no room; at line 1");
        let long = format!("the first ü\n{}\nthe last ü\n", "ü of a trace\n".repeat(100));
        let gist = gist(&long);
        assert!(
            gist.starts_with("the first ü; ü of") && gist.ends_with("trace; the last ü"),
            "{gist}"
        );
        assert_eq!(gist.chars().count(), 200 + 3 + 200);
        assert_eq!(super::gist(&"ü".repeat(399)).chars().count(), 399);
    }
}

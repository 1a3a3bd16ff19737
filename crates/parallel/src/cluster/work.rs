//! The work directory of a job: its plan, and the outputs and reports of attempts.

mod store;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use contend_record::shell::quote;
use rustix::fs::{FlockOperation, flock, fsync, statvfs};
use rustix::io::Errno;

pub use self::store::Place;
use self::store::SCRATCH;
use super::attempt::checksum;
use super::engine::batch_of;
use super::report::{OutputFile, PartReport};
use crate::objects::Prefix;

/// Name of the file with the job.
const JOB: &str = "job.json";
/// Name of the file with the script by which a person starts the job.
const SCRIPT: &str = "submit.sh";
/// Name of the file that the driver locks.
const LOCK: &str = "lock";
/// Beginning of the names of files with the parts that a batch has to run.
const TODO: &str = "todo.";
/// Beginning of the names of files with the inputs of a combination.
const INPUTS: &str = "inputs.";
/// Beginning of the names of directories in which tasks note the parts that they have taken.
const TAKEN: &str = "taken.";
/// Beginning of the names of work directories, which `ls` and patterns of a shell leave out.
const PREFIX: &str = ".contend-";
/// Free space in bytes below which attempts may fail for want of it.
const SCARCE_BYTES: u64 = 1 << 20;
/// Number of tries to remove a directory in which attempts may still create files.
const REMOVALS: u32 = 20;
/// Time between two tries.
const REMOVAL_PAUSE: Duration = Duration::from_millis(100);

/// A directory that all machines can read and write, for one job.
///
/// It has these files, for an attempt A at task I:
///
/// - `job.json`: the [`Job`](super::Job).
/// - `todo.B`: the indices of the tasks that batch B has to run, one in each line.
/// - `inputs.I`: the outputs that a combination combines.
/// - `I.A.tmp`: the output of an attempt that is running or was killed.
/// - `I.A.part`: the output of an attempt that is complete.
/// - `I.A.json`: the [`PartReport`] of an attempt that has ended.
/// - `I.A.log`: what an attempt and its commands wrote to standard error.
///
/// The machines may share a store of objects instead. Then `inputs.I`, and the files of attempts that have ended, are objects
/// there, and the directory has those of them that this machine has written or read. Logs stay where attempts run; an object
/// `I.A.log`, which is empty, says that the attempt has begun.
#[derive(Debug, Clone)]
pub struct Work {
    path: PathBuf,
    /// The prefix of the objects in the store; `None` if all machines share the directory.
    store: Option<Prefix>,
    /// What has become of the store.
    state: Arc<State>,
}

/// What has become of a store.
#[derive(Debug, Default)]
struct State {
    /// Whether there may be objects in it.
    is_used: AtomicBool,
    /// Whether it could not be used for so long that the job is to be continued later.
    is_kept: AtomicBool,
}

/// The reports that have been read from a work directory.
#[derive(Debug, Default)]
pub struct Seen(HashSet<(usize, u64)>);

impl Seen {
    /// Makes a report be read again.
    pub fn forget(&mut self, report: &PartReport) {
        self.0.remove(&(report.part, report.attempt));
    }
}

impl Work {
    /// Creates an empty work directory in `parent`, which only this user can read.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
        let folder = builder.tempdir_in(parent.canonicalize()?)?;
        Ok(Self::at(&folder.keep()))
    }

    /// Creates a work directory with the given path, which only this user can read.
    ///
    /// # Errors
    /// Returns an error if it exists or cannot be created.
    pub fn create_at(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        Ok(Self::at(&path.canonicalize()?))
    }

    /// Returns the work directory at a path, which may not exist.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), store: None, state: Arc::default() }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a sentence about why a job in this directory may not be the user's own; `None` if it is.
    ///
    /// A job determines which programs run. So only the user and root may own its directory and file, or write to them.
    pub fn doubt(&self) -> Option<String> {
        let user = rustix::process::geteuid().as_raw();
        let is_own = |data: &Metadata| [user, 0].contains(&data.uid()) && data.mode() & 0o022 == 0;
        let job = self.job_file();
        // What does not exist is an error later.
        let (folder, file) = (fs::metadata(&self.path).ok()?, fs::symlink_metadata(&job).ok()?);
        if !file.is_file() {
            return Some(format!("{} is not a regular file", job.display()));
        }
        let doubtful = [(&self.path, folder), (&job, file)].into_iter().find(|(_, it)| !is_own(it));
        doubtful.map(|(path, _)| format!("other users may write to {}", path.display()))
    }

    /// Takes the directory, so that no other driver runs its job at the same time. It is free again once the returned file is
    /// closed.
    ///
    /// # Errors
    /// Returns an error of the kind [`io::ErrorKind::WouldBlock`] if another driver runs the job, or another one if the
    /// file for the lock cannot be opened.
    pub fn take(&self) -> io::Result<File> {
        // NFS needs a file that is open for writing.
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(self.path.join(LOCK))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Some file systems have no locks.
            Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(file),
            Err(Errno::WOULDBLOCK) => {
                Err(io::Error::new(io::ErrorKind::WouldBlock, "another contend is running it"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether the file system of the directory has hardly any room left, as far as that is known.
    pub fn is_full(&self) -> bool {
        statvfs(&self.path).is_ok_and(|found| found.f_bavail * found.f_frsize < SCARCE_BYTES)
    }

    /// Makes a network file system read the directory again instead of using its cache.
    pub fn refresh(&self) {
        // A client of NFS drops its cached listing when it changes the directory itself. If that fails, reports appear later.
        let _ = tempfile::Builder::new().prefix(".refresh-").tempfile_in(&self.path);
    }

    /// Returns the path of the file with the job.
    pub fn job_file(&self) -> PathBuf {
        self.path.join(JOB)
    }

    /// Returns the path of the log of an attempt.
    pub fn log_file(&self, part: usize, attempt: u64) -> PathBuf {
        self.path.join(log_name(part, attempt))
    }

    /// Writes the list of the tasks that a batch has to run.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write_todo(&self, tasks: &[usize], batch: u32) -> io::Result<()> {
        let lines: Vec<String> = tasks.iter().map(|task| format!("{task}\n")).collect();
        fs::write(self.path.join(format!("{TODO}{batch}")), lines.concat())
    }

    /// Writes the list of the outputs that a combination combines, instead of an earlier list.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write_inputs(&self, task: usize, outputs: &[&OutputFile]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".inputs-").tempfile_in(&self.path)?;
        serde_json::to_writer(&mut file, outputs)?;
        // Attempts that still run may read the earlier list.
        let name = format!("{INPUTS}{task}");
        file.persist(self.path.join(&name)).map_err(|error| error.error)?;
        self.publish(&name)
    }

    /// Returns the outputs that a combination combines.
    ///
    /// # Errors
    /// Returns an error if there is no list of them.
    pub fn inputs(&self, task: usize) -> io::Result<Vec<OutputFile>> {
        let name = format!("{INPUTS}{task}");
        self.fetch(&name)?;
        Ok(serde_json::from_slice(&fs::read(self.path.join(name))?)?)
    }

    /// Writes the script by which a person starts the job with an engine. [`Self::remove`] then keeps the job.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write_script(&self, text: &str, engine: &str, words: &[String]) -> io::Result<()> {
        let comment: Vec<String> = text.lines().map(|line| format!("#   {line}\n")).collect();
        let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
        let script = format!(
            "#!/bin/sh\n\
             # Starts the parts of a job of contend, with {engine}:\n\
             #\n\
             {}\
             #\n\
             # When its tasks have ended, this runs the parts that are missing, and combines the outputs:\n\
             #\n\
             #   contend run --resume {}\n\
             exec {}\n",
            comment.concat(),
            quote(&self.path.display().to_string()),
            words.join(" \\\n  ")
        );
        fs::write(self.path.join(SCRIPT), script)
    }

    /// Returns the reports that have appeared since the last call with the same `seen`, in no particular order. Files
    /// that are no reports are left out.
    ///
    /// # Errors
    /// Returns an error if the directory or a report cannot be read.
    pub fn new_reports(&self, seen: &mut Seen) -> io::Result<Vec<PartReport>> {
        self.fetch_reports()?;
        let mut reports = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let Some((part, attempt, "json")) = attempt_in(&name) else { continue };
            if seen.0.contains(&(part, attempt)) {
                continue;
            }
            // A file that is no report may become one: on a network file system, it may be seen too early.
            let report = serde_json::from_slice(&fs::read(self.path.join(&name))?).ok();
            let is_own = |it: &PartReport| (it.part, it.attempt) == (part, attempt);
            reports.extend(report.filter(is_own));
        }
        seen.0.extend(reports.iter().map(|report| (report.part, report.attempt)));
        Ok(reports)
    }

    /// Returns the largest number of an attempt of which there is a file; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn last_attempt(&self) -> io::Result<Option<u64>> {
        self.largest(|name| attempt_in(name).map(|(_, attempt, _)| attempt))
    }

    /// Returns the number of a batch that no attempt, and no list of parts, belongs to, nor to a later one.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn next_batch(&self) -> io::Result<u32> {
        let of_list = |name: &OsStr| name.to_str()?.strip_prefix(TODO)?.parse::<u32>().ok();
        let of_attempt = |name: &OsStr| attempt_in(name).map(|(_, attempt, _)| batch_of(attempt));
        let last = self.largest(|name| of_list(name).or_else(|| of_attempt(name)))?;
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    /// Returns the largest number that `number` finds in the name of a file.
    fn largest<N: Ord>(&self, number: impl Fn(&OsStr) -> Option<N>) -> io::Result<Option<N>> {
        let mut largest = None;
        for entry in fs::read_dir(&self.path)? {
            largest = largest.max(number(&entry?.file_name()));
        }
        Ok(largest)
    }

    /// Returns whether there is a file of an attempt of a batch.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn has_attempts(&self, batch: u32) -> io::Result<bool> {
        Ok(self.last_attempt()?.is_some_and(|last| batch_of(last) >= batch))
    }

    /// Returns the indices of the parts of which there is a file of an attempt of a batch.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn parts_of(&self, batch: u32) -> io::Result<HashSet<usize>> {
        let mut parts = HashSet::new();
        for entry in fs::read_dir(&self.path)? {
            let part = attempt_in(&entry?.file_name())
                .and_then(|(part, attempt, _)| (batch_of(attempt) == batch).then_some(part));
            parts.extend(part);
        }
        Ok(parts)
    }

    /// Returns the end of the log of the last attempt at a part; `None` if there is none, or it is empty. `bytes` is the
    /// length of the end.
    pub fn last_log(&self, part: usize, bytes: usize) -> Option<String> {
        let entries = fs::read_dir(&self.path).ok()?.flatten();
        let attempts = entries.filter_map(|entry| match attempt_in(&entry.file_name()) {
            Some((of, attempt, "log")) if of == part => Some(attempt),
            _ => None,
        });
        end_of_file(&self.log_file(part, attempts.max()?), bytes)
    }

    /// Returns the path of an output if the file has the size that was reported.
    fn found(&self, output: &OutputFile) -> Result<PathBuf, String> {
        let OutputFile { file: name, bytes, .. } = output;
        if name.contains('/') {
            return Err(format!("its output is called {name}"));
        }
        let path = self.path.join(name);
        if !path.exists() {
            self.fetch(name).map_err(unreadable)?;
        }
        // On NFS, what is known of a file may be old until it is opened.
        let found = File::open(&path).and_then(|file| file.metadata()).map_err(unreadable)?.len();
        if found != *bytes {
            return Err(format!("its output has {found} bytes instead of {bytes}"));
        }
        Ok(path)
    }

    /// Returns the path of an output if the file has the size and the checksum that were reported.
    ///
    /// # Errors
    /// Returns a sentence for users if the file cannot be read, or has another size or checksum.
    pub fn verified(&self, output: &OutputFile) -> Result<PathBuf, String> {
        let verified = self.found(output).and_then(|path| {
            let mut file = File::open(&path).map_err(unreadable)?;
            if checksum(&mut file).map_err(unreadable)? != output.checksum {
                return Err("its output has another checksum than reported".to_owned());
            }
            Ok(path)
        });
        if verified.is_err() && self.store.is_some() && !output.file.contains('/') {
            // The copy may be what is wrong.
            let _ = fs::remove_file(self.path.join(&output.file)); // it may not exist
        }
        verified
    }

    /// Removes what is in the store, and then the directory with everything in it. If the directory has a script for a person, removes only what attempts have left. If
    /// attempts still create files there, tries again.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be removed. If the store cannot be emptied, the directory stays, too.
    pub fn remove(&self) -> io::Result<()> {
        if let (Some(store), true) = (&self.store, self.state.is_used.load(Ordering::Relaxed)) {
            let removed = store.remove();
            removed
                .map_err(|error| io::Error::other(format!("its objects in {store}: {error}")))?;
        }
        let mut result = Ok(());
        for _ in 0..REMOVALS {
            let has_script = self.path.join(SCRIPT).exists();
            let removed =
                if has_script { self.remove_outputs() } else { fs::remove_dir_all(&self.path) };
            result = match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            };
            if result.is_ok() {
                break;
            }
            thread::sleep(REMOVAL_PAUSE);
        }
        result
    }

    /// Removes what attempts and engines have left.
    fn remove_outputs(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let removed = if entry.file_type()?.is_dir() {
                let name = name.as_encoded_bytes();
                let is_left = name.starts_with(TAKEN.as_bytes()) || name == SCRATCH.as_bytes();
                if is_left { fs::remove_dir_all(entry.path()) } else { Ok(()) }
            } else if is_of_attempt(&name) || name.to_str().is_some_and(is_of_engine) {
                fs::remove_file(entry.path())
            } else {
                Ok(())
            };
            match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }
}

/// Writes the entries of a directory to disk, if its file system can do that.
///
/// # Errors
/// Returns an error if the directory cannot be opened or written.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    match fsync(File::open(path)?) {
        Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the text of the last `bytes` bytes of a file; `None` if it cannot be read or is blank.
pub(super) fn end_of_file(path: &Path, bytes: usize) -> Option<String> {
    let text = fs::read(path).ok()?;
    let end = &text[text.len().saturating_sub(bytes)..];
    Some(String::from_utf8_lossy(end).trim_end().to_owned()).filter(|end| !end.is_empty())
}

/// Says that an output cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` calls it")]
fn unreadable(error: io::Error) -> String {
    format!("its output cannot be read: {error}")
}

/// Returns the name of the log of an attempt.
fn log_name(part: usize, attempt: u64) -> String {
    format!("{part}.{attempt}.log")
}

/// Returns whether a file is one that an engine or the driver has left.
fn is_of_engine(name: &str) -> bool {
    let of_slurm = name.strip_prefix("slurm.").and_then(|rest| rest.rsplit_once('.'));
    let is_of_slurm = of_slurm.is_some_and(|(_, end)| ["log", "id"].contains(&end));
    let is_of_later_batch = name.strip_prefix(TODO).is_some_and(|batch| batch != "0");
    is_of_slurm
        || is_of_later_batch
        || name.starts_with(INPUTS)
        || name == "spark.log"
        || name == LOCK
}

/// Returns whether a file is one of an attempt.
fn is_of_attempt(name: &OsStr) -> bool {
    attempt_in(name).is_some_and(|(_, _, end)| ["tmp", "part", "json", "log"].contains(&end))
}

/// Returns the part, the attempt and the extension in the name of a file of an attempt; `None` for other names.
fn attempt_in(name: &OsStr) -> Option<(usize, u64, &str)> {
    let mut words = name.to_str()?.splitn(3, '.');
    let (part, attempt, extension) = (words.next()?, words.next()?, words.next()?);
    Some((part.parse().ok()?, attempt.parse().ok()?, extension))
}

#[cfg(test)]
mod tests {
    use super::super::report::End;
    use super::*;

    fn report(end: End) -> PartReport {
        PartReport { part: 3, attempt: 1, end, ..PartReport::default() }
    }

    #[test]
    fn each_report_is_returned_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = Work::create(folder.path()).expect("room");
        let mut seen = Seen::default();
        assert_eq!(work.new_reports(&mut seen).expect("a directory"), []);
        let report = report(End::Refused("why".to_owned()));
        report.write(work.path()).expect("room");
        fs::write(work.path().join("4.1.json"), "{").expect("room");
        fs::write(work.path().join("job.json"), "{}").expect("room");
        let other = serde_json::to_string(&report).expect("JSON");
        fs::write(work.path().join("5.1.json"), other).expect("room");
        assert_eq!(work.new_reports(&mut seen).expect("a directory"), [report]);
        assert_eq!(work.new_reports(&mut seen).expect("a directory"), []);
    }

    #[test]
    fn files_of_attempts_are_found_by_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = Work::create(folder.path()).expect("room");
        assert_eq!(work.last_attempt().expect("a directory"), None);
        assert_eq!(work.last_log(1, 100), None);
        for (name, text) in
            [("1.2.log", "old"), ("1.11.log", "line\nnew\n"), ("0.12.tmp", ""), ("x.99.log", "")]
        {
            fs::write(work.path().join(name), text).expect("room");
        }
        assert_eq!(work.last_attempt().expect("a directory"), Some(12));
        assert_eq!(work.next_batch().expect("a directory"), 1);
        // A batch that has been submitted may begin later.
        work.write_todo(&[0, 1], 4).expect("room");
        assert_eq!(work.next_batch().expect("a directory"), 5);
        assert!(work.has_attempts(0).expect("a directory"));
        assert!(!work.has_attempts(1).expect("a directory"));
        assert_eq!(work.last_log(1, 100).as_deref(), Some("line\nnew"));
        assert_eq!(work.last_log(1, 5).as_deref(), Some("\nnew"));
        assert_eq!(work.last_log(0, 100), None);
    }

    #[test]
    fn an_output_that_is_not_as_reported_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = Work::create(folder.path()).expect("room");
        let hash = xxhash_rust::xxh3::xxh3_128(b"text");
        let complete = |file: &str, bytes, hash: u128| {
            let checksum = format!("{hash:032x}");
            work.verified(&OutputFile { file: file.to_owned(), bytes, checksum })
        };
        fs::write(work.path().join("3.1.part"), "text").expect("room");
        let path = complete("3.1.part", 4, hash).expect("it is as reported");
        assert_eq!(fs::read_to_string(path).expect("text"), "text");
        assert!(complete("3.1.part", 5, hash).unwrap_err().contains("4 bytes instead of 5"));
        assert!(complete("3.1.part", 4, hash + 1).unwrap_err().contains("checksum"));
        assert!(complete("3.2.part", 4, hash).unwrap_err().contains("cannot be read"));
        assert!(complete("../3.1.part", 4, hash).unwrap_err().contains("called"));
    }

    #[test]
    fn a_work_directory_is_private_and_removed_with_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let [work, other] = [(); 2].map(|()| Work::create(folder.path()).expect("room"));
        assert_ne!(work.path(), other.path());
        let mode = work.path().metadata().expect("a directory").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(work.path().join("0.1.tmp"), "").expect("room");
        work.remove().expect("own directory");
        assert!(!work.path().exists());
        work.remove().expect("it is gone");
    }
}

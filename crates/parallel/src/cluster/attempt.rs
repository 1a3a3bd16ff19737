//! An attempt at a task of a job, on the machine of the worker.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use contend_record::Writer;
use contend_sys::cpu;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use xxhash_rust::xxh3::Xxh3;

use super::job::{Job, JobFile};
use super::locales;
use super::programs;
use super::report::{End, OutputFile, PartReport};
use super::work::{Work, sync_directory};
use crate::execute::parts::{self, PartEnd};
use crate::execute::{ExecuteError, Launcher, Local, Settings, Tally};
use crate::objects::Opened;
use crate::plan::ir::Combine;

/// Number of bytes that are read at once for a checksum.
const BLOCK_BYTES: usize = 256 << 10;

/// An attempt at a task of a job: at a part, or at a combination.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The job.
    pub job: &'a Job,
    /// The index of the task.
    pub part: usize,
    /// The number of the attempt, which no other attempt at this task may have.
    pub attempt: u64,
    /// The work directory, which all machines can read and write.
    pub work: &'a Work,
}

/// Why an attempt failed. Another one, perhaps on another machine, may succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    /// The job has no such task.
    #[error("the job has {count} tasks, and none with the index {task}")]
    NoTask {
        /// The requested index.
        task: usize,
        /// The number of tasks.
        count: usize,
    },
    /// The worker's contend is not that of the job.
    #[error("the job was planned by {planned}, and this is {own}")]
    Version {
        /// The version that planned the job.
        planned: Writer,
        /// The version of the worker.
        own: Writer,
    },
    /// The worker has other programs, or another C library, than the machine that planned the job.
    #[error("this machine does not fit the job: {0}")]
    Machine(String),
    /// A file cannot be read.
    #[error("cannot read {file}")]
    Input {
        /// The name of the file.
        file: String,
        /// Why that failed.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot write {}", path.display())]
    Output {
        /// The path of the file.
        path: PathBuf,
        /// Why that failed.
        source: io::Error,
    },
    /// The commands cannot be run.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

impl Attempt<'_> {
    /// Runs the task, and writes a report into the work directory, also if the attempt fails. `own` is the version of
    /// this contend, and `host` the name of this machine. The current directory must be that of the job.
    ///
    /// # Errors
    /// Returns an error if the report cannot be written.
    pub fn run_and_report(
        &self,
        own: &Writer,
        host: String,
        settings: Settings,
        launcher: &Launcher,
    ) -> io::Result<PartReport> {
        let begun = Instant::now();
        self.work.announce(self.part, self.attempt)?;
        let tally = Tally::default();
        let end = self.run(own, settings, launcher, &tally);
        let end = end.unwrap_or_else(|error| End::Failed(message(&error)));
        let stages = tally.stages().into_iter();
        let report = PartReport {
            part: self.part,
            attempt: self.attempt,
            host,
            end,
            stages: stages.map(|(stage, tally)| (stage, tally.into())).collect(),
            wall_seconds: begun.elapsed().as_secs_f64(),
            ended_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
        };
        let name = report.write(self.work.path())?;
        self.work.publish(&name)?;
        Ok(report)
    }

    /// Runs the task. Its output appears under its name once it is complete and on disk.
    ///
    /// # Errors
    /// Returns an error if the attempt failed for a reason other than the commands and their input. It then leaves no
    /// file.
    fn run(
        &self,
        own: &Writer,
        settings: Settings,
        launcher: &Launcher,
        tally: &Tally,
    ) -> Result<End, AttemptError> {
        let Job { contend, parts, .. } = self.job;
        if contend != own {
            return Err(AttemptError::Version { planned: contend.clone(), own: own.clone() });
        }
        self.check_machine()?;
        let local = Local { settings, launcher, tally, prefix: Mutex::default() };
        match (parts.get(self.part), self.job.inputs_of(self.part)) {
            (Some(range), _) => self.run_part(range, &local),
            (None, Some(_)) => self.combine(&local),
            (None, None) => {
                let count = self.job.task_count();
                Err(AttemptError::NoTask { task: self.part, count })
            }
        }
    }

    /// Runs a part, which is a range of the concatenated files.
    fn run_part(&self, range: &Range<u64>, local: &Local<'_>) -> Result<End, AttemptError> {
        let Job { group, files, .. } = self.job;
        let sizes: Vec<u64> = files.iter().map(|file| file.bytes).collect();
        let part = match parts::of_part(group) {
            Ok(part) => part,
            Err(why) => return Ok(End::Refused(why.to_owned())),
        };
        let output = Output::create(self)?;
        let used = RefCell::new(0..0);
        let open = |indices: Range<usize>| {
            used.replace(indices.clone());
            files[indices].iter().map(|file| self.open(file)).collect()
        };
        let ended = local.run_part(&part, &sizes, range.clone(), &open, output.writer()?);
        // The files must not have changed before the run, nor during it.
        if let Some(why) = self.changed_file(&files[used.take()])? {
            return Ok(End::Refused(why));
        }
        match ended {
            Ok(PartEnd::Complete) => match self.failed_merge(local.tally) {
                Some(why) => Ok(End::Failed(why)),
                None => output.keep(),
            },
            Ok(PartEnd::NoRecord) => Ok(End::NoRecord),
            Ok(PartEnd::Failed(why)) => Ok(End::Failed(why)),
            Ok(PartEnd::Refused(why)) => Ok(End::Refused(why)),
            Ok(PartEnd::CommandFailed(why)) => Ok(End::CommandFailed(why)),
            Err(ExecuteError::Failed { stderr, .. }) => {
                let message = String::from_utf8_lossy(&stderr);
                Ok(End::CommandFailed(format!("a command failed: {}", message.trim_end())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Combines outputs of other tasks.
    fn combine(&self, local: &Local<'_>) -> Result<End, AttemptError> {
        let inputs = self.work.inputs(self.part);
        let inputs = inputs.map_err(|source| AttemptError::Input {
            file: "the list of the outputs to combine".to_owned(),
            source,
        })?;
        let mut paths = Vec::new();
        for input in inputs {
            match self.work.verified(&input) {
                Ok(path) => paths.push(path),
                Err(why) => return Ok(End::BadInput { file: input.file, why }),
            }
        }
        if paths.is_empty() {
            return Ok(End::NoRecord);
        }
        let output = Output::create(self)?;
        local.combine_parts(&self.job.group, &paths, output.writer()?)?;
        paths
            .iter()
            .filter_map(|path| path.file_name()?.to_str())
            .for_each(|it| self.work.forget(it));
        match self.failed_merge(local.tally) {
            Some(why) => Ok(End::Failed(why)),
            None => output.keep(),
        }
    }

    /// Returns a sentence if the command that merges sorted lines has failed. It would fail in the same way over any lines, so
    /// that the cause is this machine.
    fn failed_merge(&self, tally: &Tally) -> Option<String> {
        let Combine::Merge(merge) = &self.job.group.combine else { return None };
        let status = tally.stages().get(&merge.command.stage)?.status;
        (status != 0).then(|| format!("merging sorted lines failed with exit code {status}"))
    }

    /// Checks that the programs, their locales and the C library are those of the job.
    fn check_machine(&self) -> Result<(), AttemptError> {
        let Job { group, programs, locales, libc, .. } = self.job;
        let programs = || programs::difference(programs, &programs::programs_of(group));
        let locales = || locales::difference(locales, &locales::locales_of(group));
        if let Some(why) = programs().or_else(locales) {
            return Err(AttemptError::Machine(why));
        }
        let own = cpu::libc_version();
        if own != *libc {
            let why = format!("its C library is {own}, and not {libc}");
            return Err(AttemptError::Machine(why));
        }
        Ok(())
    }

    /// Opens a file of the job, and returns it with its name.
    fn open(&self, file: &JobFile) -> Result<(String, Opened), ExecuteError> {
        let cannot = |source| ExecuteError::Open { file: file.name.clone(), source };
        let opened = JobFile::open(&file.name, &self.job.directory);
        let (found, opened) = opened.map_err(cannot)?;
        if found != *file {
            return Err(cannot(io::Error::other("it has changed since the job was planned")));
        }
        Ok((found.name, opened))
    }

    /// Returns a sentence about one of the given files, or about one that a command names, if it is not that of the job
    /// any more, as far as its size and time tell; `None` if there is none. Another attempt would find the same.
    fn changed_file(&self, files: &[JobFile]) -> Result<Option<String>, AttemptError> {
        for file in files.iter().chain(&self.job.named) {
            let name = || file.name.clone();
            let found = JobFile::examine(&file.name, &self.job.directory);
            if found.map_err(|source| AttemptError::Input { file: name(), source })? != *file {
                return Ok(Some(format!("{} has changed since the job was planned", name())));
            }
        }
        Ok(None)
    }
}

/// Returns the message of an error with its causes.
pub(super) fn message(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The output of an attempt. Its file is removed when the value is dropped, unless it is kept.
struct Output<'a> {
    file: File,
    hidden: PathBuf,
    name: String,
    work: &'a Work,
    is_kept: bool,
}

impl<'a> Output<'a> {
    fn create(attempt: &Attempt<'a>) -> Result<Self, AttemptError> {
        let name = format!("{}.{}.part", attempt.part, attempt.attempt);
        let work = attempt.work;
        let hidden = work.path().join(format!("{}.{}.tmp", attempt.part, attempt.attempt));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&hidden);
        let file = file.map_err(|source| AttemptError::Output { path: hidden.clone(), source })?;
        Ok(Self { file, hidden, name, work, is_kept: false })
    }

    fn writer(&self) -> Result<File, AttemptError> {
        self.file.try_clone().map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> AttemptError {
        AttemptError::Output { path: self.hidden.clone(), source }
    }

    /// Writes the file to disk, gives it its name, and copies it to the store, if there is one.
    fn keep(mut self) -> Result<End, AttemptError> {
        let mut keep = || {
            self.file.sync_all()?;
            let bytes = self.file.metadata()?.len();
            io::Seek::rewind(&mut self.file)?;
            let checksum = checksum(&mut self.file)?;
            rename_to_new(&self.hidden, &self.work.path().join(&self.name))?;
            self.is_kept = true;
            sync_directory(self.work.path())?;
            self.work.publish(&self.name)?;
            self.work.forget(&self.name);
            Ok(End::Complete(OutputFile { file: self.name.clone(), bytes, checksum }))
        };
        let kept = keep();
        kept.map_err(|source| self.error(source))
    }
}

/// Renames a file to a name that does not exist, as far as the file system can tell.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot do that. Numbers of attempts differ, so that there is no such file.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.hidden); // the work directory is removed at the end, too
        }
    }
}

/// Returns the checksum of the rest of a file: XXH3 with 128 bits, in hexadecimal digits.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn checksum(file: &mut File) -> io::Result<String> {
    let mut hash = Xxh3::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(format!("{:032x}", hash.digest128())),
            Ok(read) => hash.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::super::job::{Divider, Written};
    use super::*;
    use crate::plan::ir::Plan;
    use crate::plan::testing::planned;

    /// Plans a pipeline, after replacing each `@` in its text with the path of a folder.
    pub fn plan(folder: &Path, text: &str) -> Plan {
        let text = text.replace('@', &folder.display().to_string());
        planned(&text)
    }

    /// Returns the job of a pipeline, after writing its files into a folder.
    pub fn job(folder: &Path, text: &str, files: &[(&str, &str)], count: u64) -> Job {
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("room");
        }
        let plan = plan(folder, text);
        let (written, directory) = (Written::default(), folder.to_owned());
        Job::new(&written, &plan, divider(count), Writer::default(), directory).expect("a job")
    }

    /// Returns a divider into a number of parts, which the driver can combine.
    pub fn divider(count: u64) -> Divider<impl FnOnce(u64) -> u64> {
        Divider { count: move |_| count, fan_in: None }
    }
}

#[cfg(test)]
mod tests {
    use contend_shell::environment::Paths;
    use contend_sys::interrupt::Signals;

    use super::testing::job;
    use super::*;

    fn run(job: &Job, part: usize, attempt: u64, work: &Path) -> io::Result<PartReport> {
        let signals = Signals::block().expect("signals");
        let launcher = Launcher::new(signals.mask_before(), Paths::new(), Vec::new());
        let settings =
            Settings { jobs: 2, memory: 64 << 20, chunk_bytes: Some(8), folder: work.to_owned() };
        let attempt = Attempt { job, part, attempt, work: &Work::at(work) };
        attempt.run_and_report(&Writer::default(), "host".to_owned(), settings, &launcher)
    }

    fn output_of(report: PartReport) -> OutputFile {
        match report.end {
            End::Complete(output) => output,
            other => panic!("{other:?}"),
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn each_part_has_an_output_and_a_report() {
        let [folder, work] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let files = [("one", "b\na\n"), ("two", "x\nb\nno\nbb\n")];
        let job = job(folder.path(), "cat @/one @/two | grep b", &files, 3);
        assert_eq!(job.parts.len(), 3);
        let mut text = String::new();
        for part in 0..3 {
            let report = run(&job, part, 7, work.path()).expect("it runs");
            let json = fs::read_to_string(work.path().join(format!("{part}.7.json")));
            let json = json.expect("a report");
            assert_eq!(serde_json::from_str::<PartReport>(&json).expect("a report"), report);
            let found = report.stages.values().any(|stage| stage.exit_code == 0);
            let OutputFile { file, bytes, checksum } = output_of(report);
            assert_eq!(file, format!("{part}.7.part"));
            let output = fs::read_to_string(work.path().join(file)).expect("a file");
            assert_eq!(bytes, output.len() as u64);
            let hash = xxhash_rust::xxh3::xxh3_128(output.as_bytes());
            assert_eq!(checksum, format!("{hash:032x}"));
            assert!(found || output.is_empty(), "{output}");
            text += &output;
        }
        assert_eq!(text, "b\nb\nbb\n");
        let outputs = ["0.7.json", "0.7.part", "1.7.json", "1.7.part", "2.7.json", "2.7.part"];
        assert_eq!(names(work.path()), outputs);
    }

    #[test]
    fn attempts_do_not_disturb_each_other() {
        let [folder, work] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let job = job(folder.path(), "tr a-z A-Z <@/in", &[("in", "a\nb\n")], 1);
        let reports = std::thread::scope(|scope| {
            let attempts = [1, 2].map(|attempt| {
                let (job, work) = (&job, work.path());
                scope.spawn(move || run(job, 0, attempt, work).expect("it runs"))
            });
            attempts.map(|attempt| attempt.join().expect("no panic"))
        });
        let checksums = reports.map(|report| output_of(report).checksum);
        assert_eq!(checksums[0], checksums[1]);
        assert_eq!(names(work.path()), ["0.1.json", "0.1.part", "0.2.json", "0.2.part"]);
        assert!(run(&job, 0, 2, work.path()).is_err(), "there is a report of this attempt");
    }

    #[test]
    fn a_part_that_cannot_run_alone_is_refused_and_leaves_nothing() {
        let [folder, work] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let mut job = job(folder.path(), "tr a-z A-Z <@/in", &[("in", "a\nb")], 2);
        job.group.guard.terminated = true;
        let report = run(&job, 1, 0, work.path()).expect("it runs");
        assert!(matches!(&report.end, End::Refused(why) if !why.is_empty()), "{report:?}");
        assert_eq!(names(work.path()), ["1.0.json"]);
    }

    #[test]
    fn a_combination_is_like_one_part() {
        let [folder, work] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let files = [("in", "b\na\nb\nc\na\nb\n")];
        let mut job = job(folder.path(), "sort <@/in | uniq -c", &files, 3);
        job.combinations = vec![0..2, 2..3];
        let outputs =
            [0, 1].map(|part| output_of(run(&job, part, 0, work.path()).expect("it runs")));
        let of = |attempt, outputs: &[&OutputFile]| {
            Work::at(work.path()).write_inputs(3, outputs).expect("room");
            run(&job, 3, attempt, work.path()).expect("it runs").end
        };
        let End::Complete(combined) = of(0, &[&outputs[0], &outputs[1]]) else { panic!() };
        let text = fs::read_to_string(work.path().join(combined.file)).expect("text");
        assert_eq!(text, "      1 a\n      2 b\n      1 c\n");
        assert_eq!(of(1, &[]), End::NoRecord, "no record begins in its parts");
        fs::write(work.path().join(&outputs[1].file), "      2 x\n").expect("own file");
        let bad = of(2, &[&outputs[0], &outputs[1]]);
        let End::BadInput { file, why } = &bad else { panic!("{bad:?}") };
        assert_eq!(*file, outputs[1].file);
        assert!(why.contains("bytes instead of") || why.contains("checksum"), "{why}");
        let left = names(work.path());
        assert!(!left.iter().any(|name| name.contains(".tmp")), "{left:?}");
    }

    #[test]
    fn trouble_with_the_worker_is_reported() {
        let [folder, work] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let files = [("in", "a\nb\n")];
        let job = job(folder.path(), "tr a-z A-Z <@/in", &files, 1);
        let mut attempt = 0;
        let mut fails = |job: &Job, part: usize, expected: &str| {
            attempt += 1;
            let report = run(job, part, attempt, work.path()).expect("room for the report");
            let End::Failed(why) = report.end else { panic!("{report:?}") };
            assert!(why.contains(expected), "{why}");
        };
        fails(&job, 1, "the job has 1 tasks, and none with the index 1");
        let other = Writer { version: "0.0.1".to_owned(), ..Writer::default() };
        fails(&Job { contend: other, ..job.clone() }, 0, "planned by contend 0.0.1");
        let mut other = job.clone();
        other.programs.insert("tr".to_owned(), Some("0".to_owned()));
        fails(&other, 0, "does not fit the job: tr is another version");
        fails(&Job { libc: "other".to_owned(), ..job.clone() }, 0, "its C library is ");
        fs::write(folder.path().join("in"), "a\nb\nc\n").expect("own file");
        let report = run(&job, 0, 50, work.path()).expect("room for the report");
        let End::Refused(why) = report.end else { panic!("{report:?}") };
        assert!(why.ends_with("in has changed since the job was planned"), "{why}");
        fs::remove_file(folder.path().join("in")).expect("own file");
        fails(&job, 0, "No such file or directory");
        let names = names(work.path());
        assert!(names.len() == 6 && names.iter().all(|it| it.contains(".json")), "{names:?}");
        assert!(run(&job, 0, 0, &folder.path().join("no folder")).is_err());
    }
}

//! A job: a group that runs over parts of its files, as plain data in a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use contend_record::Writer;
use contend_sys::cpu;
use serde::{Deserialize, Serialize};

use super::programs::{Programs, programs_of};
use crate::execute::parts;
use crate::plan::classes::LOCALE_VARIABLES;
use crate::plan::ir::{Group, Plan, Source, Stage, Step};

/// Name and version of the format.
pub const FORMAT: &str = "contend.job/1";

/// A group that runs over parts of its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Name and version of the format: `contend.job/1`.
    pub format: String,
    /// The version of contend that planned the job. Only the same version runs its parts.
    pub contend: Writer,
    /// The text of the pipeline.
    pub text: String,
    /// Whether the exit code is inverted, as after `!`.
    pub inverted: bool,
    /// Whether the pipeline fails if any of its stages fails.
    pub pipefail: bool,
    /// The stages of the pipeline, first to last.
    pub stages: Vec<Stage>,
    /// The group that runs over the parts. Its combination is for the outputs of all parts.
    pub group: Group,
    /// The steps after the group, which run once over its output.
    pub rest: Vec<Step>,
    /// The files, in order.
    pub files: Vec<JobFile>,
    /// The ranges of the parts in the concatenated files, in bytes.
    pub parts: Vec<Range<u64>>,
    /// The directory in which the commands run. Relative names of files start there.
    pub directory: PathBuf,
    /// The environment variables that determine what commands do with their input, and their values. Those that are not
    /// set are missing.
    pub environment: BTreeMap<String, String>,
    /// The programs that the group may start.
    pub programs: Programs,
    /// The version of the C library, whose locales determine the order of lines.
    pub libc: String,
}

/// Environment variables, besides those of the locale, that determine what commands do with their input, so that workers
/// must have the same values.
const OTHER_VARIABLES: &[&str] = &["LANGUAGE", "PATH", "POSIXLY_CORRECT", "TZ"];

/// Returns the names of the variables that workers must have in common with the machine that planned the job.
fn variables() -> impl Iterator<Item = &'static str> {
    LOCALE_VARIABLES.iter().chain(OTHER_VARIABLES).copied()
}

/// A file of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    /// The name, as in the pipeline.
    pub name: String,
    /// The size in bytes when the job was planned.
    pub bytes: u64,
    /// The time of the last modification when the job was planned, in nanoseconds since 1970.
    pub modified: i128,
}

impl JobFile {
    /// Examines a file, whose name may be relative to `directory`.
    ///
    /// # Errors
    /// Returns an error if the file does not exist or cannot be examined.
    pub fn examine(name: &str, directory: &Path) -> io::Result<Self> {
        let data = fs::metadata(directory.join(name))?;
        let modified = i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec());
        Ok(Self { name: name.to_owned(), bytes: data.len(), modified })
    }
}

/// A pipeline as the user wrote it, and how its exit code is computed.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The text of the pipeline.
    pub text: String,
    /// Whether the exit code is inverted, as after `!`.
    pub inverted: bool,
    /// Whether the pipeline fails if any of its stages fails.
    pub pipefail: bool,
}

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The plan's first group cannot run over parts, for the given reason.
    #[error("the pipeline does not start with stages that run over parts: {0}")]
    NoParts(&'static str),
    /// A file of the pipeline cannot be examined.
    #[error("cannot read {file}")]
    Input {
        /// The name of the file.
        file: String,
        /// Why that failed.
        source: io::Error,
    },
    /// The file of the job cannot be read or written.
    #[error("cannot read or write the job in {}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// Why that failed.
        source: io::Error,
    },
    /// The file has no job, or one of another format.
    #[error("{} is not a job of the format {FORMAT}", path.display())]
    Format {
        /// The path of the file.
        path: PathBuf,
    },
}

/// Returns those of [`variables`] that are set in this process, with their values.
fn environment() -> BTreeMap<String, String> {
    let value = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    variables().filter_map(value).collect()
}

impl Job {
    /// Divides the files that a plan's first group reads into parts. `count` returns their greatest number for a number
    /// of bytes. Relative names start in `directory`.
    ///
    /// # Errors
    /// Returns an error if the plan does not start with a group over named files, if that group cannot run over parts,
    /// or if a file cannot be examined.
    pub fn new(
        written: &Written,
        plan: &Plan,
        count: impl FnOnce(u64) -> u64,
        contend: Writer,
        directory: PathBuf,
    ) -> Result<Self, JobError> {
        let (Source::Files(names), [Step::Parallel(group), rest @ ..]) =
            (&plan.source, plan.steps.as_slice())
        else {
            return Err(JobError::NoParts(
                "its input is not named files, or its first stages run once",
            ));
        };
        parts::of_part(group).map_err(JobError::NoParts)?;
        let file = |name: &String| {
            let file = JobFile::examine(name, &directory);
            file.map_err(|source| JobError::Input { file: name.clone(), source })
        };
        let files: Vec<JobFile> = names.iter().map(file).collect::<Result<_, _>>()?;
        let bytes = files.iter().map(|file| file.bytes).sum();
        let parts = parts::ranges(bytes, count(bytes));
        let (format, stages) = (FORMAT.to_owned(), plan.stages.clone());
        let (group, rest) = (group.clone(), rest.to_vec());
        let (environment, programs) = (environment(), programs_of(&group));
        let Written { text, inverted, pipefail } = written.clone();
        Ok(Self {
            format,
            contend,
            text,
            inverted,
            pipefail,
            stages,
            group,
            rest,
            files,
            parts,
            directory,
            environment,
            programs,
            libc: cpu::libc_version(),
        })
    }

    /// Returns the plan that the job was made from.
    pub fn plan(&self) -> Plan {
        let names = self.files.iter().map(|file| file.name.clone()).collect();
        let group = Step::Parallel(self.group.clone());
        let steps = std::iter::once(group).chain(self.rest.iter().cloned()).collect();
        Plan { stages: self.stages.clone(), source: Source::Files(names), steps }
    }

    /// Returns the variables that have to be set or removed in the environment of this process, so that it is that of
    /// the job.
    pub fn changed_variables(&self) -> Vec<(&'static str, Option<&str>)> {
        let own = environment();
        let of_job = |name: &'static str| (name, self.environment.get(name));
        let changed = variables().map(of_job).filter(|(name, value)| own.get(*name) != *value);
        changed.map(|(name, value)| (name, value.map(String::as_str))).collect()
    }

    /// Reads a job from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or has no job of this format.
    pub fn read(path: &Path) -> Result<Self, JobError> {
        let text = fs::read_to_string(path)
            .map_err(|source| JobError::File { path: path.to_owned(), source })?;
        let job = serde_json::from_str(&text).ok().filter(|job: &Self| job.format == FORMAT);
        job.ok_or_else(|| JobError::Format { path: path.to_owned() })
    }

    /// Writes the job to a new file, completely or not at all.
    ///
    /// # Errors
    /// Returns an error if the file exists or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), JobError> {
        let write = || {
            let folder = path.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::Builder::new().prefix(".job-").tempfile_in(folder)?;
            serde_json::to_writer(&mut file, self)?;
            file.as_file().sync_all()?;
            file.persist_noclobber(path).map_err(|error| error.error)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|source| JobError::File { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::testing::{job, plan};
    use super::*;

    #[test]
    fn a_job_survives_being_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let job = job(folder.path(), "tr a-z A-Z <@/in", &[("in", "a\nb\nc\n")], 2);
        assert_eq!(job.parts, [0..3, 3..6]);
        let path = folder.path().join("job.json");
        job.write(&path).expect("room");
        assert_eq!(Job::read(&path).expect("a job"), job);
        assert_eq!(job.plan(), plan(folder.path(), "tr a-z A-Z <@/in"));
        assert!(matches!(job.write(&path), Err(JobError::File { .. })), "it exists");
        fs::write(&path, "{}").expect("own file");
        assert!(matches!(Job::read(&path), Err(JobError::Format { .. })));
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 2, "no temporary file is left");
    }

    #[test]
    fn variables_that_differ_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut job = job(folder.path(), "tr a-z A-Z <@/in", &[("in", "a\n")], 1);
        assert_eq!(job.changed_variables(), []);
        job.environment.insert("LC_TIME".to_owned(), "xx".to_owned());
        job.environment.remove("PATH");
        assert_eq!(job.changed_variables(), [("LC_TIME", Some("xx")), ("PATH", None)]);
    }

    #[test]
    fn some_plans_have_no_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let new = |text: &str| {
            let plan = plan(folder.path(), text);
            let written = Written::default();
            Job::new(&written, &plan, |_| 2, Writer::default(), folder.path().to_owned())
        };
        fs::write(folder.path().join("in"), "a\n").expect("room");
        assert!(matches!(new("tr a b"), Err(JobError::NoParts(_))), "standard input");
        assert!(matches!(new("tac @/in"), Err(JobError::NoParts(_))), "a serial stage");
        assert!(
            matches!(new("uniq -d <@/in"), Err(JobError::NoParts(_))),
            "a cut that is not local"
        );
        let plan = plan(folder.path(), "tr a b <@/in");
        fs::remove_file(folder.path().join("in")).expect("own file");
        let directory = folder.path().to_owned();
        let removed = Job::new(&Written::default(), &plan, |_| 2, Writer::default(), directory);
        assert!(matches!(removed, Err(JobError::Input { .. })), "{removed:?}");
    }
}

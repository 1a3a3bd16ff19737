//! A job: a group that runs over parts of its files, as plain data in a file.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use contend_record::Writer;
use contend_sys::cpu;
use serde::{Deserialize, Serialize};

use super::executor::EngineKind;
use super::locales::{Locales, locales_of};
use super::programs::{Programs, programs_of};
use super::tree;
use super::variables::Variables;
use super::work::{Work, sync_directory};
use crate::execute::parts;
use crate::objects::{self, Opened, Properties};
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
    /// The engine that runs the parts.
    pub engine: EngineKind,
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
    /// The files that are divided into parts, in order.
    pub files: Vec<JobFile>,
    /// Other files that arguments of commands name, such as FILE in `grep -f FILE`.
    pub named: Vec<JobFile>,
    /// The ranges of the parts in the concatenated files, in bytes.
    pub parts: Vec<Range<u64>>,
    /// The combinations: for each, the range of the tasks whose outputs a worker combines. Tasks are the parts and then
    /// the combinations.
    #[serde(default)]
    pub combinations: Vec<Range<usize>>,
    /// The directory in which the commands run. Relative names of files start there.
    pub directory: PathBuf,
    /// The environment variables of all commands.
    pub environment: Variables,
    /// The programs that the group may start.
    pub programs: Programs,
    /// What the locales of the group's commands do.
    pub locales: Locales,
    /// The version of the C library, whose locales determine the order of lines.
    pub libc: String,
    /// The prefix, in a store, of what the machines share; `None` if they share the work directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
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
    /// The version of an object's contents; empty for other files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tag: String,
}

impl JobFile {
    /// Examines a regular file, whose name may be relative to `directory`.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is not a regular one, or cannot be opened.
    pub fn examine(name: &str, directory: &Path) -> io::Result<Self> {
        if objects::is_object(name) {
            return Self::of_object(name);
        }
        Self::open(name, directory).map(|(examined, _)| examined)
    }

    /// Opens a regular file or an object, and examines it; see [`Self::examine`].
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is not a regular one, or cannot be opened.
    pub fn open(name: &str, directory: &Path) -> io::Result<(Self, Opened)> {
        if objects::is_object(name) {
            return Ok((Self::of_object(name)?, Opened::open(name.as_ref())?));
        }
        let path = directory.join(name);
        // Opening a FIFO would release its writer.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // On NFS, what is known of a file may be old until it is opened.
        let file = File::open(path)?;
        let data = file.metadata()?;
        let modified = i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec());
        let (name, tag) = (name.to_owned(), String::new());
        Ok((Self { name, bytes: data.len(), modified, tag }, Opened::File(file)))
    }
}

impl JobFile {
    fn of_object(name: &str) -> io::Result<Self> {
        let Properties { bytes, modified, tag } = objects::properties(name)?;
        Ok(Self { name: name.to_owned(), bytes, modified, tag })
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
    NoParts(Cow<'static, str>),
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

/// Returns the regular files that arguments of a group's commands name, as words of their own or as values of options.
fn named_files(group: &Group, directory: &Path) -> Vec<JobFile> {
    let commands = || group.serial.iter().chain(&group.each);
    let words = commands().flat_map(|command| &command.arguments);
    let value = |word: &str| match word.split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None if word.starts_with('-') => word.get(2..).map(str::to_owned),
        None => None,
    };
    let names = words.flat_map(|word| std::iter::once(word.clone()).chain(value(word)));
    let names: BTreeSet<String> =
        names.chain(commands().filter_map(|it| it.input.clone())).collect();
    let is_file = |name: &String| directory.join(name).is_file();
    let files = names.iter().filter(|name| is_file(name));
    files.filter_map(|name| JobFile::examine(name, directory).ok()).collect()
}

/// Returns the files of a plan, its first group, and the steps after it.
///
/// # Errors
/// Returns the reason if the plan does not start with a group over named files, or if that group cannot run over parts.
pub(super) fn divisible(plan: &Plan) -> Result<(&[String], &Group, &[Step]), &'static str> {
    match (&plan.source, plan.steps.as_slice()) {
        (Source::Files(names), [Step::Parallel(group), rest @ ..]) => {
            parts::of_part(group)?;
            Ok((names, group, rest))
        }
        (_, [Step::Serial(_), ..]) => Err("its first stages run once over the whole input"),
        _ => Err("its input is not named files that have data"),
    }
}

/// How the work of a job is divided into tasks.
#[derive(Debug, Clone, Copy)]
pub struct Divider<F> {
    /// Returns the greatest number of parts for a number of bytes.
    pub count: F,
    /// The greatest number of outputs that are combined at once, by a worker or by the driver; `None` if contend chooses it.
    pub fan_in: Option<usize>,
}

impl Job {
    /// Divides the files that a plan's first group reads into parts. Relative names start in `directory`.
    ///
    /// # Errors
    /// Returns an error if the plan does not start with a group over named files, if that group cannot run over parts,
    /// or if a file cannot be examined.
    pub fn new(
        written: &Written,
        plan: &Plan,
        divider: Divider<impl FnOnce(u64) -> u64>,
        contend: Writer,
        directory: PathBuf,
    ) -> Result<Self, JobError> {
        let (names, group, rest) = divisible(plan).map_err(|why| JobError::NoParts(why.into()))?;
        // A job is text.
        if directory.to_str().is_none() {
            return Err(JobError::NoParts("the name of the current directory is not UTF-8".into()));
        }
        let environment = Variables::of_this_process().map_err(|name| {
            let name = name.display();
            JobError::NoParts(format!("the environment variable {name} is not UTF-8").into())
        })?;
        let file = |name: &String| {
            let file = JobFile::examine(name, &directory);
            file.map_err(|source| JobError::Input { file: name.clone(), source })
        };
        let files: Vec<JobFile> = names.iter().map(file).collect::<Result<_, _>>()?;
        let bytes = files.iter().map(|file| file.bytes).sum();
        let parts = parts::ranges(bytes, (divider.count)(bytes));
        let combinations = tree::of_group(group, parts.len(), divider.fan_in);
        let (format, stages) = (FORMAT.to_owned(), plan.stages.clone());
        let (group, rest) = (group.clone(), rest.to_vec());
        let (programs, locales) = (programs_of(&group), locales_of(&group));
        let named = named_files(&group, &directory);
        let Written { text, inverted, pipefail } = written.clone();
        Ok(Self {
            format,
            contend,
            engine: EngineKind::Local,
            text,
            inverted,
            pipefail,
            stages,
            group,
            rest,
            files,
            named,
            parts,
            combinations,
            directory,
            environment,
            programs,
            locales,
            libc: cpu::libc_version(),
            store: None,
        })
    }

    /// Returns the job for a work directory: its attempts use the store of the directory, if there is one.
    #[must_use]
    pub fn in_work(self, work: &Work) -> Self {
        Self { store: work.store().map(ToString::to_string), ..self }
    }

    /// Returns the files in which the bytes of a part are.
    pub fn files_of(&self, part: &Range<u64>) -> impl Iterator<Item = &JobFile> {
        let (first, last) = (part.start, part.end);
        let ranges = self.files.iter().scan(0, |end, file| {
            let start = *end;
            *end += file.bytes;
            Some((start..*end, file))
        });
        ranges
            .filter(move |(range, _)| range.start < last && first < range.end)
            .map(|(_, file)| file)
    }

    /// Returns the number of tasks: parts, and then combinations.
    pub fn task_count(&self) -> usize {
        self.parts.len() + self.combinations.len()
    }

    /// Returns the tasks whose outputs a task combines; `None` if the task is a part, or does not exist.
    pub fn inputs_of(&self, task: usize) -> Option<Range<usize>> {
        self.combinations.get(task.checked_sub(self.parts.len())?).cloned()
    }

    /// Returns the tasks whose outputs no worker combines.
    pub fn last_tasks(&self) -> Range<usize> {
        self.combinations.last().map_or(0, |inputs| inputs.end)..self.task_count()
    }

    /// Returns the name of a task for users.
    pub fn name_of(&self, task: usize) -> String {
        let end = |index: fn(&Range<usize>) -> usize| {
            let mut task = task;
            while let Some(inputs) = self.inputs_of(task) {
                task = index(&inputs);
            }
            task
        };
        if self.inputs_of(task).is_none() {
            return format!("part {}", task + 1);
        }
        let (first, last) = (end(|inputs| inputs.start), end(|inputs| inputs.end - 1));
        format!("the combination of parts {} to {}", first + 1, last + 1)
    }

    /// Returns the plan that the job was made from.
    pub fn plan(&self) -> Plan {
        let names = self.files.iter().map(|file| file.name.clone()).collect();
        let group = Step::Parallel(self.group.clone());
        let steps = std::iter::once(group).chain(self.rest.iter().cloned()).collect();
        Plan { stages: self.stages.clone(), source: Source::Files(names), steps }
    }

    /// Reads a job from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or has no job of this format.
    pub fn read(path: &Path) -> Result<Self, JobError> {
        let text = fs::read_to_string(path)
            .map_err(|source| JobError::File { path: path.to_owned(), source })?;
        let job = serde_json::from_str(&text).ok().filter(|job: &Self| job.format == FORMAT);
        let job = job.ok_or_else(|| JobError::Format { path: path.to_owned() })?;
        // This process must not see other versions of objects.
        for JobFile { name, bytes, modified, tag } in &job.files {
            if objects::is_object(name) {
                let (bytes, modified, tag) = (*bytes, *modified, tag.clone());
                objects::expect(name, Properties { bytes, modified, tag });
            }
        }
        Ok(job)
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
            sync_directory(folder)
        };
        write().map_err(|source| JobError::File { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::testing::{self, job, plan};
    use super::*;
    use crate::execute::testing::{command, group};
    use crate::plan::ir::Combine;

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
    fn tasks_are_parts_and_combinations() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [("in", "a\nb\nc\nd\ne\n")];
        let mut job = job(folder.path(), "sort <@/in", &files, 5);
        assert_eq!((job.task_count(), job.last_tasks()), (5, 0..5), "a driver can combine five");
        job.combinations = tree::combinations(5, 2);
        assert_eq!((job.task_count(), job.last_tasks()), (10, 8..10));
        assert_eq!(job.inputs_of(4), None);
        assert_eq!(job.inputs_of(6), Some(1..3));
        assert_eq!(job.inputs_of(10), None);
        assert_eq!(job.name_of(1), "part 2");
        assert_eq!(job.name_of(6), "the combination of parts 2 to 3");
        assert_eq!(job.name_of(9), "the combination of parts 2 to 5");
    }

    #[test]
    fn parts_have_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [("one", "a\nb\nc\n"), ("two", "d\n")];
        let job = job(folder.path(), "cat @/one @/two | sort", &files, 1);
        let names = |part: Range<u64>| {
            let names = job.files_of(&part).map(|file| file.name.rsplit('/').next());
            names.map(|name| name.unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(0..6), ["one"]);
        assert_eq!(names(5..7), ["one", "two"]);
        assert_eq!(names(6..8), ["two"]);
    }

    #[test]
    fn files_that_arguments_name_are_part_of_the_job() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("patterns"), "a\n").expect("room");
        fs::create_dir(folder.path().join("folder")).expect("room");
        let named = |words: &[&str]| {
            let group = group(command("./mine", words), Combine::Concatenate);
            let files = named_files(&group, folder.path()).into_iter();
            files.map(|file| file.name).collect::<Vec<_>>()
        };
        for words in [&["-f", "patterns"][..], &["--file=patterns"], &["-fpatterns"], &["patterns"]]
        {
            assert_eq!(named(words), ["patterns"], "{words:?}");
        }
        assert_eq!(named(&["folder", "none", "-", "--x=folder", "-x"]), [""; 0]);
    }

    #[test]
    fn some_plans_have_no_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let new = |text: &str| {
            let plan = plan(folder.path(), text);
            let written = Written::default();
            let directory = folder.path().to_owned();
            Job::new(&written, &plan, testing::divider(2), Writer::default(), directory)
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
        let written = Written::default();
        let removed = Job::new(&written, &plan, testing::divider(2), Writer::default(), directory);
        assert!(matches!(removed, Err(JobError::Input { .. })), "{removed:?}");
    }
}

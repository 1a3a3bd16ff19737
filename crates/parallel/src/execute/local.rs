//! Executes plans on this machine, with threads that feed processes and operators.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::thread;

use contend_record::run::WorkKind;
use rustix::fs::FileType;

use super::fallback::Fallback;
use super::group;
use super::input::{Input, Slice};
use super::launcher::Launcher;
use super::parts::{self, PartEnd};
use super::pipe;
use super::progress::Reader;
use super::threads;
use super::work;
use super::{Context, ExecuteError, Executor, Plain, Tally};
use crate::objects::Opened;
use crate::plan::estimate;
use crate::plan::ir::{Command, Group, Plan, Source, Step};

/// Settings of the local executor.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The maximum number of chunks processed at the same time; not 0.
    pub jobs: usize,
    /// The memory that chunks and their outputs may use, in bytes.
    pub memory: u64,
    /// The size of chunks in bytes, or `None` to let contend choose it.
    pub chunk_bytes: Option<usize>,
    /// The directory for temporary files of sorts that exceed memory, unless the pipeline names
    /// one.
    pub folder: PathBuf,
}

/// An executor on this machine. A process that it starts gets SIGTERM once the thread that started
/// it has ended.
#[derive(Debug)]
pub struct Local<'a> {
    /// Limits on chunks and memory.
    pub settings: Settings,
    /// The launcher for commands.
    pub launcher: &'a Launcher,
    /// Counters of input, costs and exit codes.
    pub tally: &'a Tally,
    /// Bytes already read from standard input. The step that reads standard input takes them.
    pub prefix: Mutex<Vec<u8>>,
}

/// The input of a step.
enum Feed {
    /// The source of the plan: standard input, or files.
    Source(Source),
    /// The output of the previous step.
    Step(File),
    /// The paths of the outputs of all parts of a group, in order, which have run elsewhere.
    Parts(Vec<PathBuf>),
}

impl Executor for Local<'_> {
    fn execute(&self, plan: &Plan) -> Result<(), ExecuteError> {
        self.run(&self.steps(plan), Feed::Source(plan.source.clone()))
    }
}

/// The position of a step in its plan.
#[derive(Clone, Copy)]
struct Place<'a> {
    steps: &'a [Step],
    at: usize,
    /// Whether the step is the plan's first group.
    is_first: bool,
    plain: &'a [AtomicBool],
}

impl Local<'_> {
    /// Runs a plan whose first step is a group that has already run over parts. Combines the outputs of all parts, whose
    /// paths are in order, and runs the other steps.
    ///
    /// # Errors
    /// Returns an error if an output is not one of the group's, or if the rest of the plan cannot be executed.
    pub fn execute_after_parts(
        &self,
        plan: &Plan,
        outputs: Vec<PathBuf>,
    ) -> Result<(), ExecuteError> {
        self.run(&self.steps(plan), Feed::Parts(outputs))
    }

    /// Runs steps, the first of which reads `from`.
    fn run(&self, steps: &[Step], mut from: Feed) -> Result<(), ExecuteError> {
        let first = steps.iter().position(|step| matches!(step, Step::Parallel(_)));
        let plain: Vec<AtomicBool> =
            steps.iter().map(|step| AtomicBool::new(matches!(step, Step::Serial(_)))).collect();
        thread::scope(|scope| {
            let mut running = Vec::new();
            let mut last = Ok(());
            for (index, step) in steps.iter().enumerate() {
                let is_last = index + 1 == steps.len();
                let pipe = if is_last { None } else { Some(pipe::wide()?) };
                let (next, output) = pipe.unzip();
                let place =
                    Place { steps, at: index, is_first: first == Some(index), plain: &plain };
                let from = std::mem::replace(
                    &mut from,
                    next.map_or(Feed::Source(Source::Own), Feed::Step),
                );
                let run = move || match step {
                    Step::Serial(commands) => self.serial(commands, from, output),
                    Step::Parallel(group) => self.parallel(group, place, from, output),
                };
                if is_last {
                    last = run();
                } else {
                    running.push(threads::spawn_scoped(scope, run)?);
                }
            }
            let ends = running.into_iter().filter_map(|step| {
                step.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            // The first failure is the cause of the others.
            ends.chain([last]).collect::<Vec<_>>().into_iter().collect()
        })
    }

    /// Returns the steps of a plan, with neighbouring serial steps merged. Unless the size of
    /// chunks is set, a group after the first step becomes a serial step, which the tally notes, if
    /// it cannot be faster over chunks.
    fn steps(&self, plan: &Plan) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            let step = match step {
                Step::Parallel(group)
                    if index > 0
                        && self.settings.chunk_bytes.is_none()
                        && !estimate::may_be_faster(
                            group,
                            &plan.steps,
                            index,
                            self.settings.jobs,
                        ) =>
                {
                    self.tally.note_fallback(group, &Fallback::NotFaster);
                    Step::Serial(group.serial.clone())
                }
                step => step.clone(),
            };
            match (steps.last_mut(), step) {
                (Some(Step::Serial(commands)), Step::Serial(more)) => commands.extend(more),
                (_, step) => steps.push(step),
            }
        }
        steps
    }

    /// Runs commands once, without chunks. They write to standard output if `output` is `None`.
    fn serial(
        &self,
        commands: &[Command],
        from: Feed,
        output: Option<File>,
    ) -> Result<(), ExecuteError> {
        let stdin = match from {
            Feed::Step(file) => Some(file),
            Feed::Source(Source::Files(names)) => {
                let files = names.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
                Some(concatenate_files(files)?)
            }
            Feed::Source(Source::Standard | Source::Own) => self.standard_input_of_command()?,
            Feed::Parts(_) => unreachable!("a group has run over them"),
        };
        let _work = self.tally.work().begin(WorkKind::Whole, work::stages(commands), 0);
        Plain::start(self.launcher, self.tally, commands, stdin, output)?.wait()?;
        Ok(())
    }

    /// Returns the input of the first command: bytes already read, followed by the rest of standard
    /// input. Returns `None` if no bytes have been read, so that the command can inherit standard
    /// input.
    fn standard_input_of_command(&self) -> io::Result<Option<File>> {
        let prefix = self.take_prefix();
        if prefix.is_empty() {
            return Ok(None);
        }
        let mut rest = own(io::stdin().as_fd())?;
        fed_with(move |writer| {
            writer.write_all(&prefix)?;
            io::copy(&mut rest, writer)
        })
        .map(Some)
    }

    fn take_prefix(&self) -> Vec<u8> {
        std::mem::take(&mut *self.prefix.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a group, which writes to standard output if `output` is `None`. If contend has read a
    /// regular file as standard input, moves the offset of that file to the end of the input.
    fn parallel(
        &self,
        group: &Group,
        place: Place<'_>,
        from: Feed,
        output: Option<File>,
    ) -> Result<(), ExecuteError> {
        let is_last = output.is_none();
        let output = match output {
            Some(output) => output,
            None => own(io::stdout().as_fd())?,
        };
        let context = self.context(place, is_last);
        let (input, standard) = match from {
            Feed::Step(file) => (Input::Stream(Vec::new(), file), None),
            Feed::Source(Source::Files(names)) => (Input::Files(slices(&names)?), None),
            Feed::Source(Source::Standard | Source::Own) => self.standard_input()?,
            Feed::Parts(outputs) => return Ok(parts::combine(group, &context, &outputs, output)?),
        };
        let reader = group::run(group, &context, input, output)?;
        // A program that reads the same file afterwards continues after the group's input, as it
        // would after any other command.
        if let (Some((mut file, end)), Reader::Contend) = (standard, reader) {
            let _ = file.seek(SeekFrom::Start(end)); // a seekable file
        }
        Ok(())
    }

    /// Returns the context of the group at a place. `is_last` tells whether it writes to standard output.
    fn context<'a>(&'a self, place: Place<'a>, is_last: bool) -> Context<'a> {
        Context {
            launcher: self.launcher,
            tally: self.tally,
            is_first: place.is_first,
            is_last,
            jobs: self.settings.jobs,
            memory: self.settings.memory,
            chunk_bytes: self.settings.chunk_bytes,
            folder: &self.settings.folder,
            steps: place.steps,
            at: place.at,
            plain: place.plain,
            rate: None,
        }
    }

    /// Runs a group over the part of files with the given range, and writes to a file. `sizes` are the sizes of all files;
    /// `open` opens those with the given indices, and returns them with their names. `group` is as [`parts::of_part`]
    /// returns it.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read, a command cannot be started, or the output cannot be written.
    pub fn run_part(
        &self,
        group: &Group,
        sizes: &[u64],
        range: Range<u64>,
        open: &dyn Fn(Range<usize>) -> Result<Vec<(String, Opened)>, ExecuteError>,
        output: File,
    ) -> Result<PartEnd, ExecuteError> {
        let slice = |(name, opened): (String, Opened)| match opened {
            Opened::File(file) => slice(&name, file),
            Opened::Object(copy) => {
                Slice::of_object(copy).map_err(|source| cannot_open(&name, source))
            }
        };
        let opened = |files| open(files)?.into_iter().map(slice).collect();
        let files = parts::slices_of(&group.cut, sizes, range, opened)?;
        Ok(self.with_group(group, |context| parts::run(group, context, files, output))?)
    }

    /// Calls a function with the context of a group that is the only step of its plan, and writes to a file.
    fn with_group<R>(&self, group: &Group, run: impl FnOnce(&Context<'_>) -> R) -> R {
        let (steps, plain) = ([Step::Parallel(group.clone())], [AtomicBool::new(false)]);
        let place = Place { steps: &steps, at: 0, is_first: true, plain: &plain };
        run(&self.context(place, false))
    }

    /// Combines outputs of parts of a group, which are next to each other and whose paths are in order, into a file. The
    /// result is like the output of one part.
    ///
    /// # Errors
    /// Returns an error if an output is not one of the group's, a command cannot be started, or the file cannot be
    /// written.
    pub fn combine_parts(
        &self,
        group: &Group,
        outputs: &[PathBuf],
        output: File,
    ) -> Result<(), ExecuteError> {
        Ok(self.with_group(group, |context| parts::combine(group, context, outputs, output))?)
    }

    /// Returns standard input. If it is a regular file and none of its bytes have been read ahead,
    /// also returns a second handle to it and the offset of its end.
    fn standard_input(&self) -> io::Result<(Input, Option<(File, u64)>)> {
        let file = own(io::stdin().as_fd())?;
        let prefix = self.take_prefix();
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile && prefix.is_empty() {
            let again = file.try_clone()?;
            let slice = Slice::from_here(file)?;
            let end = slice.end();
            return Ok((Input::Files(vec![slice]), Some((again, end))));
        }
        Ok((Input::Stream(prefix, file), None))
    }
}

/// Returns a file from which the contents of `files` can be read in order.
fn concatenate_files(files: Vec<File>) -> io::Result<File> {
    match <[File; 1]>::try_from(files) {
        Ok([file]) => Ok(file),
        Err(files) => fed_with(move |writer| {
            files.into_iter().try_fold(0, |all, mut file| Ok(all + io::copy(&mut file, writer)?))
        }),
    }
}

/// Returns the read end of a pipe to which a detached thread writes with `feed`. Errors of `feed`
/// are ignored.
fn fed_with(feed: impl FnOnce(&mut File) -> io::Result<u64> + Send + 'static) -> io::Result<File> {
    let (reader, mut writer) = pipe::wide()?;
    threads::spawn(move || drop(feed(&mut writer)))?; // the reader may close the pipe first
    Ok(reader)
}

/// Opens the named files.
fn slices(names: &[String]) -> Result<Vec<Slice>, ExecuteError> {
    names.iter().map(|name| slice(name, open(name)?)).collect()
}

/// Returns the whole of a file, which was opened by its name.
fn slice(name: &str, file: File) -> Result<Slice, ExecuteError> {
    let slice = Slice::from_here(file).map(|it| it.named(name));
    slice.map_err(|source| cannot_open(name, source))
}

fn own(fd: BorrowedFd<'_>) -> io::Result<File> {
    fd.try_clone_to_owned().map(File::from)
}

fn open(name: &str) -> Result<File, ExecuteError> {
    Opened::open(name.as_ref()).and_then(Opened::whole).map_err(|source| cannot_open(name, source))
}

fn cannot_open(name: &str, source: io::Error) -> ExecuteError {
    ExecuteError::Open { file: name.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use crate::plan::ir::{Combine, Stage};

    use super::super::testing::{command, group, launcher, shell};
    use super::*;

    /// Runs steps over a file with `text`. Returns the result, and the contents of the output file
    /// if it exists.
    fn executed(
        text: &str,
        steps: impl FnOnce(&str) -> Vec<Step>,
    ) -> (Result<(), ExecuteError>, Option<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let [input, output] = ["in", "out"].map(|name| folder.path().join(name));
        std::fs::write(&input, text).expect("room");
        let source = Source::Files(vec![input.display().to_string()]);
        let steps = steps(&output.display().to_string());
        let plan = Plan { stages: Vec::<Stage>::new(), source, steps };
        let (launcher, tally) = (launcher(), Tally::default());
        let settings = Settings {
            jobs: 2,
            memory: 64 << 20,
            chunk_bytes: Some(4),
            folder: folder.path().to_owned(),
        };
        let local =
            Local { settings, launcher: &launcher, tally: &tally, prefix: Mutex::default() };
        let result = local.execute(&plan);
        assert_eq!(launcher.pids(), [], "nothing is left running");
        (result, std::fs::read_to_string(output).ok())
    }

    #[test]
    fn steps_read_what_those_before_them_write() {
        let (result, output) = executed("one\ntwo\nthree\n", |output| {
            vec![
                Step::Parallel(group(command("tr", &["a-z", "A-Z"]), Combine::Concatenate)),
                Step::Serial(vec![command("tac", &[]), shell(&format!("cat >{output}"))]),
            ]
        });
        assert!(result.is_ok());
        assert_eq!(output.as_deref(), Some("THREE\nTWO\nONE\n"));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let (launcher, tally) = (launcher(), Tally::default());
        let folder = std::env::temp_dir();
        let settings = Settings { jobs: 2, memory: 1 << 20, chunk_bytes: Some(4), folder };
        let local =
            Local { settings, launcher: &launcher, tally: &tally, prefix: Mutex::default() };
        let group = group(command("cat", &[]), Combine::Concatenate);
        let source = Source::Files(vec!["/no/such/file".to_owned()]);
        let steps = vec![Step::Parallel(group), Step::Serial(vec![shell("cat >/dev/null")])];
        let result = local.execute(&Plan { stages: Vec::new(), source, steps });
        assert!(matches!(result, Err(ExecuteError::Open { file, .. }) if file == "/no/such/file"));
        assert_eq!(launcher.pids(), [], "nothing is left running");
    }

    #[test]
    fn serial_steps_that_meet_become_one() {
        let (launcher, tally) = (launcher(), Tally::default());
        let folder = std::env::temp_dir();
        let settings = Settings { jobs: 2, memory: 1 << 20, chunk_bytes: None, folder };
        let local =
            Local { settings, launcher: &launcher, tally: &tally, prefix: Mutex::default() };
        // After a serial step, a group that cannot be faster becomes plain.
        let group = group(command("cat", &[]), Combine::Concatenate);
        let steps = vec![
            Step::Serial(vec![command("cat", &[])]),
            Step::Parallel(group),
            Step::Serial(vec![command("tac", &[])]),
        ];
        let steps = local.steps(&Plan { stages: Vec::new(), source: Source::Standard, steps });
        let [Step::Serial(commands)] = steps.as_slice() else { panic!("{steps:?}") };
        let programs: Vec<&str> = commands.iter().map(|it| it.program.as_str()).collect();
        assert_eq!(programs, ["cat", "cat", "tac"]);
        assert_eq!(tally.notes().len(), 1);
    }
}

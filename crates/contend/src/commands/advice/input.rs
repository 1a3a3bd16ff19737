//! Makes the input of a pipeline readable several times: opens the file that the first stage reads,
//! or saves standard input that can be read only once.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use contend_advise::rewrite::draft::Draft;
use contend_advise::sample::Sample;
use contend_commands::Simple;
use contend_commands::purity::{Source, is_pure, source};
use contend_profile::pipeline::gate::proc_path;
use contend_record::advice::TrialInput;
use contend_shell::parse::Parsed;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use crate::cli::pipe::SampleSize;
use crate::exit::UsageError;
use crate::output;
use crate::settings::{PipeRun, PipelineSettings, STANDARD_INPUT};

/// Maximum number of bytes saved from an input that can be read only once.
const MAX_SAVED_BYTES: u64 = 64 << 20;
/// Programs that do not read standard input in ordinary use.
const WITHOUT_INPUT: &[&str] = &[
    "date",
    "df",
    "du",
    "echo",
    "find",
    "free",
    "git",
    "id",
    "ip",
    "journalctl",
    "last",
    "ls",
    "lscpu",
    "lsof",
    "mount",
    "printf",
    "ps",
    "pwd",
    "seq",
    "ss",
    "stat",
    "uname",
    "who",
    "yes",
];

/// Standard input that can be read only once, saved so that several runs can read it.
#[derive(Debug)]
pub struct SavedInput {
    /// The temporary file that holds the saved bytes.
    pub file: File,
    /// The number of saved bytes, and whether they are the whole input.
    pub what: TrialInput,
}

/// The input of the first stage, to the extent that it is known and can be read again.
#[derive(Debug)]
pub struct Rereadable {
    /// A regular file with the whole input, or with the saved part of it; `None` if the input is
    /// unknown or not a regular file.
    pub file: Option<File>,
    /// Whether the first stage names the file, rather than reading its standard input.
    pub named: bool,
    /// Standard input for further runs of the pipeline; `None` if it is not a regular file, in
    /// which case these runs read `/dev/null`.
    pub stdin: Option<File>,
    /// The extent of the saved input; `None` if nothing had to be saved.
    pub saved: Option<TrialInput>,
}

/// Saves standard input to a temporary file if it can be read only once and a trial needs it, and
/// makes the pipeline read that file. Saves at most `MAX_SAVED_BYTES`, or the size that `--sample`
/// gives if that is smaller. Returns `None` if nothing had to be saved.
///
/// # Errors
/// Returns an error if a trial needs standard input, but that is a terminal, or cannot be read or
/// saved.
pub fn save(settings: &mut PipeRun) -> Result<Option<SavedInput>> {
    let Some(trial) = &settings.advice.trial else { return Ok(None) };
    if !may_read_standard_input(&settings.parsed) {
        return Ok(None);
    }
    let from: Box<dyn io::Read> = match settings.pipeline.open_stdin()? {
        Some(file) if is_pipe(kind_of(&file)) => Box::new(file),
        None if io::stdin().is_terminal() => {
            let message = "--try reads the input several times, but standard input is a terminal: add \
                           --stdin FILE, or --stdin /dev/null if the pipeline reads no input";
            return Err(UsageError(message.to_owned()).into());
        }
        None if is_pipe(kind_of(&io::stdin())) => {
            warn_if_silent("--stdin /dev/null");
            Box::new(io::stdin().lock())
        }
        _ => return Ok(None),
    };
    let most = match trial.sample {
        Some(SampleSize::Bytes(bytes)) => bytes.min(MAX_SAVED_BYTES),
        _ => MAX_SAVED_BYTES,
    };
    let sample = save_beginning(from, most)?;
    settings.pipeline.stdin = Some(proc_path(&sample.file).into());
    Ok(Some(SavedInput { file: sample.file, what: sample.what }))
}

/// The standard input of contend, for a command that runs several times.
#[derive(Debug)]
pub enum CommandInput {
    /// A regular file, which each run reads from its beginning.
    File(File),
    /// The beginning of an input that can be read only once.
    Saved(SavedInput),
    /// A terminal.
    Terminal,
    /// Another device, or nothing.
    Other,
}

impl CommandInput {
    /// Opens standard input again, or saves at most `MAX_SAVED_BYTES` of it if it can be read only
    /// once.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or saved.
    pub fn read() -> Result<Self> {
        let stdin = io::stdin();
        match kind_of(&stdin) {
            FileType::RegularFile => {
                let file =
                    File::open(STANDARD_INPUT).context("cannot open standard input again")?;
                Ok(Self::File(file))
            }
            kind if is_pipe(kind) => {
                warn_if_silent("</dev/null");
                let sample = save_beginning(stdin.lock(), MAX_SAVED_BYTES)?;
                Ok(Self::Saved(SavedInput { file: sample.file, what: sample.what }))
            }
            _ if stdin.is_terminal() => Ok(Self::Terminal),
            _ => Ok(Self::Other),
        }
    }

    /// Returns the saved input, to be read from its beginning; `None` if the command can read standard
    /// input itself.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened again.
    pub fn saved(&self) -> Result<Option<File>> {
        let Self::Saved(saved) = self else { return Ok(None) };
        let file = File::open(proc_path(&saved.file)).context("cannot open a temporary file")?;
        Ok(Some(file))
    }

    /// Returns the file that the runs read; `None` for an empty input.
    pub fn file(&self) -> Option<&File> {
        match self {
            Self::File(file) => Some(file),
            Self::Saved(saved) => Some(&saved.file),
            Self::Terminal | Self::Other => None,
        }
    }

    /// Returns the description of the input for a record.
    pub fn what(&self) -> TrialInput {
        match self {
            Self::File(file) => {
                TrialInput::Whole { bytes: file.metadata().map_or(0, |data| data.len()) }
            }
            Self::Saved(saved) => saved.what.clone(),
            Self::Terminal | Self::Other => TrialInput::Own,
        }
    }
}

fn save_beginning(from: impl io::Read, most: u64) -> Result<Sample> {
    Sample::beginning(from, most).context("cannot save standard input to a temporary file")
}

fn is_pipe(kind: FileType) -> bool {
    matches!(kind, FileType::Fifo | FileType::Socket)
}

/// Waits for up to a second for standard input, and prints a hint if no data arrives: there may not be
/// a need for any. `instead` is what the user can add to the command line.
fn warn_if_silent(instead: &str) {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    if matches!(poll(&mut fds, Some(&second)), Ok(0)) {
        output::error(&format!("waiting for standard input; if there is none, use {instead}"));
    }
}

/// Returns whether the first stage may read standard input; `true` if that is unknown. For a stage
/// that does not read it, contend must not wait for an input that may never end.
fn may_read_standard_input(parsed: &Parsed) -> bool {
    let first = Simple::read(&parsed.stage_text(0));
    first.is_none_or(|simple| match source(&simple) {
        Source::Standard => true,
        Source::File(_) => false,
        Source::Other => !is_pure(&simple) && !WITHOUT_INPUT.contains(&simple.name()),
    })
}

fn kind_of(file: &impl AsFd) -> FileType {
    rustix::fs::fstat(file).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

impl Rereadable {
    /// Finds the input of the first stage: `saved` if there is one, else the file that the stage
    /// names, else standard input if the stage is known to read that. A relative path counts only
    /// without a setup.
    pub fn of(draft: &Draft, pipeline: &PipelineSettings, saved: Option<&SavedInput>) -> Self {
        if let Some(saved) = saved {
            let copy = || saved.file.try_clone().ok();
            let what = Some(saved.what.clone());
            return Self { file: copy(), named: false, stdin: copy(), saved: what };
        }
        let stdin = || regular(pipeline.stdin.clone().unwrap_or_else(|| STANDARD_INPUT.into()));
        let first = draft.stages.first().and_then(|stage| stage.simple.as_ref()).map(source);
        match first {
            // A relative path may be wrong after a setup, which can change the working directory.
            Some(Source::File(file)) if pipeline.setup.is_none() || file.text.starts_with('/') => {
                let file = regular(file.text.into());
                Self { file, named: true, stdin: stdin(), saved: None }
            }
            Some(Source::Standard) => {
                Self { file: stdin(), named: false, stdin: stdin(), saved: None }
            }
            _ => Self { file: None, named: false, stdin: stdin(), saved: None },
        }
    }
}

/// Opens a file. Returns `None` if it cannot be opened, or is not a regular file: opening anything
/// else could block forever or have side effects.
fn regular(path: PathBuf) -> Option<File> {
    path.metadata().is_ok_and(|data| data.is_file()).then(|| File::open(path).ok()).flatten()
}

//! What the pipeline reads, and how it can be read again.

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

/// What is kept of an input that can be read only once.
const KEPT: u64 = 64 << 20;
/// Programs that read no input, whatever is there.
const READ_NOTHING: &[&str] = &[
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

/// What came through a pipe and was kept, so that it can be read again.
#[derive(Debug)]
pub struct KeptInput {
    /// Its bytes.
    pub file: File,
    /// How much it is.
    pub what: TrialInput,
}

/// What the first stage reads, as far as that is known and can be read again.
#[derive(Debug)]
pub struct Readable {
    /// A regular file with all of it; none if there is no such.
    pub file: Option<File>,
    /// The first stage names it itself, and does not read it from its standard input.
    pub named: bool,
    /// What the pipeline's standard input is when it is run once more; none for `/dev/null`.
    pub stdin: Option<File>,
    /// What was kept, if it had to be.
    pub kept: Option<TrialInput>,
}

/// Keeps what comes through standard input, where a trial needs it and it can be read only once;
/// the pipeline then reads what was kept.
///
/// # Errors
/// When it cannot be read or kept, or comes from a terminal.
pub fn keep(settings: &mut PipeRun) -> Result<Option<KeptInput>> {
    let Some(trial) = &settings.advice.trial else { return Ok(None) };
    if !may_read_standard_input(&settings.parsed) {
        return Ok(None);
    }
    let is_pipe = |kind| matches!(kind, FileType::Fifo | FileType::Socket);
    let from: Box<dyn io::Read> = match settings.pipeline.open_stdin()? {
        Some(file) if is_pipe(kind_of(&file)) => Box::new(file),
        None if io::stdin().is_terminal() => {
            let message = "--try reads the input several times, but standard input is a terminal: add \
                           --stdin FILE, or --stdin /dev/null if the pipeline reads no input";
            return Err(UsageError(message.to_owned()).into());
        }
        None if is_pipe(kind_of(&io::stdin())) => {
            say_what_is_waited_for();
            Box::new(io::stdin().lock())
        }
        _ => return Ok(None),
    };
    let most = match trial.sample {
        Some(SampleSize::Bytes(bytes)) => bytes.min(KEPT),
        _ => KEPT,
    };
    let sample =
        Sample::beginning(from, most).context("cannot save standard input to a temporary file")?;
    settings.pipeline.stdin = Some(proc_path(&sample.file).into());
    Ok(Some(KeptInput { file: sample.file, what: sample.what }))
}

/// A pipe that brings nothing may be one that nobody writes to.
fn say_what_is_waited_for() {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    if matches!(poll(&mut fds, Some(&second)), Ok(0)) {
        output::error("waiting for standard input; if there is none, use --stdin /dev/null");
    }
}

/// Whether the first stage reads standard input, for all that is known. One that does not must not
/// make us wait for an input that nobody means to end.
fn may_read_standard_input(parsed: &Parsed) -> bool {
    let first = Simple::read(&parsed.stage_text(0));
    first.is_none_or(|simple| match source(&simple) {
        Source::Standard => true,
        Source::File(_) => false,
        Source::Other => !is_pure(&simple) && !READ_NOTHING.contains(&simple.name()),
    })
}

fn kind_of(file: &impl AsFd) -> FileType {
    rustix::fs::fstat(file).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

impl Readable {
    /// Finds it.
    pub fn of(draft: &Draft, pipeline: &PipelineSettings, kept: Option<&KeptInput>) -> Self {
        if let Some(kept) = kept {
            let copy = || kept.file.try_clone().ok();
            let what = Some(kept.what.clone());
            return Self { file: copy(), named: false, stdin: copy(), kept: what };
        }
        let stdin = || regular(pipeline.stdin.clone().unwrap_or_else(|| STANDARD_INPUT.into()));
        let first = draft.stages.first().and_then(|stage| stage.simple.as_ref()).map(source);
        match first {
            // A set-up may have gone to another folder.
            Some(Source::File(file)) if pipeline.setup.is_none() || file.text.starts_with('/') => {
                let file = regular(file.text.into());
                Self { file, named: true, stdin: stdin(), kept: None }
            }
            Some(Source::Standard) => {
                Self { file: stdin(), named: false, stdin: stdin(), kept: None }
            }
            _ => Self { file: None, named: false, stdin: stdin(), kept: None },
        }
    }
}

/// Opens it if it is a regular file: opening anything else could wait for ever, or do something.
fn regular(path: PathBuf) -> Option<File> {
    path.metadata().is_ok_and(|data| data.is_file()).then(|| File::open(path).ok()).flatten()
}

//! Settings of `contend pipe`, and how its pipelines are run.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use contend_advise::predict::what_if::{CHANGE_WORDS, Question, QuestionError};
use contend_record::pipe::{PipeRecord, SCHEMA};
use contend_shell::environment::default_shell;
use contend_shell::parse::{Parsed, parse};
use contend_shell::side_effects::check_repeatable;
use rustix::fs::FileType;

use super::{readable, shows_progress, usual_store};
use crate::cli::pipe::{AdviceArgs, PipeArgs, SampleSize};
use crate::exit::UsageError;
use crate::output::ReportFile;
use crate::{records, suggest};

/// What `contend pipe` is to do.
#[derive(Debug)]
pub enum Pipe {
    /// Profile a pipeline.
    Run(Box<PipeRun>),
    /// Answer questions from a record.
    Answer(Box<Answer>),
}

/// Questions to answer from a record.
#[derive(Debug)]
pub struct Answer {
    /// The record.
    pub record: PipeRecord,
    /// The questions.
    pub questions: Vec<Question>,
    /// Where the lab keeps its runs.
    pub store: Option<PathBuf>,
    /// Where the report goes; standard error if nowhere else.
    pub output: Option<ReportFile>,
    /// Where the record with the answers goes as JSON.
    pub json: Option<ReportFile>,
}

/// A pipeline to profile and where its report goes.
#[derive(Debug)]
pub struct PipeRun {
    /// The pipeline.
    pub parsed: Parsed,
    /// How it is run.
    pub how: How,
    /// How often.
    pub runs: u32,
    /// What is made of the profile.
    pub advice: Advice,
    /// Where the report goes; standard error if nowhere else.
    pub output: Option<ReportFile>,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
}

/// What is made of a profile.
#[derive(Debug)]
pub struct Advice {
    /// Changes are looked for.
    pub wanted: bool,
    /// They are tried.
    pub trial: Option<TrialSettings>,
    /// Questions to answer.
    pub questions: Vec<Question>,
    /// Where the lab keeps its runs, for what they say of this machine.
    pub store: Option<PathBuf>,
}

/// How changes are tried.
#[derive(Debug, Clone)]
pub struct TrialSettings {
    /// How long that may take.
    pub budget: Duration,
    /// How much of the input is used; none for as much as suits.
    pub sample: Option<SampleSize>,
    /// Numbers of copies that are run at the same time afterwards.
    pub copies: Vec<usize>,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// How a pipeline is run.
#[derive(Debug, Clone)]
pub struct How {
    /// The shell.
    pub shell: String,
    /// What the shell executes first.
    pub setup: Option<String>,
    /// The pipeline fails if any stage does.
    pub pipefail: bool,
    /// A file for standard input.
    pub stdin: Option<PathBuf>,
    /// Output is thrown away.
    pub discard: bool,
    /// The stages are shown while they run.
    pub live: bool,
}

impl How {
    /// Opens the file for standard input anew, so that each run reads it from the start.
    ///
    /// # Errors
    /// When it cannot be opened (any more).
    pub fn open_stdin(&self) -> Result<Option<File>> {
        let Some(path) = &self.stdin else {
            return Ok(None);
        };
        let name = format!("--stdin {}", path.display());
        Ok(Some(readable(&name, File::open(path))?))
    }
}

/// Settings of `contend pipe`.
///
/// # Errors
/// A [`UsageError`] that says what is wrong and where.
pub fn pipe(args: PipeArgs) -> Result<Pipe> {
    let output = args.output.as_deref().map(ReportFile::prepare).transpose()?;
    let json = args.json.as_deref().map(ReportFile::prepare).transpose()?;
    if let (Some(output), Some(json)) = (&output, &json)
        && output.is_same_as(json)
    {
        let message = "--output and --json name the same file: give them different names";
        return Err(UsageError(message.to_owned()).into());
    }
    if let Some(path) = &args.advice.from {
        let record = saved_record(path)?;
        let questions = questions(&args.advice.what_if, record.stages.len())?;
        let store = usual_store();
        return Ok(Pipe::Answer(Box::new(Answer { record, questions, store, output, json })));
    }
    if let Some(json) = &json
        && !args.discard
        && json.is_standard_output()
    {
        let message = "--json -: the pipeline's output goes to standard output, too; write the JSON \
                       to a file, or add --discard";
        return Err(UsageError(message.to_owned()).into());
    }
    let text = args.pipeline.unwrap_or_default();
    let parsed = parse(&text).map_err(|error| UsageError(error.to_string()))?;
    check_text("the pipeline", &text)?;
    check_text("--setup", args.setup.as_deref().unwrap_or(""))?;
    let mut how = How {
        shell: shell(args.shell)?,
        setup: args.setup,
        pipefail: args.pipefail,
        stdin: args.stdin,
        discard: args.discard,
        live: shows_progress(args.no_progress),
    };
    // A FIFO can be opened only once: its writer would find its reader gone.
    if !how.stdin.as_ref().is_some_and(|path| is_kind(path, FileType::Fifo)) {
        how.open_stdin()?;
    }
    let advice = advice(args.advice, &parsed, how.setup.as_deref())?;
    if args.runs > 1 {
        make_repeatable(&mut how)?;
    }
    Ok(Pipe::Run(Box::new(PipeRun { parsed, how, runs: args.runs, advice, output, json })))
}

fn advice(args: AdviceArgs, parsed: &Parsed, setup: Option<&str>) -> Result<Advice, UsageError> {
    let questions = questions(&args.what_if, parsed.stages.len())?;
    if args.try_changes {
        check_repeatable(parsed, setup).map_err(|why| UsageError(format!("--try {why}")))?;
    }
    let copies = match args.copies {
        // One alone beside them, so that it can be seen whether the ranking turns round.
        Some(copies) if copies > 1 => vec![1, usize::from(copies)],
        Some(copies) => vec![usize::from(copies)],
        None => args.sweep_copies.into_iter().map(usize::from).collect(),
    };
    let trial = args.try_changes.then(|| TrialSettings {
        budget: Duration::from_secs_f64(args.budget),
        sample: args.sample,
        copies,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000)),
    });
    Ok(Advice { wanted: !args.no_advice, trial, questions, store: usual_store() })
}

fn questions(texts: &[String], stages: usize) -> Result<Vec<Question>, UsageError> {
    let read = |text: &String| {
        Question::read(text, stages).map_err(|error| {
            let word = match &error {
                QuestionError::Unknown(part) => part.split_whitespace().next(),
                _ => None,
            };
            let misspelt = word.filter(|word| !CHANGE_WORDS.contains(word));
            let hint = misspelt.map(|word| suggest::did_you_mean(word, CHANGE_WORDS));
            UsageError(format!("--what-if {error}{}", hint.unwrap_or_default()))
        })
    };
    texts.iter().map(read).collect()
}

fn saved_record(path: &Path) -> Result<PipeRecord, UsageError> {
    let problem = |what: String| UsageError(format!("--from {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|source| problem(source.to_string()))?;
    records::of_schema(&text, SCHEMA, "contend pipe --json").map_err(problem)
}

pub(super) fn check_text(what: &str, text: &str) -> Result<(), UsageError> {
    if text.contains('\0') {
        return Err(UsageError(format!("{what} contains a NUL byte: remove it")));
    }
    Ok(())
}

/// Names of shells that start every stage in a subshell, as far as contend knows.
pub const SHELLS: [&str; 6] = ["bash", "dash", "sh", "ash", "busybox", "rbash"];

/// The shell that was asked for, or bash, or sh.
pub(super) fn shell(asked: Option<String>) -> Result<String, UsageError> {
    let Some(shell) = asked.filter(|shell| !shell.is_empty()) else {
        return Ok(default_shell().to_owned());
    };
    let name = shell.rsplit('/').next().unwrap_or(&shell).to_owned();
    let unfit = ["zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ksh93", "oksh", "rc", "nu"];
    if unfit.contains(&name.as_str()) {
        return Err(UsageError(format!(
            "--shell {shell}: {name} does not start every stage in a subshell; use bash, dash or \
             busybox"
        )));
    }
    if !SHELLS.contains(&name.as_str()) && !executes_commands(&shell) {
        return Err(UsageError(format!(
            "--shell {shell}: not a shell (it does not run the text after `-c`); use bash, dash or \
             busybox"
        )));
    }
    Ok(shell)
}

/// Whether the program does with `-c` what a shell does. One that cannot be started is left to
/// the start of the pipeline, which says why.
fn executes_commands(shell: &str) -> bool {
    let started = Command::new(shell)
        .args(["-c", "echo $((6 * 7))"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return true };
    let mut said = String::new();
    let answered = child.stdout.take().is_some_and(|stdout| {
        stdout.take(16).read_to_string(&mut said).is_ok() && said.trim_end() == "42"
    });
    // It has said enough; a program that is no shell may go on for ever.
    let _ = child.kill();
    let _ = child.wait();
    answered
}

fn is_kind(path: &Path, kind: FileType) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
}

/// Opened anew through this link, a file on standard input is read from its beginning.
pub const STANDARD_INPUT: &str = "/proc/self/fd/0";

/// Several runs need an input that can be read several times.
fn make_repeatable(how: &mut How) -> Result<(), UsageError> {
    if let Some(path) = &how.stdin {
        if is_kind(path, FileType::Fifo) {
            let message =
                "--runs reads the input several times, but --stdin is a FIFO: give a regular file";
            return Err(UsageError(message.to_owned()));
        }
        return Ok(());
    }
    let kind = rustix::fs::fstat(io::stdin())
        .map_or(FileType::CharacterDevice, |stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        FileType::RegularFile => how.stdin = Some(STANDARD_INPUT.into()),
        FileType::Fifo | FileType::Socket => {
            return Err(UsageError(
                "--runs reads the input several times, but standard input is a pipe: add --stdin \
                 FILE, or --stdin /dev/null if the pipeline reads no input"
                    .to_owned(),
            ));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_that_run_a_stage_themselves_are_refused() {
        assert!(shell(Some("/usr/bin/zsh".into())).is_err());
        assert_eq!(shell(Some("/bin/dash".into())).expect("fit"), "/bin/dash");
        for program in ["/bin/ls", "yes", "cat"] {
            let error = shell(Some(program.into())).expect_err("no shell").0;
            assert!(error.contains(program) && error.lines().count() == 1, "{error}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("myshell");
        std::os::unix::fs::symlink("/bin/sh", &other).expect("room");
        let other = other.to_str().expect("UTF-8").to_owned();
        assert_eq!(shell(Some(other.clone())).expect("fit"), other);
        assert!(["bash", "sh"].contains(&shell(None).expect("a default").as_str()));
    }
}

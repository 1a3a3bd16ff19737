//! Settings of `contend pipe`: parses the pipeline and the questions, opens the files, and checks
//! the shell.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use contend_advise::predict::what_if::{CHANGE_WORDS, Question, QuestionError};
use contend_record::pipe::{PipeRecord, SCHEMA};
use contend_report::render::pipe::Detail;
use contend_shell::environment::default_shell;
use contend_shell::parse::{Parsed, parse};
use contend_shell::side_effects::check_repeatable;
use rustix::fs::FileType;

use super::attach::Attach;
use super::history::{Saver, saving};
use super::script::check_is_command;
use super::versus::{self, Versus};
use super::{RecordPaths, Reports, TraceFile, default_store, publish, readable, shows_progress};
use crate::cli::pipe::{AdviceArgs, PipeArgs, SampleSize, VersusArgs};
use crate::exit::UsageError;
use crate::output::ReportFile;
use crate::records::save::Saving;
use crate::{records, suggest};

/// Settings of `contend pipe`.
#[derive(Debug)]
pub enum Pipe {
    /// A pipeline to profile.
    Run(Box<PipeRun>),
    /// Questions about a saved profile.
    Answer(Box<Answer>),
    /// Pipelines to compare.
    Versus(Box<Versus>),
    /// A running pipeline to observe.
    Attach(Box<Attach>),
}

/// Questions about a saved profile, and where the answers go.
#[derive(Debug)]
pub struct Answer {
    /// The saved profile.
    pub record: PipeRecord,
    /// Questions of `--what-if`.
    pub questions: Vec<Question>,
    /// Path of the store of lab runs, from which the cost of starting a program is taken; `None`
    /// if the store's directory is unknown.
    pub store: Option<PathBuf>,
    /// Where the report goes, and the record with the answers.
    pub reports: Reports,
}

/// A pipeline to profile and where its report goes.
#[derive(Debug)]
pub struct PipeRun {
    /// The parsed pipeline.
    pub parsed: Parsed,
    /// Settings of the execution.
    pub pipeline: PipelineSettings,
    /// Number of runs.
    pub runs: u32,
    /// The advice to add to the profile.
    pub advice: Advice,
    /// Where the report goes.
    pub reports: Reports,
    /// Where the trace goes; `None` if none is written.
    pub trace: Option<TraceFile>,
    /// How the run is saved; `None` if it is not.
    pub saving: Option<Saving>,
    /// Directory in which the run publishes its progress; `None` if it does not.
    pub publish: Option<PathBuf>,
}

/// Settings of the advice after a profile: changes, their trial, and answers.
#[derive(Debug)]
pub struct Advice {
    /// Whether to look for changes.
    pub wanted: bool,
    /// Settings of the trial; `None` to suggest changes without one.
    pub trial: Option<TrialSettings>,
    /// Questions of `--what-if`; may be empty.
    pub questions: Vec<Question>,
    /// Path of the store of lab runs, from which the cost of starting a program is taken; `None`
    /// if the store's directory is unknown.
    pub store: Option<PathBuf>,
}

/// Settings of a trial.
#[derive(Debug, Clone)]
pub struct TrialSettings {
    /// Time limit of the trial.
    pub budget: Duration,
    /// Amount of input to use; `None` to derive it from the budget.
    pub sample: Option<SampleSize>,
    /// Numbers of copies to run at the same time after the trial; empty for no such runs.
    pub copies: Vec<usize>,
    /// Seed for the order of runs.
    pub seed: u64,
}

/// Settings of the execution of a pipeline.
#[derive(Debug, Clone)]
pub struct PipelineSettings {
    /// Name or path of the shell.
    pub shell: String,
    /// Shell text to run before the pipeline, if any.
    pub setup: Option<String>,
    /// Whether the pipeline fails if any stage does.
    pub pipefail: bool,
    /// The file for standard input; `None` to inherit it.
    pub stdin: Option<PathBuf>,
    /// Whether to discard the output.
    pub discard: bool,
    /// Whether to show the stages while they run.
    pub live: bool,
}

impl PipelineSettings {
    /// Opens the file for standard input again, so that each run reads it from the start. Returns
    /// `None` if standard input is inherited.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or is a directory.
    pub fn open_stdin(&self) -> Result<Option<File>> {
        let Some(path) = &self.stdin else {
            return Ok(None);
        };
        let name = format!("--stdin {}", path.display());
        Ok(Some(readable(&name, File::open(path))?))
    }
}

/// Returns the settings of `contend pipe`.
///
/// # Errors
/// Returns a [`UsageError`] for the first mistake found.
pub fn pipe(args: PipeArgs) -> Result<Pipe> {
    let detail = if args.verbose { Detail::Full } else { Detail::Summary };
    let paths = RecordPaths {
        json: args.json.as_deref(),
        html: args.html.as_deref(),
        exports: &args.exports,
    };
    let reports = Reports::prepare(detail, args.output.as_deref(), paths)?
        .with_label(args.save.label.as_deref());
    let trace = args.trace.map(|path| TraceFile::prepare(&path, reports.files())).transpose()?;
    if let Some(path) = &args.advice.from {
        let record = saved_record(path)?;
        let questions = questions(&args.advice.what_if, record.stages.len())?;
        let store = default_store();
        return Ok(Pipe::Answer(Box::new(Answer { record, questions, store, reports })));
    }
    let publish = publish(args.publish)?;
    if args.attach.is_given() {
        let live = shows_progress(args.no_progress);
        let saving = saving(args.save, Saver::Pipe)?;
        let attach = Attach::of(&args.attach, reports, trace, live, saving)?;
        let attach = Attach { publish, ..attach };
        return Ok(Pipe::Attach(Box::new(attach)));
    }
    let is_mixed = |file: &ReportFile| file.shares_standard_output() && !args.discard;
    let mixed = reports.files.named().find(|(_, file)| is_mixed(file));
    if let Some((option, _)) = mixed {
        return Err(UsageError(format!(
            "{option} -: the pipeline's output goes to standard output, too; give {option} a file, or \
             add --discard"
        ))
        .into());
    }
    let text = args.pipeline.unwrap_or_default();
    check_is_command(&text)?;
    check_text("--setup", args.setup.as_deref().unwrap_or(""))?;
    let seed = args.advice.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    let is_compared = args.versus.is_given();
    check_comparison(&args.versus, &args.advice)?;
    let variants = is_compared
        .then(|| versus::variants(&args.versus, &text, args.setup.as_deref()))
        .transpose()?;
    let parsed = parse(&text).map_err(|error| UsageError(error.to_string()))?;
    check_text("the pipeline", &text)?;
    let mut pipeline = PipelineSettings {
        shell: shell(args.shell)?,
        setup: args.setup,
        pipefail: args.pipefail,
        stdin: args.stdin,
        discard: args.discard,
        live: shows_progress(args.no_progress),
    };
    // Opening and closing a FIFO would send its writer SIGPIPE.
    if !pipeline.stdin.as_ref().is_some_and(|path| is_kind(path, FileType::Fifo)) {
        pipeline.open_stdin()?;
    }
    let saving = saving(args.save, Saver::Pipe)?;
    let runs = args.runs.unwrap_or(if is_compared { DEFAULT_ROUNDS } else { 1 });
    if runs > 1 || is_compared {
        make_repeatable(&mut pipeline)?;
    }
    if let Some(variants) = variants {
        let VersusArgs { warmup, fail_if, .. } = args.versus;
        let conditions = versus::conditions(&fail_if, variants.len())?;
        return Ok(Pipe::Versus(Box::new(Versus {
            variants,
            pipeline,
            rounds: runs,
            warmup,
            conditions,
            seed,
            reports,
            saving,
            publish,
        })));
    }
    let advice = advice(args.advice, &parsed, pipeline.setup.as_deref(), seed)?;
    let run = PipeRun { parsed, pipeline, runs, advice, reports, trace, saving, publish };
    Ok(Pipe::Run(Box::new(run)))
}

/// Number of rounds of a comparison without `--runs`.
const DEFAULT_ROUNDS: u32 = 10;

/// Refuses options that do not belong together: `--warmup` and `--prepare` without a comparison,
/// `--seed` without a comparison or a trial, and `--try` and `--what-if` in a comparison.
fn check_comparison(versus: &VersusArgs, advice: &AdviceArgs) -> Result<(), UsageError> {
    let refuse = |message: &str| Err(UsageError(message.to_owned()));
    if !versus.is_given() {
        if versus.warmup > 0 || versus.prepare.is_some() {
            return refuse(
                "--warmup and --prepare belong to a comparison: add --vs, --scan or --fail-if",
            );
        }
        if advice.seed.is_some() && !advice.try_changes {
            return refuse("--seed sets a run order: add --try, --vs or --scan");
        }
        return Ok(());
    }
    if advice.try_changes || !advice.what_if.is_empty() {
        return refuse(
            "--try and --what-if change one pipeline: leave out --vs, --scan and --fail-if",
        );
    }
    Ok(())
}

fn advice(
    args: AdviceArgs,
    parsed: &Parsed,
    setup: Option<&str>,
    seed: u64,
) -> Result<Advice, UsageError> {
    let questions = questions(&args.what_if, parsed.stages.len())?;
    if args.try_changes {
        check_repeatable(parsed, setup).map_err(|why| UsageError(format!("--try {why}")))?;
    }
    let copies = match args.copies {
        // A single copy runs, too, to show whether the ranking changes with the load.
        Some(copies) if copies > 1 => vec![1, usize::from(copies)],
        Some(copies) => vec![usize::from(copies)],
        None => args.sweep_copies.into_iter().map(usize::from).collect(),
    };
    let trial = args.try_changes.then(|| TrialSettings {
        budget: Duration::from_secs_f64(args.budget),
        sample: args.sample,
        copies,
        seed,
    });
    Ok(Advice { wanted: !args.no_advice, trial, questions, store: default_store() })
}

fn questions(texts: &[String], stages: usize) -> Result<Vec<Question>, UsageError> {
    let read = |text: &String| {
        Question::read(text, stages).map_err(|error| {
            if let QuestionError::Unknown(part) = &error
                && let Some(word) = part.split_whitespace().next()
                && !CHANGE_WORDS.contains(&word)
                && let Some(near) = suggest::nearest(word, CHANGE_WORDS)
            {
                let message = format!("unknown change '{word}'; did you mean '{near}'?");
                return UsageError(format!("--what-if '{part}': {message}"));
            }
            UsageError(format!("--what-if {error}"))
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

/// Names of shells that are known to start every stage in a subshell.
pub const SHELLS: [&str; 6] = ["bash", "dash", "sh", "ash", "busybox", "rbash"];

/// Returns the given shell, or else bash or sh. Refuses programs that are not shells, and shells
/// that are known to run a stage themselves.
pub(super) fn shell(given: Option<String>) -> Result<String, UsageError> {
    let Some(shell) = given.filter(|shell| !shell.is_empty()) else {
        return Ok(default_shell().to_owned());
    };
    let name = shell.rsplit('/').next().unwrap_or(&shell).to_owned();
    let unsuitable = ["zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ksh93", "oksh", "rc", "nu"];
    if unsuitable.contains(&name.as_str()) {
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

/// Returns whether the program runs the text after `-c`, as shells do. Returns `true` for a program
/// that cannot be started: the start of the pipeline reports why.
fn executes_commands(shell: &str) -> bool {
    let started = Command::new(shell)
        .args(["-c", "echo $((6 * 7))"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return true };
    let mut printed = String::new();
    let answered = child.stdout.take().is_some_and(|stdout| {
        stdout.take(16).read_to_string(&mut printed).is_ok() && printed.trim_end() == "42"
    });
    // A program that is not a shell may never end.
    let _ = child.kill();
    let _ = child.wait();
    answered
}

fn is_kind(path: &Path, kind: FileType) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
}

/// Path of the link to standard input. Opening a regular file through the link reads it from its
/// beginning.
pub const STANDARD_INPUT: &str = "/proc/self/fd/0";

/// Makes every run read a regular file on standard input from its beginning. Terminals and other
/// devices stay as they are.
///
/// # Errors
/// Returns a [`UsageError`] if the input is a pipe or socket, which can be read only once.
fn make_repeatable(pipeline: &mut PipelineSettings) -> Result<(), UsageError> {
    if let Some(path) = &pipeline.stdin {
        if is_kind(path, FileType::Fifo) {
            let message =
                "the input is read several times, but --stdin is a FIFO: give a regular file";
            return Err(UsageError(message.to_owned()));
        }
        return Ok(());
    }
    let kind = rustix::fs::fstat(io::stdin())
        .map_or(FileType::CharacterDevice, |stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        FileType::RegularFile => pipeline.stdin = Some(STANDARD_INPUT.into()),
        FileType::Fifo | FileType::Socket => {
            return Err(UsageError(
                "the input is read several times, but standard input is a pipe: add --stdin FILE, or \
                 --stdin /dev/null if the pipeline reads no input"
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
